// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_RECORD_CODEC_H_
#define CLERESTORY_SERVER_STORE_RECORD_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/model/record.h"
#include "server/store/session_store.h"

namespace clerestory {

// Headers, records, documents of policies and what was learned of tokens, as
// the bytes that a store keeps: messages of
// `proto/clerestory/storage/v1/record.proto` in a frame (message_frame.h).
//
// Everything here is pure and safe from any thread.

// Returns `header` as bytes.
std::string EncodeHeader(const SessionHeader& header);

// Returns `policy` as bytes.
std::string EncodePolicy(const StoredPolicy& policy);

// Returns `calibration` as bytes.
std::string EncodeCalibration(const StoredCalibration& calibration);

// Returns `record` as bytes. REQUIRES: its message, if it has one, is not null.
std::string EncodeRecord(const Record& record);

// Returns the header of the session `key` that `value` encodes.
//
// DATA_LOSS with kRecordCorrupt if `value` is damaged, holds an enumerator that
// does not exist or is the header of another session; FAILED_PRECONDITION with
// kStoreUnavailable if it is whole and of a newer format. Neither quotes it.
absl::StatusOr<SessionHeader> DecodeHeader(absl::string_view value,
                                           const SessionKey& key);

// Returns record `number` of the session `key`, which `value` encodes. Errors
// as of DecodeHeader.
absl::StatusOr<Record> DecodeRecord(absl::string_view value,
                                    const SessionKey& key, std::int64_t number);

// Returns the document of `tenant`, which `value` encodes. Errors as of
// DecodeHeader.
absl::StatusOr<StoredPolicy> DecodePolicy(absl::string_view value,
                                          absl::string_view tenant);

// Returns what was learned of `tenant` and `model`, which `value` encodes;
// nothing where DecodeHeader has an error, for it can be learned again.
std::optional<StoredCalibration> DecodeCalibration(absl::string_view value,
                                                   absl::string_view tenant,
                                                   absl::string_view model);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_RECORD_CODEC_H_
