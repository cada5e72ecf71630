// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A record with id `id` under `parent`. `more` are further members.
std::string Record(absl::string_view type, absl::string_view id,
                   absl::string_view parent, absl::string_view message,
                   absl::string_view more = "") {
  return absl::StrCat(
      R"({"type":")", type, R"(","sessionId":"s","uuid":")", id,
      R"(","parentUuid":)",
      parent.empty() ? "null" : absl::StrCat("\"", parent, "\""),
      R"(,"message":)", message, more, "}\n");
}

std::string User(absl::string_view id, absl::string_view parent,
                 absl::string_view content, absl::string_view more = "") {
  return Record("user", id, parent,
                absl::StrCat(R"({"role":"user","content":)", content, "}"),
                more);
}

// A record with a part of the message `message`.
std::string Answer(absl::string_view id, absl::string_view parent,
                   absl::string_view message, absl::string_view blocks,
                   absl::string_view more = "") {
  return Record(
      "assistant", id, parent,
      absl::StrCat(R"({"id":")", message,
                   R"(","model":"m-1","role":"assistant",)",
                   R"("usage":{"input_tokens":1},"content":[)", blocks, "]}"),
      more);
}

std::string Call(absl::string_view id) {
  return absl::StrCat(R"({"type":"tool_use","id":")", id,
                      R"(","name":"Bash","input":{"b":1,"a":2}})");
}

std::string Result(absl::string_view id) {
  return absl::StrCat(R"({"tool_use_id":")", id,
                      R"(","type":"tool_result","content":"out"})");
}

std::string Results(absl::string_view id) {
  return absl::StrCat("[", Result(id), "]");
}

std::string Text(absl::string_view text) {
  return absl::StrCat(R"({"type":"text","text":")", text, "\"}");
}

ReadResult Read(const std::string& contents) {
  absl::StatusOr<ReadResult> result = ReadTranscript(contents, "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->transcripts, SizeIs(1));
  const Transcript& transcript = result->transcripts.front();
  EXPECT_EQ(transcript.source, "claude-code");
  EXPECT_EQ(transcript.name, "");
  EXPECT_EQ(transcript.format, Format::kAnthropicMessages);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

std::vector<std::string> Messages(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

std::string UserMessage(absl::string_view content) {
  return absl::StrCat(R"({"role":"user","content":)", content, "}");
}

std::string AnswerMessage(absl::string_view blocks) {
  return absl::StrCat(R"({"role":"assistant","content":[)", blocks, "]}");
}

TEST(ClaudeCodeTest, BlocksAndPromptsKeepTheirBytes) {
  const std::string block =
      R"({ "type":"tool_use","name":"W" ,"id":"t1","input":{"n":1.50,"s":"\u00e9\/"}})";
  const std::string prompt = R"([ {"type":"text","text":"caf\u00e9"} ])";
  const ReadResult result =
      Read(User("u1", "", prompt) + Answer("a1", "u1", "m1", block) +
           User("u2", "a1", Results("t1")));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(prompt), AnswerMessage(block),
                          UserMessage(Results("t1"))));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(ClaudeCodeTest, ThePartsOfAMessageAreJoinedByItsId) {
  // A result stands between two records of one message.
  const ReadResult result = Read(
      User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Text("first")) +
      Answer("a2", "a1", "m1", Call("t1")) + User("u2", "a2", Results("t1")) +
      Answer("a3", "a2", "m1", Call("t2")) + User("u3", "a3", Results("t2")) +
      Answer("a4", "u3", "m2", Text("done")));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(R"("do")"),
                          AnswerMessage(absl::StrCat(
                              Text("first"), ",", Call("t1"), ",", Call("t2"))),
                          UserMessage(absl::StrCat("[", Result("t1"), ",",
                                                   Result("t2"), "]")),
                          AnswerMessage(Text("done"))));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(ClaudeCodeTest, WhatStandsBesideResultsComesBehindThem) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") +
           Answer("a1", "u1", "m1", absl::StrCat(Call("t1"), ",", Call("t2"))) +
           User("u2", "a1",
                absl::StrCat("[", Text("stop"), ",", Result("t1"), "]")) +
           User("u3", "u2", Results("t2")));
  EXPECT_EQ(Messages(result).back(),
            UserMessage(absl::StrCat("[", Result("t1"), ",", Result("t2"), ",",
                                     Text("stop"), "]")));
}

