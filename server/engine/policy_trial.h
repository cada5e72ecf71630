// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_POLICY_TRIAL_H_
#define CLERESTORY_SERVER_ENGINE_POLICY_TRIAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// A break of a session that was played.
struct TrialBreak {
  std::int64_t call = 0;          // Counted from 1: before which it was made.
  std::int64_t saved_tokens = 0;  // By this break, of this call's prompt.
  ViewServed view = {};
};

// What a session would have been under a policy: estimates, as of every view.
struct PolicyTrial {
  std::int64_t call_count = 0;
  PicoUsd cost = 0;      // Of input and output.
  PicoUsd raw_cost = 0;  // The same if nothing had ever been masked.
  CallTokens input;
  std::int64_t output_tokens = 0;
  std::vector<TrialBreak> breaks;
};

// Plays `input` under `policy`. Pure; errors as of Backtest.
absl::StatusOr<PolicyTrial> TryPolicy(const BacktestInput& input,
                                      const Policy& policy,
                                      const TokenCounter& counter,
                                      const PriceSource& prices,
                                      const GoOn& go_on = nullptr);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_POLICY_TRIAL_H_
