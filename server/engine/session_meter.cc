// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_meter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/metrics/server_metrics.h"
#include "server/metrics/tenant_sums.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// What the ledger has of them; those that are derived of others stay 0.
TenantSums SumsOf(const Ledger& ledger) {
  TenantSums sums;
  sums[TenantSum::kViews] = ledger.call_count;
  sums[TenantSum::kFullTokens] = ledger.raw_call.total();
  sums[TenantSum::kViewTokens] = ledger.view_call.total();
  sums[TenantSum::kPromptRead] = ledger.view_call.read;
  sums[TenantSum::kPromptWrite] = ledger.view_call.written;
  sums[TenantSum::kPromptUncached] = ledger.view_call.uncached;
  sums[TenantSum::kReportedInput] = ledger.usage.input_uncached.value_or(0);
  sums[TenantSum::kReportedCacheRead] = ledger.usage.cache_read.value_or(0);
  sums[TenantSum::kReportedCacheWrite] = ledger.usage.cache_write.value_or(0);
  sums[TenantSum::kReportedOutput] = ledger.usage.output.value_or(0);
  sums[TenantSum::kReportedReasoning] = ledger.usage.reasoning.value_or(0);
  sums[TenantSum::kReportedCost] = ledger.usage_cost;
  sums[TenantSum::kFullCost] = ledger.raw_cost;
  sums[TenantSum::kViewCost] = ledger.view_cost;
  sums[TenantSum::kEveryTurnCost] = ledger.every_turn_cost;
  sums[TenantSum::kOutputCost] = ledger.output_cost;
  sums[TenantSum::kMaskedObservations] =
      ledger.mask_count + ledger.restore_count - ledger.drop_count;
  sums[TenantSum::kMaskedArguments] = ledger.argument_mask_count;
  sums[TenantSum::kDroppedObservations] = ledger.drop_count;
  sums[TenantSum::kCopiedPlaceholders] = ledger.copied_placeholder_count;
  sums[TenantSum::kComparedCalls] = ledger.compared_count;
  sums[TenantSum::kEstimatedInput] = ledger.estimated_tokens;
  sums[TenantSum::kComparedInput] = ledger.reported_tokens;
  sums[TenantSum::kEstimateError] = ledger.error_tokens;
  for (std::size_t reason = 1; reason < kBreakReasonCount; ++reason) {
    sums.breaks(static_cast<BreakReason>(reason)) = ledger.breaks.at(reason);
  }
  return sums;
}

// What a repeat counts as; nothing for what repeats nothing.
std::optional<ToolEvent> EventOf(RepeatKind kind) {
  switch (kind) {
    case RepeatKind::kNone:
      return std::nullopt;
    case RepeatKind::kRefetch:
      return ToolEvent::kRefetch;
    case RepeatKind::kDuplicate:
      return ToolEvent::kDuplicate;
    case RepeatKind::kRefresh:
      return ToolEvent::kRefresh;
    case RepeatKind::kPaging:
      return ToolEvent::kPaging;
    case RepeatKind::kPoll:
      return ToolEvent::kPoll;
  }
  return std::nullopt;
}

// Counts, by tool, what `record` says of observations, and adds what it cost
// that some were fetched again.
void CountTools(const Session& session, const Record& record,
                ServerMetrics& metrics, PicoUsd& penalty) {
  const auto count = [&](const ObservationId& id, ToolEvent event) {
    const Observation& observation = session.observations()[*session.Find(id)];
    metrics.CountTool(session.header().key.tenant, observation.tool, event, 1,
                      observation.result.token_count);
  };
  if (const auto* view = std::get_if<ViewServed>(&record)) {
    for (const Mask& mask : view->masks) {
      if (mask.is_restored || (mask.placeholder.empty() && !mask.is_dropped)) {
        continue;
      }
      count({.sequence = mask.sequence, .index = mask.index},
            ToolEvent::kMasked);
    }
  } else if (const auto* repeat = std::get_if<ObservationRepeated>(&record)) {
    if (const auto event = EventOf(repeat->kind)) {
      count(repeat->earlier, *event);
    }
    penalty = SaturatingAdd(penalty, repeat->cost);
  } else if (const auto* recall = std::get_if<ObservationRecalled>(&record)) {
    count(recall->observation, ToolEvent::kRecall);
    penalty = SaturatingAdd(penalty, recall->cost);
  }
}

// What came to `before`. The ledger only grows.
TenantSums Grown(const TenantSums& before, const TenantSums& after) {
  TenantSums grown = after;
  for (std::size_t i = 0; i < kTenantSumCount; ++i) {
    grown[static_cast<TenantSum>(i)] -= before.amounts().at(i);
  }
  const std::int64_t saved_tokens =
      grown[TenantSum::kFullTokens] - grown[TenantSum::kViewTokens];
  grown[TenantSum::kSavedTokens] = std::max<std::int64_t>(saved_tokens, 0);
  const PicoUsd saved =
      grown[TenantSum::kFullCost] - grown[TenantSum::kViewCost];
  grown[TenantSum::kCostSaved] = std::max<PicoUsd>(saved, 0);
  grown[TenantSum::kPenaltyCacheBreak] = std::max<PicoUsd>(-saved, 0);
  return grown;
}

}  // namespace

SessionMeter::SessionMeter(ServerMetrics* metrics, const Session& session)
    : metrics_(metrics),
      before_(metrics == nullptr ? TenantSums() : SumsOf(session.ledger())) {}

void SessionMeter::Stored(const Session& session,
                          const std::vector<Record>& records) const {
  if (metrics_ == nullptr || records.empty()) return;
  const SessionHeader& header = session.header();
  const Ledger& ledger = session.ledger();
  TenantSums grown = Grown(before_, SumsOf(ledger));
  for (const Record& record : records) {
    CountTools(session, record, *metrics_, grown[TenantSum::kPenaltyRefetch]);
    const auto* view = std::get_if<ViewServed>(&record);
    if (view == nullptr || view->break_reason == BreakReason::kNone) continue;
    PicoUsd& price = grown.break_price(view->break_reason);
    price = SaturatingAdd(price, std::max<PicoUsd>(view->break_price, 0));
  }
  metrics_->AddToTenant(header.key.tenant, grown);
  if (!std::holds_alternative<SessionClosed>(records.back())) return;
  metrics_->SessionEnded(header.key.tenant, header.outcome,
                         header.totals.arm == SessionArm::kControl,
                         SaturatingAdd(ledger.view_cost, ledger.output_cost),
                         SaturatingAdd(ledger.raw_cost, ledger.output_cost));
}

}  // namespace clerestory
