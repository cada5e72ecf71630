// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BACKTEST_SIMULATE_H_
#define CLERESTORY_SERVER_BACKTEST_SIMULATE_H_

#include <cstdint>

#include "server/backtest/backtest.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// The session of a published simulation of masking under a prompt cache (Nadir,
// "Mask Late, Not Often", 2026-11), as `turns` model calls: 6,000 tokens of
// preamble, then per turn 250 tokens of assistant text and calls and an
// observation of 1,800. Real messages, whose characters are their tokens: to be
// counted by SimulationCounter().
BacktestInput SimulatedSession(std::int64_t turns);

// A session of the same kind with sizes as real ones have them: observations
// log-normal with a mean of 1,800 and a sigma of 1.3, from 20 to 25,000; the
// assistant's texts with a median of 181 and a sigma of 0.7, at least 40.
struct LogNormalOptions {
  std::int64_t turns = 100;
  // Equal seeds give equal sessions.
  std::uint64_t seed = 1;
  // Of how many calls in a hundred the user waits before them for longer than
  // most caches live.
  std::int64_t pause_percent = 0;
};
BacktestInput LogNormalSession(const LogNormalOptions& options);

// One token a character.
const TokenCounter& SimulationCounter();

// `policy` with the simulation's placeholder, of 10 tokens.
Policy WithSimulationPlaceholder(Policy policy);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BACKTEST_SIMULATE_H_
