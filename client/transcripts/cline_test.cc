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

ReadResult Read(const std::vector<std::string>& messages) {
  absl::StatusOr<ReadResult> result = ReadTranscript(
      absl::StrCat(R"({"version":1,"sessionId":"s","messages":[)", "\n",
                   absl::StrJoin(messages, ",\n"), "]}"),
      "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const Transcript& transcript = result->transcripts.front();
  EXPECT_EQ(transcript.source, "cline");
  EXPECT_EQ(transcript.format, Format::kAnthropicMessages);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

std::vector<std::string> Messages(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

std::string Message(absl::string_view role, absl::string_view content) {
  return absl::StrCat(R"({"id":"m_tool_x_tool_x","role":")", role,
                      R"(","content":)", content, R"(,"ts":1783376868634,)",
                      R"("modelInfo":{"id":"anthropic/claude","family":"c"}})");
}

std::string Sent(absl::string_view role, absl::string_view content) {
  return absl::StrCat(R"({"role":")", role, R"(","content":)", content, "}");
}

std::string Calling(absl::string_view id) {
  return absl::StrCat(R"([{"type": "tool_use","id":")", id,
                      R"(","name":"read_files","input":{"a":{"b":[1]}}}])");
}

std::string Result(absl::string_view id, absl::string_view content) {
  return absl::StrCat(R"([{"type":"tool_result","tool_use_id":")", id,
                      R"(","name":"read_files","content":)", content, "}]");
}

std::string ResultSent(absl::string_view id, absl::string_view content) {
  return absl::StrCat(R"([{"type":"tool_result","tool_use_id":")", id,
                      R"(","content":)", content, "}]");
}

const std::string& Task() {
  static const std::string task =
      Message("user", R"([{"type":"text", "text":"fix \u00e9"}])");
  return task;
}

// Found by a fuzzer: the product of its units is no number of 64 bits.
TEST(ClineTest, ATimeThatNoCalendarHasIsNone) {
  for (const char* const time : {"1783376868376868634", "-1",
                                 "9223372036854775807", "253402300800000"}) {
    std::string task = Task();
    task.replace(task.find("1783376868634"), 13, time);
    EXPECT_EQ(Read({task}).transcripts.front().messages.front().time, 0)
        << time;
  }
  EXPECT_EQ(Read({Task()}).transcripts.front().messages.front().time,
            1'783'376'868'634'000);
}

TEST(ClineTest, BlocksKeepTheirBytesAndMembersOfClineAreLeftOut) {
  const ReadResult result =
      Read({Task(), Message("assistant", Calling("t1")),
            Message("user", Result("t1", R"("{\"query\":\"\u00e9\"}")")),
            Message("assistant", R"("done")")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Sent("user", R"([{"type":"text", "text":"fix \u00e9"}])"),
                  Sent("assistant", Calling("t1")),
                  Sent("user", ResultSent("t1", R"("{\"query\":\"\u00e9\"}")")),
                  Sent("assistant", R"([{"type":"text","text":"done"}])")));
  EXPECT_THAT(result.issues, IsEmpty());
  const TranscriptMessage& answer = result.transcripts.front().messages.at(1);
  EXPECT_EQ(answer.time, 1783376868634000);
  EXPECT_EQ(answer.model, "anthropic/claude");
}

TEST(ClineTest, AListOfResultsBecomesItsJsonText) {
  const ReadResult result =
      Read({Task(), Message("assistant", Calling("t1")),
            Message("user", Result("t1",
                                   "[\n {\n  \"query\": \"q\",\n  \"result\": "
                                   "\"a\\n\",\n  \"success\": true\n }\n]"))});
  EXPECT_EQ(
      Messages(result).at(2),
      Sent("user", ResultSent("t1", R"("[{\"query\":\"q\",\"result\":\"a\\n\",)"
                                    R"(\"success\":true}]")")));
}

TEST(ClineTest, BlocksInResultsStay) {
  const std::string blocks = R"([{"type":"text","text":"a"}])";
  const ReadResult result = Read(
      {Task(), Message("assistant", Calling("t1")),
       Message("user", Result("t1", blocks)),
       Message("assistant", Calling("t2")),
       Message(
           "user",
           R"([{"type":"tool_result","tool_use_id":"t2","is_error":true}])")});
  EXPECT_EQ(Messages(result).at(2), Sent("user", ResultSent("t1", blocks)));
  EXPECT_EQ(
      Messages(result).at(4),
      Sent("user",
           R"([{"type":"tool_result","tool_use_id":"t2","is_error":true}])"));
}

TEST(ClineTest, FilesBecomeTexts) {
  const ReadResult result = Read({Message(
      "user", R"([{"type":"text","text":"see"},)"
              R"({"type":"file","path":"/a \"b\"","content":"x\ty"}])")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Sent(
          "user",
          R"([{"type":"text","text":"see"},{"type":"text","text":)"
          R"("<file_content path=\"/a \"b\"\">\nx\ty\n</file_content>"}])")));
}

TEST(ClineTest, WhatAnthropicRefusesIsDropped) {
  const ReadResult result =
      Read({Task(),
            Message("assistant",
                    R"([{"type":"thinking","thinking":"t"},)"
                    R"({"type":"text","text":"a"},)"
                    R"({"type":"tool_use","id":"t1","name":"f","input":{}}])"),
            Message("tool", R"("x")"), Task()});
  EXPECT_EQ(Messages(result).at(1),
            Sent("assistant", R"([{"type":"text","text":"a"}])"));
  EXPECT_EQ(TextOf(result.issues),
            "3 thinking without a signature: dropped; "
            "3 call t1 has no result: dropped; "
            "4 not a message of Cline: skipped");
}

}  // namespace
}  // namespace clerestory
