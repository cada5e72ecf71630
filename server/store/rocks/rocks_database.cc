// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_database.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rocksdb/cache.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/iterator.h"
#include "rocksdb/options.h"
#include "rocksdb/status.h"
#include "rocksdb/table.h"
#include "server/base/mutex.h"
#include "server/base/status.h"
#include "server/store/rocks/rocks_errors.h"
#include "server/store/rocks/rocks_keys.h"
#include "server/store/rocks/rocks_log.h"
#include "server/store/rocks/rocks_options.h"
#include "server/store/store_errors.h"

namespace clerestory {
namespace {

// The version of the layout that rocks_keys.h describes.
constexpr int kLayoutVersion = 1;

// Of RocksDB's own log.
constexpr std::int64_t kLogBytesMax = 10LL << 20;

// What opening writes beside what was in memory.
constexpr std::uint64_t kOpenBytes = 1ULL << 20;

// How many files are open at a time while the database can only be read. That
// there is a limit keeps RocksDB from an implementation that has no snapshots.
constexpr int kReadOnlyFiles = 1000;

rocksdb::Options DatabaseOptions(const RocksOptions& options, rocksdb::Env* env,
                                 std::shared_ptr<std::atomic<bool>> stopped) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache =
      rocksdb::NewLRUCache(static_cast<std::size_t>(options.block_cache_bytes));
  table.block_size = std::size_t{16} << 10;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;

  rocksdb::Options database;
  database.env = env;
  database.create_if_missing = true;
  database.paranoid_checks = true;
  database.write_buffer_size =
      static_cast<std::size_t>(options.write_buffer_bytes);
  database.compression = rocksdb::kLZ4Compression;
  database.level_compaction_dynamic_level_bytes = true;
  database.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // A crash may leave garbage behind what was synced. The log counts up to it.
  database.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  database.max_bgerror_resume_count = 0;
  database.listeners.push_back(NewErrorListener(std::move(stopped)));
  database.info_log = std::make_shared<RocksLog>(options.path, kLogBytesMax);
  return database;
}

rocksdb::Status OpenDatabase(const rocksdb::Options& options,
                             const std::string& path,
                             std::unique_ptr<rocksdb::DB>& database) {
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options, path, &opened);
  database.reset(opened);
  return status;
}

// Makes the directory at `path`, so that it survives the loss of power.
rocksdb::Status MakeDirectory(const std::string& path, rocksdb::Env* env) {
  rocksdb::Status status = env->CreateDirIfMissing(path);
  if (!status.ok()) return status;
  std::unique_ptr<rocksdb::Directory> parent;
  status =
      env->NewDirectory((std::filesystem::path(path) / "..").string(), &parent);
  return status.ok() ? parent->Fsync() : status;
}

}  // namespace

RocksDatabase::RocksDatabase(const RocksOptions& options,
                             std::shared_ptr<std::atomic<bool>> stopped,
                             std::unique_ptr<rocksdb::DB> database)
    : options_(options),
      env_(options.env == nullptr ? rocksdb::Env::Default() : options.env),
      stopped_(std::move(stopped)),
      database_(std::move(database)) {}

RocksDatabase::~RocksDatabase() {
  MutexLock lock(mutex_);
  if (lock_ != nullptr) env_->UnlockFile(lock_).PermitUncheckedError();
  if (database_ == nullptr || *stopped_) return;
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  // If it fails, the log is read when the database is opened.
  database_->Flush(flush).PermitUncheckedError();
}

absl::StatusOr<std::unique_ptr<RocksDatabase>> RocksDatabase::Open(
    const RocksOptions& options) {
  rocksdb::Env* const env =
      options.env == nullptr ? rocksdb::Env::Default() : options.env;
  auto stopped = std::make_shared<std::atomic<bool>>(false);
  CLERESTORY_RETURN_IF_ERROR(
      OpenError(MakeDirectory(options.path, env), options.path, env));
  std::unique_ptr<rocksdb::DB> opened;
  CLERESTORY_RETURN_IF_ERROR(
      OpenError(OpenDatabase(DatabaseOptions(options, env, stopped),
                             options.path, opened),
                options.path, env));
  std::unique_ptr<RocksDatabase> database(
      new RocksDatabase(options, std::move(stopped), std::move(opened)));
  CLERESTORY_RETURN_IF_ERROR(database->CheckFormat());
  return database;
}

