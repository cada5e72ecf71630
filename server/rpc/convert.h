// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_CONVERT_H_
#define CLERESTORY_SERVER_RPC_CONVERT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "clerestory/v1/usage.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "google/protobuf/map.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/time.h"
#include "server/engine/decide.h"
#include "server/engine/session_engine.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {

// Between our values and the messages of clerestory.v1. What is refused is
// kFieldInvalid with the name of the field in the request.

absl::Status CheckSessionId(absl::string_view session_id);
absl::Status CheckModel(absl::string_view model);
// `field` is the name of the labels in the request.
absl::StatusOr<Labels> ToLabels(
    absl::string_view field,
    const google::protobuf::Map<std::string, std::string>& labels);

absl::StatusOr<Format> ToFormat(v1::Format format);
absl::StatusOr<Outcome> ToOutcome(v1::Outcome outcome);
absl::StatusOr<TimeMicros> ToTime(const google::protobuf::Timestamp& time);
UsageInput ToUsageInput(const v1::Usage& usage);
// Sequence and index of `12.0`.
absl::StatusOr<ObservationId> ToObservationId(absl::string_view observation_id);

std::string FromObservationId(const ObservationId& id);
google::protobuf::Timestamp FromTime(TimeMicros time);
v1::Session FromHeader(const SessionHeader& header);
v1::Session FromSummary(const SessionSummary& summary);
v1::Ledger FromLedger(const SessionSummary& summary);
v1::Usage FromUsage(const Usage& usage);
v1::Observation FromObservation(const Observation& observation, bool is_pinned);
v1::ViewReport FromView(const BuiltView& built);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_CONVERT_H_
