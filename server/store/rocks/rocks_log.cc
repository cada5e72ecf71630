// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_log.h"

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/time.h"

namespace clerestory {

RocksLog::RocksLog(const std::string& directory, std::int64_t bytes_max)
    : path_(absl::StrCat(directory, "/LOG")), bytes_max_(bytes_max) {
  MutexLock lock(mutex_);
  OpenFile();
}

RocksLog::~RocksLog() {
  MutexLock lock(mutex_);
  if (file_ != nullptr) std::fclose(file_);
}

void RocksLog::OpenFile() {
  file_ = std::fopen(path_.c_str(), "ae");
  bytes_ = file_ == nullptr ? 0 : std::ftell(file_);
}

void RocksLog::Logv(const char* format, va_list arguments) {
  std::array<char, 4096> text = {};
  if (std::vsnprintf(text.data(), text.size(), format, arguments) < 0) return;
  const std::string line =
      absl::StrCat(absl::FormatTime(absl::RFC3339_full,
                                    absl::FromUnixMicros(Clock::Real().Now()),
                                    absl::UTCTimeZone()),
                   " ", text.data(), "\n");
  MutexLock lock(mutex_);
  if (bytes_ > bytes_max_) {
    if (file_ != nullptr) std::fclose(file_);
    std::rename(path_.c_str(), absl::StrCat(path_, ".old").c_str());
    OpenFile();
  }
  if (file_ == nullptr) return;
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);
  bytes_ += static_cast<std::int64_t>(line.size());
}

}  // namespace clerestory
