// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/record_messages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "clerestory/storage/v1/record.pb.h"
#include "clerestory/storage/v1/session_totals.pb.h"
#include "server/base/check.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"

namespace clerestory {

namespace pb = ::clerestory::storage::v1;

// The conversions of enumerators are switches so that one which the storage
// does not know cannot be written; reading one back is a cast, since the
// numbers are the same.

pb::Format ToStored(Format format) {
  switch (format) {
    case Format::kUnspecified:
      return pb::FORMAT_UNSPECIFIED;
    case Format::kAnthropicMessages:
      return pb::FORMAT_ANTHROPIC_MESSAGES;
    case Format::kOpenaiChat:
      return pb::FORMAT_OPENAI_CHAT;
    case Format::kOpenaiResponses:
      return pb::FORMAT_OPENAI_RESPONSES;
    case Format::kGemini:
      return pb::FORMAT_GEMINI;
    case Format::kBedrockConverse:
      return pb::FORMAT_BEDROCK_CONVERSE;
  }
  CLERESTORY_CHECK(false);
  return pb::FORMAT_UNSPECIFIED;
}

pb::Outcome ToStored(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOpen:
      return pb::OUTCOME_UNSPECIFIED;
    case Outcome::kResolved:
      return pb::OUTCOME_RESOLVED;
    case Outcome::kFailed:
      return pb::OUTCOME_FAILED;
    case Outcome::kAbandoned:
      return pb::OUTCOME_ABANDONED;
  }
  CLERESTORY_CHECK(false);
  return pb::OUTCOME_UNSPECIFIED;
}

