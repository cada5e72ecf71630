// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
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

ReadResult Read(const std::vector<std::string>& lines) {
  absl::StatusOr<ReadResult> result =
      ReadTranscript(absl::StrJoin(lines, "\n"), "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const Transcript& transcript = result->transcripts.front();
  EXPECT_EQ(transcript.source, "codex");
  EXPECT_EQ(transcript.format, Format::kOpenaiResponses);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

std::vector<std::string> Items(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

std::string Record(absl::string_view type, absl::string_view payload) {
  return absl::StrCat(R"({"timestamp":"2026-01-02T03:04:05.678Z","type":")",
                      type, R"(","payload":)", payload, "}");
}

std::string Line(absl::string_view item) {
  return Record("response_item", item);
}

std::string Call(absl::string_view id) {
  return absl::StrCat(R"({"type":"function_call", "name":"sh",)",
                      R"("arguments":"{\"a\": 1}","call_id":")", id, R"("})");
}

std::string Output(absl::string_view id, absl::string_view output) {
  return absl::StrCat(R"({"type":"function_call_output","call_id":")", id,
                      R"(","output":)", output, "}");
}

std::string Reasoning(absl::string_view id) {
  return absl::StrCat(R"({"type":"reasoning","id":")", id,
                      R"(","summary":[],"encrypted_content":"gAAA"})");
}

const std::string& Task() {
  static const std::string task =
      R"({"type":"message","role":"user",)"
      R"("content":[{"type":"input_text","text":"fix \u00e9"}]})";
  return task;
}

const std::string& Answer() {
  static const std::string answer =
      R"({"type":"message","role":"assistant",)"
      R"("content":[{"type":"output_text","text":"done"}]})";
  return answer;
}

