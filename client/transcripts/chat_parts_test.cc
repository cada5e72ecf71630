// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/chat_parts.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/json/document.h"

namespace clerestory {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The content of a message of `role` made from the blocks `blocks`.
ChatContent Content(absl::string_view role, absl::string_view blocks) {
  const absl::StatusOr<json::Document> document = json::Document::Parse(blocks);
  EXPECT_TRUE(document.ok()) << document.status();
  return document.ok() ? ContentFrom(role, document->root()) : ChatContent();
}

// The arguments of the call that is made from the member `a` of `object`.
std::string Arguments(absl::string_view object) {
  const absl::StatusOr<json::Document> document = json::Document::Parse(object);
  EXPECT_TRUE(document.ok()) << document.status();
  if (!document.ok()) return "";
  ChatAnswer answer;
  std::vector<ReadIssue> issues;
  AddCall(answer, "c", "f", document->root()["a"], issues);
  EXPECT_THAT(issues, IsEmpty());
  const absl::StatusOr<json::Document> call =
      json::Document::Parse(answer.calls.at(0).json);
  EXPECT_TRUE(call.ok()) << call.status();
  return call.ok() ? call->root()["function"]["arguments"].string() : "";
}

TEST(ChatPartsTest, TimesHaveAZoneOrAreInUtc) {
  EXPECT_EQ(TimeOfText("2025-10-11T10:30:00Z"), 1'760'178'600'000'000);
  EXPECT_EQ(TimeOfText("2025-10-11T06:30:00.25-04:00"), 1'760'178'600'250'000);
  EXPECT_EQ(TimeOfText("2025-10-11T10:30:00.000001"), 1'760'178'600'000'001);
  EXPECT_EQ(TimeOfText("2025-10-11 10:30:00"), 0);
  EXPECT_EQ(TimeOfText(""), 0);
}

TEST(ChatPartsTest, TextOfAnyProviderIsText) {
  const ChatContent content =
      Content("tool", R"(["a",{"type":"output_text","text":"b\n"},)"
                      R"({"type":"text","text":""}])");
  EXPECT_EQ(content.json, R"([{"type":"text","text":"a"},)"
                          R"({"type":"text","text":"b\n"}])");
  EXPECT_TRUE(content.has_words);
  EXPECT_EQ(content.left_out, 0);
  EXPECT_FALSE(Content("tool", R"([{"type":"text","text":" \n"}])").has_words);
}

TEST(ChatPartsTest, PicturesOfAnyProviderArePartsOfTheUser) {
  const std::string expected =
      R"([{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}])";
  for (const absl::string_view blocks :
       {R"([{"type":"image_url","image_url":{"url":)"
        R"("data:image/png;base64,AA"}}])",
        R"([{"type":"image_url","image_url":"data:image/png;base64,AA"}])",
        R"([{"type":"image","image":"data:image/png;base64,AA"}])",
        R"([{"type":"image","image_urls":["data:image/png;base64,AA"]}])",
        R"([{"type":"image","source":{"media_type":"image/png",)"
        R"("data":"AA"}}])"}) {
    EXPECT_EQ(Content("user", blocks).json, expected) << std::string(blocks);
    EXPECT_EQ(Content("tool", blocks).json, "");
    EXPECT_EQ(Content("tool", blocks).left_out, 1);
  }
}

TEST(ChatPartsTest, CallsAndReasoningAreNoContent) {
  const ChatContent content = Content(
      "assistant", R"([{"type":"thinking","thinking":"hm"},)"
                   R"({"type":"tool_use","id":"c","name":"f","input":{}},)"
                   R"({"type":"audio"}])");
  EXPECT_EQ(content.json, "");
  EXPECT_EQ(content.left_out, 1);
}

TEST(ChatPartsTest, ArgumentsAreTextThatHoldsAnObject) {
  EXPECT_EQ(
      Arguments("{\"a\":{\n \"x\" : [1,2 ],\"y\":\"a, \\\"b:\\\" c\\\\\"\n}}"),
      R"({"x": [1, 2], "y": "a, \"b:\" c\\"})");
  EXPECT_EQ(Arguments(R"({"a":"{\"x\":1}"})"), R"({"x":1})");
  EXPECT_EQ(Arguments(R"({"a":"ls"})"), R"({"input": "ls"})");
  EXPECT_EQ(Arguments(R"({"a":[1]})"), R"({"input": [1]})");
  EXPECT_EQ(Arguments(R"({"a":""})"), "{}");
  EXPECT_EQ(Arguments(R"({"a":null})"), "{}");
  EXPECT_EQ(Arguments(R"({"b":1})"), "{}");
}

TEST(ChatPartsTest, AMessageOfWhichNothingIsLeftIsSkippedUnlessItIsAResult) {
  Transcript transcript;
  std::vector<ReadIssue> issues;
  ChatHistory history(transcript, issues);
  AddContent(history, ContentFromText(" "), "user", "", 1, 5, issues);
  AddContent(history, ContentFromText("hi"), "user", "", 2, 5, issues);
  ChatAnswer answer;
  SetContent(answer, ContentFromText(""));
  answer.calls.push_back({.id = "c", .json = "{}"});
  history.AddAnswer(answer);
  AddContent(history, ChatContent(), "tool", "c", 3, 7, issues);
  history.Finish();
  ASSERT_THAT(transcript.messages, SizeIs(3));
  EXPECT_EQ(transcript.messages[0].bytes, R"({"role":"user","content":"hi"})");
  EXPECT_EQ(transcript.messages[0].time, 5);
  EXPECT_EQ(transcript.messages[1].bytes,
            R"({"role":"assistant","content":null,"tool_calls":[{}]})");
  EXPECT_EQ(transcript.messages[2].bytes,
            R"({"role":"tool","tool_call_id":"c","content":""})");
  EXPECT_EQ(transcript.messages[2].time, 7);
  ASSERT_THAT(issues, SizeIs(1));
  EXPECT_EQ(issues[0].line, 1);
}

}  // namespace
}  // namespace clerestory
