// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_ROCKS_DATABASE_H_
#define CLERESTORY_SERVER_STORE_ROCKS_ROCKS_DATABASE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "server/base/mutex.h"
#include "server/store/rocks/rocks_options.h"

namespace clerestory {

// A RocksDB database that can be opened anew under those who use it, which is
// how it recovers from a disk that was full or failed: RocksDB's own ways, as
// of 7.8, may wait for ever, or abort the process. Safe from any thread.
class RocksDatabase {
 public:
  // Opens the database at `options.path`, and makes it if there is none. Errors
  // as of RocksStore::Open().
  static absl::StatusOr<std::unique_ptr<RocksDatabase>> Open(
      const RocksOptions& options);

  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  // Writes what is in the log to sorted files, so that opening is quick.
  // REQUIRES: nobody uses the database.
  ~RocksDatabase();

  // The database, to be let go of soon and before anything else of this class
  // is called. UNAVAILABLE with kStoreUnavailable if there is none, since
  // Reopen() failed.
  absl::StatusOr<std::shared_ptr<rocksdb::DB>> Use();

  // Whether the database takes no writes any more, because writing in the
  // background failed.
  bool stopped() const { return *stopped_; }

  // Makes a database that takes no writes take them again. What it failed to
  // write may be there afterwards, or not.
  //
  // RESOURCE_EXHAUSTED with kStoreFull if there is too little space,
  // UNAVAILABLE with kStoreUnavailable if the disk fails; then it can still be
  // read. REQUIRES: nobody writes, nor calls this, meanwhile.
  absl::Status Reopen();

 private:
  RocksDatabase(const RocksOptions& options,
                std::shared_ptr<std::atomic<bool>> stopped,
                std::unique_ptr<rocksdb::DB> database);

  // The layout's version is ours; an empty database is given it.
  absl::Status CheckFormat();

  // OK if the disk takes bytes, and has space for what is in memory.
  absl::Status CheckDisk();

  const RocksOptions options_;
  rocksdb::Env* const env_;
  // Set by the database.
  const std::shared_ptr<std::atomic<bool>> stopped_;
  // Held by Reopen() instead of the database while that can only be read.
  rocksdb::FileLock* lock_ = nullptr;

  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<rocksdb::DB> database_ CLERESTORY_GUARDED_BY(mutex_);
  std::int64_t users_ CLERESTORY_GUARDED_BY(mutex_) = 0;
  bool reopening_ CLERESTORY_GUARDED_BY(mutex_) = false;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_ROCKS_DATABASE_H_