absl::Status RocksDatabase::CheckFormat() {
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<rocksdb::DB> database,
                              Use());
  const std::string& path = options_.path;
  std::string stored;
  const rocksdb::Status status =
      database->Get(rocksdb::ReadOptions(), FormatKey(), &stored);
  if (status.IsNotFound()) {
    const std::unique_ptr<rocksdb::Iterator> any(
        database->NewIterator(rocksdb::ReadOptions()));
    any->SeekToFirst();
    if (any->Valid()) {
      return RefusedError(path, "it is another program's database");
    }
    rocksdb::WriteOptions synced;
    synced.sync = true;
    return OpenError(
        database->Put(synced, FormatKey(), absl::StrCat(kLayoutVersion)), path,
        env_);
  }
  CLERESTORY_RETURN_IF_ERROR(OpenError(status, path, env_));
  int version = 0;
  if (!absl::SimpleAtoi(stored, &version) || version < 1) {
    return OpenError(rocksdb::Status::Corruption("its version is no number"),
                     path, env_);
  }
  if (version > kLayoutVersion) {
    return RefusedError(
        path, absl::StrCat("it has format ", version,
                           " and this server knows none above ", kLayoutVersion,
                           "; use a newer server"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<rocksdb::DB>> RocksDatabase::Use() {
  MutexLock lock(mutex_);
  while (reopening_) changed_.Wait(mutex_);
  if (database_ == nullptr) {
    return StoreUnavailableError(
        "the store cannot be read after its disk failed, see LOG in its "
        "directory; try again");
  }
  ++users_;
  return std::shared_ptr<rocksdb::DB>(database_.get(),
                                      [this](rocksdb::DB* /*database*/) {
                                        MutexLock returning(mutex_);
                                        --users_;
                                        if (users_ == 0) changed_.SignalAll();
                                      });
}

absl::Status RocksDatabase::CheckDisk() {
  std::uint64_t in_memory = 0;
  if (const auto database = Use(); database.ok()) {
    (*database)->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables,
                                &in_memory);
  }
  std::uint64_t free = 0;
  if (env_->GetFreeSpace(options_.path, &free).ok() &&
      free < in_memory + kOpenBytes) {
    return StoreFullError();
  }
  const std::string probe = options_.path + "/PROBE";
  const rocksdb::Status status = rocksdb::WriteStringToFile(
      env_, std::string(4096, '\0'), probe, /*should_sync=*/true);
  env_->DeleteFile(probe).PermitUncheckedError();
  return WriteError(status);
}

absl::Status RocksDatabase::Reopen() {
  // Readers are not disturbed for nothing.
  CLERESTORY_RETURN_IF_ERROR(CheckDisk());
  std::unique_ptr<rocksdb::DB> database;
  {
    MutexLock lock(mutex_);
    reopening_ = true;
    while (users_ > 0) changed_.Wait(mutex_);
    database = std::move(database_);
  }
  database.reset();
  if (lock_ != nullptr) {
    env_->UnlockFile(lock_).PermitUncheckedError();
    lock_ = nullptr;
  }
  *stopped_ = false;
  rocksdb::Options options = DatabaseOptions(options_, env_, stopped_);
  const rocksdb::Status status = OpenDatabase(options, options_.path, database);
  if (!status.ok()) {
    *stopped_ = true;
    // Reads go on with what there is, which stays ours.
    rocksdb::DB* opened = nullptr;
    options.max_open_files = kReadOnlyFiles;
    if (env_->LockFile(options_.path + "/LOCK", &lock_).ok() &&
        rocksdb::DB::OpenForReadOnly(options, options_.path, &opened).ok()) {
      database.reset(opened);
    }
  }
  MutexLock lock(mutex_);
  database_ = std::move(database);
  reopening_ = false;
  changed_.SignalAll();
  return WriteError(status);
}

}  // namespace clerestory