TEST(ClaudeCodeTest, AnAnswerHasItsModelAndTheTimeOfItsFirstRecord) {
  const ReadResult result = Read(
      User("u1", "", R"("do")", R"(,"timestamp":"2026-01-17T06:04:01.902Z")") +
      Answer("a1", "u1", "m1", Text("a"),
             R"(,"timestamp":"1970-01-01T00:00:01.500Z")") +
      Answer("a2", "a1", "m1", Text("b"),
             R"(,"timestamp":"1970-01-01T00:00:09Z")"));
  const std::vector<TranscriptMessage>& messages =
      result.transcripts.front().messages;
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[0].time, 1'768'629'841'902'000);
  EXPECT_EQ(messages[0].model, "");
  EXPECT_EQ(messages[1].time, 1'500'000);
  EXPECT_EQ(messages[1].model, "m-1");
}

TEST(ClaudeCodeTest, OtherRecordsAreSkippedAndInjectedTextIsKept) {
  const ReadResult result =
      Read(R"({"type":"summary","summary":"x","leafUuid":"y"})"
           "\n" +
           Record("progress", "p1", "", R"({"content":"no"})") + "\r\n\n" +
           User("u1", "p1", R"("meta")", R"(,"isMeta":true)") +
           R"({"type":"queue-operation","operation":"enqueue","sessionId":"s"})"
           "\n" +
           R"({"type":"a-type-of-tomorrow","uuid":"z"})"
           "\n" +
           Answer("a1", "u1", "m1", Text("done")));
  EXPECT_THAT(Messages(result), ElementsAre(UserMessage(R"("meta")"),
                                            AnswerMessage(Text("done"))));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(ClaudeCodeTest, ADamagedLineIsAnIssueAndTheRestGoesOn) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") + "{\"type\":\"assis\n" +
           Answer("a1", "gone", "m1", Text("done")));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(R"("do")"), AnswerMessage(Text("done"))));
  EXPECT_THAT(result.issues, SizeIs(1));
  EXPECT_THAT(TextOf(result.issues), HasSubstr("2 skipped: "));
}

TEST(ClaudeCodeTest, CallsAndResultsWithoutEachOtherAreDropped) {
  const ReadResult result = Read(
      User("u1", "", R"("do")") +
      Answer("a1", "u1", "m1", absl::StrCat(Text("look"), ",", Call("t1"))) +
      User("u2", "gone", Results("t9")) + Answer("a2", "u2", "m2", Call("t2")) +
      User("u3", "a2", R"("no")"));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(R"("do")"), AnswerMessage(Text("look")),
                          UserMessage(R"("no")")));
  EXPECT_EQ(TextOf(result.issues),
            "2 call t1 has no result: dropped; "
            "3 a result for t9, which is no call: dropped; "
            "4 call t2 has no result: dropped; "
            "4 an assistant message without content: dropped");
}

TEST(ClaudeCodeTest, ThinkingThatLedToALostCallIsDropped) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") +
           Answer("a1", "u1", "m1",
                  R"({"type":"thinking","thinking":"","signature":"x"})") +
           Answer("a2", "a1", "m1", Call("t1")) + User("u2", "a2", R"("no")"));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(R"("do")"), UserMessage(R"("no")")));
  EXPECT_THAT(TextOf(result.issues),
              HasSubstr("2 thinking that led to nothing"));
}

TEST(ClaudeCodeTest, TheCallsOfTheLastMessageMayBeOpen) {
  const std::string start =
      User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Call("t1"));
  EXPECT_THAT(Messages(Read(start)),
              ElementsAre(UserMessage(R"("do")"), AnswerMessage(Call("t1"))));
  // Not if some of them are answered.
  const ReadResult result = Read(start + Answer("a2", "a1", "m1", Call("t2")) +
                                 User("u2", "a2", Results("t2")));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(R"("do")"), AnswerMessage(Call("t2")),
                          UserMessage(Results("t2"))));
}

