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
      absl::StrCat(R"({"sessionId":"s","projectHash":"p","messages":[)", "\n",
                   absl::StrJoin(messages, ",\n"), "]}"),
      "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  const Transcript& transcript = result->transcripts.front();
  EXPECT_EQ(transcript.source, "gemini");
  EXPECT_EQ(transcript.format, Format::kGemini);
  EXPECT_EQ(FaultOf(transcript), "")
      << ::testing::PrintToString(BytesOf(transcript));
  return *std::move(result);
}

std::vector<std::string> Contents(const ReadResult& result) {
  return BytesOf(result.transcripts.front());
}

std::string Message(absl::string_view type, absl::string_view content,
                    absl::string_view more = "") {
  return absl::StrCat(R"({"id":"m","timestamp":"2026-01-02T03:04:05.678Z",)",
                      R"("type":")", type, R"(","content":)", content, more,
                      "}");
}

std::string Calling(absl::string_view content,
                    const std::vector<std::string>& calls) {
  return Message("gemini", content,
                 absl::StrCat(R"(,"thoughts":[{"subject":"t"}],)",
                              R"("model":"gemini-3","toolCalls":[)",
                              absl::StrJoin(calls, ","), "]"));
}

std::string Response(absl::string_view id, absl::string_view response) {
  return absl::StrCat(R"({"functionResponse": {"id":")", id,
                      R"(","name":"ls","response":)", response, "}}");
}

std::string Call(absl::string_view id, absl::string_view result) {
  return absl::StrCat(R"({"id":")", id, R"(","name":"ls","args":{"d": "."},)",
                      R"("result":)", result,
                      R"(,"timestamp":"2026-01-02T03:04:06Z",)",
                      R"("resultDisplay":"shown"})");
}

std::string Called(absl::string_view id) {
  return absl::StrCat(R"({"functionCall":{"id":")", id,
                      R"(","name":"ls","args":{"d": "."}}})");
}

std::string Says(absl::string_view role,
                 const std::vector<std::string>& parts) {
  return absl::StrCat(R"({"role":")", role, R"(","parts":[)",
                      absl::StrJoin(parts, ","), "]}");
}

const std::string& Task() {
  static const std::string task = Message("user", R"("fix \u00e9")");
  return task;
}

constexpr absl::string_view kTaskSent =
    R"({"role":"user","parts":[{"text":"fix \u00e9"}]})";

constexpr absl::string_view kOk = R"({"output": "ok"})";
constexpr absl::string_view kBad = R"({"error":"no"})";

TEST(GeminiTest, CallsAndResultsBecomeContentsOfTheModelAndTheUser) {
  const std::string a = Response("a", kOk);
  const std::string b = Response("b", kBad);
  const ReadResult result =
      Read({Task(),
            Calling(R"("look")", {Call("a", absl::StrCat("[", a, "]")),
                                  Call("b", absl::StrCat("[", b, "]"))}),
            Message("info", R"("Request cancelled.")"),
            Message("gemini", R"("done")", R"(,"model":"gemini-4")")});
  EXPECT_THAT(
      Contents(result),
      ElementsAre(
          kTaskSent,
          Says("model", {R"({"text":"look"})", Called("a"), Called("b")}),
          Says("user", {a, b}), Says("model", {R"({"text":"done"})"})));
  EXPECT_THAT(result.issues, IsEmpty());
  const std::vector<TranscriptMessage>& messages =
      result.transcripts.front().messages;
  EXPECT_EQ(messages.at(1).time, 1767323045678000);
  EXPECT_EQ(messages[1].model, "gemini-3");
  EXPECT_EQ(messages[2].time, 1767323046000000);
  EXPECT_EQ(messages[2].model, "");
  EXPECT_EQ(messages[3].model, "gemini-4");
}

