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

// One token a character.
const TokenCounter& SimulationCounter();

// `policy` with the simulation's placeholder, of 10 tokens.
Policy WithSimulationPlaceholder(Policy policy);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BACKTEST_SIMULATE_H_
