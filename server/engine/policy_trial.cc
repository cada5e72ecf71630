// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/policy_trial.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/base/status.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

absl::StatusOr<PolicyTrial> TryPolicy(const BacktestInput& input,
                                      const Policy& policy,
                                      const TokenCounter& counter,
                                      const PriceSource& prices,
                                      const GoOn& go_on) {
  CLERESTORY_ASSIGN_OR_RETURN(BacktestResult played,
                              Backtest(input, policy, counter, prices, go_on));
  PolicyTrial trial;
  trial.cost = played.cost;
  trial.input = played.input;
  trial.output_tokens = played.output_tokens;
  std::int64_t saved_before = 0;
  for (BacktestCall& call : played.calls) {
    ++trial.call_count;
    // Neither is above what is largest, so that what is left of the call, which
    // is that of its answer, is right or too small.
    const PicoUsd output_cost = call.cost - call.view.view_cost;
    trial.raw_cost = SaturatingAdd(
        trial.raw_cost, SaturatingAdd(output_cost, call.view.raw_cost));
    // What is masked stays masked, so only a break changes what is saved.
    const std::int64_t saved =
        call.view.raw_tokens.total() - call.view.view_tokens.total();
    if (call.view.break_reason != BreakReason::kNone) {
      trial.breaks.push_back({.call = trial.call_count,
                              .saved_tokens = saved - saved_before,
                              .view = std::move(call.view)});
    }
    saved_before = saved;
  }
  return trial;
}

}  // namespace clerestory
