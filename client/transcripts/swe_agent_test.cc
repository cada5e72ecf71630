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

ReadResult Read(const std::string& contents) {
  absl::StatusOr<ReadResult> result = ReadTranscript(contents, "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const Transcript& transcript = result->transcripts.front();
  EXPECT_EQ(transcript.source, "swe-agent");
  EXPECT_EQ(transcript.format, Format::kOpenaiChat);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

ReadResult ReadHistory(const std::vector<std::string>& entries,
                       absl::string_view more = "") {
  return Read(absl::StrCat(R"({"trajectory":[],"history":[)",
                           absl::StrJoin(entries, ",\n"), "]", more, "}"));
}

std::vector<std::string> Messages(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

const std::string& Task() {
  static const std::string task =
      R"({"role":"user","content":"fix \u00e9","agent":"main"})";
  return task;
}

constexpr absl::string_view kTaskSent =
    R"({"role":"user","content":"fix \u00e9"})";

std::string Acts(absl::string_view thought, absl::string_view action) {
  return absl::StrCat(R"({"role":"assistant","content":")", thought, R"(```\n)",
                      action, R"(\n```","thought":")", thought,
                      R"(","action":")", action, R"(\n","agent":"main"})");
}

TEST(SweAgentTest, ATextualActionBecomesACallAndTheNextUserMessageItsResult) {
  const ReadResult result = ReadHistory(
      {R"({"role":"system","content":"s","agent":"main"})", Task(),
       Acts(R"(look \"here\"\n)", "open a.py 3"),
       R"({"role":"user","content":"[File: a.py]","agent":"main"})",
       Acts(R"(\n)", "python a.py"),
       R"({"role":"user","content":[{"type":"text","text":"ok"}]})"});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          R"({"role":"system","content":"s"})", kTaskSent,
          R"({"role":"assistant","content":"look \"here\"\n","tool_calls":[)"
          R"({"id":"call_1","type":"function","function":{"name":"open",)"
          R"("arguments":"{\"command\":\"open a.py 3\\n\"}"}}]})",
          R"({"role":"tool","tool_call_id":"call_1","content":"[File: a.py]"})",
          R"({"role":"assistant","content":null,"tool_calls":[)"
          R"({"id":"call_2","type":"function","function":{"name":"bash",)"
          R"("arguments":"{\"command\":\"python a.py\\n\"}"}}]})",
          R"({"role":"tool","tool_call_id":"call_2",)"
          R"("content":[{"type":"text","text":"ok"}]})"));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(SweAgentTest, TheLastActionMayBeOpen) {
  const ReadResult result = ReadHistory({Task(), Acts("end", "submit")});
  EXPECT_EQ(CountsOf(result.transcripts).calls, 1);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(SweAgentTest, AnActionThatNothingAnswersStaysText) {
  const ReadResult result =
      ReadHistory({Task(), Acts("a", "ls"), Acts("b", "ls"), Task()});
  EXPECT_EQ(Messages(result).at(1),
            R"({"role":"assistant","content":"a```\nls\n```"})");
  EXPECT_EQ(CountsOf(result.transcripts).calls, 1);
}

TEST(SweAgentTest, DemonstrationsWereSentAndAreNoCalls) {
  const ReadResult result = ReadHistory(
      {R"({"role":"assistant","content":"d","action":"ls","is_demo":true})",
       R"({"role":"user","content":"out","is_demo":true})", Task()});
  EXPECT_THAT(Messages(result),
              ElementsAre(R"({"role":"assistant","content":"d"})",
                          R"({"role":"user","content":"out"})", kTaskSent));
}

TEST(SweAgentTest, FilesWithFunctionCallingKeepTheirCalls) {
  const std::string call =
      R"({"index": 1, "function":{"arguments":"{\"a\": 1}","name":"bash"},)"
      R"("id":"toolu_1"})";
  const std::string typed =
      R"({"type":"function","id":"c2","function":{"name":"f","arguments":"{}"}})";
  const ReadResult result = ReadHistory(
      {Task(),
       absl::StrCat(R"({"role":"assistant","content":"x","action":"ls",)",
                    R"("tool_calls":[)", call, "]}"),
       R"({"role":"tool","content":"out","tool_call_ids":["toolu_1"]})",
       absl::StrCat(R"({"role":"assistant","content":"","tool_calls":[)", typed,
                    "]}"),
       R"({"role":"tool","content":"","tool_call_ids":["c2"]})"});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          kTaskSent,
          absl::StrCat(
              R"({"role":"assistant","content":"x","tool_calls":[)",
              R"({"type":"function","index": 1, "function":{"arguments":)",
              R"("{\"a\": 1}","name":"bash"},"id":"toolu_1"}]})"),
          R"({"role":"tool","tool_call_id":"toolu_1","content":"out"})",
          absl::StrCat(R"({"role":"assistant","content":null,"tool_calls":[)",
                       typed, "]}"),
          R"({"role":"tool","tool_call_id":"c2","content":""})"));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(SweAgentTest, CallsAndResultsWithoutEachOtherAreDropped) {
  const std::string calls =
      R"({"role":"assistant","content":null,"tool_calls":[)"
      R"({"type":"function","id":"c1","function":{"name":"f","arguments":"{}"}},)"
      R"({"type":"function","id":"c2","function":{"name":"f","arguments":"{}"}},)"
      R"({"id":"c3"}]})";
  const ReadResult result = ReadHistory(
      {Task(), calls, R"({"role":"tool","content":"1","tool_call_ids":["c1"]})",
       Task(), calls, Task(),
       R"({"role":"tool","content":"2","tool_call_ids":["c2"]})"});
  EXPECT_EQ(CountsOf(result.transcripts).messages, 5);
  EXPECT_EQ(TextOf(result.issues),
            "2 not a tool call: dropped; 2 call c2 has no result: dropped; "
            "5 not a tool call: dropped; 5 call c1 has no result: dropped; "
            "5 call c2 has no result: dropped; "
            "5 an assistant message without content: dropped; "
            "7 a result for c2, which is no open call: dropped");
}

