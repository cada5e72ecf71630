// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/chat_transcripts.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadResult Read(const std::string& contents) {
  return ReadChat(contents, "inspect");
}

ReadResult ReadSamples(const std::vector<std::string>& samples) {
  return Read(
      absl::StrCat(R"({"version":2,"eval":{"model":"openai/m"},"samples":[)",
                   absl::StrJoin(samples, ",\n"), "]}"));
}

std::string Sample(const std::vector<std::string>& messages,
                   absl::string_view attachments = "{}") {
  return absl::StrCat(R"({"messages":[)", absl::StrJoin(messages, ","),
                      R"(],"attachments":)", attachments,
                      R"(,"events":[{"x":"attachment://a1"}]})");
}

const char kCall[] =
    R"({"id":"m2","role":"assistant","content":"","source":"generate",)"
    R"("tool_calls":[{"id":"c1","function":"go","arguments":{"u":1}}],)"
    R"("model":"m-1"})";

TEST(InspectTest, TheMessagesOfASampleAreTheHistory) {
  const ReadResult result = ReadSamples(
      {Sample({R"({"id":"m1","role":"user","content":"fix","source":"input"})",
               kCall, R"({"role":"tool","content":"out","tool_call_id":"c1"})",
               R"({"role":"assistant","content":[{"type":"reasoning",)"
               R"("reasoning":"hm"},{"type":"text","text":"done"}]})"})});
  EXPECT_THAT(Messages(result),
              ElementsAre(Said("user", "fix"),
                          Answer("null", {Call("c1", "go", R"({"u": 1})")}),
                          ResultOf("c1", R"("out")"),
                          R"({"role":"assistant","content":)"
                          R"([{"type":"text","text":"done"}]})"));
  EXPECT_EQ(result.transcripts[0].messages[1].model, "m-1");
  EXPECT_EQ(result.transcripts[0].messages[3].model, "openai/m");
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(InspectTest, ReferencesAreReplacedByTheirAttachments) {
  const ReadResult result = ReadSamples(
      {Sample({R"({"role":"user","content":"attachment://a1"})",
               R"({"role":"user","content":[{"type":"image",)"
               R"("image":"attachment://a2"}]})",
               R"({"role":"user","content":"say \"attachment://a1\""})",
               R"({"role":"user","content":"attachment://a3"})"},
              R"({"a1":"long \"text\"","a2":"data:image/png;base64,AA=="})")});
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Said("user", "long \"text\""),
                  R"({"role":"user","content":[{"type":"image_url",)"
                  R"("image_url":{"url":"data:image/png;base64,AA=="}}]})",
                  Said("user", "say \"attachment://a1\""),
                  Said("user", "attachment://a3")));
  EXPECT_EQ(TextOf(result.issues),
            "1 an attachment that is missing or too large: its reference "
            "stays");
}

TEST(InspectTest, AnErrorStandsInPlaceOfTheContent) {
  const ReadResult result = ReadSamples(
      {Sample({kCall, R"({"role":"tool","content":"","tool_call_id":"c1",)"
                      R"("error":{"type":"timeout","message":"too slow"}})"})});
  EXPECT_EQ(Messages(result).at(1), ResultOf("c1", R"("Error: too slow")"));
}

TEST(InspectTest, EachSampleIsASession) {
  const std::string sample = Sample({Said("user", "fix")});
  const ReadResult result = ReadSamples({sample, "{}", sample});
  ASSERT_EQ(result.transcripts.size(), 2);
  EXPECT_EQ(result.transcripts[0].name, "#1");
  EXPECT_EQ(result.transcripts[1].name, "#3");
  EXPECT_EQ(TextOf(result.issues), "2 a sample without messages: skipped");
}

TEST(InspectTest, APictureInAResultIsLeftOut) {
  const ReadResult result =
      ReadSamples({Sample({kCall,
                           R"({"role":"tool","tool_call_id":"c1",)"
                           R"("content":[{"type":"image","image":"x"}]})",
                           R"({"role":"critic","content":"x"})"})});
  EXPECT_EQ(Messages(result).at(1), ResultOf("c1", R"("")"));
  EXPECT_EQ(TextOf(result.issues),
            "1 1 blocks that are neither text nor a picture of the user: left "
            "out; 1 not a message of Inspect: skipped");
}

TEST(InspectTest, ManyReferencesToALargeAttachmentAreBounded) {
  const std::string text(std::size_t{1} << 16, 'x');
  const std::vector<std::string> messages(
      100, R"({"role":"user","content":"attachment://a1"})");
  const ReadResult result = ReadSamples(
      {Sample(messages, absl::StrCat(R"({"a1":")", text, R"("})"))});
  ASSERT_EQ(Messages(result).size(), 100);
  // Sixty-four times the file is a little more than that of the text.
  EXPECT_EQ(Messages(result)[63], Said("user", text));
  EXPECT_EQ(Messages(result)[99], Said("user", "attachment://a1"));
  EXPECT_FALSE(result.issues.empty());
}

}  // namespace
}  // namespace clerestory
