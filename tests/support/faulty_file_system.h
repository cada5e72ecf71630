// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_
#define CLERESTORY_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "server/base/mutex.h"

namespace clerestory {

// What a disk can do to a write.
enum class DiskFault {
  kNone,
  kNoSpace,      // New files and new bytes are refused, after some of them.
  kSyncNoSpace,  // Bytes are taken, and refused when they are synced.
  kIoError,      // As kNoSpace, with an I/O error.
  kSyncIoError,
};

// The machine's file system, for RocksDB, with a disk that fails when it is
// told to. Safe from any thread.
class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultyFileSystem();

  // From now on, until another one is set, for files whose names contain
  // `part`.
  void Set(DiskFault fault, const std::string& part = "");

  // After that many more writes and syncs, and then until another one is set.
  void SetAfter(std::int64_t operations, DiskFault fault);

  // What a write to the file, or a sync of it, comes to now; OK to go on.
  rocksdb::IOStatus OnWrite(const std::string& name);
  rocksdb::IOStatus OnSync(const std::string& name);

  const char* Name() const override { return "FaultyFileSystem"; }
  rocksdb::IOStatus NewWritableFile(
      const std::string& name, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* debug) override;

 private:
  DiskFault FaultOf(const std::string& name);

  Mutex mutex_;
  DiskFault fault_ CLERESTORY_GUARDED_BY(mutex_) = DiskFault::kNone;
  std::int64_t operations_ CLERESTORY_GUARDED_BY(mutex_) = 0;
  std::string part_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_FAULTY_FILE_SYSTEM_H_
