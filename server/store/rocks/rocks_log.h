// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_ROCKS_LOG_H_
#define CLERESTORY_SERVER_STORE_ROCKS_ROCKS_LOG_H_

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

#include "rocksdb/env.h"
#include "server/base/mutex.h"

namespace clerestory {

// What RocksDB has to say, in a file `LOG` of which the last `bytes_max` or
// more, and at most twice of it, are kept. On a full disk it is silent:
// RocksDB's own logger, as Debian builds it, then aborts the process. Safe from
// any thread.
class RocksLog final : public rocksdb::Logger {
 public:
  // Appends to `LOG` in `directory`. If that cannot be, says nothing anywhere.
  RocksLog(const std::string& directory, std::int64_t bytes_max);
  ~RocksLog() override;

  // Keeps the overload with a level, which calls this one.
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override
      __attribute__((format(printf, 2, 0)));

 private:
  void OpenFile() CLERESTORY_REQUIRES(mutex_);

  const std::string path_;
  const std::int64_t bytes_max_;

  Mutex mutex_;
  std::FILE* file_ CLERESTORY_GUARDED_BY(mutex_) = nullptr;
  std::int64_t bytes_ CLERESTORY_GUARDED_BY(mutex_) = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_ROCKS_LOG_H_
