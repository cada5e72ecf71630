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
#include "tests/support/chat_transcripts.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadResult Read(const std::string& contents) {
  return ReadChat(contents, "openhands-v0");
}

ReadResult ReadEvents(const std::vector<std::string>& events) {
  return Read(absl::StrCat("[", absl::StrJoin(events, ",\n"), "]"));
}

std::string Message(absl::string_view source, absl::string_view text) {
  return absl::StrCat(R"({"source":")", source,
                      R"(","action":"message","args":{"content":)",
                      json::Quote(text), "}}");
}

// A run of `ls`, as OpenHands records it itself.
std::string Ran(absl::string_view more = "") {
  return absl::StrCat(
      R"({"source":"agent","action":"run","args":{"command":"ls",)",
      R"("thought":"see","hidden":false})", more, "}");
}

std::string Observation(absl::string_view kind, absl::string_view text,
                        absl::string_view more = "") {
  return absl::StrCat(R"({"observation":")", kind, R"(","content":)",
                      json::Quote(text), more, "}");
}

// The response `id` with the calls `calls`, of which an event is the one of
// `call_id`.
std::string Metadata(absl::string_view id, absl::string_view call_id,
                     const std::vector<std::string>& calls) {
  return absl::StrCat(
      R"(,"tool_call_metadata":{"function_name":"execute_bash",)",
      R"("tool_call_id":")", call_id, R"(","model_response":{"id":")", id,
      R"(","model":"m","choices":[{"message":{"content":"said",)",
      R"("tool_calls":[)", absl::StrJoin(calls, ","), "]}}]}}");
}

const char kLs[] = R"({"command": "ls"})";

TEST(OpenhandsV0Test, CallsAreTakenFromTheResponseOfTheModel) {
  const std::string call = Call("t1", "execute_bash", R"({"command": "ls"})");
  const ReadResult result = ReadEvents(
      {R"({"id":0,"source":"agent","action":"system",)"
       R"("args":{"content":"s","tools":[]}})",
       Message("user", "fix"),
       Ran(absl::StrCat(R"(,"id":7,"timestamp":"2025-01-20T20:29:35.5")",
                        Metadata("r1", "t1", {call}))),
       Observation("run", "out", R"(,"cause":7)"), Message("agent", "done")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Said("system", "s"), Said("user", "fix"),
                  Answer(R"("said")", {call}), ResultOf("t1", R"("out")"),
                  Said("assistant", "done")));
  EXPECT_EQ(result.transcripts[0].messages[2].model, "m");
  EXPECT_EQ(result.transcripts[0].messages[2].time, 1'737'404'975'500'000);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(OpenhandsV0Test, CallsOfOneResponseAreOneAnswer) {
  const std::vector<std::string> calls = {Call("t1", "a", "{}"),
                                          Call("t2", "b", "{}")};
  const ReadResult result =
      ReadEvents({Message("user", "fix"),
                  Ran(absl::StrCat(R"(,"id":1)", Metadata("r1", "t1", calls))),
                  Observation("run", "1", R"(,"cause":1)"),
                  Ran(absl::StrCat(R"(,"id":3)", Metadata("r1", "t2", calls))),
                  Observation("run", "2", R"(,"cause":3)")});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"), Answer(R"("said")", calls),
                          ResultOf("t1", R"("1")"), ResultOf("t2", R"("2")")));
}

TEST(OpenhandsV0Test, WithoutAResponseTheActionIsTheCall) {
  const ReadResult result =
      ReadEvents({Message("user", "fix"), Ran(R"(,"id":1)"),
                  Observation("run", "out", R"(,"id":2,"cause":1)")});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"),
                          Answer(R"("see")", {Call("call_1", "run", kLs)}),
                          ResultOf("call_1", R"("out")")));
}

