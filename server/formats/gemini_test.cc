// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/gemini.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "tests/support/form_token_counter.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

ParsedMessage Parse(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed = Gemini().Parse(message, counter);
  EXPECT_THAT(parsed, IsOk()) << message;
  return parsed.ok() ? *parsed : ParsedMessage();
}

std::string ErrorOf(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed = Gemini().Parse(message, counter);
  EXPECT_THAT(parsed, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kMessageInvalid))
      << message;
  return std::string(parsed.status().message());
}

std::string At(absl::string_view message, const ByteSpan& span) {
  return std::string(message.substr(span.offset, span.size));
}

// `message` with its only result masked by "[m]".
std::string Masked(absl::string_view message) {
  const ParsedResult result = Parse(message).results.at(0);
  EXPECT_TRUE(result.maskable) << message;
  return Splice(message, Gemini().Mask(message, result, "[m]"));
}

std::string Content(absl::string_view role, absl::string_view parts) {
  return absl::StrCat(R"({"role":")", role, R"(","parts":[)", parts, "]}");
}

std::string Response(absl::string_view members) {
  return absl::StrCat(R"({"functionResponse":{"name":"read",)", members, "}}");
}

// --- who speaks, and text --------------------------------------------------

TEST(GeminiTest, KnowsEveryRole) {
  constexpr absl::string_view kText = R"({"text":"ab"})";
  EXPECT_EQ(Parse(Content("user", kText)).role, Role::kUser);
  EXPECT_EQ(Parse(Content("function", kText)).role, Role::kUser);
  EXPECT_EQ(Parse(R"({"parts":[{"text":"ab"}]})").role, Role::kUser);
  const ParsedMessage model = Parse(Content("model", kText));
  EXPECT_EQ(model.role, Role::kAssistant);
  EXPECT_EQ(model.tokens, (StageTokens{.assistant = 2'000}));
  EXPECT_EQ(model.part_count, 1);
  EXPECT_FALSE(model.has_thinking);
  EXPECT_TRUE(Parse(Content("model", R"({"text":"ab","thoughtSignature":"s"})"))
                  .reasoning.empty())
      << "is bound to nothing";
  EXPECT_EQ(Parse(R"({"role":"model"})").part_count, 0);
}

TEST(GeminiTest, ThoughtsAndSignaturesAreThinking) {
  for (const absl::string_view part :
       {R"({"text":"ab","thought":true})",
        R"({"text":"","thoughtSignature":"Cs"})",
        R"({"text":"","thought_signature":"Cs"})"}) {
    EXPECT_TRUE(Parse(Content("model", part)).has_thinking) << part;
  }
  for (const absl::string_view part :
       {R"({"text":"ab","thought":false})",
        R"({"text":"","thoughtSignature":""})",
        R"({"text":"","thoughtSignature":null})"}) {
    EXPECT_FALSE(Parse(Content("model", part)).has_thinking) << part;
  }
}

TEST(GeminiTest, PartsOfServerToolsAndUnknownOnesAreLeftAlone) {
  const std::string parts =
      R"({"executableCode":{"code":"1"}},{"codeExecutionResult":{}},)"
      R"({"toolCall":{"id":"t"}},{"toolResponse":{"id":"t"}},{},{"x":1})";
  const ParsedMessage parsed = Parse(Content("model", parts));
  EXPECT_TRUE(parsed.calls.empty());
  EXPECT_EQ(parsed.part_count, 6);
  EXPECT_EQ(parsed.tokens.assistant,
            static_cast<std::int64_t>(parts.size()) - 5);  // Commas.
}

TEST(GeminiTest, DataCountByWhatTheyAre) {
  const ParsedMessage parsed = Parse(Content(
      "user",
      R"({"inlineData":{"mimeType":"image/png","data":"iVBO"}},)"
      R"({"inline_data":{"mime_type":"image/png","data":"iVBO"},)"
      R"("media_resolution":{"level":"MEDIA_RESOLUTION_LOW"}},)"
      R"({"fileData":{"mimeType":"image/png","fileUri":"gs://a"},)"
      R"("mediaResolution":{"level":"MEDIA_RESOLUTION_ULTRA_HIGH"}},)"
      R"({"fileData":{"mimeType":"image/png","fileUri":"gs://a"}},)"
      R"({"inlineData":{"mimeType":"application/pdf","data":"JVBE"}},)"
      R"({"inlineData":{"mimeType":"text/plain","data":"12345678"}},)"
      R"({"inlineData":{"mimeType":"audio/wav","data":"UklG"}},)"
      R"({"file_data":{"mime_type":"video/mp4","file_uri":"gs://b"}})"));
  EXPECT_EQ(parsed.image_count, 4);
  EXPECT_EQ(parsed.tokens.user,
            5'200'000 + 280 + 2240 + 1'200'000 + 5'200'000 + 2 + 1 + 1);
}

// --- calls -----------------------------------------------------------------

TEST(GeminiTest, FindsParallelCallsInEitherCase) {
  const std::string first =
      R"({"functionCall":{"id":"c1","name":"read","args": {"p":1.0} }})";
  const std::string message =
      Content("model", absl::StrCat(R"({"text":"ab"},)", first,
                                    R"(,{"function_call":{"name":"ls"}})"));
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.part_count, 3);
  ASSERT_EQ(parsed.calls.size(), 2U);
  EXPECT_EQ(parsed.calls[0].id, "c1");
  EXPECT_EQ(parsed.calls[0].tool, "read");
  EXPECT_EQ(At(message, parsed.calls[0].arguments), R"({"p":1.0})");
  EXPECT_EQ(At(message, parsed.calls[0].element), first);
  EXPECT_TRUE(parsed.calls[0].is_removable);
  EXPECT_EQ(parsed.calls[0].token_count, 4 + 9);
  EXPECT_EQ(parsed.calls[0].tokens_before, 2'000);
  EXPECT_EQ(parsed.calls[1].id, "");
  EXPECT_EQ(parsed.calls[1].tool, "ls");
  EXPECT_EQ(parsed.calls[1].arguments, ByteSpan());
  EXPECT_EQ(parsed.calls[1].tokens_before, 2'013);
  EXPECT_EQ(parsed.tokens, (StageTokens{.assistant = 2'000, .calls = 15}));
}

TEST(GeminiTest, ASignedCallStays) {
  for (const absl::string_view name :
       {"thoughtSignature", "thought_signature"}) {
    const ParsedMessage parsed =
        Parse(Content("model", absl::StrCat(R"({"functionCall":{"name":"a"},")",
                                            name, R"(":"Cs"})")));
    EXPECT_FALSE(parsed.calls.at(0).is_removable);
    EXPECT_TRUE(parsed.has_thinking);
  }
}

// --- results ---------------------------------------------------------------

TEST(GeminiTest, FindsResultsInTheirOrder) {
  const std::string first =
      Response(R"("id":"c1","response":{"output":"a\nb"})");
  const std::string message = Content(
      "user", absl::StrCat(first, R"(,{"text":"ab"},{"function_response":)",
                           R"({"name":"ls","response":{"error":"no"}}})"));
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.part_count, 3);
  ASSERT_EQ(parsed.results.size(), 2U);
  const ParsedResult& result = parsed.results[0];
  EXPECT_EQ(result.call_id, "c1");
  EXPECT_EQ(result.tool, "read");
  EXPECT_EQ(At(message, result.content), R"({"output":"a\nb"})");
  EXPECT_EQ(At(message, result.element), first);
  EXPECT_EQ(result.attachments, ByteSpan());
  EXPECT_FALSE(result.is_error);
  EXPECT_TRUE(result.maskable);
  EXPECT_TRUE(result.is_removable);
  EXPECT_EQ(result.line_count, 2);
  EXPECT_EQ(result.token_count, 4'000);
  EXPECT_EQ(parsed.results[1].call_id, "");
  EXPECT_EQ(parsed.results[1].tool, "ls");
  EXPECT_TRUE(parsed.results[1].is_error);
  EXPECT_EQ(parsed.results[1].tokens_before, 6'000);
  EXPECT_EQ(parsed.tokens,
            (StageTokens{.user = 2'000, .observations = 4'000 + 2'000}));
}

TEST(GeminiTest, OnlyAnErrorWithoutOutputIsAnError) {
  const auto is_error = [](absl::string_view response) {
    return Parse(Content("user",
                         Response(absl::StrCat(R"("response":)", response))))
        .results.at(0)
        .is_error;
  };
  EXPECT_TRUE(is_error(R"({"error":"no"})"));
  EXPECT_TRUE(is_error(R"({"error":{"code":1},"output":null})"));
  EXPECT_FALSE(is_error(R"({"error":"","output":"a"})"));
  EXPECT_FALSE(is_error(R"({"error":null})"));
  EXPECT_FALSE(is_error(R"({"result":"a"})"));
}

TEST(GeminiTest, AResponseIsMaskedByAnObject) {
  EXPECT_EQ(Masked(Content("user", Response(R"("response":{"result":[1,2]})"))),
            Content("user", Response(R"("response":{"output":"[m]"})")));
  EXPECT_EQ(Masked(Content("user", Response(R"("response":{"error":"long"})"))),
            Content("user", Response(R"("response":{"error":"[m]"})")));
}

TEST(GeminiTest, AttachmentsAreEmptiedWhereverTheyStand) {
  constexpr absl::string_view kParts =
      R"("parts":[{"inlineData":{"mimeType":"image/png","data":"iVBO"}},)"
      R"({"fileData":{"mimeType":"application/pdf","fileUri":"gs://a"}},)"
      R"({"inlineData":{"mimeType":"audio/wav","data":"UklG"}},{"x":1}])";
  const std::string behind = Content(
      "user", Response(absl::StrCat(R"("response":{"output":"a"},)", kParts)));
  const ParsedMessage parsed = Parse(behind);
  const ParsedResult& result = parsed.results.at(0);
  EXPECT_EQ(absl::StrCat(R"("parts":)", At(behind, result.attachments)),
            kParts);
  EXPECT_EQ(result.image_count, 1);
  EXPECT_EQ(result.document_count, 1);
  EXPECT_EQ(result.token_count, 1'000 + 5'200'000 + 1'200'000 + 1 + 7);
  EXPECT_EQ(parsed.image_count, 0);
  EXPECT_EQ(
      Masked(behind),
      Content("user", Response(R"("response":{"output":"[m]"},"parts":[])")));
  EXPECT_EQ(
      Masked(Content("user",
                     Response(absl::StrCat(kParts, R"(, "response":{})")))),
      Content("user", Response(R"("parts":[], "response":{"output":"[m]"})")));
  EXPECT_EQ(Masked(Masked(behind)), Masked(behind));
}

TEST(GeminiTest, NothingIsNotMaskable) {
  for (const absl::string_view members :
       {R"("id":"a")", R"("response":{})", R"("response":null)",
        R"("response":{},"parts":[])",
        R"("parts":[{"fileData":{"mimeType":"image/png"}}])"}) {
    EXPECT_FALSE(
        Parse(Content("user", Response(members))).results.at(0).maskable)
        << members;
  }
}

// --- what is refused -------------------------------------------------------

TEST(GeminiTest, SaysWhatIsWrongAndWhere) {
  const std::string long_id(kCallIdBytesMax + 1, 'x');
  constexpr absl::string_view kRoles = "role: expected user, model or function";
  const struct {
    std::string message;
    absl::string_view error;
  } kCases[] = {
      {"", "empty, expected a JSON object"},
      {"[]", "message: expected a JSON object"},
      {Content("assistant", ""), kRoles},
      {R"({"role":7})", kRoles},
      {R"({"role":"user","parts":"a"})", "parts: expected an array"},
      {Content("user", R"({},"a")"), "parts[1]: expected an object"},
      {Content("user", R"({"functionCall":{"name":"a"}})"),
       "parts[0].functionCall: in a message that is not the model's"},
      {Content("model", R"({"functionCall":{"id":"a"}})"),
       "parts[0].functionCall.name: missing"},
      {Content("model", R"({"function_call":{"id":7,"name":"a"}})"),
       "parts[0].function_call.id: expected a string"},
      {Content("model", R"({"functionCall":{"name":"a","args":"{}"}})"),
       "parts[0].functionCall.args: expected an object"},
      {Content("model", R"({"functionCall":"a"})"),
       "parts[0].functionCall.name: missing"},
      {Content("model",
               absl::StrCat(R"({"functionCall":{"id":")", long_id, R"("}})")),
       "parts[0].functionCall.id: longer than 1024 bytes"},
      {Content("model", Response(R"("response":{})")),
       "parts[0].functionResponse: in a message that is the model's"},
      {Content("user", R"({"functionResponse":{"response":{}}})"),
       "parts[0].functionResponse.name: missing"},
      {Content("user", Response(R"("response":"text")")),
       "parts[0].functionResponse.response: expected an object"},
      {Content("user", Response(R"("parts":{})")),
       "parts[0].functionResponse.parts: expected an array"},
      {Content("user", Response(R"("parts":[{},7])")),
       "parts[0].functionResponse.parts[1]: expected an object"},
  };
  for (const auto& test_case : kCases) {
    EXPECT_EQ(ErrorOf(test_case.message), test_case.error) << test_case.message;
  }
}

}  // namespace
}  // namespace clerestory