TEST(ClaudeCodeTest, OfTwoResultsTheFirstCountsAndOfTwoEqualCallsToo) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Call("t1")) +
           User("u2", "a1", Results("t1")) + User("u3", "a1", Results("t1")) +
           Answer("a2", "u2", "m2", Call("t1")) +
           Answer("a3", "a2", "m2", Text("done")));
  EXPECT_THAT(
      Messages(result),
      ElementsAre(UserMessage(R"("do")"), AnswerMessage(Call("t1")),
                  UserMessage(Results("t1")), AnswerMessage(Text("done"))));
  EXPECT_EQ(TextOf(result.issues),
            "4 another result for call t1: dropped; "
            "5 call t1 stands here again: dropped");
}

TEST(ClaudeCodeTest, BlankTextsAreDropped) {
  const ReadResult result = Read(
      User("u1", "", absl::StrCat("[", Text(""), ",", Text("do"), "]")) +
      Answer("a1", "u1", "m1", absl::StrCat(Text("\\n\\n"), ",", Text("ok"))) +
      User("u2", "a1", R"(" ")"));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(absl::StrCat("[", Text("do"), "]")),
                          AnswerMessage(Text("ok"))));
  EXPECT_EQ(TextOf(result.issues),
            "1 3 texts without a word, which the provider refuses: dropped");
}

TEST(ClaudeCodeTest, MessagesOfNoModelAreDropped) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") +
           Record("assistant", "a1", "u1",
                  R"({"id":"x","model":"<synthetic>","content":[]})") +
           Answer("a2", "u1", "m1", Text("done")));
  EXPECT_THAT(Messages(result), SizeIs(2));
  EXPECT_EQ(TextOf(result.issues),
            "2 1 messages of no model (<synthetic>): dropped");
}

TEST(ClaudeCodeTest, SubAgentsAreSkippedUnlessTheFileIsTheirs) {
  const std::string side =
      User("s1", "", R"("side")", R"(,"isSidechain":true)") +
      Answer("s2", "s1", "ms", Text("sub"), R"(,"isSidechain":true)");
  EXPECT_THAT(Messages(Read(side)), ElementsAre(UserMessage(R"("side")"),
                                                AnswerMessage(Text("sub"))));
  const ReadResult result = Read(User("u1", "", R"("main")") + side);
  EXPECT_THAT(Messages(result), ElementsAre(UserMessage(R"("main")")));
  EXPECT_EQ(TextOf(result.issues), "2 2 records of sub-agents: skipped");
}

TEST(ClaudeCodeTest, ACompactionIsAUserMessageAndANote) {
  const ReadResult result = Read(
      User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Text("done")) +
      R"({"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null})"
      "\n" +
      User("u2", "c", R"("so far")", R"(,"isCompactSummary":true)"));
  EXPECT_EQ(Messages(result).back(), UserMessage(R"("so far")"));
  EXPECT_EQ(TextOf(result.issues),
            "4 compaction 1: what it stands for is kept too");
}

TEST(ClaudeCodeTest, ARecordThatStandsTwiceIsReadOnce) {
  const std::string prompt = User("u1", "", R"("do")");
  const ReadResult result =
      Read(prompt + prompt + Answer("a1", "u1", "m1", Text("done")));
  EXPECT_THAT(Messages(result), SizeIs(2));
  EXPECT_EQ(TextOf(result.issues), "2 a record that stood before: skipped");
}

TEST(ClaudeCodeTest, WhatTheUserWentBackFromIsDropped) {
  // The new prompt stands beside the old one, with a note between it and what
  // both hang on.
  const ReadResult result = Read(
      User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Text("done")) +
      User("u2", "a1", R"("wrong")") + Answer("a2", "u2", "m2", Call("t1")) +
      User("u3", "a2", Results("t1")) + Answer("a3", "u3", "m3", Text("oh")) +
      R"({"type":"system","uuid":"n","parentUuid":"a1"})"
      "\n" +
      User("u4", "n", R"("right")") + Answer("a4", "u4", "m4", Text("yes")));
  EXPECT_THAT(
      Messages(result),
      ElementsAre(UserMessage(R"("do")"), AnswerMessage(Text("done")),
                  UserMessage(R"("right")"), AnswerMessage(Text("yes"))));
  EXPECT_EQ(TextOf(result.issues),
            "3 a branch of 4 records that was abandoned for the one at line 8: "
            "dropped");
}

