// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/read_transcript.h"
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
  return ReadChat(contents, "openhands-v1");
}

// Events, one per line.
ReadResult ReadEvents(const std::vector<std::string>& events) {
  return Read(absl::StrCat(absl::StrJoin(events, "\n"), "\n"));
}

std::string Blocks(absl::string_view text) {
  return absl::StrCat(R"([{"type":"text","text":)", json::Quote(text), "}]");
}

std::string MessageEvent(absl::string_view source, absl::string_view role,
                         absl::string_view text) {
  return absl::StrCat(
      R"({"source":")", source, R"(","llm_message":{"role":")", role,
      R"(","content":)", Blocks(text),
      R"(},"timestamp":"2026-02-18T19:10:19.5","kind":"MessageEvent"})");
}

std::string Action(absl::string_view id, absl::string_view response,
                   absl::string_view thought, absl::string_view arguments) {
  return absl::StrCat(
      R"({"source":"agent","thought":)", thought,
      R"(,"reasoning_content":"hm","action":{"kind":"X"},"tool_name":"run",)",
      R"("tool_call_id":")", id, R"(","tool_call":{"id":")", id,
      R"(","name":"run","arguments":)", json::Quote(arguments),
      R"(},"llm_response_id":")", response, R"(","kind":"ActionEvent"})");
}

std::string Observation(absl::string_view id, absl::string_view text) {
  return absl::StrCat(R"({"source":"environment","tool_call_id":")", id,
                      R"(","observation":{"content":)", Blocks(text),
                      R"(,"is_error":false},"kind":"ObservationEvent"})");
}

const char kSystem[] =
    R"({"source":"agent","system_prompt":{"type":"text","text":"s"},)"
    R"("dynamic_context":{"type":"text","text":"d"},"tools":[{}],)"
    R"("kind":"SystemPromptEvent"})";

TEST(OpenhandsV1Test, EventsBecomeMessagesWithTheirCallsAndResults) {
  const ReadResult result = ReadEvents(
      {kSystem, MessageEvent("user", "user", "hi"),
       Action("c1", "r1", Blocks("see"), "{\"a\": 1}"),
       Observation("c1", "out"), MessageEvent("agent", "assistant", "done")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          R"({"role":"system","content":[{"type":"text","text":"s"},)"
          R"({"type":"text","text":"d"}]})",
          absl::StrCat(R"({"role":"user","content":)", Blocks("hi"), "}"),
          Answer(Blocks("see"), {Call("c1", "run", "{\"a\": 1}")}),
          ResultOf("c1", Blocks("out")),
          absl::StrCat(R"({"role":"assistant","content":)", Blocks("done"),
                       "}")));
  EXPECT_EQ(result.transcripts[0].messages[1].time, 1'771'441'819'500'000);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(OpenhandsV1Test, AFolderOfEventsIsRead) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "openhands_v1_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "event-00001.json")
      << MessageEvent("user", "user", "hi");
  std::ofstream(folder / "event-00000.json") << kSystem;
  const auto result = ReadTranscriptFile(folder.string(), "auto");
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transcripts.at(0).source, "openhands-v1");
  EXPECT_EQ(CountsOf(result->transcripts).messages, 2);
}

TEST(OpenhandsV1Test, CallsOfOneResponseAreOneAnswer) {
  const ReadResult result = ReadEvents(
      {Action("c1", "r1", Blocks("see"), "{}"), Observation("c1", "1"),
       Action("c2", "r1", "[]", "{}"), Observation("c2", "2"),
       Action("c3", "r2", "[]", "{}"), Observation("c3", "3")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Answer(Blocks("see"),
                         {Call("c1", "run", "{}"), Call("c2", "run", "{}")}),
                  ResultOf("c1", Blocks("1")), ResultOf("c2", Blocks("2")),
                  Answer("null", {Call("c3", "run", "{}")}),
                  ResultOf("c3", Blocks("3"))));
}

TEST(OpenhandsV1Test, ErrorsAndRejectionsAreResults) {
  const ReadResult result =
      ReadEvents({Action("c1", "r1", "[]", "{"),
                  R"({"source":"agent","error":"bad","tool_call_id":"c1",)"
                  R"("kind":"AgentErrorEvent"})",
                  Action("c2", "r2", "[]", "{}"),
                  R"({"source":"environment","rejection_reason":"no",)"
                  R"("tool_call_id":"c2","kind":"UserRejectObservation"})"});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Answer("null", {Call("c1", "run", R"({"input": "{"})")}),
                  ResultOf("c1", R"("bad")"),
                  Answer("null", {Call("c2", "run", "{}")}),
                  ResultOf("c2", R"("Action rejected: no")")));
}

TEST(OpenhandsV1Test, WhatTheUserWroteIsJoinedWithWhatWasAddedToIt) {
  const ReadResult result = ReadEvents(
      {R"({"source":"user","llm_message":{"role":"user","content":"hi"},)"
       R"("extended_content":[{"type":"text","text":"skill"}],)"
       R"("kind":"MessageEvent"})"});
  EXPECT_THAT(Messages(result),
              ElementsAre(R"({"role":"user","content":[{"type":"text",)"
                          R"("text":"hi"},{"type":"text","text":"skill"}]})"));
}

TEST(OpenhandsV1Test, OtherEventsAreNotForTheModel) {
  const ReadResult result = ReadEvents(
      {MessageEvent("user", "user", "hi"),
       R"({"source":"user","kind":"PauseEvent"})",
       R"({"source":"environment","kind":"Condensation","summary":"s"})",
       R"({"source":"environment","kind":"CondensationRequest"})",
       R"({"no":"event"})"});
  EXPECT_EQ(Messages(result).size(), 1);
  EXPECT_EQ(TextOf(result.issues),
            "3 a condensation: what it stands for is kept; "
            "5 not an event of OpenHands: skipped");
}

}  // namespace
}  // namespace clerestory
