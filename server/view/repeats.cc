// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/repeats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/cost/prices.h"
#include "server/formats/recall_tool.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/refetch/detector.h"
#include "server/tools/access.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

ObservationId IdOf(const Observation& observation) {
  return {.sequence = observation.sequence, .index = observation.index};
}

}  // namespace

PicoUsd FetchCost(const Session& session, const ModelPrices& prices,
                  std::size_t index) {
  if (!session.last_view().has_value()) return 0;
  const ViewServed& view = *session.last_view();
  const Observation& observation = session.observations()[index];
  const Call& call = session.calls()[observation.call];
  const std::int64_t scale =
      view.token_scale_ppm == 0 ? kScaleOne : view.token_scale_ppm;
  const std::int64_t prompt = view.view_call.total();
  const TokenRates rates = RatesFor(prices, prompt, /*is_long_life=*/false);
  const auto same_turn =
      std::ranges::equal_range(session.calls(), call.turn, {}, &Call::turn);
  const auto sharers = std::max<std::int64_t>(1, std::ranges::ssize(same_turn));
  PicoUsd cost = SaturatingMultiply(prompt, rates.read) / sharers;
  cost = SaturatingAdd(
      cost,
      SaturatingMultiply(Scaled(call.call.token_count, scale), rates.output));
  return SaturatingAdd(
      cost, SaturatingMultiply(Scaled(observation.result.token_count, scale),
                               rates.write));
}

PicoUsd RecallCost(const Session& session, const ModelPrices& prices,
                   std::size_t index) {
  if (!session.last_view().has_value()) return 0;
  const ViewServed& view = *session.last_view();
  const std::int64_t scale =
      view.token_scale_ppm == 0 ? kScaleOne : view.token_scale_ppm;
  const std::int64_t prompt = view.view_call.total();
  const TokenRates rates = RatesFor(prices, prompt, /*is_long_life=*/false);
  const std::int64_t tokens = session.observations()[index].result.token_count;
  return SaturatingAdd(
      SaturatingAdd(SaturatingMultiply(prompt, rates.read),
                    SaturatingMultiply(kRecallOutputTokens, rates.output)),
      SaturatingMultiply(Scaled(tokens, scale), rates.write));
}

void NoteRepeats(std::size_t first, TimeMicros now, const Policy& policy,
                 const ModelPrices& prices, Session& session,
                 std::vector<Record>& records) {
  const auto rule_of = [&](absl::string_view tool) {
    const ToolRule* const rule = RuleFor(policy, tool);
    return rule == nullptr ? ToolAccess() : rule->access;
  };
  for (std::size_t i = first; i < session.observations().size(); ++i) {
    const Observation& observation = session.observations()[i];
    if (session.header().has_recall_tool &&
        observation.tool == kRecallToolName) {
      continue;
    }
    const Repeat repeat = session.FindRepeat(i, rule_of);
    if (repeat.kind == RepeatKind::kNone) continue;
    ObservationRepeated record = {
        .time = now,
        .later = IdOf(observation),
        .earlier = IdOf(session.observations()[repeat.earlier]),
        .kind = repeat.kind};
    if (repeat.kind == RepeatKind::kRefetch) {
      record.cost = FetchCost(session, prices, i);
    }
    session.Apply(record);
    records.emplace_back(record);
  }
}

}  // namespace clerestory
