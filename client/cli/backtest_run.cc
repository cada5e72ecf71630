// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/backtest_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/transcripts/transcript.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/base/status.h"
#include "server/model/money.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

double WorstPart(const BacktestResult& result, const BacktestResult& raw) {
  double worst = 1;
  PicoUsd cost = 0;
  PicoUsd raw_cost = 0;
  for (std::size_t i = 0; i < result.calls.size(); ++i) {
    cost += result.calls[i].cost;
    raw_cost += raw.calls[i].cost;
    worst = std::max(worst, Ratio(cost, raw_cost));
  }
  return worst;
}

// The first policy that masks: it says what is eligible at all.
Policy MaskingPolicy(const std::vector<NamedPolicy>& policies) {
  for (const NamedPolicy& named : policies) {
    if (named.policy.mode != Mode::kOff) return named.policy;
  }
  return {};
}

}  // namespace

double Ratio(PicoUsd part, PicoUsd whole) {
  if (whole == 0) return 1;
  return static_cast<double>(part) / static_cast<double>(whole);
}

BacktestInput ToInput(const Transcript& transcript, const std::string& model,
                      std::int64_t preamble_tokens) {
  BacktestInput input;
  input.format = transcript.format;
  input.preamble_tokens = preamble_tokens;
  for (const TranscriptMessage& message : transcript.messages) {
    input.messages.push_back(
        {.bytes = std::make_shared<const std::string>(message.bytes),
         .time = message.time,
         .model = model.empty() ? message.model : model});
  }
  return input;
}

absl::StatusOr<SessionOutcome> RunSession(
    const BacktestInput& input, const std::vector<NamedPolicy>& policies,
    const TokenCounter& counter, const PriceSource& prices) {
  Policy off;
  off.mode = Mode::kOff;
  SessionOutcome outcome;
  CLERESTORY_ASSIGN_OR_RETURN(outcome.raw,
                              Backtest(input, off, counter, prices));
  outcome.call_count = static_cast<std::int64_t>(outcome.raw.calls.size());
  outcome.raw_cost = outcome.raw.cost;
  CLERESTORY_ASSIGN_OR_RETURN(
      outcome.optimum_costs,
      OptimumCosts(input, MaskingPolicy(policies), counter, prices));
  if (!outcome.optimum_costs.empty()) {
    outcome.optimum_cost = outcome.optimum_costs.back();
  }
  for (const NamedPolicy& named : policies) {
    PolicyOutcome policy;
    policy.policy = named.name;
    policy.is_raw = named.policy.mode == Mode::kOff;
    CLERESTORY_ASSIGN_OR_RETURN(policy.result,
                                Backtest(input, named.policy, counter, prices));
    policy.ratio_to_raw_any_length = WorstPart(policy.result, outcome.raw);
    outcome.policies.push_back(std::move(policy));
  }
  return outcome;
}

std::vector<PolicySummary> Summarize(
    const std::vector<SessionOutcome>& sessions) {
  std::vector<PolicySummary> summaries;
  if (sessions.empty()) return summaries;
  for (std::size_t p = 0; p < sessions.front().policies.size(); ++p) {
    PolicySummary summary;
    summary.policy = sessions.front().policies[p].policy;
    summary.ratio_to_raw_worst = 0;
    summary.ratio_to_optimum_worst = 0;
    PicoUsd cost = 0;
    PicoUsd raw_cost = 0;
    double sum = 0;
    for (const SessionOutcome& session : sessions) {
      const PolicyOutcome& policy = session.policies[p];
      cost += policy.result.cost;
      raw_cost += session.raw_cost;
      const double to_optimum = Ratio(policy.result.cost, session.optimum_cost);
      sum += to_optimum;
      summary.ratio_to_raw_worst =
          std::max(summary.ratio_to_raw_worst,
                   Ratio(policy.result.cost, session.raw_cost));
      summary.ratio_to_optimum_worst =
          std::max(summary.ratio_to_optimum_worst, to_optimum);
      summary.ratio_to_raw_any_length = std::max(
          summary.ratio_to_raw_any_length, policy.ratio_to_raw_any_length);
    }
    summary.ratio_to_raw_total = Ratio(cost, raw_cost);
    summary.ratio_to_optimum_mean = sum / static_cast<double>(sessions.size());
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace clerestory
