// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/backtest_report.h"

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/cli/backtest_run.h"
#include "client/cli/terminal.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

using nlohmann::ordered_json;

using Table = std::vector<std::vector<std::string>>;

std::vector<std::string> Heading(std::vector<std::string> first,
                                 const SessionOutcome& session) {
  for (const PolicyOutcome& policy : session.policies) {
    first.push_back(policy.policy);
  }
  first.emplace_back("optimum");
  return first;
}

// A quotient with six digits: more are noise.
double Rounded(double ratio) { return std::round(ratio * 1e6) / 1e6; }

// Dollars as a number; what is exact is printed by FormatUsd.
double Usd(PicoUsd amount) {
  return static_cast<double>(amount) / static_cast<double>(kPicoUsdPerUsd);
}

ordered_json ToJson(const PolicyOutcome& policy,
                    const SessionOutcome& session) {
  const BacktestResult& result = policy.result;
  ordered_json breaks = ordered_json::object();
  for (std::size_t reason = 1; reason < result.breaks.size(); ++reason) {
    if (result.breaks[reason] == 0) continue;
    breaks[std::string(BreakName(static_cast<BreakReason>(reason)))] =
        result.breaks[reason];
  }
  return {
      {"policy", policy.policy},
      {"cost_usd", Usd(result.cost)},
      {"ratio_to_raw", Rounded(Ratio(result.cost, session.raw_cost))},
      {"ratio_to_optimum", Rounded(Ratio(result.cost, session.optimum_cost))},
      {"breaks", breaks},
      {"tokens",
       {{"read", result.input.read},
        {"written", result.input.written},
        {"uncached", result.input.uncached},
        {"output", result.output_tokens}}}};
}

}  // namespace

absl::string_view BreakName(BreakReason reason) {
  switch (reason) {
    case BreakReason::kNone:
      return "";
    case BreakReason::kPays:
      return "pays";
    case BreakReason::kCacheCold:
      return "cache_cold";
    case BreakReason::kModelChanged:
      return "model_changed";
    case BreakReason::kWindow:
      return "window";
    case BreakReason::kPreambleChanged:
      return "preamble_changed";
    case BreakReason::kCacheMissed:
      return "cache_missed";
    case BreakReason::kSchedule:
      return "schedule";
  }
  return "";
}

std::string FormatRatio(double ratio) { return absl::StrFormat("%.3f", ratio); }

std::string FormatSessions(const std::vector<SessionOutcome>& sessions) {
  if (sessions.empty()) return "";
  Table table = {Heading({"session", "calls", "raw $"}, sessions.front())};
  for (const SessionOutcome& session : sessions) {
    std::vector<std::string> row = {session.name,
                                    absl::StrCat(session.call_count),
                                    FormatUsd(session.raw_cost, 4)};
    for (const PolicyOutcome& policy : session.policies) {
      row.push_back(FormatRatio(Ratio(policy.result.cost, session.raw_cost)));
    }
    row.push_back(FormatRatio(Ratio(session.optimum_cost, session.raw_cost)));
    table.push_back(std::move(row));
  }
  Table summary = {{"policy", "of raw, in total", "of raw, worst",
                    "of raw, any length", "of optimum, mean",
                    "of optimum, worst"}};
  for (const PolicySummary& policy : Summarize(sessions)) {
    summary.push_back({policy.policy, FormatRatio(policy.ratio_to_raw_total),
                       FormatRatio(policy.ratio_to_raw_worst),
                       FormatRatio(policy.ratio_to_raw_any_length),
                       FormatRatio(policy.ratio_to_optimum_mean),
                       FormatRatio(policy.ratio_to_optimum_worst)});
  }
  return absl::StrCat("Cost of each session as a part of its raw cost:\n\n",
                      FormatTable(table), "\n", FormatTable(summary));
}

std::string FormatSimulation(const std::vector<SessionOutcome>& sessions) {
  if (sessions.empty()) return "";
  Table table = {Heading({"turns"}, sessions.front())};
  for (const SessionOutcome& session : sessions) {
    std::vector<std::string> row = {absl::StrCat(session.call_count)};
    for (const PolicyOutcome& policy : session.policies) {
      row.push_back(FormatUsd(policy.result.cost, 3));
    }
    row.push_back(FormatUsd(session.optimum_cost, 3));
    table.push_back(std::move(row));
  }
  return absl::StrCat("Cost in dollars by length of the session:\n\n",
                      FormatTable(table));
}

std::string FormatJson(const std::vector<SessionOutcome>& sessions) {
  ordered_json files = ordered_json::array();
  for (const SessionOutcome& session : sessions) {
    ordered_json policies = ordered_json::array();
    for (const PolicyOutcome& policy : session.policies) {
      policies.push_back(ToJson(policy, session));
    }
    files.push_back({{"file", session.name},
                     {"format", session.format},
                     {"turns", session.call_count},
                     {"raw_cost_usd", Usd(session.raw_cost)},
                     {"optimum_cost_usd", Usd(session.optimum_cost)},
                     {"policies", policies}});
  }
  ordered_json summary = ordered_json::array();
  for (const PolicySummary& policy : Summarize(sessions)) {
    summary.push_back(
        {{"policy", policy.policy},
         {"ratio_to_raw_total", Rounded(policy.ratio_to_raw_total)},
         {"ratio_to_optimum_mean", Rounded(policy.ratio_to_optimum_mean)},
         {"ratio_to_optimum_worst", Rounded(policy.ratio_to_optimum_worst)},
         {"ratio_to_raw_worst", Rounded(policy.ratio_to_raw_worst)},
         {"ratio_to_raw_any_length", Rounded(policy.ratio_to_raw_any_length)}});
  }
  return ordered_json{{"files", files}, {"summary", summary}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace clerestory
