// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_ROCKS_ERRORS_H_
#define CLERESTORY_SERVER_STORE_ROCKS_ROCKS_ERRORS_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "rocksdb/status.h"

namespace clerestory {

// What a write came to: RESOURCE_EXHAUSTED with kStoreFull if there is no
// space, else UNAVAILABLE with kStoreUnavailable. RocksDB's own text, which
// names files, stays in its log.
absl::Status WriteError(const rocksdb::Status& status);

// Why a read failed: `corrupt` if the database found damage, else UNAVAILABLE
// with kStoreUnavailable.
absl::Status ReadError(const rocksdb::Status& status,
                       const absl::Status& corrupt);

// What opening the database at `path` came to, for the operator. Errors as of
// RocksStore::Open().
absl::Status OpenError(const rocksdb::Status& status, const std::string& path,
                       rocksdb::Env* env);

// FAILED_PRECONDITION with kStoreUnavailable: `why` the database is not for us.
absl::Status RefusedError(const std::string& path, absl::string_view why);

// Sets `*stopped` when a failure in the background has the database take no
// more writes. One of a compaction has not: its inputs stay, it is tried again,
// and damage that it met stays with the sessions that have it. Nor does the
// database try to recover by itself.
std::shared_ptr<rocksdb::EventListener> NewErrorListener(
    std::shared_ptr<std::atomic<bool>> stopped);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_ROCKS_ERRORS_H_