namespace {

pb::BreakReason ToStored(BreakReason reason) {
  switch (reason) {
    case BreakReason::kNone:
      return pb::BREAK_REASON_UNSPECIFIED;
    case BreakReason::kPays:
      return pb::BREAK_REASON_PAYS;
    case BreakReason::kCacheCold:
      return pb::BREAK_REASON_CACHE_COLD;
    case BreakReason::kModelChanged:
      return pb::BREAK_REASON_MODEL_CHANGED;
    case BreakReason::kWindow:
      return pb::BREAK_REASON_WINDOW;
    case BreakReason::kSchedule:
      return pb::BREAK_REASON_SCHEDULE;
    case BreakReason::kPreambleChanged:
      return pb::BREAK_REASON_PREAMBLE_CHANGED;
    case BreakReason::kCacheMissed:
      return pb::BREAK_REASON_CACHE_MISSED;
  }
  CLERESTORY_CHECK(false);
  return pb::BREAK_REASON_UNSPECIFIED;
}

pb::SessionArm ToStored(SessionArm arm) {
  switch (arm) {
    case SessionArm::kNone:
      return pb::SESSION_ARM_UNSPECIFIED;
    case SessionArm::kMasked:
      return pb::SESSION_ARM_MASKED;
    case SessionArm::kControl:
      return pb::SESSION_ARM_CONTROL;
    case SessionArm::kMixed:
      return pb::SESSION_ARM_MIXED;
  }
  CLERESTORY_CHECK(false);
  return pb::SESSION_ARM_UNSPECIFIED;
}

pb::RepeatKind ToStored(RepeatKind kind) {
  switch (kind) {
    case RepeatKind::kNone:
      return pb::REPEAT_KIND_UNSPECIFIED;
    case RepeatKind::kRefetch:
      return pb::REPEAT_KIND_REFETCH;
    case RepeatKind::kDuplicate:
      return pb::REPEAT_KIND_DUPLICATE;
    case RepeatKind::kRefresh:
      return pb::REPEAT_KIND_REFRESH;
    case RepeatKind::kPaging:
      return pb::REPEAT_KIND_PAGING;
    case RepeatKind::kPoll:
      return pb::REPEAT_KIND_POLL;
  }
  CLERESTORY_CHECK(false);
  return pb::REPEAT_KIND_UNSPECIFIED;
}

template <typename Model, typename Stored>
Model FromStored(Stored stored) {
  return static_cast<Model>(static_cast<int>(stored));
}

void ToStored(const StageTokens& from, pb::StageTokens& to) {
  to.set_user(from.user);
  to.set_assistant(from.assistant);
  to.set_calls(from.calls);
  to.set_observations(from.observations);
}

StageTokens FromStored(const pb::StageTokens& from) {
  return {.user = from.user(),
          .assistant = from.assistant(),
          .calls = from.calls(),
          .observations = from.observations()};
}

void ToStored(const CallTokens& from, pb::CallTokens& to) {
  to.set_read(from.read);
  to.set_written(from.written);
  to.set_uncached(from.uncached);
}

CallTokens FromStored(const pb::CallTokens& from) {
  return {.read = from.read(),
          .written = from.written(),
          .uncached = from.uncached()};
}

void ToStored(const MessageAppended& from, pb::Record& record) {
  CLERESTORY_CHECK(from.message != nullptr);
  pb::MessageAppended& to = *record.mutable_message_appended();
  to.set_time_micros(from.time);
  to.set_message(*from.message);
}

MessageAppended FromStored(pb::MessageAppended& from) {
  return {.time = from.time_micros(),
          .message = std::make_shared<const std::string>(
              std::move(*from.mutable_message()))};
}

void ToStored(const ViewServed& from, pb::Record& record) {
  pb::ViewServed& to = *record.mutable_view_served();
  to.set_time_micros(from.time);
  to.set_model(from.model);
  to.set_message_count(from.message_count);
  to.set_is_new_call(from.is_new_call);
  to.set_is_control(from.is_control);
  to.set_eligible_count(from.eligible_count);
  to.set_read_price_pico_usd(from.read_price);
  to.set_break_reason(ToStored(from.break_reason));
  to.set_break_price_pico_usd(from.break_price);
  to.set_break_rent_pico_usd(from.break_rent);
  for (const Mask& mask : from.masks) {
    pb::Mask& stored = *to.add_masks();
    stored.set_sequence(mask.sequence);
    stored.set_index(mask.index);
    stored.set_placeholder(mask.placeholder);
    stored.set_arguments(mask.arguments);
    stored.set_is_dropped(mask.is_dropped);
    stored.set_is_restored(mask.is_restored);
  }
  if (from.strip_from.has_value()) to.set_strip_from(*from.strip_from);
  to.set_preamble_tokens(from.preamble_tokens);
  ToStored(from.raw_tokens, *to.mutable_raw_tokens());
  ToStored(from.view_tokens, *to.mutable_view_tokens());
  ToStored(from.raw_call, *to.mutable_raw_call());
  ToStored(from.view_call, *to.mutable_view_call());
  to.set_raw_cost_pico_usd(from.raw_cost);
  to.set_view_cost_pico_usd(from.view_cost);
  to.set_output_tokens(from.output_tokens);
  to.set_output_cost_pico_usd(from.output_cost);
  to.set_preamble_digest(from.preamble_digest);
  to.set_cache_time_micros(from.cache_time);
  to.set_token_scale_ppm(from.token_scale_ppm);
  ToStored(from.every_turn_call, *to.mutable_every_turn_call());
  to.set_every_turn_saving(from.every_turn_saving);
  to.set_every_turn_cost_pico_usd(from.every_turn_cost);
}

std::optional<ViewServed> FromStored(const pb::ViewServed& from) {
  if (!pb::BreakReason_IsValid(from.break_reason())) return std::nullopt;
  ViewServed to;
  to.time = from.time_micros();
  to.model = from.model();
  to.message_count = from.message_count();
  to.is_new_call = from.is_new_call();
  to.is_control = from.is_control();
  to.eligible_count = from.eligible_count();
  to.read_price = from.read_price_pico_usd();
  to.break_reason = FromStored<BreakReason>(from.break_reason());
  to.break_price = from.break_price_pico_usd();
  to.break_rent = from.break_rent_pico_usd();
  for (const pb::Mask& mask : from.masks()) {
    to.masks.push_back({.sequence = mask.sequence(),
                        .index = mask.index(),
                        .placeholder = mask.placeholder(),
                        .arguments = mask.arguments(),
                        .is_dropped = mask.is_dropped(),
                        .is_restored = mask.is_restored()});
  }
  if (from.has_strip_from()) to.strip_from = from.strip_from();
  to.preamble_tokens = from.preamble_tokens();
  to.raw_tokens = FromStored(from.raw_tokens());
  to.view_tokens = FromStored(from.view_tokens());
  to.raw_call = FromStored(from.raw_call());
  to.view_call = FromStored(from.view_call());
  to.raw_cost = from.raw_cost_pico_usd();
  to.view_cost = from.view_cost_pico_usd();
  to.output_tokens = from.output_tokens();
  to.output_cost = from.output_cost_pico_usd();
  to.preamble_digest = from.preamble_digest();
  // Records of before it was noted.
  to.cache_time =
      from.cache_time_micros() == 0 ? to.time : from.cache_time_micros();
  to.token_scale_ppm = from.token_scale_ppm();
  to.every_turn_call = FromStored(from.every_turn_call());
  to.every_turn_saving = from.every_turn_saving();
  to.every_turn_cost = from.every_turn_cost_pico_usd();
  return to;
}

void ToStored(const UsageReported& from, pb::Record& record) {
  pb::UsageReported& to = *record.mutable_usage_reported();
  to.set_time_micros(from.time);
  to.set_model(from.model);
  pb::Usage& usage = *to.mutable_usage();
  if (from.usage.input_uncached) {
    usage.set_input_uncached(*from.usage.input_uncached);
  }
  if (from.usage.cache_read) usage.set_cache_read(*from.usage.cache_read);
  if (from.usage.cache_write) usage.set_cache_write(*from.usage.cache_write);
  if (from.usage.output) usage.set_output(*from.usage.output);
  if (from.usage.reasoning) usage.set_reasoning(*from.usage.reasoning);
  if (from.cost) to.set_cost_pico_usd(*from.cost);
}

UsageReported FromStored(const pb::UsageReported& from) {
  UsageReported to;
  to.time = from.time_micros();
  to.model = from.model();
  const pb::Usage& usage = from.usage();
  if (usage.has_input_uncached()) {
    to.usage.input_uncached = usage.input_uncached();
  }
  if (usage.has_cache_read()) to.usage.cache_read = usage.cache_read();
  if (usage.has_cache_write()) to.usage.cache_write = usage.cache_write();
  if (usage.has_output()) to.usage.output = usage.output();
  if (usage.has_reasoning()) to.usage.reasoning = usage.reasoning();
  if (from.has_cost_pico_usd()) to.cost = from.cost_pico_usd();
  return to;
}

void ToStored(const SessionClosed& from, pb::Record& record) {
  pb::SessionClosed& to = *record.mutable_session_closed();
  to.set_time_micros(from.time);
  to.set_outcome(ToStored(from.outcome));
  if (from.totals != SessionTotals()) {
    *to.mutable_totals() = ToStored(from.totals);
  }
}

std::optional<SessionClosed> FromStored(pb::SessionClosed& from) {
  if (!pb::Outcome_IsValid(from.outcome())) return std::nullopt;
  std::optional<SessionTotals> totals =
      clerestory::FromStored(*from.mutable_totals());
  if (!totals.has_value()) return std::nullopt;
  return SessionClosed{.time = from.time_micros(),
                       .outcome = FromStored<Outcome>(from.outcome()),
                       .totals = *std::move(totals)};
}

void ToStored(const ObservationId& from, pb::ObservationId& to) {
  to.set_sequence(from.sequence);
  to.set_index(from.index);
}

ObservationId FromStored(const pb::ObservationId& from) {
  return {.sequence = from.sequence(), .index = from.index()};
}

void ToStored(const ObservationRepeated& from, pb::Record& record) {
  pb::ObservationRepeated& to = *record.mutable_observation_repeated();
  to.set_time_micros(from.time);
  ToStored(from.later, *to.mutable_later());
  ToStored(from.earlier, *to.mutable_earlier());
  to.set_kind(ToStored(from.kind));
  to.set_cost_pico_usd(from.cost);
}

std::optional<ObservationRepeated> FromStored(
    const pb::ObservationRepeated& from) {
  if (!pb::RepeatKind_IsValid(from.kind())) return std::nullopt;
  return ObservationRepeated{.time = from.time_micros(),
                             .later = FromStored(from.later()),
                             .earlier = FromStored(from.earlier()),
                             .kind = FromStored<RepeatKind>(from.kind()),
                             .cost = from.cost_pico_usd()};
}

void ToStored(const ObservationRecalled& from, pb::Record& record) {
  pb::ObservationRecalled& to = *record.mutable_observation_recalled();
  to.set_time_micros(from.time);
  ToStored(from.observation, *to.mutable_observation());
  to.set_cost_pico_usd(from.cost);
}

ObservationRecalled FromStored(const pb::ObservationRecalled& from) {
  return {.time = from.time_micros(),
          .observation = FromStored(from.observation()),
          .cost = from.cost_pico_usd()};
}

void ToStored(const PinChanged& from, pb::Record& record) {
  pb::PinChanged& to = *record.mutable_pin_changed();
  to.set_time_micros(from.time);
  to.set_is_pinned(from.is_pinned);
  if (from.pin.observation.has_value()) {
    ToStored(*from.pin.observation, *to.mutable_observation());
  } else if (!from.pin.tool.empty()) {
    to.set_tool(from.pin.tool);
  } else {
    to.set_resource(from.pin.resource);
  }
}

std::optional<PinChanged> FromStored(const pb::PinChanged& from) {
  PinChanged to{.time = from.time_micros(), .is_pinned = from.is_pinned()};
  switch (from.pin_case()) {
    case pb::PinChanged::kObservation:
      to.pin.observation = FromStored(from.observation());
      break;
    case pb::PinChanged::kTool:
      to.pin.tool = from.tool();
      break;
    case pb::PinChanged::kResource:
      to.pin.resource = from.resource();
      break;
    case pb::PinChanged::PIN_NOT_SET:
      return std::nullopt;
  }
  return to;
}

}  // namespace

