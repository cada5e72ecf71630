// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/record_codec.h"

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
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/session_totals.h"
#include "server/store/message_frame.h"
#include "server/store/record_messages.h"
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
  return EncodeFrame(ToStored(record));
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
