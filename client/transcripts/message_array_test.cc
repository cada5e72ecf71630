// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::string_view kUser = R"({ "role":"user", "content":"do" })";
constexpr absl::string_view kUse =
    R"({"role":"assistant","content":[{"type":"tool_use","id":"t1",)"
    R"("name":"Bash","input":{"n":1.50}}],"model":"m-2"})";
constexpr absl::string_view kUseResult =
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]})";
constexpr absl::string_view kLateResult =
    R"({"role":"user","content":[{"type":"text","text":" "},)"
    R"({"type":"tool_result","tool_use_id":"t1"}]})";
constexpr absl::string_view kCall =
    R"({"role":"assistant","content":null,"function_call":null,"tool_calls":[)"
    R"({"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]})";
constexpr absl::string_view kCallResult =
    R"({"role":"tool","name":"f","tool_call_id":"c1","content":"caf\u00e9"})";
constexpr absl::string_view kSaid = R"({"role":"assistant","content":"done"})";

std::string ArrayOf(const std::vector<absl::string_view>& messages) {
  return absl::StrCat("[", absl::StrJoin(messages, ",\n"), "]");
}

ReadResult Read(const std::string& contents, absl::string_view source) {
  absl::StatusOr<ReadResult> result = ReadTranscript(contents, "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  for (const Transcript& transcript : result->transcripts) {
    EXPECT_EQ(transcript.source, source);
    EXPECT_EQ(transcript.format, source == "anthropic"
                                     ? Format::kAnthropicMessages
                                     : Format::kOpenaiChat);
  }
  return *std::move(result);
}

TEST(MessageArrayTest, MessagesKeepTheirBytesInEveryShape) {
  const std::vector<absl::string_view> messages = {kUser, kCall, kCallResult,
                                                   kSaid};
  const std::string array = ArrayOf(messages);
  for (const std::string& contents :
       {array, absl::StrCat(R"({"model":"x","messages":)", array, "}"),
        absl::StrCat("[", R"({"task_id":3,"traj":)", array, "}]"),
        absl::StrJoin(messages, "\r\n"), absl::StrCat("\xEF\xBB\xBF", array)}) {
    const ReadResult result = Read(contents, "openai-chat");
    ASSERT_THAT(result.transcripts, SizeIs(1)) << contents;
    EXPECT_EQ(result.transcripts[0].name, "");
    EXPECT_THAT(BytesOf(result.transcripts[0]),
                ElementsAre(kUser, kCall, kCallResult, kSaid));
    EXPECT_EQ(FaultOf(result.transcripts[0]), "");
    EXPECT_THAT(result.issues, IsEmpty());
  }
}

TEST(MessageArrayTest, SeveralSessionsAreNumberedByTheirPlace) {
  const std::string a = absl::StrCat(R"({"messages":[)", kUser, "]}");
  const std::string b =
      absl::StrCat(R"({"messages":[)", kUser, ",", kUse, "]}");
  for (const std::string& contents : {absl::StrCat("[", a, ",\n{},\n", b, "]"),
                                      absl::StrCat(a, "\n{}\n", b, "\n")}) {
    const ReadResult result = Read(contents, "anthropic");
    ASSERT_THAT(result.transcripts, SizeIs(2));
    EXPECT_EQ(result.transcripts[0].name, "#1");
    EXPECT_THAT(BytesOf(result.transcripts[0]), ElementsAre(kUser));
    EXPECT_EQ(result.transcripts[1].name, "#3");
    EXPECT_THAT(BytesOf(result.transcripts[1]), ElementsAre(kUser, kUse));
    EXPECT_EQ(TextOf(result.issues), "2 no session: skipped");
  }
}

TEST(MessageArrayTest, CallsTellWhoseFormatItIs) {
  // `system` is a role in both formats.
  const std::string system = R"({"role":"system","content":"s"})";
  Read(ArrayOf({kUser, system, kUse, kUseResult}), "anthropic");
  Read(ArrayOf({system, kUser, kSaid}), "openai-chat");
  Read(ArrayOf({kUser, kSaid}), "openai-chat");
  Read(ArrayOf({R"({"role":"user","content":[{"type":"image","source":{}}]})",
                kSaid}),
       "anthropic");
}

