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
  return ReadChat(contents, "atif");
}

std::string Trajectory(const std::vector<std::string>& steps) {
  return absl::StrCat(
      R"({"schema_version":"ATIF-v1.5","agent":{"model_name":"m"},"steps":[)",
      absl::StrJoin(steps, ","), "]}");
}

std::string Step(absl::string_view source, absl::string_view text,
                 absl::string_view more = "") {
  return absl::StrCat(R"({"source":")", source, R"(","message":)",
                      json::Quote(text), more, "}");
}

std::string Calls(const std::vector<std::string>& ids) {
  std::vector<std::string> calls;
  for (const std::string& id : ids) {
    calls.push_back(absl::StrCat(R"({"tool_call_id":")", id,
                                 R"(","function_name":"run",)",
                                 R"("arguments":{"a": 1}})"));
  }
  return absl::StrCat(R"(,"tool_calls":[)", absl::StrJoin(calls, ","), "]");
}

std::string Results(absl::string_view results) {
  return absl::StrCat(R"(,"observation":{"results":[)", results, "]}");
}

const char kArguments[] = R"({"a": 1})";

TEST(AtifTest, StepsBecomeMessagesWithTheirCallsAndResults) {
  const ReadResult result = Read(Trajectory(
      {Step("system", "s"), Step("user", "fix"),
       Step("agent", "see",
            absl::StrCat(
                R"(,"timestamp":"2025-10-11T10:30:00Z","model_name":"m-1")",
                Calls({"c1", "c2"}),
                Results(R"({"source_call_id":"c2","content":"2"},)"
                        R"({"source_call_id":"c1","content":"1"})"))),
       Step("agent", "done")}));
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("system", "s"), Said("user", "fix"),
                          Answer(R"("see")", {Call("c1", "run", kArguments),
                                              Call("c2", "run", kArguments)}),
                          ResultOf("c2", R"("2")"), ResultOf("c1", R"("1")"),
                          Said("assistant", "done")));
  const Transcript& transcript = result.transcripts[0];
  EXPECT_EQ(transcript.messages[2].model, "m-1");
  EXPECT_EQ(transcript.messages[2].time, 1'760'178'600'000'000);
  EXPECT_EQ(transcript.messages[5].model, "m");
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(AtifTest, ACallWithoutResultIsDroppedUnlessItIsTheLast) {
  const ReadResult result = Read(
      Trajectory({Step("user", "fix"), Step("agent", "a", Calls({"c1"})),
                  Step("user", "go on"), Step("agent", "b", Calls({"c2"}))}));
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"), Said("assistant", "a"),
                          Said("user", "go on"),
                          Answer(R"("b")", {Call("c2", "run", kArguments)})));
  EXPECT_EQ(TextOf(result.issues), "1 call c1 has no result: dropped");
}

TEST(AtifTest, ResultsThatNameNoCallAnswerInOrderOrAreSaidByTheUser) {
  const ReadResult result = Read(Trajectory(
      {Step("agent", "a",
            absl::StrCat(Calls({"c1"}),
                         Results(R"({"content":[{"type":"text","text":"1"}]},)"
                                 R"({"content":"more"})"))),
       Step("agent", "b", Results(R"({"content":"state"})"))}));
  EXPECT_THAT(Messages(result),
              ElementsAre(Answer(R"("a")", {Call("c1", "run", kArguments)}),
                          ResultOf("c1", R"([{"type":"text","text":"1"}])"),
                          Said("user", "more"), Said("assistant", "b"),
                          Said("user", "state")));
}

TEST(AtifTest, TrajectoriesMayStandOnLines) {
  const std::string line = Trajectory({Step("user", "fix")});
  const ReadResult result = Read(absl::StrCat(line, "\n{}\n", line, "\n"));
  ASSERT_EQ(result.transcripts.size(), 2);
  EXPECT_EQ(result.transcripts[1].name, "#3");
  EXPECT_EQ(TextOf(result.issues), "2 not a trajectory: skipped");
}

TEST(AtifTest, WhatCannotBeACallOrAStepIsLeftOut) {
  const ReadResult result = Read(Trajectory(
      {Step("critic", "x"),
       Step("agent", "a",
            absl::StrCat(
                Calls({"c1", "c1", ""}),
                Results(R"({"source_call_id":"c1","content":null})")))}));
  EXPECT_THAT(Messages(result),
              ElementsAre(Answer(R"("a")", {Call("c1", "run", kArguments)}),
                          ResultOf("c1", R"("")")));
  EXPECT_EQ(TextOf(result.issues),
            "1 not a step of ATIF: skipped; "
            "1 call c1 twice in a message: the second is dropped; "
            "1 a tool call without id or name: dropped");
}

}  // namespace
}  // namespace clerestory
