// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <optional>
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
#include "server/model/record.h"

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
  EXPECT_EQ(transcript.source, "pi");
  EXPECT_EQ(transcript.format, Format::kAnthropicMessages);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

std::vector<std::string> Messages(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

std::string Entry(absl::string_view message, absl::string_view more = "") {
  return absl::StrCat(R"({"type":"message",)", more,
                      R"("timestamp":"2026-01-02T03:04:05.678Z","message":{)",
                      message, "}}");
}

std::string Prompt(absl::string_view text, absl::string_view more = "") {
  return Entry(absl::StrCat(R"("role":"user","content":[{"type":"text",)",
                            R"("text":")", text, R"("}],"timestamp":1)"),
               more);
}

std::string Answer(absl::string_view blocks,
                   absl::string_view api = "anthropic-messages") {
  return Entry(absl::StrCat(R"("role":"assistant","content":[)", blocks,
                            R"(],"api":")", api,
                            R"(","model":"claude","stopReason":"stop")"));
}

std::string Call(absl::string_view id) {
  return absl::StrCat(R"({"type":"toolCall","id":")", id,
                      R"(","name":"ls","arguments":{"d": "."},)",
                      R"("partialJson":"{"})");
}

std::string Result(absl::string_view id, absl::string_view content,
                   absl::string_view is_error = "false") {
  return Entry(absl::StrCat(R"("role":"toolResult","toolCallId":")", id,
                            R"(","toolName":"ls","content":)", content,
                            R"(,"details":{"x":1},"isError":)", is_error));
}

std::string Sent(absl::string_view role, absl::string_view blocks) {
  return absl::StrCat(R"({"role":")", role, R"(","content":[)", blocks, "]}");
}

std::string Text(absl::string_view text) {
  return absl::StrCat(R"({"type":"text","text":")", text, R"("})");
}

constexpr absl::string_view kOutput = R"([{"type":"text","text":"\u00e9"}])";

TEST(PiTest, MessagesTakeTheShapeOfAnthropic) {
  const ReadResult result =
      Read({R"({"type":"session","id":"s","cwd":"/"})", Prompt("hi"),
            R"({"type":"model_change","modelId":"m"})",
            Answer(absl::StrCat(R"({"type":"thinking","thinking":"t",)",
                                R"("thinkingSignature":"sig"},)",
                                R"({"type":"text","text":"\n\u00e9","x":1},)",
                                Call("t1"), ",", Call("t2"))),
            Result("t1", kOutput),
            Result("t2",
                   R"([{"type":"image","data":"aaaa","mimeType":"image/png"}])",
                   "true"),
            Answer(Text("done"))});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          Sent("user", Text("hi")),
          Sent(
              "assistant",
              R"({"type":"thinking","thinking":"t","signature":"sig"},)"
              R"({"type":"text","text":"\n\u00e9"},)"
              R"({"type":"tool_use","id":"t1","name":"ls","input":{"d": "."}},)"
              R"({"type":"tool_use","id":"t2","name":"ls","input":{"d": "."}})"),
          Sent("user",
               R"({"type":"tool_result","tool_use_id":"t1",)"
               R"("content":[{"type":"text","text":"\u00e9"}]},)"
               R"({"type":"tool_result","tool_use_id":"t2","is_error":true,)"
               R"("content":[{"type":"image","source":{"type":"base64",)"
               R"("media_type":"image/png","data":"aaaa"}}]})"),
          Sent("assistant", Text("done"))));
  EXPECT_THAT(result.issues, IsEmpty());
  const TranscriptMessage& answer = result.transcripts.front().messages.at(1);
  EXPECT_EQ(answer.time, 1767323045678000);
  EXPECT_EQ(answer.model, "claude");
}

TEST(PiTest, AnswersThatWereAbortedLeaveWhatTheySaid) {
  const ReadResult result = Read(
      {Prompt("hi"), Answer(""), Answer(""),
       Answer(R"({"type":"thinking","thinking":"t","thinkingSignature":""})"),
       Answer(absl::StrCat(Text("so"), ",", Call("t1"))), Prompt("go on")});
  EXPECT_THAT(Messages(result), ElementsAre(Sent("user", Text("hi")),
                                            Sent("assistant", Text("so")),
                                            Sent("user", Text("go on"))));
  EXPECT_EQ(TextOf(result.issues),
            "2 2 answers that were aborted or failed before a word: dropped; "
            "4 1 thoughts without a signature: dropped; "
            "4 an assistant message without content: dropped; "
            "5 call t1 has no result: dropped");
}

