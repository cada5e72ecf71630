// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/log.h"

#include <cstdint>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/time.h"

namespace clerestory {
namespace {

absl::string_view NameOf(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "INFO";
    case Severity::kWarning:
      return "WARNING";
    case Severity::kError:
      return "ERROR";
  }
  return "ERROR";
}

// `text` as a JSON string of ASCII; what is no ASCII is left out, since nothing
// of ours is.
void AppendQuoted(absl::string_view text, std::string& out) {
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (c >= 0x20 && c < 0x7f) out.push_back(c);
    if (c == '\n') out.append("\\n");
  }
  out.push_back('"');
}

class StderrLogger final : public Logger {
 public:
  void Write(Severity severity, absl::string_view event,
             const std::vector<LogField>& fields) override {
    std::string line =
        FormatLogLine(Clock::Real().Now(), severity, event, fields);
    line.push_back('\n');
    // One call, so that lines of several threads do not mix.
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
};

}  // namespace

std::string FormatLogLine(std::int64_t micros, Severity severity,
                          absl::string_view event,
                          const std::vector<LogField>& fields) {
  std::string line = R"({"time":)";
  AppendQuoted(
      absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(micros),
                       absl::UTCTimeZone()),
      line);
  absl::StrAppend(&line, R"(,"severity":")", NameOf(severity), R"(","event":)");
  AppendQuoted(event, line);
  for (const auto& [name, value] : fields) {
    line.push_back(',');
    AppendQuoted(name, line);
    line.push_back(':');
    if (const auto* text = std::get_if<std::string>(&value)) {
      AppendQuoted(*text, line);
    } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
      absl::StrAppend(&line, *number);
    } else {
      line.append(std::get<bool>(value) ? "true" : "false");
    }
  }
  line.push_back('}');
  return line;
}

Logger& Logger::Stderr() {
  static auto* const logger = new StderrLogger();
  return *logger;
}

}  // namespace clerestory
