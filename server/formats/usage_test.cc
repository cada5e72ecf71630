// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/usage.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat,
                               Format::kOpenaiResponses, Format::kGemini,
                               Format::kBedrockConverse};

// A usage in its fields' order; -1 is absent.
Usage UsageOf(std::int64_t input_uncached, std::int64_t cache_read,
              std::int64_t cache_write, std::int64_t output,
              std::int64_t reasoning) {
  const auto count = [](std::int64_t number) {
    return number < 0 ? std::nullopt : std::optional<std::int64_t>(number);
  };
  return {.input_uncached = count(input_uncached),
          .cache_read = count(cache_read),
          .cache_write = count(cache_write),
          .output = count(output),
          .reasoning = count(reasoning)};
}

Usage Parse(Format format, absl::string_view json) {
  const absl::StatusOr<Usage> usage = ParseUsage(format, json);
  EXPECT_THAT(usage, IsOk()) << json;
  return usage.ok() ? *usage : Usage();
}

Usage Anthropic(absl::string_view json) {
  return Parse(Format::kAnthropicMessages, json);
}

Usage Openai(absl::string_view json) {
  return Parse(Format::kOpenaiChat, json);
}

// The field that the error for `json` names.
std::string FieldOf(Format format, absl::string_view json) {
  const absl::StatusOr<Usage> usage = ParseUsage(format, json);
  EXPECT_THAT(usage, FailsWith(absl::StatusCode::kInvalidArgument,
                               Reason::kUsageInvalid))
      << json;
  const std::string field = MetadataOf(usage.status(), "field");
  EXPECT_THAT(std::string(usage.status().message()), HasSubstr(field + ": "));
  return field;
}

// --- Anthropic -------------------------------------------------------------

TEST(UsageTest, ReadsAnthropics) {
  EXPECT_EQ(Anthropic(R"({"input_tokens":12,"cache_creation_input_tokens":300,)"
                      R"("cache_read_input_tokens":4000,"cache_creation":)"
                      R"({"ephemeral_5m_input_tokens":100,)"
                      R"("ephemeral_1h_input_tokens":200},"output_tokens":50,)"
                      R"("output_tokens_details":{"thinking_tokens":40},)"
                      R"("server_tool_use":{"web_search_requests":1},)"
                      R"("service_tier":"standard","inference_geo":null})"),
            UsageOf(12, 4000, 300, 50, 40));
}

TEST(UsageTest, AddsAnthropicsWritesWhereOnlyTheirPartsAreGiven) {
  EXPECT_EQ(Anthropic(R"({"cache_creation":{"ephemeral_5m_input_tokens":1,)"
                      R"("ephemeral_1h_input_tokens":20}})"),
            UsageOf(-1, -1, 21, -1, -1));
  EXPECT_EQ(Anthropic(R"({"cache_creation":{"ephemeral_1h_input_tokens":20},)"
                      R"("cache_creation_input_tokens":null})"),
            UsageOf(-1, -1, 20, -1, -1));
  EXPECT_EQ(Anthropic(R"({"cache_creation":{"ephemeral_5m_input_tokens":0}})"),
            UsageOf(-1, -1, 0, -1, -1));
  EXPECT_EQ(Anthropic(R"({"cache_creation":{},"output_tokens":1})"),
            UsageOf(-1, -1, -1, 1, -1));
  EXPECT_EQ(Anthropic(R"({"cache_creation":null})"), Usage());
}

TEST(UsageTest, AddsAnthropicsIterations) {
  EXPECT_EQ(
      Anthropic(
          R"({"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,)"
          R"("iterations":[{"type":"compaction","input_tokens":100,)"
          R"("output_tokens":10,"cache_creation":)"
          R"({"ephemeral_5m_input_tokens":7}},{"type":"message",)"
          R"("input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,)"
          R"("cache_creation_input_tokens":4}]})"),
      UsageOf(101, 3, 11, 12, -1));
}