pb::SessionTotals ToStored(const SessionTotals& totals) {
  pb::SessionTotals to;
  to.set_arm(ToStored(totals.arm));
  to.set_turn_count(totals.turn_count);
  to.set_call_count(totals.call_count);
  to.set_raw_tokens(totals.raw_tokens);
  to.set_view_tokens(totals.view_tokens);
  to.set_raw_cost_pico_usd(totals.raw_cost);
  to.set_view_cost_pico_usd(totals.view_cost);
  to.set_output_cost_pico_usd(totals.output_cost);
  to.set_usage_cost_pico_usd(totals.usage_cost);
  to.set_observation_count(totals.observation_count);
  to.set_masked_count(totals.masked_count);
  to.set_refetched_count(totals.refetched_count);
  for (const std::int64_t count : totals.repeats) to.add_repeats(count);
  to.set_recall_count(totals.recall_count);
  to.set_lost_pico_usd(totals.lost);
  for (const ToolTotals& tool : totals.tools) {
    pb::ToolTotals& stored = *to.add_tools();
    stored.set_tool(tool.tool);
    stored.set_observation_count(tool.observation_count);
    stored.set_token_count(tool.token_count);
    stored.set_masked_count(tool.masked_count);
    stored.set_refetched_count(tool.refetched_count);
    stored.set_judged_count(tool.judged_count);
    stored.set_unreferenced_count(tool.unreferenced_count);
    stored.set_unreferenced_tokens(tool.unreferenced_tokens);
    stored.set_identical_call_count(tool.identical_call_count);
  }
  return to;
}

