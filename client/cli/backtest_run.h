// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_BACKTEST_RUN_H_
#define CLERESTORY_CLIENT_CLI_BACKTEST_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/transcripts/transcript.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/model/money.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// A policy, as it was typed.
struct NamedPolicy {
  std::string name;
  Policy policy;
};

// What one session costs under one policy.
struct PolicyOutcome {
  std::string policy;
  bool is_raw = false;  // It never masks.
  BacktestResult result;
  // The largest quotient of its cost and the raw cost of any leading part of
  // the session: had it ended there.
  double ratio_to_raw_any_length = 1;
};

// What one session costs under all of them.
struct SessionOutcome {
  std::string name;    // The file, and which of its sessions.
  std::string format;  // The kind of file.
  std::int64_t call_count = 0;
  PicoUsd raw_cost = 0;
  PicoUsd optimum_cost = 0;
  // By call, had the session ended with it.
  std::vector<PicoUsd> optimum_costs;
  BacktestResult raw;
  std::vector<PolicyOutcome> policies;
};

// One line of the summary.
struct PolicySummary {
  std::string policy;
  double ratio_to_raw_total = 1;       // Of the sums of costs.
  double ratio_to_raw_worst = 1;       // Of a session.
  double ratio_to_raw_any_length = 1;  // Of a leading part of a session.
  double ratio_to_optimum_mean = 1;    // Over sessions.
  double ratio_to_optimum_worst = 1;
};

// `transcript`, with `model` for every call if it is not empty.
BacktestInput ToInput(const Transcript& transcript, const std::string& model,
                      std::int64_t preamble_tokens);

// Plays `input` raw, under each policy and under the best schedule for the
// first of them that masks. Errors as Backtest.
absl::StatusOr<SessionOutcome> RunSession(
    const BacktestInput& input, const std::vector<NamedPolicy>& policies,
    const TokenCounter& counter, const PriceSource& prices);

// REQUIRES: all sessions have the same policies.
std::vector<PolicySummary> Summarize(
    const std::vector<SessionOutcome>& sessions);

// `part` / `whole`, 1 if both are 0.
double Ratio(PicoUsd part, PicoUsd whole);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_BACKTEST_RUN_H_