TEST(UsageTest, AClassThatNoIterationTellsIsThatOfTheWhole) {
  EXPECT_EQ(Anthropic(R"({"input_tokens":1,"cache_read_input_tokens":30,)"
                      R"("output_tokens_details":{"thinking_tokens":2},)"
                      R"("iterations":[{"input_tokens":5,"output_tokens":6},)"
                      R"({"input_tokens":7,"output_tokens":null}]})"),
            UsageOf(12, 30, -1, 6, 2));
  EXPECT_EQ(Anthropic(R"({"input_tokens":1,"iterations":[]})"),
            UsageOf(1, -1, -1, -1, -1));
  EXPECT_EQ(Anthropic(R"({"input_tokens":1,"iterations":null})"),
            UsageOf(1, -1, -1, -1, -1));
}

// --- OpenAI ----------------------------------------------------------------

TEST(UsageTest, ReadsOpenais) {
  EXPECT_EQ(
      Openai(R"({"prompt_tokens":1000,"completion_tokens":50,)"
             R"("total_tokens":1050,"prompt_tokens_details":)"
             R"({"cached_tokens":600,"cache_write_tokens":300,)"
             R"("audio_tokens":0},"completion_tokens_details":)"
             R"({"reasoning_tokens":40,"accepted_prediction_tokens":0}})"),
      UsageOf(100, 600, 300, 50, 40));
}

TEST(UsageTest, OpenaisPromptHoldsWhatWasCachedAndWritten) {
  EXPECT_EQ(Openai(R"({"prompt_tokens":10})"), UsageOf(10, -1, -1, -1, -1));
  EXPECT_EQ(Openai(R"({"prompt_tokens":10,"prompt_tokens_details":null})"),
            UsageOf(10, -1, -1, -1, -1));
  EXPECT_EQ(Openai(R"({"prompt_tokens":10,)"
                   R"("prompt_tokens_details":{"cached_tokens":10}})"),
            UsageOf(0, 10, -1, -1, -1));
  EXPECT_EQ(Openai(R"({"prompt_tokens":10,)"
                   R"("prompt_tokens_details":{"cache_write_tokens":4}})"),
            UsageOf(6, -1, 4, -1, -1));
  // Without the whole the rest is not known.
  EXPECT_EQ(Openai(R"({"prompt_tokens_details":{"cached_tokens":10}})"),
            UsageOf(-1, 10, -1, -1, -1));
}

TEST(UsageTest, OpenaisPromptIsNoSmallerThanItsParts) {
  EXPECT_EQ(FieldOf(Format::kOpenaiChat,
                    R"({"prompt_tokens":10,)"
                    R"("prompt_tokens_details":{"cached_tokens":11}})"),
            "usage.prompt_tokens");
  EXPECT_EQ(FieldOf(Format::kOpenaiChat,
                    R"({"prompt_tokens":10,"prompt_tokens_details":)"
                    R"({"cached_tokens":6,"cache_write_tokens":5}})"),
            "usage.prompt_tokens");
}

// --- both ------------------------------------------------------------------

// --- the others -------------------------------------------------------------

TEST(UsageTest, ReadsThatOfResponses) {
  EXPECT_EQ(Parse(Format::kOpenaiResponses,
                  R"({"input_tokens":100,"input_tokens_details":)"
                  R"({"cached_tokens":70,"cache_write_tokens":10},)"
                  R"("output_tokens":9,"output_tokens_details":)"
                  R"({"reasoning_tokens":4},"total_tokens":109})"),
            UsageOf(20, 70, 10, 9, 4));
  EXPECT_EQ(FieldOf(Format::kOpenaiResponses,
                    R"({"input_tokens":1,"input_tokens_details":)"
                    R"({"cached_tokens":2}})"),
            "usage.input_tokens");
}

