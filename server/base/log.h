// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_LOG_H_
#define CLERESTORY_SERVER_BASE_LOG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace clerestory {

enum class Severity { kInfo, kWarning, kError };

// A field of a log line: a name, and a text, a number or a truth.
using LogField =
    std::pair<absl::string_view, std::variant<std::string, std::int64_t, bool>>;

// Where the process says what it does: one JSON object a line, with `time`,
// `severity`, `event` and the fields. Never message content, tokens or keys.
// Safe from any thread.
class Logger {
 public:
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  virtual ~Logger() = default;

  virtual void Write(Severity severity, absl::string_view event,
                     const std::vector<LogField>& fields) = 0;

  // Writes to the standard error. Lives for ever.
  static Logger& Stderr();
};

// The line that Logger::Stderr() writes, without its end. `micros` is its time.
std::string FormatLogLine(std::int64_t micros, Severity severity,
                          absl::string_view event,
                          const std::vector<LogField>& fields);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_LOG_H_
