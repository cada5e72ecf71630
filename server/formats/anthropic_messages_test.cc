// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/anthropic_messages.h"

#include <cstddef>
#include <cstdint>
#include <string>

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

// What masking puts in place of the content of `result`.
std::string MaskedContent(absl::string_view message, const ParsedResult& result,
                          absl::string_view placeholder) {
  const std::vector<Replacement> replacements =
      AnthropicMessages().Mask(message, result, placeholder);
  EXPECT_EQ(replacements.size(), 1U);
  EXPECT_EQ(replacements.at(0).at, result.content);
  return replacements.at(0).value;
}

ParsedMessage Parse(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed =
      AnthropicMessages().Parse(message, counter);
  EXPECT_THAT(parsed, IsOk()) << message;
  return parsed.ok() ? *parsed : ParsedMessage();
}

std::string ErrorOf(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed =
      AnthropicMessages().Parse(message, counter);
  EXPECT_THAT(parsed, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kMessageInvalid))
      << message;
  return std::string(parsed.status().message());
}

std::string Message(absl::string_view role, absl::string_view content) {
  return absl::StrCat(R"({"role":")", role, R"(","content":)", content, "}");
}

std::string User(absl::string_view blocks) {
  return Message("user", absl::StrCat("[", blocks, "]"));
}

std::string Assistant(absl::string_view blocks) {
  return Message("assistant", absl::StrCat("[", blocks, "]"));
}

std::string ResultOf(absl::string_view content) {
  return absl::StrCat(R"({"type":"tool_result","tool_use_id":"t","content":)",
                      content, "}");
}

// The only result of a message that has one with `content`.
ParsedResult ParseResult(absl::string_view content) {
  const ParsedMessage parsed = Parse(User(ResultOf(content)));
  EXPECT_EQ(parsed.results.size(), 1U);
  return parsed.results.at(0);
}

std::string At(absl::string_view message, const ByteSpan& span) {
  return std::string(message.substr(span.offset, span.size));
}

// --- who speaks, and text --------------------------------------------------

