// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/reported_usage.h"

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/json/document.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

std::optional<Usage> Read(const std::string& text, const UsageNames& names) {
  const absl::StatusOr<json::Document> document = json::Document::Parse(text);
  if (!document.ok()) {
    ADD_FAILURE() << document.status();
    return std::nullopt;
  }
  return ReportedUsage(document->root(), names);
}

TEST(ReportedUsageTest, InputThatLeavesOutTheCacheIsTakenAsItIs) {
  EXPECT_EQ(Read(R"({"input_tokens":10,"cache_creation_input_tokens":20,)"
                 R"("cache_read_input_tokens":30,"output_tokens":4})",
                 kAnthropicUsage),
            (Usage{.input_uncached = 10,
                   .cache_read = 30,
                   .cache_write = 20,
                   .output = 4,
                   .reasoning = std::nullopt}));
}

TEST(ReportedUsageTest, InputThatHoldsTheCacheIsSplit) {
  EXPECT_EQ(Read(R"({"prompt_tokens":100,"completion_tokens":7,)"
                 R"("prompt_tokens_details":{"cached_tokens":64}})",
                 kChatUsage),
            (Usage{.input_uncached = 36,
                   .cache_read = 64,
                   .cache_write = std::nullopt,
                   .output = 7,
                   .reasoning = std::nullopt}));
}

TEST(ReportedUsageTest, ReasoningBesideTheOutputIsAdded) {
  const UsageNames names = {.input = "input",
                            .output = "output",
                            .reasoning = "thoughts",
                            .is_reasoning_apart = true};
  const std::optional<Usage> usage =
      Read(R"({"input":9,"output":2,"thoughts":3})", names);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->output, 5);
  EXPECT_EQ(usage->reasoning, 3);
}

TEST(ReportedUsageTest, WhatDoesNotTellTheInputIsNoUsage) {
  EXPECT_FALSE(Read("[]", kChatUsage));
  EXPECT_FALSE(Read("{}", kChatUsage));
  EXPECT_FALSE(Read(R"({"prompt_tokens":null})", kChatUsage));
  EXPECT_FALSE(Read(R"({"prompt_tokens":-1})", kChatUsage));
  EXPECT_FALSE(Read(R"({"prompt_tokens":99999999999})", kChatUsage));
}

TEST(ReportedUsageTest, MoreCachedThanThereWasIsNoUsage) {
  EXPECT_FALSE(Read(R"({"prompt_tokens":10,)"
                    R"("prompt_tokens_details":{"cached_tokens":11}})",
                    kChatUsage));
}

}  // namespace
}  // namespace clerestory
