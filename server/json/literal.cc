// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/json/literal.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"

namespace clerestory::json {
namespace {

// Takes the four digits of a `\u` escape off the front of `text`.
std::uint32_t TakeHex(absl::string_view& text) {
  CLERESTORY_CHECK(text.size() >= 4);
  std::uint32_t unit = 0;
  for (const char c : text.substr(0, 4)) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    unit = unit * 16 + static_cast<std::uint32_t>(digit);
  }
  text.remove_prefix(4);
  return unit;
}

void AppendUtf8(std::uint32_t code, std::string& out) {
  const auto append = [&out](std::uint32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code < 0x80) {
    append(code);
    return;
  }
  if (code < 0x800) {
    append(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      append(0xE0 | code >> 12);
    } else {
      append(0xF0 | code >> 18);
      append(0x80 | (code >> 12 & 0x3F));
    }
    append(0x80 | (code >> 6 & 0x3F));
  }
  append(0x80 | (code & 0x3F));
}

// Takes the escape that `text` begins with, without its backslash, off its
// front, and appends what it stands for.
void TakeEscape(absl::string_view& text, std::string& out) {
  CLERESTORY_CHECK(!text.empty());
  const char kind = text.front();
  text.remove_prefix(1);
  switch (kind) {
    case 'b':
      out.push_back('\b');
      break;
    case 'f':
      out.push_back('\f');
      break;
    case 'n':
      out.push_back('\n');
      break;
    case 'r':
      out.push_back('\r');
      break;
    case 't':
      out.push_back('\t');
      break;
    case 'u': {
      std::uint32_t code = TakeHex(text);
      if (code >= 0xD800 && code < 0xDC00) {
        CLERESTORY_CHECK(text.size() >= 6);
        text.remove_prefix(2);  // The `\u` of the other half.
        code = 0x10000 + ((code - 0xD800) << 10) + (TakeHex(text) - 0xDC00);
      }
      AppendUtf8(code, out);
      break;
    }
    default:  // A quote, a slash or a backslash.
      out.push_back(kind);
  }
}

}  // namespace

std::string Unquote(absl::string_view literal) {
  CLERESTORY_CHECK(literal.size() >= 2);
  absl::string_view rest = literal.substr(1, literal.size() - 2);
  std::string out;
  out.reserve(rest.size());
  while (true) {
    const std::size_t plain = rest.find('\\');
    const absl::string_view part = rest.substr(0, plain);
    out.append(part.data(), part.size());
    if (plain == absl::string_view::npos) return out;
    rest.remove_prefix(plain + 1);
    TakeEscape(rest, out);
  }
}

std::string Quote(absl::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppendFormat(&out, "\\u%04x", static_cast<int>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace clerestory::json
