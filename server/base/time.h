// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_TIME_H_
#define CLERESTORY_SERVER_BASE_TIME_H_

#include <cstdint>

namespace clerestory {

// Microseconds since 1970-01-01T00:00:00Z. An integer, so that it can be stored
// and compared exactly.
using TimeMicros = std::int64_t;

inline constexpr std::int64_t kMicrosPerSecond = 1'000'000;

// The wall clock, as something that a test can set. Safe from any thread.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // The present time.
  virtual TimeMicros Now() const = 0;

  // The clock of this machine. Lives for ever.
  static const Clock& Real();
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_TIME_H_