TEST(MessageArrayTest, TheModelIsTheMessagesOrNamedBesideThem) {
  const ReadResult result =
      Read(absl::StrCat(R"({"model":"m-1","messages":)",
                        ArrayOf({kUser, kUse, kUseResult, kSaid}), "}"),
           "anthropic");
  std::vector<std::string> models;
  models.reserve(4);
  for (const TranscriptMessage& m : result.transcripts.at(0).messages) {
    models.push_back(m.model);
    EXPECT_EQ(m.time, 0);
  }
  EXPECT_THAT(models, ElementsAre("", "m-2", "", "m-1"));
}

TEST(MessageArrayTest, WhatIsNoMessageIsSkipped) {
  const ReadResult result = Read(
      ArrayOf({kUser, R"({"role":"function_output","content":"x"})", "[]",
               R"({"role":"tool","content":"x"})",
               R"({"role":"user","content":null})",
               R"({"role":"assistant","content":null,"tool_calls":[]})",
               R"({"role":"assistant","tool_calls":[{"id":"c"}]})", kCall}),
      "openai-chat");
  EXPECT_THAT(BytesOf(result.transcripts.at(0)), ElementsAre(kUser, kCall));
  EXPECT_EQ(TextOf(result.issues),
            "2 not a message of the Chat Completions format: skipped; "
            "3 not a message of the Chat Completions format: skipped; "
            "4 a tool message without tool_call_id or content: skipped; "
            "5 a message without content: skipped; "
            "6 an assistant message without content: skipped; "
            "7 a tool call without id, name or arguments: skipped");
}

TEST(MessageArrayTest,
     BlocksThatLackWhatTheyMustHaveAreSkippedWithTheirMessage) {
  const absl::StatusOr<ReadResult> result = ReadTranscript(
      ArrayOf({kUser, R"({"role":"assistant","content":[{"type":"tool_use"}]})",
               R"({"role":"user","content":[{"type":"tool_result"}]})",
               R"({"role":"user","content":[{"type":"of-tomorrow"}]})",
               R"({"role":"user","content":[{}]})"}),
      "anthropic");
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->transcripts.at(0).messages, SizeIs(2));
  EXPECT_EQ(TextOf(result->issues),
            "2 a tool_use block without id, name or input: skipped; "
            "3 a tool_result block without tool_use_id: skipped; "
            "5 a block without a type: skipped");
}

TEST(MessageArrayTest, OrphansOfAChatAreReportedAndKept) {
  const ReadResult result =
      Read(ArrayOf({kUser, kCall, kUser, kCallResult, kCall, kCallResult,
                    kCallResult, kCall}),
           "openai-chat");
  EXPECT_THAT(result.transcripts.at(0).messages, SizeIs(8));
  EXPECT_EQ(TextOf(result.issues),
            "2 call c1 has no result; "
            "4 a result for c1, which is no open call; "
            "7 a result for c1, which is no open call");
}

TEST(MessageArrayTest, OrphansOfAnthropicAreReportedAndKept) {
  const ReadResult result =
      Read(ArrayOf({kUser, kUse, kUser, kUseResult, kUse, kLateResult, kUse}),
           "anthropic");
  EXPECT_THAT(result.transcripts.at(0).messages, SizeIs(7));
  EXPECT_EQ(TextOf(result.issues),
            "2 call t1 has no result; "
            "4 a result for t1, which is no open call; "
            "6 a result behind other blocks; "
            "6 a text without a word");
}

TEST(MessageArrayTest, TenThousandMessagesAndALargeOneAreRead) {
  std::vector<absl::string_view> messages;
  for (int i = 0; i < 2'500; ++i) {
    messages.insert(messages.end(), {kUser, kCall, kCallResult, kSaid});
  }
  const std::string large = absl::StrCat(R"({"role":"user","content":")",
                                         std::string(1'000'000, 'x'), R"("})");
  messages.emplace_back(large);
  const ReadResult result = Read(ArrayOf(messages), "openai-chat");
  EXPECT_THAT(result.transcripts.at(0).messages, SizeIs(10'001));
  EXPECT_EQ(FaultOf(result.transcripts[0]), "");
  EXPECT_THAT(result.issues, IsEmpty());
}

}  // namespace
}  // namespace clerestory