TEST(OpenhandsV0Test, FilesWithoutIdsArePairedByOrder) {
  const ReadResult result = ReadEvents(
      {Message("user", "fix"), Ran(), Observation("agent_state_changed", ""),
       Observation("run", "1"),
       absl::StrCat("[", Ran(), ",", Observation("error", "2"), "]")});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"),
                          Answer(R"("see")", {Call("call_1", "run", kLs)}),
                          ResultOf("call_1", R"("1")"),
                          Answer(R"("see")", {Call("call_2", "run", kLs)}),
                          ResultOf("call_2", R"("2")")));
}

TEST(OpenhandsV0Test, AnErrorThatAnswersNoCallIsSaidToTheModel) {
  const ReadResult result =
      ReadEvents({Message("user", "fix"), Observation("error", "bad call")});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"), Said("user", "bad call")));
}

TEST(OpenhandsV0Test, TheStateOfTheAgentIsNotForTheModel) {
  const ReadResult result = ReadEvents(
      {R"({"id":0,"action":"change_agent_state","args":{}})",
       Observation("null", "", R"(,"cause":0)"), Message("user", "fix"),
       R"({"id":2,"source":"user","action":"recall","args":{}})",
       Ran(R"(,"id":3)"), Observation("recall", "x", R"(,"cause":2)"),
       Observation("run", "out", R"(,"cause":3)")});
  EXPECT_EQ(Messages(result).size(), 3);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(OpenhandsV0Test, AnInstanceIsASession) {
  const std::string line = absl::StrCat(
      R"({"metadata":{"llm_config":{"model":"m-2"}},"history":[)",
      Message("user", "fix"), ",",
      R"({"source":"agent","action":"finish","args":{"thought":"end"}})", "]}");
  const ReadResult result =
      Read(absl::StrCat(line, "\n{\"history\":[]}\n", line, "\n"));
  ASSERT_EQ(result.transcripts.size(), 2);
  EXPECT_EQ(TextOf(result.issues), "2 no events: skipped");
  EXPECT_EQ(result.transcripts[0].name, "#1");
  EXPECT_EQ(result.transcripts[1].name, "#3");
  EXPECT_EQ(result.transcripts[1].messages.at(1).model, "m-2");
  // The last call may be open.
  EXPECT_EQ(Messages(result).at(1),
            Answer(R"("end")", {Call("call_1", "finish", "{}")}));
}

TEST(OpenhandsV0Test, WhatCannotBeSentIsLeftOutWithAnIssue) {
  const ReadResult result =
      ReadEvents({Message("user", "fix"), Ran(),
                  R"({"source":"user","action":"run","args":{"command":"ls"}})",
                  R"({"action":"condensation","args":{}})", R"({"x":1})",
                  Message("user", "go on"), Observation("run", "late")});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"), Said("assistant", "see"),
                          Said("user", "go on")));
  EXPECT_EQ(TextOf(result.issues),
            "2 call call_1 has no result: dropped; "
            "3 an action of the user: skipped; "
            "4 a condensation: what it stands for is kept; "
            "5 not an event of OpenHands: skipped; "
            "7 an observation of no call: dropped");
}

TEST(OpenhandsV0Test, UsageOfTheResponseIsRead) {
  const std::string metadata = absl::StrCat(
      R"(,"id":1,"tool_call_metadata":{"function_name":"execute_bash",)",
      R"("tool_call_id":"t1","model_response":{"id":"r1","model":"m",)",
      R"("choices":[{"message":{"content":"said","tool_calls":[)",
      Call("t1", "execute_bash", kLs),
      R"(]}}],"usage":{"prompt_tokens":100,"completion_tokens":7,)",
      R"("prompt_tokens_details":null}}})");
  const ReadResult result =
      ReadEvents({Message("user", "fix"), Ran(metadata),
                  Observation("run", "out", R"(,"cause":1)")});
  const std::vector<TranscriptMessage>& messages =
      result.transcripts.front().messages;
  ASSERT_TRUE(messages[1].usage);
  EXPECT_EQ(messages[1].usage->input_uncached, 100);
}

}  // namespace
}  // namespace clerestory