TEST(PiTest, ThinkingAndIdsOfOtherProvidersAreNotSent) {
  const ReadResult result =
      Read({Prompt("hi"),
            Answer(absl::StrCat(R"({"type":"thinking","thinking":"t",)",
                                R"("thinkingSignature":"reasoning"},)",
                                Call("call_1|fc_2")),
                   "openai-responses"),
            Result("call_1|fc_2", "[]")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          Sent("user", Text("hi")),
          Sent("assistant", R"({"type":"tool_use","id":"call_1_fc_2",)"
                            R"("name":"ls","input":{"d": "."}})"),
          Sent("user",
               R"({"type":"tool_result","tool_use_id":"call_1_fc_2"})")));
  EXPECT_EQ(TextOf(result.issues), "2 1 thoughts without a signature: dropped");
}

TEST(PiTest, CommandsOfTheUserAreTextsIfTheModelSawThem) {
  const std::string command =
      R"("role":"bashExecution","command":"ls","cancelled":false,)";
  const ReadResult result =
      Read({Entry(absl::StrCat(command, R"("output":"a\n","exitCode":0)")),
            Entry(absl::StrCat(command, R"("output":"","exitCode":2,)",
                               R"("truncated":true,"fullOutputPath":"/f")")),
            Entry(absl::StrCat(command,
                               R"("output":"x","excludeFromContext":true)")),
            Entry(R"("role":"bashExecution","command":"c","output":"x",)"
                  R"("cancelled":true)")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          Sent("user", Text(R"(Ran `ls`\n```\na\n\n```)")),
          Sent("user",
               Text(R"(Ran `ls`\n(no output)\n\nCommand exited with )"
                    R"(code 2\n\n[Output truncated. Full output: /f])")),
          Sent("user",
               Text(R"(Ran `c`\n```\nx\n```\n\n(command cancelled))"))));
  EXPECT_EQ(TextOf(result.issues),
            "3 1 commands that were not shown to the model: dropped");
}

TEST(PiTest, SummariesAndMessagesOfExtensionsAreTextsOfTheUser) {
  const ReadResult result = Read(
      {Prompt("hi"), R"({"type":"compaction","summary":"s"})",
       R"({"type":"branch_summary","summary":"b"})",
       R"({"type":"custom_message","content":"c"})", Entry(R"("role":"x")")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          Sent("user", Text("hi")),
          Sent("user", Text("The conversation before this was compacted into "
                            R"(a summary:\n\ns)")),
          Sent("user", Text("A summary of the branch that the conversation "
                            R"(came from:\n\nb)")),
          Sent("user", Text("c"))));
  EXPECT_EQ(TextOf(result.issues),
            "2 compaction 1: what it stands for is kept too; "
            "5 not a message of pi: skipped");
}

TEST(PiTest, OnlyTheBranchOfTheLastEntryIsRead) {
  const ReadResult result =
      Read({R"({"type":"session","id":"s","version":3})",
            Prompt("a", R"("id":"1","parentId":null,)"),
            Prompt("b", R"("id":"2","parentId":"1",)"),
            Prompt("c", R"("id":"3","parentId":"2",)"),
            Prompt("d", R"("id":"4","parentId":"1",)"),
            R"({"type":"label","id":"5","parentId":"4"})"});
  EXPECT_THAT(Messages(result),
              ElementsAre(Sent("user", Text("a")), Sent("user", Text("d"))));
  EXPECT_EQ(TextOf(result.issues), "3 2 entries of other branches: dropped");
}

TEST(PiTest, ATreeThatIsACircleIsReadOnce) {
  const ReadResult result = Read({Prompt("a", R"("id":"1","parentId":"2",)"),
                                  Prompt("b", R"("id":"2","parentId":"1",)")});
  EXPECT_EQ(CountsOf(result.transcripts).messages, 2);
}

TEST(PiTest, UsageOfAnAnswerIsRead) {
  const ReadResult result = Read(
      {Prompt("hi"),
       Entry(
           R"("role":"assistant","content":[{"type":"text","text":"said"}],)"
           R"("api":"anthropic-messages","model":"claude","usage":{"input":2,)"
           R"("output":7,"cacheRead":30,"cacheWrite":10,"totalTokens":49})")});
  const std::optional<Usage>& usage =
      result.transcripts.front().messages[1].usage;
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->input_uncached, 2);
  EXPECT_EQ(usage->cache_read, 30);
  EXPECT_EQ(usage->cache_write, 10);
}

}  // namespace
}  // namespace clerestory