TEST(AnthropicMessagesTest, StringContentIsTextOfWhoSpeaks) {
  const ParsedMessage user = Parse(Message("user", R"("héy\n")"));
  EXPECT_EQ(user.role, Role::kUser);
  EXPECT_EQ(user.tokens, (StageTokens{.user = 6'000}));
  const ParsedMessage assistant = Parse(Message("assistant", R"("ok")"));
  EXPECT_EQ(assistant.role, Role::kAssistant);
  EXPECT_EQ(assistant.tokens, (StageTokens{.assistant = 2'000}));
  const ParsedMessage system = Parse(Message("system", R"("ok")"));
  EXPECT_EQ(system.role, Role::kSystem);
  EXPECT_EQ(system.tokens, (StageTokens{.user = 2'000}));
  EXPECT_EQ(Parse(User("")).tokens, StageTokens());
}

TEST(AnthropicMessagesTest, TextBlocksAreTheSameAsAString) {
  const ParsedMessage parsed = Parse(
      Assistant(R"({"type":"text","text":"ab"},{"text":"c","type":"text"})"));
  EXPECT_EQ(parsed.tokens, (StageTokens{.assistant = 3'000}));
  EXPECT_FALSE(parsed.has_thinking);
}

TEST(AnthropicMessagesTest, NamesAreReadHoweverTheyAreSpelled) {
  const ParsedMessage parsed = Parse(
      "\n{ \"content\" : [ {\"\\u0074ype\":\"te\\u0078t\", \"text\":\"ab\"} ] ,"
      " \"r\\u006fle\" : \"\\u0075ser\" }\n");
  EXPECT_EQ(parsed.role, Role::kUser);
  EXPECT_EQ(parsed.tokens.user, 2'000);
}

TEST(AnthropicMessagesTest, ThinkingIsFoundAndCounted) {
  const ParsedMessage thinking = Parse(
      Assistant(R"({"type":"thinking","thinking":"hm","signature":"EqQB"},)"
                R"({"type":"text","text":"a"})"));
  EXPECT_TRUE(thinking.has_thinking);
  EXPECT_EQ(thinking.tokens, (StageTokens{.assistant = 3'000}));
  // Left out by the provider, but signed.
  EXPECT_TRUE(
      Parse(Assistant(R"({"type":"thinking","thinking":"","signature":"E"})"))
          .has_thinking);
  const ParsedMessage redacted =
      Parse(Assistant(R"({"type":"redacted_thinking","data":"12345678"})"));
  EXPECT_TRUE(redacted.has_thinking);
  EXPECT_EQ(redacted.tokens, (StageTokens{.assistant = 2}));
}

TEST(AnthropicMessagesTest, EachBlockOfReasoningIsFoundWhereItStands) {
  const std::string message =
      Assistant(R"({"type":"thinking","thinking":"hm","signature":"E"},)"
                R"({"type":"text","text":"a"},)"
                R"({"type":"redacted_thinking","data":"12345678"})");
  const ParsedMessage parsed = Parse(message);
  ASSERT_EQ(parsed.reasoning.size(), 2U);
  const ParsedReasoning& thinking = parsed.reasoning[0];
  EXPECT_EQ(At(message, thinking.element),
            R"({"type":"thinking","thinking":"hm","signature":"E"})");
  EXPECT_TRUE(thinking.is_removable);
  EXPECT_EQ(thinking.token_count, 2'000);
  EXPECT_EQ(thinking.tokens_before, 0);
  const ParsedReasoning& redacted = parsed.reasoning[1];
  EXPECT_EQ(At(message, redacted.element),
            R"({"type":"redacted_thinking","data":"12345678"})");
  EXPECT_EQ(redacted.token_count, 2);
  EXPECT_EQ(redacted.tokens_before, 3'000);
  EXPECT_EQ(parsed.part_count, 3);
  // A message of nothing else goes with it.
  EXPECT_TRUE(Parse(Assistant(R"({"type":"redacted_thinking","data":"1"})"))
                  .reasoning.at(0)
                  .is_removable);
}

TEST(AnthropicMessagesTest, PicturesAndDocumentsCountByWhatTheyHold) {
  const ParsedMessage parsed = Parse(User(
      R"({"type":"image","source":{"type":"base64","data":"iVBO"}},)"
      R"({"type":"image","source":{"type":"url","url":"https://e.com/a"}},)"
      R"({"type":"image","source":{"type":"file","file_id":"f"}},)"
      R"({"type":"document","source":{"type":"base64","data":"JVBERi"}},)"
      R"({"type":"document","source":{"type":"text","data":"abc"}},)"
      R"({"type":"document","source":{"type":"content","content":[{}]}})"));
  EXPECT_EQ(parsed.image_count, 3);
  EXPECT_EQ(parsed.tokens.user,
            5'000'000 + 2 * 1'000'000 + 7'000'000 + 3'000 + 4);
}

// --- calls -----------------------------------------------------------------

TEST(AnthropicMessagesTest, FindsParallelCalls) {
  const std::string message = Assistant(
      R"({"type":"text","text":"look"},)"
      R"({"type":"tool_use","id":"toolu_1","name":"read","input": {"p":1.0} },)"
      R"({"type":"tool_use","id":"","name":"gr\u0065p","input":{}},)"
      R"({"type":"tool_use","id":"toolu_1","name":"ls","caller":{"a":1}})");
  const ParsedMessage parsed = Parse(message);
  ASSERT_EQ(parsed.calls.size(), 3U);
  EXPECT_EQ(parsed.calls[0].id, "toolu_1");
  EXPECT_EQ(parsed.calls[0].tool, "read");
  EXPECT_EQ(At(message, parsed.calls[0].arguments), R"({"p":1.0})");
  EXPECT_EQ(parsed.calls[1].id, "");
  EXPECT_EQ(parsed.calls[1].tool, "grep");
  EXPECT_EQ(At(message, parsed.calls[1].arguments), "{}");
  EXPECT_EQ(parsed.calls[2].id, "toolu_1");
  EXPECT_EQ(parsed.calls[2].arguments, ByteSpan());
  EXPECT_EQ(parsed.tokens,
            (StageTokens{.assistant = 4'000, .calls = 4 + 9 + 4 + 2 + 2}));
}

TEST(AnthropicMessagesTest, BlocksOfServerToolsAndUnknownOnesAreLeftAlone) {
  const std::string blocks =
      R"({"type":"server_tool_use","id":"srvtoolu_1","name":"web_search"},)"
      R"({"type":"web_search_tool_result","tool_use_id":"srvtoolu_1"},)"
      R"({"type":"mcp_tool_use","id":"m"},{"type":"mcp_tool_result"},)"
      R"({"type":"compaction","content":"x"},{"type":"made_up"},{},)"
      R"({"type":null},{"type":7},{"type":"TEXT","text":"a"})";
  const ParsedMessage parsed = Parse(Assistant(blocks));
  EXPECT_TRUE(parsed.calls.empty());
  EXPECT_TRUE(parsed.results.empty());
  EXPECT_FALSE(parsed.has_thinking);
  EXPECT_EQ(parsed.tokens.total(),
            static_cast<std::int64_t>(blocks.size()) - 9);  // Commas.
}

// --- results ---------------------------------------------------------------

TEST(AnthropicMessagesTest, FindsResultsInTheirOrder) {
  const std::string message =
      User(R"({"type":"tool_result","tool_use_id":"a","content":"one\ntwo"},)"
           R"({"content":[{"type":"text","text":"no"}],"is_error":true,)"
           R"("tool_use_id":"b","toolset_name":"x","type":"tool_result"},)"
           R"({"type":"text","text":"and now"})");
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.role, Role::kUser);
  ASSERT_EQ(parsed.results.size(), 2U);
  const ParsedResult& first = parsed.results[0];
  EXPECT_EQ(first.call_id, "a");
  EXPECT_EQ(At(message, first.content), R"("one\ntwo")");
  EXPECT_EQ(first.cache_mark, ByteSpan());
  EXPECT_FALSE(first.is_error);
  EXPECT_TRUE(first.maskable);
  EXPECT_EQ(first.image_count, 0);
  EXPECT_EQ(first.line_count, 2);
  EXPECT_EQ(first.token_count, 8'000);
  EXPECT_EQ(first.tokens_before, 0);
  const ParsedResult& second = parsed.results[1];
  EXPECT_EQ(second.call_id, "b");
  EXPECT_EQ(At(message, second.content), R"([{"type":"text","text":"no"}])");
  EXPECT_TRUE(second.is_error);
  EXPECT_TRUE(second.maskable);
  EXPECT_EQ(second.line_count, 1);
  EXPECT_EQ(second.token_count, 2'000);
  EXPECT_EQ(second.tokens_before, 8'000);
  EXPECT_EQ(parsed.tokens,
            (StageTokens{.user = 7'000, .observations = 10'000}));
}

TEST(AnthropicMessagesTest, TokensBeforeAResultAreOfAllThatStandsBeforeIt) {
  const ParsedMessage parsed = Parse(User(
      absl::StrCat(R"({"type":"text","text":"abc"},)", ResultOf(R"("d")"),
                   R"(,{"type":"text","text":"ef"},)", ResultOf(R"("g")"))));
  EXPECT_EQ(parsed.results[0].tokens_before, 3'000);
  EXPECT_EQ(parsed.results[1].tokens_before, 6'000);
}

TEST(AnthropicMessagesTest, OnlyTrueIsAnErrorFlag) {
  for (const absl::string_view flag : {"false", "null", "\"true\"", "1"}) {
    const ParsedMessage parsed = Parse(
        User(absl::StrCat(R"({"type":"tool_result","tool_use_id":"t",)",
                          R"("content":"Error: no","is_error":)", flag, "}")));
    EXPECT_FALSE(parsed.results[0].is_error) << flag;
  }
}

TEST(AnthropicMessagesTest, ResultsOfManyBlocksAreMeasuredAsOne) {
  const ParsedResult result = ParseResult(
      R"([{"type":"text","text":"a\nb"},)"
      R"({"type":"image","source":{"type":"base64","data":"iVBO"}},)"
      R"({"type":"image","source":{"type":"url","url":"https://e.com/a"}},)"
      R"({"type":"document","source":{"type":"text","data":"abc"}},)"
      R"({"type":"search_result","source":"s"},{"type":"text","text":"c"}])");
  EXPECT_TRUE(result.maskable);
  EXPECT_EQ(result.image_count, 2);
  EXPECT_EQ(result.document_count, 1);
  EXPECT_EQ(result.line_count, 3);
  EXPECT_EQ(result.token_count,
            4'000 + 5'000'000 + 1'000'000 + 3'000 + 1'000 + 37);
  // Pictures in results are no others.
  EXPECT_EQ(
      Parse(User(ResultOf(R"([{"type":"image","source":{}}])"))).image_count,
      0);
}

TEST(AnthropicMessagesTest, WhatHasNoLegalPlaceholderIsNotMaskable) {
  for (const absl::string_view content :
       {R"("")", "[]", "null", R"([{"type":"browser_state","tabs":[]}])",
        R"([{"type":"tool_reference","tool_name":"t"}])",
        R"([{"type":"text","text":"a"},{"type":"tool_reference"}])",
        R"([{"type":"browser_st\u0061te"},{"type":"text","text":"a"}])"}) {
    EXPECT_FALSE(ParseResult(content).maskable) << content;
  }
  const ParsedMessage absent =
      Parse(User(R"({"type":"tool_result","tool_use_id":"t"})"));
  ASSERT_EQ(absent.results.size(), 1U);
  EXPECT_FALSE(absent.results[0].maskable);
  EXPECT_EQ(absent.results[0].content, ByteSpan());
  EXPECT_EQ(absent.results[0].token_count, 0);
}

TEST(AnthropicMessagesTest, UnknownBlocksInResultsAreMaskable) {
  for (const absl::string_view content :
       {R"([{"type":"search_result","source":"s","title":"t","content":[]}])",
        R"([{"type":"made_up"}])", R"([{}])", R"(["text"])",
        R"([{"type":"text","text":""}])", R"(" ")", R"("\u0000")"}) {
    EXPECT_TRUE(ParseResult(content).maskable) << content;
  }
}

// --- what may be dropped ---------------------------------------------------

TEST(AnthropicMessagesTest, SaysWhatGoesWithACallAndAResult) {
  const std::string call =
      R"({"type":"tool_use","id":"a","name":"read","input":{}})";
  const std::string message = Assistant(
      absl::StrCat(R"({"type":"text","text":"ab"}, )", call, " ,", call));
  const ParsedMessage calls = Parse(message);
  EXPECT_EQ(calls.part_count, 3);
  ASSERT_EQ(calls.calls.size(), 2U);
  EXPECT_EQ(At(message, calls.calls[0].element), call);
  EXPECT_TRUE(calls.calls[0].is_removable);
  EXPECT_EQ(calls.calls[0].token_count, 6);
  EXPECT_EQ(calls.calls[0].tokens_before, 2'000);
  EXPECT_EQ(calls.calls[1].tokens_before, 2'006);
  const std::string results = User(ResultOf(R"("abc")"));
  const ParsedMessage parsed = Parse(results);
  EXPECT_EQ(parsed.part_count, 1);
  EXPECT_EQ(At(results, parsed.results.at(0).element), ResultOf(R"("abc")"));
  EXPECT_TRUE(parsed.results[0].is_removable);
  EXPECT_EQ(parsed.results[0].attachments, ByteSpan());
  EXPECT_EQ(parsed.results[0].tool, "");
}

TEST(AnthropicMessagesTest, TextIsOnePartUnlessItIsEmpty) {
  EXPECT_EQ(Parse(Message("user", R"("a")")).part_count, 1);
  EXPECT_EQ(Parse(Message("user", R"("")")).part_count, 0);
  EXPECT_EQ(Parse(User("")).part_count, 0);
}

TEST(AnthropicMessagesTest, WhatIsMarkedOrMustBeFoundAgainStays) {
  for (const absl::string_view field :
       {R"("cache_control":{"type":"ephemeral"})",
        R"("caller":{"type":"code_execution_20260120","tool_id":"s"})"}) {
    EXPECT_FALSE(
        Parse(Assistant(absl::StrCat(
                  R"({"type":"tool_use","id":"a","name":"b",)", field, "}")))
            .calls.at(0)
            .is_removable)
        << field;
    EXPECT_FALSE(
        Parse(User(absl::StrCat(R"({"type":"tool_result","tool_use_id":"a",)",
                                field, "}")))
            .results.at(0)
            .is_removable)
        << field;
  }
  for (const absl::string_view content :
       {R"([{"type":"text","text":"a","cache_control":{"ttl":"1h"}}])",
        R"([{"type":"tool_reference","tool_name":"t"}])"}) {
    EXPECT_FALSE(ParseResult(content).is_removable) << content;
  }
  EXPECT_TRUE(Parse(Assistant(R"({"type":"tool_use","id":"a","name":"b",)"
                              R"("caller":{"type":"direct"}})"))
                  .calls.at(0)
                  .is_removable);
}

// --- cache marks -----------------------------------------------------------

TEST(AnthropicMessagesTest, AMarkOnTheBlockStandsOutsideItsContent) {
  const std::string message =
      User(R"({"type":"tool_result","tool_use_id":"t","content":"abc",)"
           R"("cache_control":{"type":"ephemeral"}})");
  const ParsedResult result = Parse(message).results.at(0);
  EXPECT_EQ(result.cache_mark, ByteSpan());
  EXPECT_EQ(At(message, result.content), R"("abc")");
  EXPECT_EQ(MaskedContent(message, result, "[m]"), R"("[m]")");
}

TEST(AnthropicMessagesTest, AMarkInsideTheContentIsCarriedOn) {
  const std::string message = User(
      ResultOf(R"([{"type":"text","text":"a"},{"type":"text","text":"b",)"
               R"("cache_control" : {"ttl":"1h",  "type":"ephemeral"}}])"));
  const ParsedResult result = Parse(message).results.at(0);
  EXPECT_EQ(At(message, result.cache_mark),
            R"({"ttl":"1h",  "type":"ephemeral"})");
  const std::string masked = MaskedContent(message, result, "[\"m\"]");
  EXPECT_EQ(masked, R"([{"type":"text","text":"[\"m\"]","cache_control":)"
                    R"({"ttl":"1h",  "type":"ephemeral"}}])");
  // Masked again it would be the same.
  const std::string again =
      Splice(message, {{.at = result.content, .value = masked}});
  const ParsedResult placeholder = Parse(again).results.at(0);
  EXPECT_EQ(MaskedContent(again, placeholder, "[\"m\"]"), masked);
}

TEST(AnthropicMessagesTest, OfSeveralMarksTheLastIsCarriedOn) {
  const std::string message = User(
      ResultOf(R"([{"type":"text","text":"a","cache_control":{"ttl":"1h"}},)"
               R"({"type":"image","source":{},"cache_control":{"ttl":"5m"}},)"
               R"({"type":"text","text":"b","cache_control":null}])"));
  EXPECT_EQ(At(message, Parse(message).results.at(0).cache_mark),
            R"({"ttl":"5m"})");
}

TEST(AnthropicMessagesTest, APlaceholderIsQuotedAsJson) {
  const std::string message = User(ResultOf(R"("abc")"));
  EXPECT_EQ(
      MaskedContent(message, Parse(message).results.at(0), "\"a\"\\\n\x01é"),
      R"("\"a\"\\\n\u0001é")");
}

// --- what is refused -------------------------------------------------------

TEST(AnthropicMessagesTest, SaysWhatIsWrongAndWhere) {
  const std::string long_id(kCallIdBytesMax + 1, 'x');
  const struct {
    std::string message;
    absl::string_view error;
  } kCases[] = {
      {"", "empty, expected a JSON object"},
      {"hello", "expected a JSON object"},
      {"[]", "message: expected a JSON object"},
      {R"({"role":"user","content":"a)",
       "a string that is not closed at byte 25"},
      {R"({"role":"user","content":"\ud800"})",
       "a string with a bad escape or a lone surrogate at byte 25"},
      {R"({"role":"user","role":"user","content":""})",
       "a name that occurs twice in an object at byte 15"},
      {"{}", "role: expected user, assistant or system"},
      {R"({"role":null,"content":""})",
       "role: expected user, assistant or system"},
      {Message("tool", R"("a")"), "role: expected user, assistant or system"},
      {Message("User", R"("a")"), "role: expected user, assistant or system"},
      {R"({"role":"user"})", "content: expected a string or an array"},
      {Message("user", "null"), "content: expected a string or an array"},
      {Message("user", "{}"), "content: expected a string or an array"},
      {User(R"({},"text")"), "content[1]: expected an object"},
      {User("null"), "content[0]: expected an object"},
      {Assistant(R"({"type":"tool_use","name":"a","input":{}})"),
       "content[0].id: missing"},
      {Assistant(R"({},{"type":"tool_use","id":"a","input":{}})"),
       "content[1].name: missing"},
      {Assistant(R"({"type":"tool_use","id":7,"name":"a"})"),
       "content[0].id: expected a string"},
      {Assistant(R"({"type":"tool_use","id":"a","name":null})"),
       "content[0].name: expected a string"},
      {Assistant(absl::StrCat(R"({"type":"tool_use","id":")", long_id, "\"}")),
       "content[0].id: longer than 1024 bytes"},
      {Assistant(absl::StrCat(R"({"type":"tool_use","id":"a","name":")",
                              long_id, "\"}")),
       "content[0].name: longer than 1024 bytes"},
      {User(R"({"type":"tool_use","id":"a","name":"b","input":{}})"),
       "content[0]: tool_use in a message that is not the assistant's"},
      {User(R"({"type":"tool_result","content":"a"})"),
       "content[0].tool_use_id: missing"},
      {User(R"({"type":"tool_result","tool_use_id":[],"content":"a"})"),
       "content[0].tool_use_id: expected a string"},
      {Assistant(R"({"type":"tool_use","id":"a","name":"b","input":"{}"})"),
       "content[0].input: expected an object"},
      {User(ResultOf("7")),
       "content[0].content: expected a string or an array"},
      {User(ResultOf(R"({"type":"text","text":"a"})")),
       "content[0].content: expected a string or an array"},
      {Assistant(ResultOf(R"("a")")),
       "content[0]: tool_result in a message that is not the user's"},
      {Message("system", absl::StrCat("[", ResultOf(R"("a")"), "]")),
       "content[0]: tool_result in a message that is not the user's"},
  };
  for (const auto& test_case : kCases) {
    EXPECT_EQ(ErrorOf(test_case.message), test_case.error) << test_case.message;
  }
}

TEST(AnthropicMessagesTest, RefusesMessagesMadeToExhaustMemory) {
  std::string numbers(2 * kJsonValuesMax, '0');
  for (std::size_t i = 1; i < numbers.size(); i += 2) numbers[i] = ',';
  numbers.back() = ' ';
  EXPECT_EQ(ErrorOf(Message("user", absl::StrCat("[", numbers, "]"))),
            "more than 1000000 values at byte 2000020");
  EXPECT_EQ(ErrorOf(Message("user", std::string(100'000, '['))),
            "nested deeper than 512 levels at byte 536");
}

}  // namespace
}  // namespace clerestory
