// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/report_convert.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/report_service.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/intervals.h"
#include "server/engine/tenant_report.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"
#include "server/rpc/convert.h"

namespace clerestory {
namespace {

absl::StatusOr<std::optional<TimeMicros>> ToBound(
    absl::string_view field, bool is_given,
    const google::protobuf::Timestamp& time) {
  if (!is_given) return std::optional<TimeMicros>();
  const absl::StatusOr<TimeMicros> micros = ToTime(time);
  if (!micros.ok()) {
    return FieldError(field, "expected a time from 1970 to 9999");
  }
  return std::optional<TimeMicros>(*micros);
}

v1::Estimate FromEstimate(const Estimate& estimate) {
  v1::Estimate out;
  out.set_value(estimate.value);
  out.set_low(estimate.low);
  out.set_high(estimate.high);
  return out;
}

std::int64_t CountOf(const ArmReport& arm, Outcome outcome) {
  return arm.outcomes[static_cast<std::size_t>(outcome)];
}

v1::RepeatCounts FromRepeats(const ArmReport& arm) {
  const auto count = [&](RepeatKind kind) {
    return arm.repeats[static_cast<std::size_t>(kind)];
  };
  v1::RepeatCounts out;
  out.set_refetches(count(RepeatKind::kRefetch));
  out.set_duplicates(count(RepeatKind::kDuplicate));
  out.set_refreshes(count(RepeatKind::kRefresh));
  out.set_pagings(count(RepeatKind::kPaging));
  out.set_polls(count(RepeatKind::kPoll));
  return out;
}

v1::ArmReport FromArm(SessionArm which, const ArmReport& arm) {
  v1::ArmReport out;
  out.set_arm(static_cast<v1::SessionArm>(which));
  out.set_session_count(arm.session_count);
  out.set_resolved_count(CountOf(arm, Outcome::kResolved));
  out.set_failed_count(CountOf(arm, Outcome::kFailed));
  out.set_abandoned_count(CountOf(arm, Outcome::kAbandoned));
  out.set_turn_count(arm.turn_count);
  out.set_call_count(arm.call_count);
  out.set_raw_tokens(arm.raw_tokens);
  out.set_view_tokens(arm.view_tokens);
  out.set_raw_cost_pico_usd(arm.raw_cost);
  out.set_view_cost_pico_usd(arm.view_cost);
  out.set_output_cost_pico_usd(arm.output_cost);
  out.set_usage_cost_pico_usd(arm.usage_cost);
  out.set_lost_pico_usd(arm.lost);
  out.set_observation_count(arm.observation_count);
  out.set_masked_count(arm.masked_count);
  out.set_refetched_count(arm.refetched_count);
  *out.mutable_repeats() = FromRepeats(arm);
  out.set_recall_count(arm.recall_count);
  const auto put = [](const std::optional<Estimate>& from, auto mutable_field) {
    if (from.has_value()) *mutable_field() = FromEstimate(*from);
  };
  put(arm.cost_per_resolved_micro_usd,
      [&] { return out.mutable_cost_per_resolved_session_micro_usd(); });
  put(arm.cost_per_session_micro_usd,
      [&] { return out.mutable_cost_per_session_micro_usd(); });
  put(arm.milliturns_per_session,
      [&] { return out.mutable_turns_per_session_thousandths(); });
  put(arm.resolved_ppm, [&] { return out.mutable_resolved_rate_ppm(); });
  put(arm.refetched_ppm, [&] { return out.mutable_refetch_rate_ppm(); });
  put(arm.repeated_ppm, [&] { return out.mutable_repeat_rate_ppm(); });
  return out;
}

v1::MaskingVerdict FromVerdict(MaskingVerdict verdict) {
  switch (verdict) {
    case MaskingVerdict::kTooFewSessions:
      return v1::MASKING_VERDICT_UNSPECIFIED;
    case MaskingVerdict::kNoDifference:
      return v1::MASKING_VERDICT_NO_DIFFERENCE;
    case MaskingVerdict::kMaskedCheaper:
      return v1::MASKING_VERDICT_MASKED_CHEAPER;
    case MaskingVerdict::kControlCheaper:
      return v1::MASKING_VERDICT_CONTROL_CHEAPER;
  }
  return v1::MASKING_VERDICT_UNSPECIFIED;
}

v1::ToolReport FromTool(const ToolAdvice& tool) {
  const ToolTotals& totals = tool.totals;
  v1::ToolReport out;
  out.set_tool(totals.tool);
  out.set_observation_count(totals.observation_count);
  out.set_token_count(totals.token_count);
  out.set_masked_count(totals.masked_count);
  out.set_refetched_count(totals.refetched_count);
  out.set_judged_count(totals.judged_count);
  out.set_unreferenced_count(totals.unreferenced_count);
  out.set_unreferenced_tokens(totals.unreferenced_tokens);
  out.set_identical_call_count(totals.identical_call_count);
  if (tool.reads_too_much) out.add_advice(v1::TOOL_ADVICE_READ_LESS);
  if (tool.repeats_calls) out.add_advice(v1::TOOL_ADVICE_CALL_ONCE);
  return out;
}

}  // namespace

absl::StatusOr<TenantReportRequest> ToReportRequest(
    const v1::TenantReportRequest& request, absl::string_view tenant) {
  TenantReportRequest to = {.tenant = std::string(tenant)};
  CLERESTORY_ASSIGN_OR_RETURN(
      to.close_from, ToBound("close_time_from", request.has_close_time_from(),
                             request.close_time_from()));
  CLERESTORY_ASSIGN_OR_RETURN(
      to.close_before,
      ToBound("close_time_before", request.has_close_time_before(),
              request.close_time_before()));
  if (to.close_from.has_value() && to.close_before.has_value() &&
      *to.close_from >= *to.close_before) {
    return FieldError("close_time_before", "must be after close_time_from");
  }
  CLERESTORY_ASSIGN_OR_RETURN(to.labels, ToLabels("labels", request.labels()));
  return to;
}

std::string ReportScope(const TenantReportRequest& request) {
  // Labels have none of the characters that are put between them.
  std::string scope =
      absl::StrCat("TenantReport/", request.close_from.value_or(-1), "/",
                   request.close_before.value_or(-1));
  for (const auto& [key, value] : request.labels) {
    absl::StrAppend(&scope, ",", key, "=", value);
  }
  return absl::StrCat(scope, ";", request.tenant);
}

v1::TenantReportResponse FromReport(const TenantReport& report) {
  v1::TenantReportResponse out;
  for (std::size_t i = 0; i < report.arms.size(); ++i) {
    if (report.arms[i].session_count == 0) continue;
    *out.add_arms() = FromArm(static_cast<SessionArm>(i), report.arms[i]);
  }
  out.mutable_comparison()->set_verdict(FromVerdict(report.verdict));
  if (report.cost_difference_micro_usd.has_value()) {
    *out.mutable_comparison()->mutable_cost_difference_micro_usd() =
        FromEstimate(*report.cost_difference_micro_usd);
  }
  for (const ToolAdvice& tool : report.tools) *out.add_tools() = FromTool(tool);
  out.set_scanned_session_count(report.scanned_count);
  out.set_open_session_count(report.open_count);
  return out;
}

}  // namespace clerestory