TEST(GeminiTest, CallsThatNothingAnswersAreDropped) {
  const std::string a = Response("a", kOk);
  const ReadResult result = Read(
      {Task(),
       Calling(R"("")",
               {Call("x", "[]"), Call("a", a), Call("y", "null"),
                Call("z", absl::StrCat("[", Response("other", kOk), "]")),
                Call("v", absl::StrCat("[", Response("v", R"("text")"), "]"))}),
       Calling(R"("")", {Call("w", "[]")}), Task()});
  EXPECT_THAT(Contents(result),
              ElementsAre(kTaskSent, Says("model", {Called("a")}),
                          Says("user", {a}), kTaskSent));
  EXPECT_EQ(TextOf(result.issues),
            "3 call x has no result: dropped; 3 call y has no result: dropped; "
            "3 call z has no result: dropped; 3 call v has no result: dropped; "
            "4 call w has no result: dropped; "
            "4 a message without content: dropped");
}

TEST(GeminiTest, TheCallsOfTheLastMessageMayBeOpen) {
  const ReadResult result =
      Read({Task(), Calling(R"("")", {Call("a", "[]"), Call("b", "[]")})});
  EXPECT_THAT(
      Contents(result),
      ElementsAre(kTaskSent, Says("model", {Called("a"), Called("b")})));
  const ReadResult partly =
      Read({Task(), Calling(R"("")",
                            {Call("a", Response("a", kOk)), Call("b", "[]")})});
  EXPECT_EQ(TextOf(partly.issues), "3 call b has no result: dropped");
}

TEST(GeminiTest, PicturesFollowTheResults) {
  const std::string picture =
      R"({"inlineData":{"mimeType":"image/png","data":"aaaa"}})";
  const std::string a = Response("a", kOk);
  const std::string b = Response("b", kOk);
  const ReadResult result =
      Read({Task(), Calling(R"("")",
                            {Call("a", absl::StrCat("[", a, ",", picture, "]")),
                             Call("b", absl::StrCat("[", b, "]"))})});
  EXPECT_EQ(Contents(result).at(2), Says("user", {a, b, picture}));
}

TEST(GeminiTest, AnAnswerThatContinuesAnotherIsAPartOfIt) {
  const std::string a = Response("a", kOk);
  const ReadResult result = Read({Task(), Message("gemini", R"("one")"),
                                  Calling(R"("two")", {Call("a", a)})});
  EXPECT_THAT(Contents(result),
              ElementsAre(kTaskSent,
                          Says("model", {R"({"text":"one"})",
                                         R"({"text":"two"})", Called("a")}),
                          Says("user", {a})));
}

TEST(GeminiTest, ContentMayBeAListOfParts) {
  const ReadResult result =
      Read({Message("user",
                    R"(["a",{"text":" "},{"text":"b"},{"functionCall":{}}])"),
            Message("gemini", R"([{"text":"hm","thought":true},{"text":"c"}])"),
            Message("user", R"({"text":"d"})")});
  EXPECT_THAT(Contents(result),
              ElementsAre(Says("user", {R"({"text":"a"})", R"({"text":"b"})"}),
                          Says("model", {R"({"text":"c"})"}),
                          Says("user", {R"({"text":"d"})"})));
  EXPECT_EQ(TextOf(result.issues), "2 not a part that can be said: dropped");
}

TEST(GeminiTest, NothingAnswersBeforeItIsAsked) {
  const ReadResult result =
      Read({Calling(R"("hi")", {Call("a", Response("a", kOk))}),
            Message("user", R"(" ")"), Task()});
  EXPECT_THAT(Contents(result), ElementsAre(kTaskSent));
  EXPECT_EQ(TextOf(result.issues),
            "2 an answer before anything was asked: dropped; "
            "3 a message without content: dropped");
}

TEST(GeminiTest, TokensOfAnAnswerAreItsUsage) {
  const ReadResult result =
      Read({Message("user", R"("hi")"),
            Message("gemini", R"("said")",
                    R"(,"tokens":{"input":100,"output":7,"cached":40,)"
                    R"("thoughts":5,"tool":0,"total":112})")});
  const std::vector<TranscriptMessage>& messages =
      result.transcripts.front().messages;
  EXPECT_FALSE(messages[0].usage);
  ASSERT_TRUE(messages[1].usage);
  EXPECT_EQ(messages[1].usage->input_uncached, 60);
  EXPECT_EQ(messages[1].usage->cache_read, 40);
  EXPECT_EQ(messages[1].usage->output, 12);
  EXPECT_EQ(messages[1].usage->reasoning, 5);
}

}  // namespace
}  // namespace clerestory