TEST(UsageTest, ReadsGeminis) {
  EXPECT_EQ(Parse(Format::kGemini,
                  R"({"promptTokenCount":100,"toolUsePromptTokenCount":5,)"
                  R"("cachedContentTokenCount":70,"candidatesTokenCount":9,)"
                  R"("thoughtsTokenCount":4,"totalTokenCount":118})"),
            UsageOf(35, 70, -1, 13, 4));
  // Nothing but thoughts.
  EXPECT_EQ(Parse(Format::kGemini,
                  R"({"prompt_token_count":8,"candidates_token_count":null,)"
                  R"("thoughts_token_count":4})"),
            UsageOf(8, -1, -1, 4, 4));
  EXPECT_EQ(Parse(Format::kGemini, "{}"), UsageOf(-1, -1, -1, -1, -1));
  EXPECT_EQ(FieldOf(Format::kGemini,
                    R"({"promptTokenCount":1,"cachedContentTokenCount":2})"),
            "usage.promptTokenCount");
  EXPECT_EQ(FieldOf(Format::kGemini, R"({"thoughtsTokenCount":-1})"),
            "usage.thoughtsTokenCount");
  const std::string most = absl::StrCat(kTokensMax);
  EXPECT_EQ(FieldOf(Format::kGemini,
                    absl::StrCat(R"({"promptTokenCount":)", most,
                                 R"(,"toolUsePromptTokenCount":1})")),
            "usage.promptTokenCount");
  EXPECT_EQ(
      FieldOf(Format::kGemini, absl::StrCat(R"({"candidatesTokenCount":)", most,
                                            R"(,"thoughtsTokenCount":1})")),
      "usage.candidatesTokenCount");
}

TEST(UsageTest, ReadsThatOfGeminisInteractions) {
  EXPECT_EQ(Parse(Format::kGemini,
                  R"({"total_input_tokens":100,"total_cached_tokens":70,)"
                  R"("total_output_tokens":9,"total_thought_tokens":4,)"
                  R"("total_tokens":113})"),
            UsageOf(30, 70, -1, 13, 4));
  EXPECT_EQ(Parse(Format::kGemini, R"({"total_input_tokens":8})"),
            UsageOf(8, -1, -1, -1, -1));
  EXPECT_EQ(FieldOf(Format::kGemini,
                    R"({"total_input_tokens":1,"total_cached_tokens":2})"),
            "usage.total_input_tokens");
  EXPECT_EQ(FieldOf(Format::kGemini,
                    R"({"total_output_tokens":1,"total_thought_tokens":-1})"),
            "usage.total_thought_tokens");
  EXPECT_EQ(FieldOf(Format::kGemini,
                    absl::StrCat(R"({"total_output_tokens":)", kTokensMax,
                                 R"(,"total_thought_tokens":1})")),
            "usage.total_output_tokens");
}

TEST(UsageTest, ReadsThatOfAnthropicsEndpointForOpenaisClients) {
  EXPECT_EQ(Openai(R"({"prompt_tokens":100,"cached_tokens":60,)"
                   R"("completion_tokens":5})"),
            UsageOf(40, 60, -1, 5, -1));
  // The details count where both are there.
  EXPECT_EQ(Openai(R"({"prompt_tokens":100,"cached_tokens":60,)"
                   R"("prompt_tokens_details":{"cached_tokens":0}})"),
            UsageOf(100, 0, -1, -1, -1));
  EXPECT_EQ(
      FieldOf(Format::kOpenaiChat, R"({"prompt_tokens":1,"cached_tokens":2})"),
      "usage.prompt_tokens");
  EXPECT_EQ(FieldOf(Format::kOpenaiChat, R"({"cached_tokens":-2})"),
            "usage.cached_tokens");
}

TEST(UsageTest, AddsBedrocksWritesWhereOnlyTheirPartsAreGiven) {
  const auto with = [](absl::string_view details) {
    return absl::StrCat(R"({"inputTokens":1,"cacheDetails":)", details, "}");
  };
  constexpr Format kBedrock = Format::kBedrockConverse;
  EXPECT_EQ(Parse(kBedrock, with(R"([{"ttl":"5m","inputTokens":10},)"
                                 R"({"ttl":"1h","inputTokens":30}])")),
            UsageOf(1, -1, 40, -1, -1));
  for (const absl::string_view none : {"[]", "null", "[{}]"}) {
    EXPECT_EQ(Parse(kBedrock, with(none)), UsageOf(1, -1, -1, -1, -1)) << none;
  }
  EXPECT_EQ(FieldOf(kBedrock, with("7")), "usage.cacheDetails");
  EXPECT_EQ(FieldOf(kBedrock, with("[{},7]")), "usage.cacheDetails[1]");
  EXPECT_EQ(FieldOf(kBedrock, with(R"([{"inputTokens":-1}])")),
            "usage.cacheDetails[0].inputTokens");
  EXPECT_EQ(FieldOf(kBedrock,
                    with(absl::StrCat(R"([{"inputTokens":1},{"inputTokens":)",
                                      kTokensMax, "}]"))),
            "usage.cacheDetails");
}

