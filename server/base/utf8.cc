// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/utf8.h"

#include <cstddef>

#include "absl/strings/string_view.h"

namespace clerestory {
namespace {

// Characters that begin with a byte from `first` to `last` have `size` bytes,
// of which the second lies from `low` to `high` and the rest from 0x80 to 0xBF:
// table 3-7 of the Unicode Standard.
struct Form {
  unsigned char first;
  unsigned char last;
  unsigned char size;
  unsigned char low;
  unsigned char high;
};

constexpr Form kForms[] = {
    {0x00, 0x7F, 1, 0x00, 0x00}, {0xC2, 0xDF, 2, 0x80, 0xBF},
    {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF},
    {0xF0, 0xF0, 4, 0x90, 0xBF}, {0xF1, 0xF3, 4, 0x80, 0xBF},
    {0xF4, 0xF4, 4, 0x80, 0x8F},
};

unsigned char ByteAt(absl::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// The size of the character that begins at `start`; 0 if none does.
std::size_t CharacterSize(absl::string_view text, std::size_t start) {
  const unsigned char lead = ByteAt(text, start);
  for (const Form& form : kForms) {
    if (lead < form.first || lead > form.last) continue;
    if (form.size == 1) return 1;
    if (text.size() - start < form.size) return 0;
    const unsigned char second = ByteAt(text, start + 1);
    if (second < form.low || second > form.high) return 0;
    for (std::size_t i = start + 2; i < start + form.size; ++i) {
      if ((ByteAt(text, i) & 0xC0U) != 0x80U) return 0;
    }
    return form.size;
  }
  return 0;
}

}  // namespace

std::size_t Utf8PrefixSize(absl::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t size = CharacterSize(text, i);
    if (size == 0) break;
    i += size;
  }
  return i;
}

bool IsUtf8(absl::string_view text) {
  return Utf8PrefixSize(text) == text.size();
}

}  // namespace clerestory
