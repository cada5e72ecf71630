// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/openai_chat.h"

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/model/message.h"
#include "tests/support/form_token_counter.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

// What masking puts in place of the content of `result`.
std::string MaskedContent(absl::string_view message, const ParsedResult& result,
                          absl::string_view placeholder) {
  const std::vector<Replacement> replacements =
      OpenaiChat().Mask(message, result, placeholder);
  EXPECT_EQ(replacements.size(), 1U);
  EXPECT_EQ(replacements.at(0).at, result.content);
  return replacements.at(0).value;
}

ParsedMessage Parse(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed =
      OpenaiChat().Parse(message, counter);
  EXPECT_THAT(parsed, IsOk()) << message;
  return parsed.ok() ? *parsed : ParsedMessage();
}

std::string ErrorOf(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed =
      OpenaiChat().Parse(message, counter);
  EXPECT_THAT(parsed, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kMessageInvalid))
      << message;
  return std::string(parsed.status().message());
}

std::string Message(absl::string_view role, absl::string_view content) {
  return absl::StrCat(R"({"role":")", role, R"(","content":)", content, "}");
}

std::string Calls(absl::string_view calls) {
  return absl::StrCat(R"({"role":"assistant","content":null,"tool_calls":)",
                      calls, "}");
}

std::string Tool(absl::string_view content) {
  return absl::StrCat(R"({"role":"tool","tool_call_id":"c","content":)",
                      content, "}");
}

std::string At(absl::string_view message, const ByteSpan& span) {
  return std::string(message.substr(span.offset, span.size));
}

// --- who speaks, and text --------------------------------------------------

TEST(OpenaiChatTest, KnowsEveryRole) {
  EXPECT_EQ(Parse(Message("system", R"("ab")")).role, Role::kSystem);
  EXPECT_EQ(Parse(Message("developer", R"("ab")")).role, Role::kSystem);
  EXPECT_EQ(Parse(Message("user", R"("ab")")).role, Role::kUser);
  EXPECT_EQ(Parse(Message("assistant", R"("ab")")).role, Role::kAssistant);
  EXPECT_EQ(Parse(Tool(R"("ab")")).role, Role::kTool);
  EXPECT_EQ(Parse(Message("function", R"("ab")")).role, Role::kTool);
}

