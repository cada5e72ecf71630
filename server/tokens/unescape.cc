// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/unescape.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"

namespace clerestory {
namespace {

constexpr std::int32_t kReplacement = 0xfffd;

// The number that `text` begins with if that is `\u` and four hexadecimal
// digits, or -1.
std::int32_t UnicodeEscape(absl::string_view text) {
  if (text.size() < 6 || !absl::StartsWith(text, "\\u")) return -1;
  std::int32_t value = 0;
  for (const char c : text.substr(2, 4)) {
    std::int32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

Utf8Character Encode(std::int32_t code_point) {
  Utf8Character out;
  const auto append = [&out](std::int32_t byte) {
    out.bytes[out.size++] = static_cast<char>(byte);
  };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xc0 | code_point >> 6);
    append(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    append(0xe0 | code_point >> 12);
    append(0x80 | (code_point >> 6 & 0x3f));
    append(0x80 | (code_point & 0x3f));
  } else {
    append(0xf0 | code_point >> 18);
    append(0x80 | (code_point >> 12 & 0x3f));
    append(0x80 | (code_point >> 6 & 0x3f));
    append(0x80 | (code_point & 0x3f));
  }
  return out;
}

// The character of a two-byte escape with `kind` behind the backslash, or -1.
std::int32_t SimpleEscape(char kind) {
  switch (kind) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case '"':
    case '\\':
    case '/':
      return kind;
    default:
      return -1;
  }
}

}  // namespace

Utf8Character TakeEscape(absl::string_view& text) {
  CLERESTORY_CHECK(!text.empty());
  const std::int32_t simple = text.size() > 1 ? SimpleEscape(text[1]) : -1;
  if (simple >= 0) {
    text.remove_prefix(2);
    return Encode(simple);
  }
  const std::int32_t unit = UnicodeEscape(text);
  if (unit < 0) {
    text.remove_prefix(1);
    return Encode('\\');
  }
  text.remove_prefix(6);
  if (unit < 0xd800 || unit > 0xdfff) return Encode(unit);
  const std::int32_t low = unit < 0xdc00 ? UnicodeEscape(text) : -1;
  if (low < 0xdc00 || low > 0xdfff) return Encode(kReplacement);
  text.remove_prefix(6);
  return Encode(0x10000 + (unit - 0xd800) * 0x400 + (low - 0xdc00));
}

}  // namespace clerestory
