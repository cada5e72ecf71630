// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/faulty_file_system.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/slice.h"
#include "server/base/mutex.h"

namespace clerestory {
namespace {

// As RocksDB reports them of a POSIX file system.
rocksdb::IOStatus NoSpace() {
  rocksdb::IOStatus status = rocksdb::IOStatus::NoSpace("injected");
  status.SetRetryable(true);
  return status;
}

rocksdb::IOStatus IoError() { return rocksdb::IOStatus::IOError("injected"); }

class FaultyFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name,
             FaultyFileSystem& disk)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        disk_(disk) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& bytes,
                           const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = disk_.OnWrite(name_);
    const rocksdb::Slice taken(bytes.data(),
                               status.ok() ? bytes.size() : bytes.size() / 2);
    const rocksdb::IOStatus written =
        FSWritableFileOwnerWrapper::Append(taken, options, debug);
    return status.ok() ? written : status;
  }

  rocksdb::IOStatus Append(const rocksdb::Slice& bytes,
                           const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& /*checksums*/,
                           rocksdb::IODebugContext* debug) override {
    return Append(bytes, options, debug);
  }

  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = disk_.OnSync(name_);
    return status.ok() ? FSWritableFileOwnerWrapper::Sync(options, debug)
                       : status;
  }

  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = disk_.OnSync(name_);
    return status.ok() ? FSWritableFileOwnerWrapper::Fsync(options, debug)
                       : status;
  }

 private:
  const std::string name_;
  FaultyFileSystem& disk_;
};

}  // namespace

FaultyFileSystem::FaultyFileSystem()
    : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

void FaultyFileSystem::Set(DiskFault fault, const std::string& part) {
  MutexLock lock(mutex_);
  fault_ = fault;
  operations_ = 0;
  part_ = part;
}

void FaultyFileSystem::SetAfter(std::int64_t operations, DiskFault fault) {
  MutexLock lock(mutex_);
  fault_ = fault;
  operations_ = operations;
  part_.clear();
}

DiskFault FaultyFileSystem::FaultOf(const std::string& name) {
  MutexLock lock(mutex_);
  if (operations_ > 0) {
    --operations_;
    return DiskFault::kNone;
  }
  return absl::StrContains(name, part_) ? fault_ : DiskFault::kNone;
}

rocksdb::IOStatus FaultyFileSystem::OnWrite(const std::string& name) {
  switch (FaultOf(name)) {
    case DiskFault::kNoSpace:
      return NoSpace();
    case DiskFault::kIoError:
      return IoError();
    case DiskFault::kNone:
    case DiskFault::kSyncNoSpace:
    case DiskFault::kSyncIoError:
      return rocksdb::IOStatus::OK();
  }
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus FaultyFileSystem::OnSync(const std::string& name) {
  switch (FaultOf(name)) {
    case DiskFault::kNoSpace:
    case DiskFault::kSyncNoSpace:
      return NoSpace();
    case DiskFault::kIoError:
    case DiskFault::kSyncIoError:
      return IoError();
    case DiskFault::kNone:
      return rocksdb::IOStatus::OK();
  }
  return rocksdb::IOStatus::OK();
}

rocksdb::IOStatus FaultyFileSystem::NewWritableFile(
    const std::string& name, const rocksdb::FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* file,
    rocksdb::IODebugContext* debug) {
  rocksdb::IOStatus status = OnWrite(name);
  if (!status.ok()) return status;
  std::unique_ptr<rocksdb::FSWritableFile> opened;
  status = FileSystemWrapper::NewWritableFile(name, options, &opened, debug);
  if (status.ok()) {
    *file = std::make_unique<FaultyFile>(std::move(opened), name, *this);
  }
  return status;
}

}  // namespace clerestory