TEST(CodexTest, ItemsKeepTheirBytesAndEventsAreLeftOut) {
  const ReadResult result =
      Read({Record("session_meta", R"({"id":"s"})"),
            Record("turn_context", R"({"model":"gpt-5-codex"})"), Line(Task()),
            Record("event_msg", R"({"type":"user_message","message":"fix"})"),
            Line(Reasoning("rs_1")), Line(Call("c1")),
            Line(Output("c1", R"("{\"output\":\"ok\"}")")),
            Record("turn_context", R"({"model":"gpt-6"})"), Line(Answer()),
            Record("world_state", R"({"full":true})"),
            Record("event_msg", R"({"type":"agent_message"})")});
  EXPECT_THAT(Items(result),
              ElementsAre(Task(), Reasoning("rs_1"), Call("c1"),
                          Output("c1", R"("{\"output\":\"ok\"}")"), Answer()));
  EXPECT_THAT(result.issues, IsEmpty());
  std::vector<std::string> models;
  for (const TranscriptMessage& m : result.transcripts.front().messages) {
    EXPECT_EQ(m.time, 1767323045678000);
    models.push_back(m.model);
  }
  EXPECT_THAT(models,
              ElementsAre("", "gpt-5-codex", "gpt-5-codex", "", "gpt-6"));
}

TEST(CodexTest, OutputsThatTheApiRefusesBecomeTheirJsonText) {
  const std::string list =
      R"([{"type":"input_text","text":"a"},{"type":"input_image"}])";
  const ReadResult result =
      Read({Line(Task()), Line(Call("c1")),
            Line(Output("c1", R"({"type":"input_text", "text":"a\n"})")),
            Line(Call("c2")), Line(Output("c2", list)), Line(Call("c3")),
            Line(Output("c3", R"([{"type":"text"}])"))});
  EXPECT_EQ(Items(result).at(2),
            Output("c1", R"("{\"type\":\"input_text\", \"text\":\"a\\n\"}")"));
  EXPECT_EQ(Items(result).at(4), Output("c2", list));
  EXPECT_EQ(Items(result).at(6), Output("c3", R"("[{\"type\":\"text\"}]")"));
}

TEST(CodexTest, ArgumentsThatAreNoTextBecomeOne) {
  const ReadResult result =
      Read({Line(Task()),
            Line(R"({"type":"function_call","name":"f","arguments":null,)"
                 R"("call_id":"c1"})"),
            Line(R"({"type":"function_call","name":"f","arguments":{"a":"b"},)"
                 R"("call_id":"c2"})")});
  EXPECT_THAT(
      Items(result),
      ElementsAre(Task(),
                  R"({"type":"function_call","name":"f","arguments":"{}",)"
                  R"("call_id":"c1"})",
                  R"({"type":"function_call","name":"f",)"
                  R"("arguments":"{\"a\":\"b\"}","call_id":"c2"})"));
}

TEST(CodexTest, ACallWithoutResultGoesWithTheReasoningThatLedToIt) {
  const ReadResult result = Read(
      {Line(Task()), Line(Reasoning("r1")), Line(Reasoning("r2")),
       Line(Call("c1")),
       Record("event_msg", R"({"type":"turn_aborted","reason":"interrupted"})"),
       Line(Task()), Line(Reasoning("r3")), Line(Answer())});
  EXPECT_THAT(Items(result),
              ElementsAre(Task(), Task(), Reasoning("r3"), Answer()));
  EXPECT_EQ(TextOf(result.issues),
            "2 reasoning that led to nothing: dropped; "
            "3 reasoning that led to nothing: dropped; "
            "4 call c1 has no result: dropped");
}

TEST(CodexTest, ReasoningOfADroppedCallDoesNotPassToTheNextReasoning) {
  const ReadResult result =
      Read({Line(Task()), Line(Reasoning("r1")), Line(Call("c1")),
            Line(Reasoning("r2")), Line(Answer()), Line(Task())});
  EXPECT_THAT(Items(result),
              ElementsAre(Task(), Reasoning("r2"), Answer(), Task()));
}

TEST(CodexTest, ReasoningStaysWithTheParallelCallsThatHaveResults) {
  const ReadResult result =
      Read({Line(Task()), Line(Reasoning("r1")), Line(Call("c1")),
            Line(Call("c2")), Line(Output("c2", R"("b")")), Line(Task())});
  EXPECT_THAT(Items(result), ElementsAre(Task(), Reasoning("r1"), Call("c2"),
                                         Output("c2", R"("b")"), Task()));
}

TEST(CodexTest, ReasoningBeforeAMessageOfTheUserIsDropped) {
  const ReadResult result = Read({Line(Task()), Line(Reasoning("r1")),
                                  Line(Task()), Line(Reasoning("r2"))});
  EXPECT_THAT(Items(result), ElementsAre(Task(), Task()));
}

TEST(CodexTest, TheCallsAtTheEndMayBeOpen) {
  const ReadResult result =
      Read({Line(Task()), Line(Reasoning("r1")), Line(Answer()),
            Line(Call("c1")), Line(Call("c2"))});
  EXPECT_EQ(CountsOf(result.transcripts).calls, 2);
  EXPECT_THAT(result.issues, IsEmpty());
  const ReadResult partly =
      Read({Line(Task()), Line(Call("c1")), Line(Call("c2")),
            Line(Output("c1", R"("a")"))});
  EXPECT_EQ(TextOf(partly.issues), "3 call c2 has no result: dropped");
}

TEST(CodexTest, ResultsAnswerCallsOfTheirKindOnce) {
  const std::string custom =
      R"({"type":"custom_tool_call","name":"p","input":"x","call_id":"c1"})";
  const ReadResult result = Read(
      {Line(Task()), Line(custom), Line(Output("c1", R"("a")")),
       Line(R"({"type":"custom_tool_call_output","call_id":"c1","output":""})"),
       Line(R"({"type":"custom_tool_call_output","call_id":"c1","output":""})"),
       Line(R"({"type":"function_call_output","call_id":"c1"})")});
  EXPECT_EQ(CountsOf(result.transcripts).results, 1);
  EXPECT_EQ(TextOf(result.issues),
            "3 a result for c1, which is no open call: dropped; "
            "5 a result for c1, which is no open call: dropped; "
            "6 a result without output: skipped");
}

TEST(CodexTest, ShellCallsAndSearchesForToolsArePairedToo) {
  const ReadResult result = Read(
      {Line(Task()),
       Line(R"({"type":"local_shell_call","call_id":"c1","action":{}})"),
       Line(Output("c1", R"("a")")),
       Line(R"({"type":"tool_search_call","call_id":"c2","arguments":{}})"),
       Line(R"({"type":"tool_search_output","call_id":"c2","tools":[]})"),
       Line(R"({"type":"tool_search_call","call_id":null,"arguments":{}})"),
       Line(R"({"type":"tool_search_output","call_id":null,"tools":[]})"),
       Line(R"({"type":"web_search_call","id":"ws_1","action":{}})"),
       Line(Answer())});
  const HistoryCounts counts = CountsOf(result.transcripts);
  EXPECT_EQ(counts.messages, 9);
  EXPECT_EQ(counts.calls, 2);
  EXPECT_EQ(counts.results, 2);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(CodexTest, ItemsOfCodexAloneAreSkipped) {
  const ReadResult result =
      Read({Line(Task()), Line(R"({"type":"ghost_snapshot"})"),
            Record("event_msg", R"({"type":"thread_rolled_back"})")});
  EXPECT_THAT(Items(result), ElementsAre(Task()));
  EXPECT_EQ(TextOf(result.issues),
            "2 not an item of the Responses API: skipped; "
            "3 the user went back, which is not followed");
}

TEST(CodexTest, ACompactionLeavesItsSummary) {
  const ReadResult result =
      Read({Line(Task()), Record("compacted", R"({"message":"s\n"})"),
            Record("compacted", R"({"message":"","replacement_history":[]})")});
  EXPECT_THAT(
      Items(result),
      ElementsAre(Task(), R"({"type":"message","role":"user","content":[)"
                          R"({"type":"input_text","text":"s\n"}]})"));
  EXPECT_EQ(TextOf(result.issues),
            "2 compaction 1: what it stands for is kept too; "
            "3 compaction 2: what it stands for is kept too");
}

TEST(CodexTest, OlderFilesHoldTheItemsThemselves) {
  const ReadResult result = Read(
      {R"({"id":"s","timestamp":"2025-06-01T00:00:00Z","instructions":null})",
       Task(), R"({"record_type":"state"})", Call("c1"),
       Output("c1", R"("a")")});
  EXPECT_THAT(Items(result),
              ElementsAre(Task(), Call("c1"), Output("c1", R"("a")")));
}

// A count of `input` tokens, 64 of them cached.
std::string TokenCount(int input) {
  return Record(
      "event_msg",
      absl::StrCat(R"({"type":"token_count","info":{"last_token_usage":)",
                   R"({"input_tokens":)", input,
                   R"(,"cached_input_tokens":64,"output_tokens":7,)",
                   R"("reasoning_output_tokens":5}}})"));
}

// The uncached inputs, or -1, of the messages.
std::vector<std::int64_t> Inputs(const ReadResult& result) {
  std::vector<std::int64_t> inputs;
  for (const TranscriptMessage& m : result.transcripts.front().messages) {
    inputs.push_back(m.usage ? m.usage->input_uncached.value_or(-2) : -1);
  }
  return inputs;
}

TEST(CodexTest, UsageBeforeAnAnswerBelongsToItsFirstItem) {
  EXPECT_THAT(Inputs(Read({Line(Task()), TokenCount(164), Line(Reasoning("r")),
                           Line(Call("c")), Line(Output("c", R"("o")")),
                           TokenCount(264), Line(Answer())})),
              ElementsAre(-1, 100, -1, -1, 200));
}

TEST(CodexTest, UsageBehindAnAnswerBelongsToItsFirstItemToo) {
  EXPECT_THAT(Inputs(Read({Line(Task()), Line(Reasoning("r")), Line(Call("c")),
                           TokenCount(164), Line(Output("c", R"("o")")),
                           Line(Answer()), TokenCount(264)})),
              ElementsAre(-1, 100, -1, -1, 200));
}

}  // namespace
}  // namespace clerestory