std::optional<SessionTotals> FromStored(pb::SessionTotals& from) {
  SessionTotals to;
  if (!pb::SessionArm_IsValid(from.arm()) ||
      static_cast<std::size_t>(from.repeats_size()) > to.repeats.size()) {
    return std::nullopt;
  }
  to.arm = FromStored<SessionArm>(from.arm());
  to.turn_count = from.turn_count();
  to.call_count = from.call_count();
  to.raw_tokens = from.raw_tokens();
  to.view_tokens = from.view_tokens();
  to.raw_cost = from.raw_cost_pico_usd();
  to.view_cost = from.view_cost_pico_usd();
  to.output_cost = from.output_cost_pico_usd();
  to.usage_cost = from.usage_cost_pico_usd();
  to.observation_count = from.observation_count();
  to.masked_count = from.masked_count();
  to.refetched_count = from.refetched_count();
  std::copy(from.repeats().begin(), from.repeats().end(), to.repeats.begin());
  to.recall_count = from.recall_count();
  to.lost = from.lost_pico_usd();
  to.tools.reserve(static_cast<std::size_t>(from.tools_size()));
  for (pb::ToolTotals& tool : *from.mutable_tools()) {
    to.tools.push_back({.tool = std::move(*tool.mutable_tool()),
                        .observation_count = tool.observation_count(),
                        .token_count = tool.token_count(),
                        .masked_count = tool.masked_count(),
                        .refetched_count = tool.refetched_count(),
                        .judged_count = tool.judged_count(),
                        .unreferenced_count = tool.unreferenced_count(),
                        .unreferenced_tokens = tool.unreferenced_tokens(),
                        .identical_call_count = tool.identical_call_count()});
  }
  return to;
}

pb::Record ToStored(const Record& record) {
  pb::Record stored;
  std::visit([&stored](const auto& kind) { ToStored(kind, stored); }, record);
  return stored;
}

std::optional<Record> FromStored(pb::Record& from) {
  switch (from.kind_case()) {
    case pb::Record::kMessageAppended:
      return FromStored(*from.mutable_message_appended());
    case pb::Record::kViewServed:
      return FromStored(from.view_served());
    case pb::Record::kUsageReported:
      return FromStored(from.usage_reported());
    case pb::Record::kSessionClosed:
      return FromStored(*from.mutable_session_closed());
    case pb::Record::kObservationRepeated:
      return FromStored(from.observation_repeated());
    case pb::Record::kObservationRecalled:
      return FromStored(from.observation_recalled());
    case pb::Record::kPinChanged:
      return FromStored(from.pin_changed());
    case pb::Record::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace clerestory
