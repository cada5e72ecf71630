// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/page_token.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

auto IsRefused() {
  return FailsWith(absl::StatusCode::kInvalidArgument,
                   Reason::kPageTokenInvalid);
}

TEST(PageTokenTest, GivesBackThePositionWhateverItHolds) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  for (const std::string& position :
       {std::string("session-1"), std::string(), std::string(1, '\0'),
        std::string("a:b\n\"=&%+/"), bytes, std::string(10'000, 'x')}) {
    const auto read = ReadPageToken("list", MakePageToken("list", position));
    ASSERT_THAT(read, IsOk()) << position;
    EXPECT_EQ(*read, position);
  }
}

TEST(PageTokenTest, IsSafeInAnAddress) {
  const std::string token = MakePageToken("list", "\xff\xfe\xfb\xef\xbe");
  EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "abcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos)
      << token;
}

TEST(PageTokenTest, TheEmptyTokenIsTheStart) {
  const auto read = ReadPageToken("list", "");
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, "");
}

TEST(PageTokenTest, OfAnotherListIsRefused) {
  const std::string token = MakePageToken("list", "p");
  for (const char* scope : {"lis", "list ", "List", "", "listp"}) {
    EXPECT_THAT(ReadPageToken(scope, token), IsRefused()) << scope;
  }
  // What divides scope from position is part of the seal.
  EXPECT_NE(MakePageToken("ab", "c").substr(0, 20),
            MakePageToken("a", "bc").substr(0, 20));
}

TEST(PageTokenTest, WhoseBytesWereChangedIsRefused) {
  std::string plain;
  ASSERT_TRUE(
      absl::WebSafeBase64Unescape(MakePageToken("list", "position"), &plain));
  for (char& c : plain) {
    const char was = c;
    c = static_cast<char>(c ^ 1);
    EXPECT_THAT(ReadPageToken("list", absl::WebSafeBase64Escape(plain)),
                IsRefused());
    c = was;
  }
  for (std::size_t size = 1; size < plain.size(); ++size) {
    EXPECT_THAT(
        ReadPageToken("list", absl::WebSafeBase64Escape(plain.substr(0, size))),
        IsRefused())
        << size;
  }
}

TEST(PageTokenTest, WhatIsNoTokenIsRefusedAndNamesTheField) {
  for (const char* token : {"!", "no token at all", "AAAA", "=", "\xc3\xa9"}) {
    const auto read = ReadPageToken("list", token);
    EXPECT_THAT(read, IsRefused()) << token;
    EXPECT_EQ(MetadataOf(read.status(), "field"), "page_token");
  }
}

TEST(PageSizeTest, IsWhatWasAskedUpToTheMost) {
  constexpr auto kMost = static_cast<std::int32_t>(kPageSizeMax);
  EXPECT_EQ(*PageSize(0), kPageSizeDefault);
  EXPECT_EQ(*PageSize(1), 1);
  EXPECT_EQ(*PageSize(kMost), kPageSizeMax);
  EXPECT_EQ(*PageSize(kMost + 1), kPageSizeMax);
  EXPECT_EQ(*PageSize(std::numeric_limits<std::int32_t>::max()), kPageSizeMax);
}

TEST(PageSizeTest, ThatIsNegativeIsRefused) {
  for (const std::int32_t asked :
       {-1, std::numeric_limits<std::int32_t>::min()}) {
    const auto size = PageSize(asked);
    EXPECT_THAT(size, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
    EXPECT_EQ(MetadataOf(size.status(), "field"), "page_size");
  }
}

}  // namespace
}  // namespace clerestory
