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
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadResult Read(const std::vector<std::string>& messages) {
  const std::string contents = absl::StrCat(
      R"({"info":{"config":{"model":{"model_name":"m-1"}}},"messages":[)",
      absl::StrJoin(messages, ",\n"),
      R"(],"trajectory_format":"mini-swe-agent-1"})");
  absl::StatusOr<ReadResult> result = ReadTranscript(contents, "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const Transcript& transcript = result->transcripts.front();
  EXPECT_EQ(transcript.source, "mini-swe-agent");
  EXPECT_EQ(transcript.format, Format::kOpenaiChat);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

std::vector<std::string> Messages(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

std::string User(absl::string_view text) {
  return absl::StrCat(R"({"role":"user","content":)", json::Quote(text), "}");
}

std::string Answer(absl::string_view text, absl::string_view more = "") {
  return absl::StrCat(R"({"role":"assistant","content":)", json::Quote(text),
                      more, "}");
}

std::string ResultOf(int call, absl::string_view text) {
  return absl::StrCat(R"({"role":"tool","tool_call_id":"call_)", call,
                      R"(","content":)", json::Quote(text), "}");
}

std::string CallMessage(int call, absl::string_view content,
                        absl::string_view command) {
  const std::string arguments =
      absl::StrCat(R"({"command":)", json::Quote(command), "}");
  return absl::StrCat(R"({"role":"assistant","content":)", content,
                      R"(,"tool_calls":[{"id":"call_)", call,
                      R"(","type":"function","function":{"name":"bash",)",
                      R"("arguments":)", json::Quote(arguments), "}}]}");
}

TEST(MiniSweAgentTest, TheOnlyFenceIsTheCallAndTheNextUserMessageItsResult) {
  const ReadResult result =
      Read({R"({"role":"system","content":"s"})", User("fix"),
            Answer("THOUGHT: see\n\n```bash\nls -R \\\n  \"a\"\n```"),
            User("<returncode>0</returncode>"),
            Answer("```bash \n\ncat <<E\n``\nE\n```\nafter"), User("out")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(R"({"role":"system","content":"s"})", User("fix"),
                  CallMessage(1, R"("THOUGHT: see")", "ls -R \\\n  \"a\""),
                  ResultOf(1, "<returncode>0</returncode>"),
                  CallMessage(2, R"("after")", "cat <<E\n``\nE"),
                  ResultOf(2, "out")));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(MiniSweAgentTest, CorrectionsOfTheFormStayUserMessages) {
  const std::vector<std::string> messages = {
      User("fix"),
      Answer("no fence"),
      User("Please always provide EXACTLY ONE action"),
      Answer("```bash\nls\n```\nand\n```bash\npwd\n```"),
      User("Please always provide EXACTLY ONE action"),
      Answer("```bash ls```"),
      User("Please always provide EXACTLY ONE action"),
      Answer("```bash\nls"),
      User("Please always provide EXACTLY ONE action"),
      Answer("```python\nx\n```"),
      User("Please always provide EXACTLY ONE action")};
  EXPECT_EQ(Messages(Read(messages)), messages);
}

TEST(MiniSweAgentTest, TheLastCallMayBeOpen) {
  const ReadResult result = Read({User("fix"), Answer("```bash\nls\n```")});
  EXPECT_THAT(Messages(result),
              ElementsAre(User("fix"), CallMessage(1, "null", "ls")));
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(MiniSweAgentTest, AFenceThatNothingAnswersStaysText) {
  const std::vector<std::string> messages = {
      User("fix"), Answer("```bash\nls\n```"), Answer("oh")};
  EXPECT_EQ(Messages(Read(messages)), messages);
}

TEST(MiniSweAgentTest, ContentMayBeParts) {
  const std::string parts = R"([{"type":"text","text":"out"}])";
  const ReadResult result =
      Read({User("fix"),
            R"({"role":"assistant","content":[{"type":"text",)"
            R"("text":"```bash\nls\n```"}]})",
            absl::StrCat(R"({"role":"user","content":)", parts, "}")});
  EXPECT_EQ(Messages(result).at(1), CallMessage(1, "null", "ls"));
  EXPECT_EQ(Messages(result).at(2),
            absl::StrCat(R"({"role":"tool","tool_call_id":"call_1",)",
                         R"("content":)", parts, "}"));
}

TEST(MiniSweAgentTest, Version2KeepsItsCallsAndLosesTheAgentsNotes) {
  const std::string call =
      R"({"id":"c1","type":"function","function":{"name":"bash",)"
      R"("arguments":"{\"command\": \"ls\"}"}})";
  const ReadResult result =
      Read({R"({"role":"user","content":"fix","extra":{"a":1}})",
            // A fence is only text here.
            Answer("```bash\nls\n```"), User("no tool call"),
            absl::StrCat(R"({"extra":{"timestamp":5.5}, "content":"x","role":)",
                         R"("assistant","tool_calls":[)", call,
                         R"(], "reasoning_content":"r"})"),
            R"({"role":"tool","content":"out","tool_call_id":"c1","extra":{}})",
            R"({"role":"exit","content":"Submitted"})"});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(
          User("fix"), Answer("```bash\nls\n```"), User("no tool call"),
          absl::StrCat(R"({"content":"x","role":"assistant",)",
                       R"("reasoning_content":"r","tool_calls":[)", call, "]}"),
          R"({"role":"tool","content":"out","tool_call_id":"c1"})"));
  EXPECT_EQ(result.transcripts[0].messages[3].time, 5'000'000);
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(MiniSweAgentTest, AnAnswerHasItsModelAndTheTimeOfItsResponse) {
  const ReadResult result =
      Read({User("fix"),
            Answer("x", R"(,"extra":{"response":{"created":1763511895}})")});
  const TranscriptMessage& answer = result.transcripts[0].messages.at(1);
  EXPECT_EQ(answer.model, "m-1");
  EXPECT_EQ(answer.time, 1'763'511'895'000'000);
  EXPECT_EQ(answer.bytes, Answer("x"));
}

TEST(MiniSweAgentTest, WhatIsNoMessageIsSkipped) {
  const ReadResult result =
      Read({User("fix"), R"({"role":"user","content":null})",
            R"({"object":"response","output":[]})",
            R"({"role":"critic","content":"x"})"});
  EXPECT_THAT(Messages(result), ElementsAre(User("fix")));
  EXPECT_EQ(result.issues.size(), 3);
}

TEST(MiniSweAgentTest, ManyFencesAreReadInOnePass) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "```bash x";
  const std::vector<std::string> messages = {User("fix"), Answer(text),
                                             User("no")};
  EXPECT_EQ(Messages(Read(messages)), messages);
}

TEST(MiniSweAgentTest, UsageOfTheRawAnswerIsRead) {
  const ReadResult result = Read(
      {User("hi"),
       Answer("said", R"(,"extra":{"response":{"usage":{"prompt_tokens":100,)"
                      R"("completion_tokens":7,)"
                      R"("prompt_tokens_details":{"cached_tokens":40}}}})")});
  const std::optional<Usage>& usage =
      result.transcripts.front().messages[1].usage;
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->input_uncached, 60);
  EXPECT_EQ(usage->cache_read, 40);
}

}  // namespace
}  // namespace clerestory
