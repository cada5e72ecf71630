// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of other systems reported about formats that have no builders
// among the test support. The number of a test is that of the report; what
// failed there is said above it.

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/served_views.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kSignature =
    R"("thoughtSignature":"CswBAVSoXO5+\/w==")";

std::string GeminiCall(absl::string_view id, absl::string_view more = "") {
  return absl::StrCat(R"({"role":"model","parts":[{"functionCall":{"id":")", id,
                      R"(","name":"r","args":{}})", more.empty() ? "" : ",",
                      more, "}]}");
}

std::string GeminiResult(absl::string_view id) {
  return absl::StrCat(R"({"role":"user","parts":[{"functionResponse":{"id":")",
                      id, R"(","name":"r","response":{"output":)",
                      LiteralOf(100), "}}}]}");
}

std::string BedrockCall(absl::string_view id) {
  return absl::StrCat(
      R"({"role":"assistant","content":[{"toolUse":{"toolUseId":")", id,
      R"(","name":"r","input":{}}}]})");
}

std::string BedrockResult(absl::string_view id, absl::string_view content) {
  return absl::StrCat(
      R"({"role":"user","content":[{"toolResult":{"toolUseId":")", id,
      R"(","content":)", content, "}}]}");
}

std::string ResponsesCall(absl::string_view id) {
  return absl::StrCat(R"({"type":"function_call","call_id":")", id,
                      R"(","name":"r","arguments":"{}"})");
}

std::string ResponsesResult(absl::string_view id) {
  return absl::StrCat(R"({"type":"function_call_output","call_id":")", id,
                      R"(","output":)", LiteralOf(100), "}");
}

// strands-agents/harness-sdk#1749: after a trim the history began with a call
// of the model, which Gemini refuses with 400.
TEST(ReportTest, N17_AGeminiViewBeginsWithTheUser) {
  ScriptedSession s(Format::kGemini);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.errors = ErrorRule::kDrop;
  const std::string first = R"({"role":"user","parts":[{"text":"begin"}]})";
  s.Append(first);
  for (int i = 0; i < 6; ++i) {
    const std::string id = absl::StrCat("g", i);
    s.Append(GeminiCall(id));
    s.Append(GeminiResult(id));
    s.Serve();
    ASSERT_FALSE(s.view().empty());
    EXPECT_EQ(s.view().front(), first);
  }
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
}

// google-gemini/gemini-cli#28607: the signature beside a call was left out.
TEST(ReportTest, N36_AThoughtSignatureStaysBesideItsCall) {
  ScriptedSession s(Format::kGemini);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 1;
  s.policy.errors = ErrorRule::kDrop;
  for (int i = 0; i < 5; ++i) {
    const std::string id = absl::StrCat("g", i);
    s.Append(GeminiCall(id, kSignature));
    s.Append(GeminiResult(id));
  }
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(CountOf(std::string(kSignature), s.view()), 5U);
  EXPECT_EQ(s.view()[0], HistoryOf(s)[0]);
}

// Martian-Engineering/lossless-claw#606: Bedrock refuses a result with no
// content.
TEST(ReportTest, N60_AMaskedBedrockResultHasContent) {
  ScriptedSession s(Format::kBedrockConverse);
  s.policy.mode = Mode::kEveryTurn;
  s.Append(BedrockCall("empty"));
  s.Append(BedrockResult("empty", "[]"));
  for (int i = 0; i < 5; ++i) {
    const std::string id = absl::StrCat("b", i);
    s.Append(BedrockCall(id));
    s.Append(
        BedrockResult(id, absl::StrCat(R"([{"text":)", LiteralOf(100), "}]")));
  }
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(1, 2));
  EXPECT_EQ(s.view()[1], HistoryOf(s)[1]);
  EXPECT_THAT(s.view()[3], HasSubstr(R"("content":[{"text":"[masked]"}])"));
}

// QwenLM/qwen-code#8162, as it is with reasoning items: each must stay before
// the call that it belongs to.
TEST(ReportTest, N31_AReasoningItemStaysBeforeItsCall) {
  const std::string reasoning =
      R"({"type":"reasoning","id":"rs_1","summary":[],)"
      R"("encrypted_content":"gAAAAABo+\/w=="})";
  ScriptedSession s(Format::kOpenaiResponses);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 1;
  s.policy.errors = ErrorRule::kDrop;
  for (int i = 0; i < 5; ++i) {
    const std::string id = absl::StrCat("call_", i);
    s.Append(reasoning);
    s.Append(ResponsesCall(id));
    s.Append(ResponsesResult(id));
  }
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(s.view()[3 * i], reasoning);
    EXPECT_EQ(s.view()[3 * i + 1], HistoryOf(s)[3 * i + 1]);
  }
}

}  // namespace
}  // namespace clerestory
