// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/record_codec.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clerestory/storage/v1/record.pb.h"
#include "server/base/check.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/store/message_frame.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"

namespace clerestory {
namespace {

namespace pb = ::clerestory::storage::v1;

absl::Status NewerError() {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   Reason::kStoreUnavailable,
                   "what is stored of the session has a newer format than this "
                   "server knows; use a newer one");
}

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
                        .is_dropped = mask.is_dropped()});
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
}

std::optional<SessionClosed> FromStored(const pb::SessionClosed& from) {
  if (!pb::Outcome_IsValid(from.outcome())) return std::nullopt;
  return SessionClosed{.time = from.time_micros(),
                       .outcome = FromStored<Outcome>(from.outcome())};
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
      return FromStored(from.session_closed());
    case pb::Record::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string EncodeHeader(const SessionHeader& header) {
  pb::SessionHeader stored;
  stored.set_tenant(header.key.tenant);
  stored.set_session(header.key.session);
  stored.set_format(ToStored(header.format));
  stored.set_model(header.model);
  stored.set_create_time_micros(header.create_time);
  stored.set_outcome(ToStored(header.outcome));
  stored.set_close_time_micros(header.close_time);
  for (const auto& [key, value] : header.labels) {
    pb::Label& label = *stored.add_labels();
    label.set_key(key);
    label.set_value(value);
  }
  return EncodeFrame(stored);
}

std::string EncodePolicy(const StoredPolicy& policy) {
  pb::PolicyDocument stored;
  stored.set_tenant(policy.tenant);
  stored.set_yaml(policy.yaml);
  stored.set_update_time_micros(policy.update_time);
  return EncodeFrame(stored);
}

std::string EncodeCalibration(const StoredCalibration& calibration) {
  pb::TokenCalibration stored;
  stored.set_tenant(calibration.tenant);
  stored.set_model(calibration.model);
  for (const std::int64_t weight : calibration.weights) {
    stored.add_weights(weight);
  }
  stored.set_sample_count(calibration.sample_count);
  return EncodeFrame(stored);
}

std::string EncodeRecord(const Record& record) {
  pb::Record stored;
  std::visit([&stored](const auto& kind) { ToStored(kind, stored); }, record);
  return EncodeFrame(stored);
}

absl::StatusOr<SessionHeader> DecodeHeader(absl::string_view value,
                                           const SessionKey& key) {
  pb::SessionHeader stored;
  const FrameState decoded = DecodeFrame(value, stored);
  if (decoded == FrameState::kNewer) return NewerError();
  if (decoded == FrameState::kDamaged || stored.tenant() != key.tenant ||
      stored.session() != key.session || !pb::Format_IsValid(stored.format()) ||
      !pb::Outcome_IsValid(stored.outcome())) {
    return HeaderCorruptError(key);
  }
  Labels labels;
  for (const pb::Label& label : stored.labels()) {
    labels[label.key()] = label.value();
  }
  return SessionHeader{.key = key,
                       .format = FromStored<Format>(stored.format()),
                       .model = stored.model(),
                       .create_time = stored.create_time_micros(),
                       .outcome = FromStored<Outcome>(stored.outcome()),
                       .close_time = stored.close_time_micros(),
                       .labels = std::move(labels)};
}

absl::StatusOr<StoredPolicy> DecodePolicy(absl::string_view value,
                                          absl::string_view tenant) {
  pb::PolicyDocument stored;
  const FrameState decoded = DecodeFrame(value, stored);
  if (decoded == FrameState::kNewer) return NewerError();
  if (decoded == FrameState::kDamaged || stored.tenant() != tenant) {
    return PolicyCorruptError();
  }
  return StoredPolicy{.tenant = std::string(tenant),
                      .yaml = std::move(*stored.mutable_yaml()),
                      .update_time = stored.update_time_micros()};
}

std::optional<StoredCalibration> DecodeCalibration(absl::string_view value,
                                                   absl::string_view tenant,
                                                   absl::string_view model) {
  pb::TokenCalibration stored;
  if (DecodeFrame(value, stored) != FrameState::kOk ||
      stored.tenant() != tenant || stored.model() != model) {
    return std::nullopt;
  }
  return StoredCalibration{
      .tenant = std::string(tenant),
      .model = std::string(model),
      .weights = {stored.weights().begin(), stored.weights().end()},
      .sample_count = stored.sample_count()};
}

absl::StatusOr<Record> DecodeRecord(absl::string_view value,
                                    const SessionKey& key,
                                    std::int64_t number) {
  pb::Record stored;
  const FrameState decoded = DecodeFrame(value, stored);
  if (decoded == FrameState::kNewer) return NewerError();
  if (decoded == FrameState::kOk) {
    if (std::optional<Record> record = FromStored(stored)) {
      return *std::move(record);
    }
  }
  return RecordCorruptError(key, number);
}

}  // namespace clerestory
