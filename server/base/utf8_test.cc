// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/utf8.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace clerestory {
namespace {

// `code` in as few bytes as it fits, or in `size` bytes, legal or not.
std::string Encoded(std::uint32_t code, std::size_t size = 0) {
  if (size == 0) {
    size = 1;
    for (const std::uint32_t end : {0x80U, 0x800U, 0x10000U}) {
      if (code >= end) ++size;
    }
  }
  constexpr std::uint32_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  std::string out(size, '\0');
  for (std::size_t i = size; i-- > 0;) {
    const std::uint32_t byte = i == 0 ? kLead[size] | code : 0x80 | (code & 63);
    out[i] = static_cast<char>(static_cast<unsigned char>(byte));
    code >>= 6;
  }
  return out;
}

TEST(Utf8Test, AcceptsEveryCharacterAndNoSurrogate) {
  for (std::uint32_t code = 0; code <= 0x110000; ++code) {
    const bool valid = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    ASSERT_EQ(IsUtf8(Encoded(code)), valid) << code;
  }
}

TEST(Utf8Test, RefusesOverlongForms) {
  EXPECT_FALSE(IsUtf8(Encoded(0, 2)));
  EXPECT_FALSE(IsUtf8(Encoded('/', 2)));
  EXPECT_FALSE(IsUtf8(Encoded(0x7F, 3)));
  EXPECT_FALSE(IsUtf8(Encoded(0x7FF, 3)));
  EXPECT_FALSE(IsUtf8(Encoded(0x7FF, 4)));
  EXPECT_FALSE(IsUtf8(Encoded(0xFFFF, 4)));
}

TEST(Utf8Test, RefusesCharactersThatAreCutOff) {
  for (const std::uint32_t code : {0xE9U, 0x20ACU, 0x1F600U}) {
    const std::string whole = Encoded(code);
    for (std::size_t size = 1; size < whole.size(); ++size) {
      EXPECT_EQ(Utf8PrefixSize("ab" + whole.substr(0, size)), 2U);
      EXPECT_EQ(Utf8PrefixSize("ab" + whole.substr(0, size) + "c"), 2U);
    }
  }
}

TEST(Utf8Test, RefusesBytesThatBeginNoCharacter) {
  for (int byte = 0x80; byte <= 0xC1; ++byte) {
    EXPECT_FALSE(IsUtf8(std::string(1, static_cast<char>(byte)) + "\x80"));
  }
  for (int byte = 0xF5; byte <= 0xFF; ++byte) {
    EXPECT_FALSE(
        IsUtf8(std::string(1, static_cast<char>(byte)) + "\x80\x80\x80"));
  }
}

TEST(Utf8Test, PrefixEndsBeforeTheFirstBadByte) {
  EXPECT_EQ(Utf8PrefixSize(""), 0U);
  EXPECT_EQ(Utf8PrefixSize("\xFF"), 0U);
  EXPECT_EQ(Utf8PrefixSize("h\xC3\xA9llo\xFFx"), 6U);
  EXPECT_EQ(Utf8PrefixSize(std::string("a\0b", 3)), 3U);
}

}  // namespace
}  // namespace clerestory
