// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/session_totals.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/model/money.h"
#include "server/model/session_totals.h"
#include "server/view/overreading.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

SessionArm ArmOf(const Session& session) {
  const std::int64_t calls = session.ledger().call_count;
  const std::int64_t control = session.control_call_count();
  if (calls == 0) return SessionArm::kNone;
  if (control == 0) return SessionArm::kMasked;
  return control == calls ? SessionArm::kControl : SessionArm::kMixed;
}

void Add(const ToolTally& tally, SessionTotals& totals) {
  for (std::size_t kind = 0; kind < totals.repeats.size(); ++kind) {
    totals.repeats[kind] += tally.repeats[kind];
  }
  totals.recall_count += tally.recall_count;
  totals.lost = SaturatingAdd(totals.lost, tally.lost);
}

void Add(const ToolTotals& part, ToolTotals& sum) {
  sum.observation_count += part.observation_count;
  sum.token_count += part.token_count;
  sum.masked_count += part.masked_count;
  sum.refetched_count += part.refetched_count;
  sum.judged_count += part.judged_count;
  sum.unreferenced_count += part.unreferenced_count;
  sum.unreferenced_tokens += part.unreferenced_tokens;
  sum.identical_call_count += part.identical_call_count;
}

// Of every tool that was called, by name.
std::map<absl::string_view, ToolTotals> ToolsOf(const Session& session) {
  using Verdict = Overreading::Verdict;
  const Overreading overreading = FindOverreading(session);
  std::map<absl::string_view, ToolTotals> tools;
  for (std::size_t i = 0; i < session.observations().size(); ++i) {
    const Observation& observation = session.observations()[i];
    const std::int64_t tokens = observation.result.token_count;
    ToolTotals& tool = tools[observation.tool];
    ++tool.observation_count;
    tool.token_count += tokens;
    if (observation.was_masked) ++tool.masked_count;
    if (observation.is_refetched) ++tool.refetched_count;
    const Verdict verdict = overreading.observations[i];
    if (verdict != Verdict::kNotJudged) ++tool.judged_count;
    if (verdict == Verdict::kUnreferenced) {
      ++tool.unreferenced_count;
      tool.unreferenced_tokens += tokens;
    }
  }
  for (std::size_t i = 0; i < session.calls().size(); ++i) {
    if (!overreading.identical_calls[i]) continue;
    ++tools[session.calls()[i].call.tool].identical_call_count;
  }
  return tools;
}

// The kTotalsToolsMax with most observations, and the rest as one.
std::vector<ToolTotals> Bounded(
    const std::map<absl::string_view, ToolTotals>& tools) {
  std::vector<ToolTotals> bounded;
  ToolTotals rest;
  bool has_rest = false;
  std::vector<std::pair<std::int64_t, absl::string_view>> order;
  order.reserve(tools.size());
  for (const auto& [name, tool] : tools) {
    order.emplace_back(-tool.observation_count, name);
  }
  std::ranges::sort(order);
  for (const auto& [count, name] : order) {
    const ToolTotals& tool = tools.at(name);
    // A tool without a name is one of the rest.
    if (bounded.size() < kTotalsToolsMax && !name.empty()) {
      bounded.push_back(tool);
      bounded.back().tool = std::string(name);
    } else {
      Add(tool, rest);
      has_rest = true;
    }
  }
  if (has_rest) bounded.push_back(std::move(rest));
  return bounded;
}

}  // namespace

SessionTotals TotalsOf(const Session& session) {
  const Ledger& ledger = session.ledger();
  SessionTotals totals;
  totals.arm = ArmOf(session);
  totals.turn_count = session.turn_count();
  totals.call_count = ledger.call_count;
  totals.raw_tokens =
      SaturatingAdd(ledger.preamble_tokens, ledger.raw_tokens.total());
  totals.view_tokens =
      SaturatingAdd(ledger.preamble_tokens, ledger.view_tokens.total());
  totals.raw_cost = ledger.raw_cost;
  totals.view_cost = ledger.view_cost;
  totals.output_cost = ledger.output_cost;
  totals.usage_cost = ledger.usage_cost;
  for (const auto& [name, tally] : session.tools()) Add(tally, totals);
  Add(session.other_tools(), totals);
  const std::map<absl::string_view, ToolTotals> tools = ToolsOf(session);
  for (const auto& [name, tool] : tools) {
    totals.observation_count += tool.observation_count;
    totals.masked_count += tool.masked_count;
    totals.refetched_count += tool.refetched_count;
  }
  totals.tools = Bounded(tools);
  return totals;
}

}  // namespace clerestory