TEST(ClaudeCodeTest, AnAnswerThatWasAskedForAgainReplacesTheFirst) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Text("br")) +
           Answer("a2", "a1", "m1", Call("t1")) +
           Answer("a3", "u1", "m2", Text("done")));
  EXPECT_THAT(Messages(result),
              ElementsAre(UserMessage(R"("do")"), AnswerMessage(Text("done"))));
  EXPECT_THAT(TextOf(result.issues), HasSubstr("2 a branch of 2 records"));
}

TEST(ClaudeCodeTest, ABranchThatGoesOnIsNotAbandoned) {
  const ReadResult result =
      Read(User("u1", "", R"("do")") + Answer("a1", "u1", "m1", Text("done")) +
           User("u2", "a1", R"("one")") + User("u3", "a1", R"("two")") +
           Answer("a2", "u2", "m2", Text("to one")));
  EXPECT_THAT(Messages(result), SizeIs(5));
  EXPECT_THAT(result.issues, IsEmpty());
}

// A session of `turns` answers, each with `width` parallel calls.
std::string LongSession(int turns, int width) {
  std::string contents = User("r0", "", R"("do")");
  std::string last = "r0";
  for (int i = 0; i < turns; ++i) {
    std::string results;
    for (int j = 0; j < width; ++j) {
      const std::string id = absl::StrCat("a", i, "-", j);
      contents += Answer(id, last, absl::StrCat("m", i), Call(id));
      results += User("r" + id, id, Results(id));
      last = id;
    }
    contents += results;
    last = "r" + last;
  }
  return contents;
}

TEST(ClaudeCodeTest, ParallelCallsAreAnsweredInOneMessage) {
  const ReadResult result = Read(LongSession(/*turns=*/50, /*width=*/9));
  const HistoryCounts counts = CountsOf(result.transcripts);
  EXPECT_EQ(counts.messages, 101);
  EXPECT_EQ(counts.calls, 450);
  EXPECT_EQ(counts.results, 450);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(ClaudeCodeTest, WhateverLinesAreLostTheHistoryIsValid) {
  const std::string contents = LongSession(/*turns=*/6, /*width=*/3);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < contents.size();) {
    const std::size_t end = contents.find('\n', at) + 1;
    lines.push_back(contents.substr(at, end - at));
    at = end;
  }
  for (std::size_t from = 0; from < lines.size(); ++from) {
    for (std::size_t step = 1; step < lines.size(); ++step) {
      std::string left;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool lost = i >= from && (i - from) % step == 0;
        left +=
            lost ? absl::StrCat(lines[i].substr(0, lines[i].size() / 2), "\n")
                 : lines[i];
      }
      const absl::StatusOr<ReadResult> result = ReadTranscript(left, "auto");
      if (!result.ok()) continue;  // Nothing is left.
      ASSERT_EQ(FaultOf(result->transcripts.front()), "") << left;
    }
  }
}

TEST(ClaudeCodeTest, TheLastUsageOfAMessageCounts) {
  const auto part = [](absl::string_view id, absl::string_view parent,
                       absl::string_view text, int read) {
    return Record("assistant", id, parent,
                  absl::StrCat(R"({"id":"m1","model":"m","usage":)",
                               R"({"input_tokens":3,"output_tokens":1,)",
                               R"("cache_creation_input_tokens":20,)",
                               R"("cache_read_input_tokens":)", read,
                               R"(},"content":[)", Text(text), "]}"));
  };
  const ReadResult result =
      Read(absl::StrCat(User("u", "", R"("hi")"), part("a", "u", "one", 100),
                        part("b", "a", "two", 200)));
  const std::vector<TranscriptMessage>& messages =
      result.transcripts.front().messages;
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_FALSE(messages[0].usage);
  ASSERT_TRUE(messages[1].usage);
  EXPECT_EQ(messages[1].usage->input_uncached, 3);
  EXPECT_EQ(messages[1].usage->cache_read, 200);
  EXPECT_EQ(messages[1].usage->cache_write, 20);
}

}  // namespace
}  // namespace clerestory