TEST(OpenaiChatTest, ContentCountsForWhoSpeaks) {
  EXPECT_EQ(Parse(Message("developer", R"("ab")")).tokens,
            (StageTokens{.user = 2'000}));
  EXPECT_EQ(Parse(Message("user", R"("h\né")")).tokens,
            (StageTokens{.user = 5'000}));
  EXPECT_EQ(Parse(Message("assistant", R"("ab")")).tokens,
            (StageTokens{.assistant = 2'000}));
  EXPECT_EQ(Parse(Tool(R"("ab")")).tokens,
            (StageTokens{.observations = 2'000}));
}

TEST(OpenaiChatTest, PartsCountByWhatTheyAre) {
  const ParsedMessage parsed = Parse(Message(
      "user",
      R"([{"type":"text","text":"ab"},)"
      R"({"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}},)"
      R"({"type":"image_url","image_url":{"url":"https://e.com/a","detail":"low"}},)"
      R"({"type":"file","file":{"file_data":"data:application/pdf;base64,JVBE"}},)"
      R"({"type":"file","file":{"file_id":"f"}},{"type":"made_up"},{},)"
      R"({"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}])"));
  EXPECT_EQ(parsed.image_count, 2);
  EXPECT_EQ(parsed.part_count, 8);
  EXPECT_EQ(parsed.tokens.user,
            2'000 + 5'100'000 + 70 + 5'100'000 + 1'100'000 + 18 + 2 + 1);
  EXPECT_FALSE(parsed.has_thinking);
}

TEST(OpenaiChatTest, ContentMayBeNullOrAbsent) {
  EXPECT_EQ(Parse(Message("assistant", "null")).tokens, StageTokens());
  EXPECT_EQ(Parse(R"({"role":"assistant"})").tokens, StageTokens());
  EXPECT_EQ(Parse(Message("user", "[]")).tokens, StageTokens());
}

TEST(OpenaiChatTest, RefusalAndReturnedReasoningAreTheAssistants) {
  const ParsedMessage parsed =
      Parse(R"({"role":"assistant","content":"a","refusal":"bc",)"
            R"("reasoning_content":"def","audio":{"id":"x"}})");
  EXPECT_EQ(parsed.tokens, (StageTokens{.assistant = 6'000}));
  EXPECT_EQ(
      Parse(R"({"role":"assistant","content":"a","refusal":null})").tokens,
      (StageTokens{.assistant = 1'000}));
}

// --- calls -----------------------------------------------------------------

TEST(OpenaiChatTest, FindsParallelCallsOfEitherKind) {
  const std::string message = Calls(
      R"([{"id":"call_1","type":"function","function":)"
      R"({"name":"read","arguments":"{\"p\": 1.0}"},"extra_content":{"g":"s"}},)"
      R"({"id":"call_2","type":"custom","custom":{"name":"sh","input":"ls"}},)"
      R"({"id":"","function":{"n\u0061me":"r\u0065ad"}}])");
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.role, Role::kAssistant);
  ASSERT_EQ(parsed.calls.size(), 3U);
  EXPECT_EQ(parsed.calls[0].id, "call_1");
  EXPECT_EQ(parsed.calls[0].tool, "read");
  EXPECT_EQ(At(message, parsed.calls[0].arguments), R"("{\"p\": 1.0}")");
  EXPECT_EQ(parsed.calls[1].id, "call_2");
  EXPECT_EQ(parsed.calls[1].tool, "sh");
  EXPECT_EQ(At(message, parsed.calls[1].arguments), R"("ls")");
  EXPECT_EQ(parsed.calls[2].id, "");
  EXPECT_EQ(parsed.calls[2].tool, "read");
  EXPECT_EQ(parsed.calls[2].arguments, ByteSpan());
  // Names as they are, arguments as text.
  EXPECT_EQ(parsed.tokens, (StageTokens{.calls = 4 + 12'000 + 2 + 2'000 + 4}));
}

TEST(OpenaiChatTest, CallsMayBeNullOrNone) {
  EXPECT_TRUE(Parse(Calls("null")).calls.empty());
  EXPECT_TRUE(Parse(Calls("[]")).calls.empty());
}

TEST(OpenaiChatTest, FindsTheCallOfTheOldForm) {
  const std::string message =
      R"({"role":"assistant","content":null,)"
      R"("function_call":{"arguments":"{}","name":"read"}})";
  const ParsedMessage parsed = Parse(message);
  ASSERT_EQ(parsed.calls.size(), 1U);
  EXPECT_EQ(parsed.calls[0].id, "");
  EXPECT_EQ(parsed.calls[0].tool, "read");
  EXPECT_EQ(At(message, parsed.calls[0].arguments), R"("{}")");
  EXPECT_TRUE(
      Parse(R"({"role":"assistant","function_call":null})").calls.empty());
}

// --- results ---------------------------------------------------------------

TEST(OpenaiChatTest, FindsAResult) {
  const std::string message =
      R"({"content":"one\ntwo","tool_call_id":"call_1","role":"tool"})";
  const ParsedMessage parsed = Parse(message);
  ASSERT_EQ(parsed.results.size(), 1U);
  const ParsedResult& result = parsed.results[0];
  EXPECT_EQ(result.call_id, "call_1");
  EXPECT_EQ(At(message, result.content), R"("one\ntwo")");
  EXPECT_EQ(result.cache_mark, ByteSpan());
  EXPECT_FALSE(result.is_error);
  EXPECT_TRUE(result.maskable);
  EXPECT_EQ(result.image_count, 0);
  EXPECT_EQ(result.line_count, 2);
  EXPECT_EQ(result.token_count, 8'000);
  EXPECT_EQ(result.tokens_before, 0);
}

TEST(OpenaiChatTest, MeasuresAResultOfManyPartsAsOne) {
  const ParsedMessage parsed = Parse(
      Tool(R"([{"type":"text","text":"a\nb"},{"type":"text","text":"c"},)"
           R"({"type":"image_url","image_url":{"url":"https://e.com/a"}}])"));
  ASSERT_EQ(parsed.results.size(), 1U);
  EXPECT_EQ(parsed.results[0].line_count, 3);
  EXPECT_EQ(parsed.results[0].image_count, 1);
  EXPECT_EQ(parsed.results[0].token_count, 1'105'000);
  EXPECT_TRUE(parsed.results[0].maskable);
  // Pictures in results are no others.
  EXPECT_EQ(parsed.image_count, 0);
}

TEST(OpenaiChatTest, AResultOfTheOldFormHasNoId) {
  const std::string message =
      R"({"role":"function","name":"read","content":"text"})";
  const ParsedMessage parsed = Parse(message);
  ASSERT_EQ(parsed.results.size(), 1U);
  EXPECT_EQ(parsed.results[0].call_id, "");
  EXPECT_EQ(parsed.results[0].tool, "read");
  EXPECT_EQ(At(message, parsed.results[0].content), R"("text")");
  EXPECT_TRUE(parsed.results[0].maskable);
}

TEST(OpenaiChatTest, NothingIsNotMaskable) {
  for (const std::string& message :
       {Tool(R"("")"), Tool("[]"), Tool("null"),
        Tool(R"([{"type":"text","text":""}])"),
        std::string(R"({"role":"tool","tool_call_id":"c"})"),
        std::string(R"({"role":"function","name":"f","content":null})")}) {
    const ParsedMessage parsed = Parse(message);
    ASSERT_EQ(parsed.results.size(), 1U);
    EXPECT_FALSE(parsed.results[0].maskable) << message;
    EXPECT_EQ(parsed.results[0].token_count, 0) << message;
  }
  EXPECT_EQ(Parse(R"({"role":"tool","tool_call_id":"c"})").results[0].content,
            ByteSpan());
}

TEST(OpenaiChatTest, AMarkInsideTheContentIsCarriedOn) {
  const std::string message =
      Tool(R"([{"type":"text","text":"a","cache_control":{"ttl":"5m"}},)"
           R"({"type":"text","text":"b","cache_control": {"ttl" : "1h"} },)"
           R"({"type":"text","text":"c","cache_control":null}])");
  const ParsedResult result = Parse(message).results.at(0);
  EXPECT_EQ(At(message, result.cache_mark), R"({"ttl" : "1h"})");
  EXPECT_EQ(
      MaskedContent(message, result, "[\"m\"]"),
      R"([{"type":"text","text":"[\"m\"]","cache_control":{"ttl" : "1h"}}])");
}

TEST(OpenaiChatTest, WithoutAMarkThePlaceholderIsAString) {
  const std::string message = Tool(R"([{"type":"text","text":"a"}])");
  EXPECT_EQ(MaskedContent(message, Parse(message).results.at(0), "[m]"),
            R"("[m]")");
}

// --- what may be dropped ---------------------------------------------------

TEST(OpenaiChatTest, SaysWhatGoesWithACall) {
  const std::string call = R"({"id":"a","function":{"name":"read"}})";
  const std::string message =
      absl::StrCat(R"({"role":"assistant","content":"ab","tool_calls":[)", call,
                   ", ", call, "]}");
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.part_count, 3);
  ASSERT_EQ(parsed.calls.size(), 2U);
  EXPECT_EQ(At(message, parsed.calls[0].element), call);
  EXPECT_TRUE(parsed.calls[0].is_removable);
  EXPECT_EQ(parsed.calls[0].token_count, 4);
  EXPECT_EQ(parsed.calls[0].tokens_before, 2'000);
  EXPECT_EQ(parsed.calls[1].tokens_before, 2'004);
}

TEST(OpenaiChatTest, ASignedCallStaysAndIsThinking) {
  const ParsedMessage parsed =
      Parse(Calls(R"([{"id":"a","function":{"name":"f"},"extra_content":)"
                  R"({"google":{"thought_signature":"s"}}},)"
                  R"({"id":"b","function":{"name":"f"}}])"));
  EXPECT_TRUE(parsed.has_thinking);
  EXPECT_TRUE(parsed.reasoning.empty()) << "is bound to nothing";
  EXPECT_FALSE(parsed.calls.at(0).is_removable);
  EXPECT_TRUE(parsed.calls.at(1).is_removable);
  EXPECT_FALSE(
      Parse(Calls(R"([{"id":"b","function":{"name":"f"}}])")).has_thinking);
}

TEST(OpenaiChatTest, AResultGoesWithItsMessage) {
  const std::string message = Tool(R"("abc")");
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.part_count, 1);
  EXPECT_EQ(At(message, parsed.results.at(0).element), message);
  EXPECT_TRUE(parsed.results[0].is_removable);
  EXPECT_FALSE(Parse(Tool(R"([{"type":"text","text":"a","cache_control":{}}])"))
                   .results.at(0)
                   .is_removable);
}

TEST(OpenaiChatTest, ACallOfTheOldFormGoesWithItsMessageOrNotAtAll) {
  const std::string alone =
      R"({"role":"assistant","content":"","function_call":{"name":"read"}})";
  const ParsedMessage parsed = Parse(alone);
  EXPECT_EQ(parsed.part_count, 1);
  EXPECT_TRUE(parsed.calls.at(0).is_removable);
  EXPECT_EQ(At(alone, parsed.calls[0].element), alone);
  EXPECT_FALSE(
      Parse(
          R"({"role":"assistant","content":"a","function_call":{"name":"b"}})")
          .calls.at(0)
          .is_removable);
}

TEST(OpenaiChatTest, PartsOfAMessageAreCounted) {
  EXPECT_EQ(Parse(Message("user", R"("a")")).part_count, 1);
  EXPECT_EQ(Parse(Message("user", R"("")")).part_count, 0);
  EXPECT_EQ(Parse(Message("assistant", "null")).part_count, 0);
  EXPECT_EQ(Parse(R"({"role":"assistant","refusal":"no","audio":null,)"
                  R"("reasoning_content":"hm"})")
                .part_count,
            1);
  EXPECT_EQ(Parse(R"({"role":"assistant","audio":{"id":"x"}})").part_count, 1);
}

// --- what is refused -------------------------------------------------------

TEST(OpenaiChatTest, SaysWhatIsWrongAndWhere) {
  const std::string long_text(kCallIdBytesMax + 1, 'x');
  constexpr absl::string_view kRoles =
      "role: expected system, developer, user, assistant, tool or function";
  constexpr absl::string_view kContent =
      "content: expected a string, an array or null";
  const struct {
    std::string message;
    absl::string_view error;
  } kCases[] = {
      {"", "empty, expected a JSON object"},
      {"\"text\"", "expected a JSON object"},
      {"[]", "message: expected a JSON object"},
      {R"({"role":"user","content":"\udc00"})",
       "a string with a bad escape or a lone surrogate at byte 25"},
      {"{}", kRoles},
      {R"({"role":7})", kRoles},
      {Message("model", R"("a")"), kRoles},
      {Message("user", "7"), kContent},
      {Message("user", "{}"), kContent},
      {Tool("true"), kContent},
      {Message("user", R"(["text"])"), "content[0]: expected an object"},
      {Tool(R"([{},null])"), "content[1]: expected an object"},
      {Message("tool", R"("a")"), "tool_call_id: missing"},
      {R"({"role":"tool","tool_call_id":null,"content":"a"})",
       "tool_call_id: expected a string"},
      {absl::StrCat(R"({"role":"tool","tool_call_id":")", long_text, "\"}"),
       "tool_call_id: longer than 1024 bytes"},
      {Calls("{}"), "tool_calls: expected an array or null"},
      {Calls("\"\""), "tool_calls: expected an array or null"},
      {Calls("[7]"), "tool_calls[0]: expected an object"},
      {Calls(R"([{"function":{"name":"a"}}])"), "tool_calls[0].id: missing"},
      {Calls(R"([{"id":7,"function":{"name":"a"}}])"),
       "tool_calls[0].id: expected a string"},
      {Calls(R"([{"id":"a"}])"), "tool_calls[0].function.name: missing"},
      {Calls(
           R"([{"id":"a","function":{"name":"a"}},{"id":"b","function":{}}])"),
       "tool_calls[1].function.name: missing"},
      {Calls(R"([{"id":"a","custom":{"name":null}}])"),
       "tool_calls[0].custom.name: expected a string"},
      {Calls(absl::StrCat(R"([{"id":"a","function":{"name":")", long_text,
                          "\"}}]")),
       "tool_calls[0].function.name: longer than 1024 bytes"},
      {Calls(R"([{"id":"a","function":{"name":"a","arguments":{}}}])"),
       "tool_calls[0].function.arguments: expected a string"},
      {Calls(R"([{"id":"a","custom":{"name":"a","input":7}}])"),
       "tool_calls[0].custom.input: expected a string"},
      {R"({"role":"assistant","function_call":{"arguments":"{}"}})",
       "function_call.name: missing"},
      {R"({"role":"assistant","function_call":"read"})",
       "function_call: expected an object"},
      {R"({"role":"function","name":7,"content":"a"})",
       "name: expected a string"},
  };
  for (const auto& test_case : kCases) {
    EXPECT_EQ(ErrorOf(test_case.message), test_case.error) << test_case.message;
  }
}

}  // namespace
}  // namespace clerestory
