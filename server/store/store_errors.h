// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_STORE_ERRORS_H_
#define CLERESTORY_SERVER_STORE_STORE_ERRORS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/model/record.h"

namespace clerestory {

// The errors of every SessionStore, so that they are the same from each. Those
// about a session have the metadata `session_id`, with bytes that are not UTF-8
// escaped; the tenant is not theirs to name.

// NOT_FOUND with kSessionNotFound.
absl::Status SessionNotFoundError(const SessionKey& key);

// ALREADY_EXISTS with kSessionExists.
absl::Status SessionExistsError(const SessionKey& key);

// ABORTED with kAppendConflict.
absl::Status AppendConflictError(const SessionKey& key);

// DATA_LOSS with kRecordCorrupt and the metadata `record`: the number of the
// record that is damaged or missing.
absl::Status RecordCorruptError(const SessionKey& key, std::int64_t record);

// The same for the session's header, with `header` as the `record`.
absl::Status HeaderCorruptError(const SessionKey& key);

// The same for what follows the header of `last`, of whatever session it is.
absl::Status ListCorruptError(const SessionKey& last);

// NOT_FOUND with kPolicyNotFound.
absl::Status PolicyNotFoundError();

// ABORTED with kPolicyConflict. `etag` is that of the document that is there,
// "" if none is.
absl::Status PolicyConflictError(absl::string_view etag);

// DATA_LOSS with kRecordCorrupt and `policy` as the `record`, of no session.
absl::Status PolicyCorruptError();

// RESOURCE_EXHAUSTED with kStoreFull.
absl::Status StoreFullError();

// UNAVAILABLE with kStoreUnavailable. `what` is the message.
absl::Status StoreUnavailableError(absl::string_view what);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_STORE_ERRORS_H_
