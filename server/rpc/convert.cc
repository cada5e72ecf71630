// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/convert.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "clerestory/v1/usage.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "google/protobuf/map.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/decide.h"
#include "server/engine/session_engine.h"
#include "server/formats/recall_tool.h"
#include "server/model/labels.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/rpc/recall_convert.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "server/view/view.h"

namespace clerestory {
namespace {

v1::StageTokens FromStages(const StageTokens& tokens) {
  v1::StageTokens out;
  out.set_user(tokens.user);
  out.set_assistant(tokens.assistant);
  out.set_calls(tokens.calls);
  out.set_observations(tokens.observations);
  return out;
}

v1::CallTokens FromCall(const CallTokens& tokens) {
  v1::CallTokens out;
  out.set_read(tokens.read);
  out.set_written(tokens.written);
  out.set_uncached(tokens.uncached);
  return out;
}

v1::ViewPrefix FromPrefix(const ViewPrefix& prefix) {
  v1::ViewPrefix out;
  out.set_message_count(prefix.message_count);
  out.set_byte_count(prefix.byte_count);
  out.set_token_count(prefix.token_count);
  out.set_digest(prefix.digest.ToHex());
  return out;
}

v1::CacheStatus FromCacheStatus(CacheStatus status) {
  return static_cast<v1::CacheStatus>(status);
}

v1::BreakReason FromReason(BreakReason reason) {
  return static_cast<v1::BreakReason>(reason);
}

v1::BreakEntry FromBreakEntry(const BreakEntry& entry, PicoUsd read_price_sum) {
  v1::BreakEntry out;
  *out.mutable_time() = FromTime(entry.time);
  out.set_message_count(entry.message_count);
  out.set_sequence(entry.first_sequence);
  out.set_reason(FromReason(entry.reason));
  out.set_price_pico_usd(entry.price);
  out.set_rent_pico_usd(entry.rent);
  out.set_mask_count(entry.mask_count);
  out.set_saved_tokens(entry.saved_tokens);
  out.set_saved_so_far_pico_usd(SaturatingMultiply(
      entry.saved_tokens, read_price_sum - entry.read_price_sum));
  return out;
}

v1::ToolEntry FromTool(const ToolSummary& summary) {
  const ToolTally& tally = summary.tally;
  v1::ToolEntry out;
  out.set_tool(summary.tool);
  out.set_is_other(summary.is_other);
  out.set_observation_count(tally.observation_count);
  out.set_masked_once_count(tally.mask_count);
  out.set_refetched_count(tally.refetched_count);
  for (std::size_t kind = 1; kind < tally.repeats.size(); ++kind) {
    if (tally.repeats[kind] == 0) continue;
    v1::RepeatCount& count = *out.add_repeats();
    count.set_kind(static_cast<v1::RepeatKind>(kind));
    count.set_count(tally.repeats[kind]);
  }
  out.set_recall_count(tally.recall_count);
  out.set_refetch_turns_sum(tally.refetch_turns);
  out.set_masked_tokens(tally.masked_tokens);
  out.set_saved_pico_usd(tally.saved);
  out.set_lost_pico_usd(tally.lost);
  out.set_is_unmasked(summary.is_unmasked);
  return out;
}

bool IsSessionIdCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
         c == '_' || c == ':' || c == '~' || c == '-';
}

}  // namespace

