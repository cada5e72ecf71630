// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/random_session.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

constexpr std::uint64_t kSeeds = 300;
constexpr int kSteps = 25;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat,
                               Format::kOpenaiResponses, Format::kGemini,
                               Format::kBedrockConverse};

// The options that `seed` stands for. Chat has no images in results.
RandomHistoryOptions OptionsOf(Format format, std::uint64_t seed) {
  return {.format = format,
          .has_images = seed % 2 == 0 && format != Format::kOpenaiChat,
          .has_thinking = seed % 3 == 0};
}

TEST(RandomHistoryTest, IsValidAfterEveryStep) {
  for (const Format format : kFormats) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      RandomHistory history(OptionsOf(format, seed), random);
      std::vector<std::string> messages;
      for (int step = 0; step < kSteps; ++step) {
        for (std::string& message : history.NextStep()) {
          messages.push_back(std::move(message));
        }
        const absl::Status status = CheckValidHistory(format, messages);
        ASSERT_TRUE(status.ok())
            << "format " << static_cast<int>(format) << " seed " << seed
            << " step " << step << ": " << status << "\n"
            << absl::StrJoin(messages, "\n");
      }
    }
  }
}

TEST(RandomHistoryTest, IsOftenInvalidWhereItMayBe) {
  for (const Format format : kFormats) {
    int invalid_count = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      RandomHistoryOptions options = OptionsOf(format, seed);
      options.is_valid = false;
      RandomHistory history(options, random);
      std::vector<std::string> messages;
      for (int step = 0; step < kSteps; ++step) {
        for (std::string& message : history.NextStep()) {
          messages.push_back(std::move(message));
        }
      }
      if (!CheckValidHistory(format, messages).ok()) ++invalid_count;
    }
    EXPECT_GT(invalid_count, static_cast<int>(kSeeds) / 2)
        << static_cast<int>(format);
  }
}

// All messages of all seeds.
std::string EverythingOf(Format format, bool has_unknown = true) {
  std::string all;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    RandomHistoryOptions options = OptionsOf(format, seed);
    options.has_unknown = has_unknown;
    RandomHistory history(options, random);
    for (int step = 0; step < kSteps; ++step) {
      absl::StrAppend(&all, absl::StrJoin(history.NextStep(), "\n"), "\n");
    }
  }
  return all;
}

TEST(RandomHistoryTest, DrawsWhatEachFormatHas) {
  struct Expected {
    Format format;
    std::vector<std::string> pieces;
  };
  const std::vector<Expected> expected = {
      {Format::kAnthropicMessages,
       {"is_error", "cache_control", "thinking", "tool_reference", "image",
        "from_the_future", "call_0"}},
      {Format::kOpenaiChat, {"1.50e+3", "call_0"}},
      {Format::kOpenaiResponses,
       {"custom_tool_call_output", "shell_call_output", "timeout", "reasoning",
        "computer_screenshot", "local_shell_call_output", "failed",
        "input_image", "fc_", "input_file", "mcp_call", "from_the_future"}},
      {Format::kGemini,
       {"thoughtSignature", "function_response", "\"error\"", "inlineData",
        "file_data", "call_0", "1.0e2", R"({"functionResponse":{"response")"}},
      {Format::kBedrockConverse,
       {"cachePoint", "\"error\"", "\"json\"", "image", "document",
        "reasoningContent", R"("content":[]}})", "\\u0074"}}};
  for (const Expected& e : expected) {
    const std::string all = EverythingOf(e.format);
    for (const std::string& piece : e.pieces) {
      EXPECT_TRUE(all.find(piece) != std::string::npos)
          << static_cast<int>(e.format) << " lacks " << piece;
    }
  }
}

TEST(RandomHistoryTest, LeavesOutWhatNobodyKnowsIfTold) {
  for (const Format format : kFormats) {
    const std::string all = EverythingOf(format, /*has_unknown=*/false);
    EXPECT_EQ(all.find("from_the_future"), std::string::npos);
    EXPECT_EQ(all.find("\"x\":"), std::string::npos);
  }
}

}  // namespace
}  // namespace clerestory