TEST(SweAgentTest, WithoutAHistoryTheStepsAreRead) {
  const ReadResult result = Read(
      R"({"trajectory":[{"action":"ls","observation":"a b","thought":"t"},)"
      R"({"action":"","observation":null,"thought":"done"}],"info":{}})");
  EXPECT_EQ(CountsOf(result.transcripts).results, 1);
  EXPECT_EQ(Messages(result).back(),
            R"({"role":"assistant","content":"done"})");
}

TEST(SweAgentTest, TheModelIsThatOfTheConfiguration) {
  const auto model = [](absl::string_view config) {
    return ReadHistory({Task(), R"({"role":"assistant","content":"x"})"},
                       absl::StrCat(R"(,"replay_config":)", config))
        .transcripts.at(0)
        .messages.at(1)
        .model;
  };
  EXPECT_EQ(model(R"({"agent":{"model":{"name":"m-1"}}})"), "m-1");
  EXPECT_EQ(model(R"("{\"agent\":{\"model\":{\"name\":\"m-1\"}}}")"), "m-1");
  EXPECT_EQ(model(R"({"agent":{"model":{"name":"replay"}}})"), "");
  EXPECT_EQ(model(R"("not JSON")"), "");
}

TEST(SweAgentTest, WhatIsNoMessageIsSkipped) {
  const ReadResult result =
      ReadHistory({Task(), R"({"role":"user","content":null})",
                   R"({"role":"critic","content":"x"})"});
  EXPECT_THAT(Messages(result), ElementsAre(kTaskSent));
  EXPECT_EQ(TextOf(result.issues),
            "2 a message without content: skipped; "
            "3 not a message of SWE-agent: skipped");
}

}  // namespace
}  // namespace clerestory
