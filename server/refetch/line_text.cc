// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/line_text.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace clerestory {
namespace {

constexpr absl::string_view kArrow = "\xE2\x86\x92";  // →
constexpr std::size_t kDigitsMax = 9;
constexpr std::size_t kPathMax = 300;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || byte >= 0x80;
}

std::size_t DigitCount(absl::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  return count;
}

std::int64_t NumberOf(absl::string_view digits) {
  std::int64_t number = 0;
  for (const char c : digits) number = number * 10 + (c - '0');
  return number;
}

// How many bytes at the front of `text`, which stands behind a number, part the
// number from its line; 0 if it is no number of a line.
std::size_t SeparatorSize(absl::string_view text, bool is_padded) {
  if (text.empty()) return 0;
  if (absl::StartsWith(text, kArrow)) return kArrow.size();
  if (absl::StartsWith(text, " | ")) return 3;
  if (text == " |") return 2;
  const char c = text.front();
  if (c == '\t' || c == '|') return 1;
  // Of a search; a time or a date is none.
  if ((c == ':' || c == '-') && !is_padded) {
    return text.size() > 1 && IsDigit(text[1]) ? 0 : 1;
  }
  return 0;
}

// Takes the number of a line off its front, if there is one.
std::optional<std::int64_t> TakeNumber(absl::string_view& line) {
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line);
  const bool is_padded = rest.size() < line.size();
  const std::size_t digits = DigitCount(rest);
  if (digits == 0 || digits > kDigitsMax) return std::nullopt;
  const std::size_t separator = SeparatorSize(rest.substr(digits), is_padded);
  if (separator == 0 && !(is_padded && rest.size() == digits)) {
    return std::nullopt;
  }
  const std::int64_t number = NumberOf(rest.substr(0, digits));
  line = rest.substr(digits + separator);
  return number;
}

bool IsPathByte(char c) {
  if (IsWordByte(c)) return true;
  switch (c) {
    case '/':
    case '.':
    case '_':
    case '-':
    case '+':
    case '@':
    case '(':
    case ')':
    case '[':
    case ']':
    case '~':
    case '$':
      return true;
    default:
      return false;
  }
}

// Takes the path that a search puts before a line off its front, with its
// number, if there is one.
void TakePath(absl::string_view& line) {
  std::size_t end = 0;
  bool is_path = false;
  for (; end < std::min(line.size(), kPathMax) && IsPathByte(line[end]);
       ++end) {
    const char c = line[end];
    is_path = is_path || c == '/' || c == '.';
    if (c != '-' || !is_path) continue;
    const std::size_t digits = DigitCount(line.substr(end + 1));
    const std::size_t behind = end + 1 + digits;
    if (digits == 0 || digits > kDigitsMax || behind >= line.size() ||
        line[behind] != '-') {
      continue;
    }
    line.remove_prefix(behind + 1);
    return;
  }
  if (!is_path || end == 0 || end >= line.size() || line[end] != ':') {
    return;
  }
  absl::string_view rest = line.substr(end + 1);
  const std::size_t digits = DigitCount(rest);
  if (digits > 0 && digits <= kDigitsMax && digits < rest.size() &&
      rest[digits] == ':') {
    line = rest.substr(digits + 1);
    return;
  }
  // Without a number it may be anything that has a colon, as a rule of a style
  // sheet.
  if (absl::StrContains(line.substr(0, end), '/')) line = rest;
}

// How long the time is that `text` begins with, as `0.32s` or `12 ms`; 0 if it
// begins with none. `text` begins with a digit.
std::size_t TimeSize(absl::string_view text) {
  std::size_t size = DigitCount(text);
  if (size < text.size() && text[size] == '.') {
    ++size;
    size += DigitCount(text.substr(size));
  }
  if (size < text.size() && text[size] == ' ') ++size;
  for (const absl::string_view unit :
       {"seconds", "second", "secs", "sec", "ms", "us", "ns", "s"}) {
    if (!absl::StartsWith(text.substr(size), unit)) continue;
    const std::size_t end = size + unit.size();
    return end < text.size() && IsWordByte(text[end]) ? 0 : end;
  }
  return 0;
}

constexpr absl::string_view kCommonLines[] = {
    "#endif",
    "#include",
    "'use client'",
    "\"use client\";",
    "@classmethod",
    "@Override",
    "@property",
    "@staticmethod",
    "break;",
    "continue",
    "continue;",
    "default:",
    "else:",
    "else {",
    "} else {",
    "except Exception:",
    "finally:",
    "import (",
    "import json",
    "import logging",
    "import os",
    "import re",
    "import sys",
    "import time",
    "return err",
    "return False",
    "return false",
    "return false;",
    "return None",
    "return nil",
    "return null;",
    "return result",
    "return result;",
    "return self",
    "return True",
    "return true",
    "return true;",
    "return;",
    "return (",
    "try {",
    "if err != nil {",
    "t.Helper()",
    "t.Parallel()",
    "</div>",
    "</span>",
    "} catch (error) {",
    "} finally {",
    "async () => {",
    "beforeEach(() => {",
    "from __future__ import annotations",
};