absl::Status CheckSessionId(absl::string_view session_id) {
  if (session_id.empty()) return FieldError("session_id", "missing");
  if (static_cast<std::int64_t>(session_id.size()) > kSessionIdBytesMax) {
    return FieldError(
        "session_id",
        absl::StrCat("longer than ", kSessionIdBytesMax, " characters"));
  }
  for (const char c : session_id) {
    if (!IsSessionIdCharacter(c)) {
      return FieldError("session_id",
                        "only letters, digits and the characters . _ : ~ - "
                        "are allowed");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckModel(absl::string_view model) {
  if (static_cast<std::int64_t>(model.size()) > kModelBytesMax) {
    return FieldError("model",
                      absl::StrCat("longer than ", kModelBytesMax, " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Labels> ToLabels(
    absl::string_view field,
    const google::protobuf::Map<std::string, std::string>& labels) {
  if (static_cast<std::int64_t>(labels.size()) > kSessionLabelsMax) {
    return FieldError(field,
                      absl::StrCat("more than ", kSessionLabelsMax, " labels"));
  }
  // In the order of the keys, so that of several errors the same one is told.
  Labels sorted(labels.begin(), labels.end());
  for (const auto& [key, value] : sorted) {
    if (const std::string what = LabelKeyProblem(key); !what.empty()) {
      return FieldError(field, what);
    }
    if (const std::string what = LabelValueProblem(value); !what.empty()) {
      return FieldError(absl::StrCat(field, "[", key, "]"), what);
    }
  }
  return sorted;
}

absl::StatusOr<Format> ToFormat(v1::Format format) {
  if (format == v1::FORMAT_UNSPECIFIED || !v1::Format_IsValid(format)) {
    return FieldError(
        "format",
        "expected FORMAT_ANTHROPIC_MESSAGES, FORMAT_OPENAI_CHAT, "
        "FORMAT_OPENAI_RESPONSES, FORMAT_GEMINI or FORMAT_BEDROCK_CONVERSE");
  }
  return static_cast<Format>(format);
}

absl::StatusOr<Outcome> ToOutcome(v1::Outcome outcome) {
  if (outcome == v1::OUTCOME_UNSPECIFIED || !v1::Outcome_IsValid(outcome)) {
    return FieldError(
        "outcome",
        "expected OUTCOME_RESOLVED, OUTCOME_FAILED or OUTCOME_ABANDONED");
  }
  return static_cast<Outcome>(outcome);
}

absl::StatusOr<TimeMicros> ToTime(const google::protobuf::Timestamp& time) {
  // The range of google.protobuf.Timestamp from 1970 on.
  constexpr std::int64_t kSecondsMax = 253'402'300'799;
  if (time.seconds() < 0 || time.seconds() > kSecondsMax || time.nanos() < 0 ||
      time.nanos() > 999'999'999) {
    return FieldError("call_time", "not a time from 1970 to 9999");
  }
  return time.seconds() * kMicrosPerSecond + time.nanos() / 1000;
}

UsageInput ToUsageInput(const v1::Usage& usage) {
  if (!usage.provider_json().empty()) return usage.provider_json();
  Usage out;
  if (usage.has_input_uncached_tokens()) {
    out.input_uncached = usage.input_uncached_tokens();
  }
  if (usage.has_cache_read_tokens()) out.cache_read = usage.cache_read_tokens();
  if (usage.has_cache_write_tokens()) {
    out.cache_write = usage.cache_write_tokens();
  }
  if (usage.has_output_tokens()) out.output = usage.output_tokens();
  if (usage.has_reasoning_tokens()) out.reasoning = usage.reasoning_tokens();
  return out;
}

absl::StatusOr<ObservationId> ToObservationId(
    absl::string_view observation_id) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(observation_id, '.');
  ObservationId id;
  // One observation has one id: "+1.0" and "01.0" are none.
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &id.sequence) ||
      !absl::SimpleAtoi(parts[1], &id.index) || id.sequence < 0 ||
      id.index < 0 || FromObservationId(id) != observation_id) {
    return FieldError("observation_id",
                      "expected the sequence of a message, a point and the "
                      "place of a result in it, as in 12.0");
  }
  return id;
}

std::string FromObservationId(const ObservationId& id) {
  return absl::StrCat(id.sequence, ".", id.index);
}

google::protobuf::Timestamp FromTime(TimeMicros time) {
  google::protobuf::Timestamp out;
  out.set_seconds(time / kMicrosPerSecond);
  out.set_nanos(static_cast<std::int32_t>(time % kMicrosPerSecond * 1000));
  return out;
}

v1::Session FromHeader(const SessionHeader& header) {
  v1::Session out;
  out.set_session_id(header.key.session);
  out.set_format(static_cast<v1::Format>(header.format));
  out.set_model(header.model);
  *out.mutable_create_time() = FromTime(header.create_time);
  out.mutable_labels()->insert(header.labels.begin(), header.labels.end());
  out.set_outcome(static_cast<v1::Outcome>(header.outcome));
  if (header.outcome != Outcome::kOpen) {
    *out.mutable_close_time() = FromTime(header.close_time);
  }
  if (header.has_recall_tool) {
    out.set_recall_tool(true);
    out.set_recall_tool_definition(RecallToolDefinition(header.format));
  }
  return out;
}

v1::Session FromSummary(const SessionSummary& summary) {
  v1::Session out = FromHeader(summary.header);
  out.set_message_count(summary.message_count);
  out.set_history_bytes(summary.history_bytes);
  out.set_observation_count(summary.observation_count);
  out.set_masked_count(summary.masked_count);
  return out;
}

v1::Ledger FromLedger(const SessionSummary& summary) {
  const Ledger& ledger = summary.ledger;
  v1::Ledger out;
  out.set_call_count(ledger.call_count);
  out.set_preamble_tokens(ledger.preamble_tokens);
  *out.mutable_raw_tokens() = FromStages(ledger.raw_tokens);
  *out.mutable_view_tokens() = FromStages(ledger.view_tokens);
  *out.mutable_raw_call() = FromCall(ledger.raw_call);
  *out.mutable_view_call() = FromCall(ledger.view_call);
  out.set_raw_cost_pico_usd(ledger.raw_cost);
  out.set_view_cost_pico_usd(ledger.view_cost);
  out.set_output_tokens(ledger.output_tokens);
  out.set_output_cost_pico_usd(ledger.output_cost);
  for (std::size_t reason = 1; reason < ledger.breaks.size(); ++reason) {
    if (ledger.breaks[reason] == 0) continue;
    v1::BreakCount& count = *out.add_breaks();
    count.set_reason(FromReason(static_cast<BreakReason>(reason)));
    count.set_count(ledger.breaks[reason]);
  }
  out.set_mask_count(ledger.mask_count);
  out.set_usage_count(ledger.usage_count);
  *out.mutable_usage() = FromUsage(ledger.usage);
  out.set_drop_count(ledger.drop_count);
  out.set_argument_mask_count(ledger.argument_mask_count);
  out.set_copied_placeholder_count(ledger.copied_placeholder_count);
  *out.mutable_every_turn_call() = FromCall(ledger.every_turn_call);
  out.set_every_turn_cost_pico_usd(ledger.every_turn_cost);
  for (const BreakEntry& entry : ledger.break_entries) {
    *out.add_break_entries() = FromBreakEntry(entry, summary.read_price_sum);
  }
  out.set_usage_cost_pico_usd(ledger.usage_cost);
  v1::EstimateError& error = *out.mutable_estimate_error();
  error.set_call_count(ledger.compared_count);
  error.set_estimated_tokens(ledger.estimated_tokens);
  error.set_reported_tokens(ledger.reported_tokens);
  error.set_error_tokens(ledger.error_tokens);
  out.set_cache_status(FromCacheStatus(summary.cache_status));
  for (const ToolSummary& tool : summary.tools) {
    *out.add_tools() = FromTool(tool);
  }
  out.set_restore_count(ledger.restore_count);
  for (const Pin& pin : summary.pins) *out.add_pins() = FromPin(pin);
  out.set_control_call_count(summary.control_call_count);
  return out;
}

v1::Usage FromUsage(const Usage& usage) {
  v1::Usage out;
  if (usage.input_uncached.has_value()) {
    out.set_input_uncached_tokens(*usage.input_uncached);
  }
  if (usage.cache_read.has_value()) {
    out.set_cache_read_tokens(*usage.cache_read);
  }
  if (usage.cache_write.has_value()) {
    out.set_cache_write_tokens(*usage.cache_write);
  }
  if (usage.output.has_value()) out.set_output_tokens(*usage.output);
  if (usage.reasoning.has_value()) out.set_reasoning_tokens(*usage.reasoning);
  return out;
}

v1::Observation FromObservation(const Observation& observation,
                                bool is_pinned) {
  v1::Observation out;
  out.set_observation_id(
      FromObservationId({observation.sequence, observation.index}));
  out.set_sequence(observation.sequence);
  out.set_tool(observation.tool);
  out.set_is_error(observation.result.is_error);
  out.set_content_bytes(
      static_cast<std::int64_t>(observation.result.content.size));
  out.set_token_count(observation.result.token_count);
  out.set_line_count(observation.result.line_count);
  out.set_image_count(observation.result.image_count);
  out.set_document_count(observation.result.document_count);
  out.set_is_dropped(observation.is_dropped);
  if (observation.placeholder.has_value()) {
    out.set_placeholder(*observation.placeholder);
  }
  if (observation.placeholder.has_value() || observation.is_dropped) {
    *out.mutable_mask_time() = FromTime(observation.mask_time);
    out.set_mask_reason(FromReason(observation.mask_reason));
  }
  out.set_is_refetched(observation.is_refetched);
  out.set_is_recalled(observation.is_recalled);
  out.set_is_pinned(is_pinned);
  return out;
}

v1::ViewReport FromView(const BuiltView& built) {
  const ViewServed& decision = built.view.decision;
  v1::ViewReport out;
  *out.mutable_whole() = FromPrefix(built.view.whole);
  *out.mutable_stable() = FromPrefix(built.view.stable);
  if (!decision.masks.empty() || decision.strip_from.has_value()) {
    v1::Break& broken = *out.mutable_break_();
    broken.set_reason(FromReason(decision.break_reason));
    broken.set_sequence(built.view.first_change);
    for (const Mask& mask : decision.masks) {
      v1::MaskedObservation& masked = *broken.add_masks();
      masked.set_observation_id(FromObservationId({mask.sequence, mask.index}));
      // What stood in its place is no longer to be seen.
      masked.set_is_restored(mask.is_restored);
      if (mask.is_restored) continue;
      masked.set_placeholder(mask.placeholder);
      masked.set_arguments(mask.arguments);
      masked.set_is_dropped(mask.is_dropped);
    }
    broken.set_price_pico_usd(decision.break_price);
    broken.set_rent_pico_usd(decision.break_rent);
    broken.set_saved_tokens(built.saved_tokens);
    if (decision.strip_from.has_value()) {
      broken.set_stripped_from(*decision.strip_from);
    }
  }
  out.set_masked_count(built.masked_count);
  out.set_frontier(built.view.frontier);
  for (const std::int64_t mark : built.view.cache_marks) {
    out.add_cache_marks(mark);
  }
  *out.mutable_raw_tokens() = FromStages(decision.raw_tokens);
  *out.mutable_view_tokens() = FromStages(decision.view_tokens);
  *out.mutable_raw_call() = FromCall(decision.raw_call);
  *out.mutable_view_call() = FromCall(decision.view_call);
  out.set_raw_cost_pico_usd(decision.raw_cost);
  out.set_view_cost_pico_usd(decision.view_cost);
  out.set_over_window_tokens(built.over_window_tokens);
  out.set_copied_placeholder_count(built.copied_placeholder_count);
  out.set_policy_digest(built.policy_digest);
  out.set_policy_name(built.policy_name);
  out.set_is_control(built.is_control);
  out.set_is_model_known(built.is_model_known);
  out.set_cache_status(FromCacheStatus(built.cache_status));
  out.set_context_management(built.context_management);
  out.set_needs_drop_block(built.needs_drop_block);
  out.set_next_sequence(decision.message_count);
  for (const std::string& tool : built.unmasked_tools) {
    out.add_unmasked_tools(tool);
  }
  return out;
}

}  // namespace clerestory