TEST(UsageTest, ReadsBedrocks) {
  EXPECT_EQ(Parse(Format::kBedrockConverse,
                  R"({"inputTokens":20,"cacheReadInputTokens":70,)"
                  R"("cacheWriteInputTokens":10,"cacheDetails":)"
                  R"([{"ttl":"5m","inputTokens":10}],"outputTokens":9,)"
                  R"("totalTokens":109})"),
            UsageOf(20, 70, 10, 9, -1));
  EXPECT_EQ(FieldOf(Format::kBedrockConverse, R"({"outputTokens":"9"})"),
            "usage.outputTokens");
}

TEST(UsageTest, WhatIsAbsentOrNullStaysAbsent) {
  for (const Format format : kFormats) {
    EXPECT_EQ(Parse(format, "{}"), Usage());
    EXPECT_EQ(Parse(format, R"({"made_up":7,"input":-1,"total_tokens":"x"})"),
              Usage());
  }
  EXPECT_EQ(Anthropic(R"({"input_tokens":null,"cache_read_input_tokens":null,)"
                      R"("output_tokens":null,"output_tokens_details":null})"),
            Usage());
  EXPECT_EQ(Openai(R"({"prompt_tokens":null,"prompt_tokens_details":)"
                   R"({"cached_tokens":null},"completion_tokens":null,)"
                   R"("completion_tokens_details":{}})"),
            Usage());
  EXPECT_EQ(Anthropic(R"({"input_tokens":0,"output_tokens":0})"),
            UsageOf(0, -1, -1, 0, -1));
  // The fields of one vendor are unknown to the other.
  EXPECT_EQ(Openai(R"({"input_tokens":1,"output_tokens":2})"), Usage());
  EXPECT_EQ(Anthropic(R"({"prompt_tokens":1,"completion_tokens":2})"), Usage());
}

struct Place {
  Format format;
  absl::string_view json;  // With "#" where a number stands.
  absl::string_view field;
};

constexpr Place kPlaces[] = {
    {Format::kAnthropicMessages, R"({"input_tokens":#})", "usage.input_tokens"},
    {Format::kAnthropicMessages, R"({"cache_read_input_tokens":#})",
     "usage.cache_read_input_tokens"},
    {Format::kAnthropicMessages, R"({"cache_creation_input_tokens":#})",
     "usage.cache_creation_input_tokens"},
    {Format::kAnthropicMessages,
     R"({"cache_creation":{"ephemeral_5m_input_tokens":#}})",
     "usage.cache_creation.ephemeral_5m_input_tokens"},
    {Format::kAnthropicMessages,
     R"({"cache_creation":{"ephemeral_1h_input_tokens":#}})",
     "usage.cache_creation.ephemeral_1h_input_tokens"},
    {Format::kAnthropicMessages, R"({"output_tokens":#})",
     "usage.output_tokens"},
    {Format::kAnthropicMessages,
     R"({"output_tokens_details":{"thinking_tokens":#}})",
     "usage.output_tokens_details.thinking_tokens"},
    {Format::kAnthropicMessages, R"({"iterations":[{},{"output_tokens":#}]})",
     "usage.iterations[1].output_tokens"},
    {Format::kOpenaiChat, R"({"prompt_tokens":#})", "usage.prompt_tokens"},
    {Format::kOpenaiChat, R"({"prompt_tokens_details":{"cached_tokens":#}})",
     "usage.prompt_tokens_details.cached_tokens"},
    {Format::kOpenaiChat,
     R"({"prompt_tokens_details":{"cache_write_tokens":#}})",
     "usage.prompt_tokens_details.cache_write_tokens"},
    {Format::kOpenaiChat, R"({"completion_tokens":#})",
     "usage.completion_tokens"},
    {Format::kOpenaiChat,
     R"({"completion_tokens_details":{"reasoning_tokens":#}})",
     "usage.completion_tokens_details.reasoning_tokens"},
};