constexpr absl::string_view kAddedStarts[] = {
    "(Open file: ",
    "(Current directory: ",
    "(Results are truncated",
    "[Current working directory: ",
    "[Python interpreter: ",
    "[The command completed with exit code",
    "[Command finished with exit code",
    "[exit code:",
    "Background PIDs: ",
    "Process Group PGID: ",
    "Exit Code: ",
    "Exit code ",
};

// `text` with `#` for each time; valid as long as `text` if there is none.
class WithoutTimes {
 public:
  explicit WithoutTimes(absl::string_view text) : text_(text) {
    std::size_t from = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!IsDigit(text[i])) continue;
      const bool begins_number = i == 0 || !IsWordByte(text[i - 1]);
      const std::size_t size = begins_number ? TimeSize(text.substr(i)) : 0;
      if (size > 0) {
        changed_.append(text.data() + from, i - from);
        changed_.push_back('#');
        from = i + size;
        i = from - 1;
        continue;
      }
      while (i + 1 < text.size() && IsDigit(text[i + 1])) ++i;
    }
    if (from == 0) return;
    changed_.append(text.data() + from, text.size() - from);
    text_ = changed_;
  }
  WithoutTimes(const WithoutTimes&) = delete;
  WithoutTimes& operator=(const WithoutTimes&) = delete;

  absl::string_view text() const { return text_; }

 private:
  std::string changed_;
  absl::string_view text_;
};

// The eight bytes at `data`.
std::uint64_t Word(const char* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, sizeof(word));
  static_assert(std::endian::native == std::endian::little);
  return word;
}

// Eight bytes at a time, the lowest first on every machine; and a last mix, as
// sampling looks at the low bits.
std::uint64_t HashBytes(absl::string_view text) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  std::uint64_t hash = 0xCBF29CE484222325 ^ (text.size() * kMultiplier);
  const auto add = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  };
  while (text.size() >= 8) {
    add(Word(text.data()));
    text.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  for (const char c : text) rest = rest << 8 | static_cast<unsigned char>(c);
  add(rest);
  hash *= kMultiplier;
  return hash ^ hash >> 29;
}

const absl::flat_hash_set<std::uint64_t>& CommonHashes() {
  static const auto* const hashes = [] {
    auto* const set = new absl::flat_hash_set<std::uint64_t>();
    for (const absl::string_view line : kCommonLines) {
      set->insert(HashBytes(line));
    }
    return set;
  }();
  return *hashes;
}

}  // namespace

std::string WithoutTerminalCodes(absl::string_view text) {
  if (!absl::StrContains(text, '\x1b') && !absl::StrContains(text, '\b')) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\b') {
      if (!out.empty() && out.back() != '\n') out.pop_back();
      continue;
    }
    if (text[i] != '\x1b') {
      out.push_back(text[i]);
      continue;
    }
    // A control sequence ends with a letter; any other escape has one byte.
    if (i + 1 < text.size() && text[i + 1] == '[') {
      ++i;
      while (i + 1 < text.size() && (text[i + 1] < '@' || text[i + 1] > '~')) {
        ++i;
      }
    }
    ++i;
  }
  return out;
}

LineParts PartsOf(absl::string_view line) {
  LineParts parts;
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
    line.remove_suffix(1);
  }
  parts.number = TakeNumber(line);
  TakePath(line);
  parts.text = absl::StripAsciiWhitespace(line);
  return parts;
}

LineSignature SignatureOf(absl::string_view text) {
  constexpr std::size_t kWordBytesMin = 5;
  constexpr std::size_t kCommonSizeMax = 40;
  std::size_t words = 0;
  bool has_digits = false;
  for (const char c : text) {
    words += IsWordByte(c) ? std::size_t{1} : 0;
    has_digits = has_digits || IsDigit(c);
  }
  LineSignature signature;
  if (has_digits) {
    const WithoutTimes timeless(text);
    signature.hash = HashBytes(timeless.text());
  } else {
    signature.hash = HashBytes(text);
  }
  signature.says_nothing =
      words < kWordBytesMin || (text.size() <= kCommonSizeMax &&
                                CommonHashes().contains(signature.hash));
  return signature;
}

std::uint64_t HashOfLine(absl::string_view text) {
  return SignatureOf(text).hash;
}

bool IsAddedLine(absl::string_view text) {
  if (text.empty() || text.size() > kPathMax) return false;
  if (text.front() != '(' && text.front() != '[' && text.front() != '<' &&
      text.front() != 'B' && text.front() != 'P' && text.front() != 'E' &&
      text.front() != 'b') {
    return false;
  }
  if (text == "bash-$") return true;
  for (const absl::string_view start : kAddedStarts) {
    if (absl::StartsWith(text, start)) return true;
  }
  if (text.front() == '(') {
    return absl::EndsWith(text, " more lines above)") ||
           absl::EndsWith(text, " more lines below)");
  }
  return absl::StartsWith(text, "[File: ") &&
         absl::EndsWith(text, " lines total)]");
}

}  // namespace clerestory
