// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/store_errors.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

std::pair<std::string, std::string> Session(const SessionKey& key) {
  return {"session_id", absl::Utf8SafeCEscape(key.session)};
}

absl::Status CorruptError(const SessionKey& key, absl::string_view what,
                          std::string record) {
  return MakeError(
      absl::StatusCode::kDataLoss, Reason::kRecordCorrupt,
      absl::StrCat("what is stored of the session fails its check at its ",
                   what, "; restore it from a backup"),
      {Session(key), {"record", std::move(record)}});
}

}  // namespace

absl::Status SessionNotFoundError(const SessionKey& key) {
  return MakeError(absl::StatusCode::kNotFound, Reason::kSessionNotFound,
                   "there is no such session; create it first", {Session(key)});
}

absl::Status SessionExistsError(const SessionKey& key) {
  return MakeError(absl::StatusCode::kAlreadyExists, Reason::kSessionExists,
                   "there is a session of this id; use it or another id",
                   {Session(key)});
}

absl::Status AppendConflictError(const SessionKey& key) {
  return MakeError(absl::StatusCode::kAborted, Reason::kAppendConflict,
                   "the session has another version; read it and try again",
                   {Session(key)});
}

absl::Status RecordCorruptError(const SessionKey& key, std::int64_t record) {
  return CorruptError(key, absl::StrCat("record ", record),
                      absl::StrCat(record));
}

absl::Status HeaderCorruptError(const SessionKey& key) {
  return CorruptError(key, "header", "header");
}

absl::Status ListCorruptError(const SessionKey& last) {
  return MakeError(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt,
                   "the list of sessions fails its check behind this session; "
                   "restore the store from a backup",
                   {Session(last), {"record", "header"}});
}

absl::Status PolicyNotFoundError() {
  return MakeError(absl::StatusCode::kNotFound, Reason::kPolicyNotFound,
                   "the tenant has no stored document of policies; store one");
}

absl::Status PolicyConflictError(absl::string_view etag) {
  return MakeError(
      absl::StatusCode::kAborted, Reason::kPolicyConflict,
      etag.empty()
          ? std::string("no document of policies is stored; store one with an "
                        "empty etag, or with none")
          : absl::StrCat("another document of policies is stored, with the "
                         "etag ",
                         etag, "; read it and try again"),
      {{"etag", std::string(etag)}});
}

absl::Status PolicyCorruptError() {
  return MakeError(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt,
                   "the stored document of policies fails its check; store or "
                   "delete it without an etag",
                   {{"session_id", ""}, {"record", "policy"}});
}

absl::Status StoreFullError() {
  return MakeError(absl::StatusCode::kResourceExhausted, Reason::kStoreFull,
                   "the store has no space left; reads go on; free space and "
                   "try again");
}

absl::Status StoreUnavailableError(absl::string_view what) {
  return MakeError(absl::StatusCode::kUnavailable, Reason::kStoreUnavailable,
                   what);
}

}  // namespace clerestory
