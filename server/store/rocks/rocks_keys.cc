// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_keys.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

constexpr char kCalibration = 'c';
constexpr char kAfterCalibration = 'd';
constexpr char kFormat = 'f';
constexpr char kHeader = 'h';
constexpr char kPolicy = 'p';
constexpr char kAfterPolicy = 'q';
constexpr char kRecord = 'r';
constexpr char kTool = 't';
constexpr char kAfterTool = 'u';

constexpr char kEscape = '\x00';
constexpr char kEnd = '\x01';       // After kEscape: the end of a text.
constexpr char kAfterEnd = '\x02';  // Behind whatever follows that text.
constexpr char kZero = '\xff';      // After kEscape: a byte 00 of the text.

void AppendText(absl::string_view text, std::string& key) {
  for (const char c : text) {
    key.push_back(c);
    if (c == kEscape) key.push_back(kZero);
  }
  key.push_back(kEscape);
  key.push_back(kEnd);
}

// Takes a text from the front of `key`.
std::optional<std::string> TakeText(absl::string_view& key) {
  std::string text;
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == kEscape) {
      ++i;
      if (i == key.size()) return std::nullopt;
      if (key[i] == kEnd) {
        key.remove_prefix(i + 1);
        return text;
      }
      if (key[i] != kZero) return std::nullopt;
      text.push_back(kEscape);
    } else {
      text.push_back(key[i]);
    }
  }
  return std::nullopt;
}

std::string SessionPrefix(char kind, const SessionKey& key) {
  std::string prefix(1, kind);
  AppendText(key.tenant, prefix);
  AppendText(key.session, prefix);
  return prefix;
}

// Everything that begins with `prefix`, which ends with the end of a text.
RocksRange RangeOf(std::string prefix) {
  RocksRange range{.begin = prefix, .end = prefix};
  range.end.back() = kAfterEnd;
  return range;
}

}  // namespace

std::string FormatKey() { return std::string(1, kFormat); }

std::string HeaderKey(const SessionKey& key) {
  return SessionPrefix(kHeader, key);
}

RocksRange HeaderRange(absl::string_view tenant) {
  std::string prefix(1, kHeader);
  AppendText(tenant, prefix);
  return RangeOf(prefix);
}

std::optional<SessionKey> ParseHeaderKey(absl::string_view key) {
  if (key.empty() || key.front() != kHeader) return std::nullopt;
  key.remove_prefix(1);
  const std::optional<std::string> tenant = TakeText(key);
  if (!tenant) return std::nullopt;
  const std::optional<std::string> session = TakeText(key);
  if (!session || !key.empty()) return std::nullopt;
  return SessionKey{.tenant = *tenant, .session = *session};
}

std::string PolicyKey(absl::string_view tenant) {
  std::string key(1, kPolicy);
  AppendText(tenant, key);
  return key;
}

RocksRange PolicyRange() {
  return {.begin = std::string(1, kPolicy),
          .end = std::string(1, kAfterPolicy)};
}

std::optional<std::string> ParsePolicyKey(absl::string_view key) {
  if (key.empty() || key.front() != kPolicy) return std::nullopt;
  key.remove_prefix(1);
  std::optional<std::string> tenant = TakeText(key);
  return key.empty() ? tenant : std::nullopt;
}

std::string CalibrationKey(absl::string_view tenant, absl::string_view model) {
  std::string key(1, kCalibration);
  AppendText(tenant, key);
  AppendText(model, key);
  return key;
}

RocksRange CalibrationRange() {
  return {.begin = std::string(1, kCalibration),
          .end = std::string(1, kAfterCalibration)};
}

std::optional<CalibrationName> ParseCalibrationKey(absl::string_view key) {
  if (key.empty() || key.front() != kCalibration) return std::nullopt;
  key.remove_prefix(1);
  const std::optional<std::string> tenant = TakeText(key);
  if (!tenant) return std::nullopt;
  const std::optional<std::string> model = TakeText(key);
  if (!model || !key.empty()) return std::nullopt;
  return CalibrationName{.tenant = *tenant, .model = *model};
}

std::string RecordKey(const SessionKey& key, std::int64_t number) {
  CLERESTORY_CHECK(number >= 0);
  std::string record = SessionPrefix(kRecord, key);
  for (int shift = 56; shift >= 0; shift -= 8) {
    record.push_back(
        static_cast<char>(static_cast<std::uint64_t>(number) >> shift));
  }
  return record;
}

RocksRange RecordRange(const SessionKey& key) {
  return RangeOf(SessionPrefix(kRecord, key));
}

std::string ToolKey(absl::string_view tenant, absl::string_view tool) {
  std::string key(1, kTool);
  AppendText(tenant, key);
  AppendText(tool, key);
  return key;
}

RocksRange ToolRange() {
  return {.begin = std::string(1, kTool), .end = std::string(1, kAfterTool)};
}

std::optional<ToolKeyName> ParseToolKey(absl::string_view key) {
  if (key.empty() || key.front() != kTool) return std::nullopt;
  key.remove_prefix(1);
  const std::optional<std::string> tenant = TakeText(key);
  if (!tenant) return std::nullopt;
  const std::optional<std::string> tool = TakeText(key);
  if (!tool || !key.empty()) return std::nullopt;
  return ToolKeyName{.tenant = *tenant, .tool = *tool};
}

}  // namespace clerestory