TEST(UsageTest, RefusesWhatIsNoNumberOfTokens) {
  static_assert(kTokensMax == 2'147'483'648);
  for (const Place& place : kPlaces) {
    const auto with = [&place](absl::string_view number) {
      return absl::StrReplaceAll(place.json, {{"#", number}});
    };
    for (const absl::string_view number : {"0", "1", "2147483648", "-0"}) {
      Parse(place.format, with(number));
    }
    for (const absl::string_view number :
         {"-1", "2147483649", "1.5", "1.0", "1e3", "99999999999999999999",
          "\"1\"", "true", "[1]", "{}"}) {
      EXPECT_EQ(FieldOf(place.format, with(number)), place.field) << number;
    }
  }
  EXPECT_EQ(
      ParseUsage(Format::kOpenaiChat, R"({"completion_tokens":-1})")
          .status()
          .message(),
      "usage.completion_tokens: expected a whole number from 0 to 2147483648");
}

TEST(UsageTest, RefusesSumsThatAreTooLarge) {
  EXPECT_EQ(FieldOf(Format::kAnthropicMessages,
                    R"({"cache_creation":{"ephemeral_5m_input_tokens":1,)"
                    R"("ephemeral_1h_input_tokens":2147483648}})"),
            "usage.cache_creation");
  EXPECT_EQ(FieldOf(Format::kAnthropicMessages,
                    R"({"iterations":[{"input_tokens":2147483648},)"
                    R"({"input_tokens":1}]})"),
            "usage.iterations");
}

TEST(UsageTest, RefusesPartsOfAnotherType) {
  constexpr Format kAnthropic = Format::kAnthropicMessages;
  constexpr Format kOpenai = Format::kOpenaiChat;
  EXPECT_EQ(FieldOf(kAnthropic, R"({"cache_creation":7})"),
            "usage.cache_creation");
  EXPECT_EQ(FieldOf(kAnthropic, R"({"output_tokens_details":[]})"),
            "usage.output_tokens_details");
  EXPECT_EQ(FieldOf(kAnthropic, R"({"iterations":{}})"), "usage.iterations");
  EXPECT_EQ(FieldOf(kAnthropic, R"({"iterations":[{},7]})"),
            "usage.iterations[1]");
  EXPECT_EQ(FieldOf(kAnthropic, R"({"iterations":[{"cache_creation":[]}]})"),
            "usage.iterations[0].cache_creation");
  EXPECT_EQ(FieldOf(kOpenai, R"({"prompt_tokens_details":"x"})"),
            "usage.prompt_tokens_details");
  EXPECT_EQ(FieldOf(kOpenai, R"({"completion_tokens_details":false})"),
            "usage.completion_tokens_details");
}

TEST(UsageTest, RefusesWhatIsNoObject) {
  for (const Format format : kFormats) {
    for (const absl::string_view json :
         {"", "null", "7", "[]", "[{}]", "usage", "{\"a\":", "{\"a\":\"\xFF\"}",
          R"({"output_tokens":1,"output_tokens":2})"}) {
      EXPECT_EQ(FieldOf(format, json), "usage") << json;
    }
  }
}

TEST(UsageTest, ChecksWhatIsGivenInFields) {
  EXPECT_THAT(CheckUsage({}), IsOk());
  EXPECT_THAT(CheckUsage(UsageOf(0, 0, 0, 0, 0)), IsOk());
  EXPECT_THAT(CheckUsage(UsageOf(kTokensMax, kTokensMax, kTokensMax, kTokensMax,
                                 kTokensMax)),
              IsOk());
  const struct {
    std::optional<std::int64_t> Usage::* member;
    absl::string_view field;
  } kMembers[] = {
      {&Usage::input_uncached, "usage.input_uncached_tokens"},
      {&Usage::cache_read, "usage.cache_read_tokens"},
      {&Usage::cache_write, "usage.cache_write_tokens"},
      {&Usage::output, "usage.output_tokens"},
      {&Usage::reasoning, "usage.reasoning_tokens"},
  };
  for (const auto& [member, field] : kMembers) {
    for (const std::int64_t number : {std::int64_t{-1}, kTokensMax + 1}) {
      Usage usage;
      usage.*member = number;
      const absl::Status status = CheckUsage(usage);
      EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                    Reason::kUsageInvalid));
      EXPECT_EQ(MetadataOf(status, "field"), field);
      EXPECT_EQ(status.message(),
                absl::StrCat(field,
                             ": expected a whole number from 0 to 2147483648"));
    }
  }
}

}  // namespace
}  // namespace clerestory
