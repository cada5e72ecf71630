// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/json/literal.h"
#include "server/model/record.h"
#include "tests/support/chat_transcripts.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadResult Read(const std::string& contents) {
  return ReadChat(contents, "trae");
}

std::string TraeCall(absl::string_view id) {
  return absl::StrCat(R"({"call_id":")", id,
                      R"(","name":"bash","arguments":{"a": 1},"id":"fc_1"})");
}

std::string TraeResult(absl::string_view id, absl::string_view result,
                       absl::string_view error) {
  return absl::StrCat(R"({"call_id":")", id, R"(","result":)", result,
                      R"(,"error":)", error, "}");
}

std::string Input(absl::string_view result) {
  return absl::StrCat(R"({"role":"user","content":null,"tool_result":)", result,
                      "}");
}

std::string Interaction(const std::vector<std::string>& inputs,
                        absl::string_view content,
                        const std::vector<std::string>& calls) {
  return absl::StrCat(
      R"({"timestamp":"2025-11-28T03:56:40.75","model":"m","input_messages":[)",
      absl::StrJoin(inputs, ","), R"(],"response":{"content":)",
      json::Quote(content), R"(,"model":"m-1","tool_calls":[)",
      absl::StrJoin(calls, ","), "]}}");
}

ReadResult ReadRun(const std::vector<std::string>& interactions,
                   const std::vector<std::string>& last_results) {
  return Read(absl::StrCat(
      R"({"llm_interactions":[)", absl::StrJoin(interactions, ",\n"),
      R"(],"agent_steps":[{"timestamp":"2025-11-28T03:56:41",)",
      R"("tool_results":[)", absl::StrJoin(last_results, ","),
      R"(]},{"llm_response":null,"tool_results":null,"error":"quota"}]})"));
}

const char kArguments[] = R"({"a": 1})";

TEST(TraeTest, RequestsAndAnswersAreTheHistory) {
  const ReadResult result =
      ReadRun({Interaction({Said("system", "s"), Said("user", "fix")}, "see",
                           {TraeCall("c1"), TraeCall("c2")}),
               Interaction({Input(TraeResult("c1", R"("out")", R"("")")),
                            Input(TraeResult("c2", "null", R"("bad")"))},
                           "done", {})},
              {TraeResult("c1", R"("out")", "null")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Said("system", "s"), Said("user", "fix"),
                  Answer(R"("see")", {Call("c1", "bash", kArguments),
                                      Call("c2", "bash", kArguments)}),
                  ResultOf("c1", R"("out")"), ResultOf("c2", R"("Error: bad")"),
                  Said("assistant", "done")));
  const TranscriptMessage& answer = result.transcripts[0].messages[2];
  EXPECT_EQ(answer.model, "m-1");
  EXPECT_EQ(answer.time, 1'764'302'200'750'000);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(TraeTest, TheLastResultsStandInTheStepsOnly) {
  const ReadResult result =
      ReadRun({Interaction({Said("user", "fix")}, "", {TraeCall("c1")})},
              {TraeResult("c1", R"("out")", R"("and bad")")});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"),
                          Answer("null", {Call("c1", "bash", kArguments)}),
                          ResultOf("c1", R"("out\nError: and bad")")));
}

TEST(TraeTest, ACallWithoutResultIsDroppedUnlessItIsTheLast) {
  const ReadResult result = ReadRun(
      {Interaction({Said("user", "fix")}, "see", {TraeCall("c1")}),
       Interaction({Said("user", "empty patch")}, "", {TraeCall("c2")})},
      {});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"), Said("assistant", "see"),
                          Said("user", "empty patch"),
                          Answer("null", {Call("c2", "bash", kArguments)})));
  EXPECT_EQ(TextOf(result.issues), "1 call c1 has no result: dropped");
}

TEST(TraeTest, WhatWasCachedIsPartOfTheInputExceptWithAnthropic) {
  const auto input_of = [](absl::string_view model) {
    const ReadResult result = Read(absl::StrCat(
        R"({"llm_interactions":[{"model":")", model,
        R"(","input_messages":[{"role":"user","content":"hi"}],"response":)",
        R"({"content":"said","model":")", model,
        R"(","usage":{"input_tokens":100,"output_tokens":7,)",
        R"("cache_creation_input_tokens":0,"cache_read_input_tokens":40},)",
        R"("tool_calls":null}}],"agent_steps":[]})"));
    const std::vector<TranscriptMessage>& messages =
        result.transcripts.front().messages;
    return messages[1].usage.value_or(Usage{}).input_uncached;
  };
  EXPECT_EQ(input_of("gpt-4o"), 60);
  EXPECT_EQ(input_of("claude-sonnet-4-5"), 100);
}

}  // namespace
}  // namespace clerestory
