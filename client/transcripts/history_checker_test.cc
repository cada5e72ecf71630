// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/history_checker.h"

#include <string>
#include <vector>

#include "client/transcripts/transcript.h"
#include "gtest/gtest.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

std::string Fault(Format format, const std::vector<std::string>& messages) {
  Transcript transcript;
  transcript.format = format;
  for (const std::string& bytes : messages) {
    transcript.messages.emplace_back().bytes = bytes;
  }
  return FaultOf(transcript);
}

std::string Responses(const std::vector<std::string>& items) {
  return Fault(Format::kOpenaiResponses, items);
}

std::string Gemini(const std::vector<std::string>& contents) {
  return Fault(Format::kGemini, contents);
}

TEST(HistoryCheckerTest, KnowsWhatTheResponsesApiRefuses) {
  const std::string user = R"({"type":"message","role":"user","content":"a"})";
  const std::string call =
      R"({"type":"function_call","name":"f","arguments":"{}","call_id":"c"})";
  const std::string output =
      R"({"type":"function_call_output","call_id":"c","output":"x"})";
  const std::string reasoning = R"({"type":"reasoning","summary":[]})";
  EXPECT_EQ(Responses({user, reasoning, call, output, call, output}), "");
  EXPECT_EQ(Responses({user, reasoning, call}), "");
  EXPECT_EQ(Responses({user, call, user}), "call without result");
  EXPECT_EQ(Responses({user, output}), "message 1: orphan result");
  EXPECT_EQ(Responses({user, call, call}), "message 2: id twice");
  EXPECT_EQ(Responses({user, reasoning, user}),
            "message 2: reasoning without its item");
  EXPECT_EQ(Responses({user, reasoning}), "reasoning without its item");
  EXPECT_EQ(Responses({R"({"type":"ghost_snapshot"})"}),
            "message 0: type ghost_snapshot");
  EXPECT_EQ(
      Responses(
          {call,
           R"({"type":"function_call_output","call_id":"c","output":{}})"}),
      "message 1: output");
  EXPECT_EQ(
      Responses(
          {call,
           R"({"type":"custom_tool_call_output","call_id":"c","output":""})"}),
      "message 1: orphan result");
  EXPECT_EQ(
      Responses(
          {R"({"type":"function_call","name":"f","arguments":"","call_id":"c"})"}),
      "message 0: arguments");
}

TEST(HistoryCheckerTest, KnowsWhatGeminiRefuses) {
  const std::string user = R"({"role":"user","parts":[{"text":"a"}]})";
  const std::string model = R"({"role":"model","parts":[{"text":"a"}]})";
  const std::string calls =
      R"({"role":"model","parts":[)"
      R"({"functionCall":{"id":"1","name":"f","args":{}}},)"
      R"({"functionCall":{"id":"2","name":"f","args":{}}}]})";
  const std::string first =
      R"({"functionResponse":{"id":"1","name":"f","response":{}}})";
  const std::string second =
      R"({"functionResponse":{"id":"2","name":"f","response":{}}})";
  const auto answer = [](const std::string& parts) {
    return R"({"role":"user","parts":[)" + parts + "]}";
  };
  EXPECT_EQ(Gemini({user, calls, answer(first + "," + second), model}), "");
  EXPECT_EQ(Gemini({user, calls}), "");
  for (const std::string& wrong :
       {user, model, answer(first), answer(second + "," + first)}) {
    EXPECT_EQ(Gemini({user, calls, wrong}),
              "message 2: not the results of the calls");
  }
  EXPECT_EQ(Gemini({user, answer(first)}),
            "message 1: not the results of the calls");
  EXPECT_EQ(Gemini({user, model, calls}), "message 2: call behind no user");
  EXPECT_EQ(Gemini({R"({"role":"user","parts":[{"text":" "}]})"}),
            "message 0: blank text");
  EXPECT_EQ(Gemini({R"({"role":"user","parts":[]})"}), "message 0: no parts");
  EXPECT_EQ(Gemini({R"({"role":"user","parts":[{}]})"}),
            "message 0: a part of nothing");
}

}  // namespace
}  // namespace clerestory
