// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/record_codec.h"

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clerestory/storage/v1/record.pb.h"
#include "clerestory/storage/v1/session_totals.pb.h"
#include "google/protobuf/message_lite.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/session_totals.h"
#include "server/store/record_messages.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"

namespace clerestory {
namespace {

namespace pb = ::clerestory::storage::v1;

constexpr std::size_t kVersionBytes = 1;
constexpr std::size_t kFrameBytes = 5;

std::uint32_t Checksum(absl::string_view frame) {
  const auto* const bytes = reinterpret_cast<const Bytef*>(frame.data());
  const uLong version = crc32_z(0, bytes, kVersionBytes);
  return static_cast<std::uint32_t>(
      crc32_z(version, bytes + kFrameBytes, frame.size() - kFrameBytes));
}

std::string Encode(const google::protobuf::MessageLite& message) {
  const std::size_t size = message.ByteSizeLong();
  std::string frame(kFrameBytes + size, '\0');
  auto* const bytes = reinterpret_cast<std::uint8_t*>(frame.data());
  message.SerializeWithCachedSizesToArray(bytes + kFrameBytes);
  bytes[0] = kRecordFormatVersion;
  const std::uint32_t checksum = Checksum(frame);
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[kVersionBytes + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
  }
  return frame;
}

enum class Decoded { kOk, kDamaged, kNewer };

Decoded Decode(absl::string_view frame, google::protobuf::MessageLite& into) {
  if (frame.size() < kFrameBytes) return Decoded::kDamaged;
  std::uint32_t checksum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    checksum |= static_cast<std::uint32_t>(
                    static_cast<std::uint8_t>(frame[kVersionBytes + i]))
                << (8 * i);
  }
  if (checksum != Checksum(frame)) return Decoded::kDamaged;
  const auto version = static_cast<std::uint8_t>(frame[0]);
  if (version > kRecordFormatVersion) return Decoded::kNewer;
  if (version == 0) return Decoded::kDamaged;
  const absl::string_view message = frame.substr(kFrameBytes);
  return into.ParseFromArray(message.data(), static_cast<int>(message.size()))
             ? Decoded::kOk
             : Decoded::kDamaged;
}

absl::Status NewerError() {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   Reason::kStoreUnavailable,
                   "what is stored of the session has a newer format than this "
                   "server knows; use a newer one");
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
  stored.set_has_recall_tool(header.has_recall_tool);
  for (const auto& [key, value] : header.labels) {
    pb::Label& label = *stored.add_labels();
    label.set_key(key);
    label.set_value(value);
  }
  if (header.totals != SessionTotals()) {
    *stored.mutable_totals() = ToStored(header.totals);
  }
  return Encode(stored);
}

std::string EncodePolicy(const StoredPolicy& policy) {
  pb::PolicyDocument stored;
  stored.set_tenant(policy.tenant);
  stored.set_yaml(policy.yaml);
  stored.set_update_time_micros(policy.update_time);
  return Encode(stored);
}

std::string EncodeCalibration(const StoredCalibration& calibration) {
  pb::TokenCalibration stored;
  stored.set_tenant(calibration.tenant);
  stored.set_model(calibration.model);
  for (const std::int64_t weight : calibration.weights) {
    stored.add_weights(weight);
  }
  stored.set_sample_count(calibration.sample_count);
  return Encode(stored);
}

std::string EncodeRecord(const Record& record) {
  return Encode(ToStored(record));
}

absl::StatusOr<SessionHeader> DecodeHeader(absl::string_view value,
                                           const SessionKey& key) {
  pb::SessionHeader stored;
  const Decoded decoded = Decode(value, stored);
  if (decoded == Decoded::kNewer) return NewerError();
  if (decoded == Decoded::kDamaged || stored.tenant() != key.tenant ||
      stored.session() != key.session || !pb::Format_IsValid(stored.format()) ||
      !pb::Outcome_IsValid(stored.outcome())) {
    return HeaderCorruptError(key);
  }
  std::optional<SessionTotals> totals = FromStored(*stored.mutable_totals());
  if (!totals.has_value()) return HeaderCorruptError(key);
  Labels labels;
  for (const pb::Label& label : stored.labels()) {
    labels[label.key()] = label.value();
  }
  return SessionHeader{.key = key,
                       .format = static_cast<Format>(stored.format()),
                       .model = stored.model(),
                       .create_time = stored.create_time_micros(),
                       .outcome = static_cast<Outcome>(stored.outcome()),
                       .close_time = stored.close_time_micros(),
                       .labels = std::move(labels),
                       .has_recall_tool = stored.has_recall_tool(),
                       .totals = *std::move(totals)};
}

absl::StatusOr<StoredPolicy> DecodePolicy(absl::string_view value,
                                          absl::string_view tenant) {
  pb::PolicyDocument stored;
  const Decoded decoded = Decode(value, stored);
  if (decoded == Decoded::kNewer) return NewerError();
  if (decoded == Decoded::kDamaged || stored.tenant() != tenant) {
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
  if (Decode(value, stored) != Decoded::kOk || stored.tenant() != tenant ||
      stored.model() != model) {
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
  const Decoded decoded = Decode(value, stored);
  if (decoded == Decoded::kNewer) return NewerError();
  if (decoded == Decoded::kOk) {
    if (std::optional<Record> record = FromStored(stored)) {
      return *std::move(record);
    }
  }
  return RecordCorruptError(key, number);
}

}  // namespace clerestory
