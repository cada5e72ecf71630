// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/record_cost.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/call_cost.h"
#include "server/view/candidate.h"
#include "server/view/eligible.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// What leaving out the observation at `index` would save if it were masked as
// soon as it may be.
std::int64_t EveryTurnSaving(const RecordPricing& pricing, std::size_t index) {
  const Observation& observation = pricing.session.observations()[index];
  if (observation.is_dropped) return observation.result.token_count;
  if (observation.placeholder.has_value()) {
    return observation.result.token_count - observation.placeholder_tokens;
  }
  return MaskSaving(pricing.session, pricing.policy, pricing.prices, index);
}

void PriceEveryTurn(const RecordPricing& pricing, ViewServed& record) {
  const CallCost& cost = pricing.cost;
  const auto& all = pricing.session.observations();
  std::int64_t saving = pricing.session.every_turn_saving();
  std::int64_t found = cost.cached_every_turn_tokens();
  bool is_first = true;
  const Eligible::EveryTurn every = pricing.eligible.InEveryTurn();
  for (const std::size_t i : every.masked_now) {
    const std::int64_t saved = EveryTurnSaving(pricing, i);
    if (saved == 0) continue;
    if (is_first) {
      std::int64_t before = all[i].raw_tokens_before - saving;
      for (const std::size_t behind : every.masked_behind) {
        if (behind > i) before += EveryTurnSaving(pricing, behind);
      }
      found = std::min(found, cost.PromptTokens(before));
      is_first = false;
    }
    saving += saved;
  }
  record.every_turn_saving = saving;
  record.every_turn_call =
      cost.Split(record.raw_tokens.total() - saving, found);
  record.every_turn_cost = cost.Cost(record.every_turn_call);
}

void PriceAnswer(const RecordPricing& pricing, ViewServed& record) {
  const Session& session = pricing.session;
  if (!session.last_view().has_value()) return;
  for (std::int64_t m = session.last_view()->message_count;
       m < session.message_count(); ++m) {
    const SessionMessage& message =
        session.messages()[static_cast<std::size_t>(m)];
    if (message.role != Role::kAssistant) continue;
    record.output_tokens += message.tokens.total();
  }
  record.output_cost = SaturatingMultiply(
      record.output_tokens,
      pricing.cost.RatesOf(session.last_view()->view_call.total()).output);
}

}  // namespace

void PriceRecord(const RecordPricing& pricing, ViewServed& record) {
  const CallCost& cost = pricing.cost;
  record.preamble_digest = pricing.request.preamble_digest;
  record.token_scale_ppm = pricing.request.token_scale_ppm;
  record.cache_time = cost.cache_time();
  record.view_call = cost.Split(record.view_tokens.total(), pricing.found);
  record.raw_call =
      cost.Split(record.raw_tokens.total(), cost.cached_raw_tokens());
  record.view_cost = cost.Cost(record.view_call);
  record.raw_cost = cost.Cost(record.raw_call);
  PriceEveryTurn(pricing, record);
  PriceAnswer(pricing, record);
}

}  // namespace clerestory
