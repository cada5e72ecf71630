// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/bedrock_converse.h"

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
  const absl::StatusOr<ParsedMessage> parsed =
      BedrockConverse().Parse(message, counter);
  EXPECT_THAT(parsed, IsOk()) << message;
  return parsed.ok() ? *parsed : ParsedMessage();
}

std::string ErrorOf(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed =
      BedrockConverse().Parse(message, counter);
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
  return Splice(message, BedrockConverse().Mask(message, result, "[m]"));
}

std::string Message(absl::string_view role, absl::string_view blocks) {
  return absl::StrCat(R"({"role":")", role, R"(","content":[)", blocks, "]}");
}

std::string Use(absl::string_view members) {
  return absl::StrCat(R"({"toolUse":{"toolUseId":"t","name":"read")", members,
                      "}}");
}

std::string ResultOf(absl::string_view members) {
  return absl::StrCat(R"({"toolResult":{"toolUseId":"t")", members, "}}");
}

ParsedResult ParseResult(absl::string_view content) {
  return Parse(
             Message("user", ResultOf(absl::StrCat(R"(,"content":)", content))))
      .results.at(0);
}

// --- who speaks, and text --------------------------------------------------

TEST(BedrockConverseTest, KnowsEveryRole) {
  constexpr absl::string_view kText = R"({"text":"ab"})";
  EXPECT_EQ(Parse(Message("user", kText)).tokens, (StageTokens{.user = 2'000}));
  EXPECT_EQ(Parse(Message("system", kText)).role, Role::kSystem);
  const ParsedMessage assistant = Parse(Message("assistant", kText));
  EXPECT_EQ(assistant.role, Role::kAssistant);
  EXPECT_EQ(assistant.tokens, (StageTokens{.assistant = 2'000}));
  EXPECT_EQ(assistant.part_count, 1);
  EXPECT_FALSE(assistant.has_thinking);
}

TEST(BedrockConverseTest, ReasoningIsFoundAndCounted) {
  const ParsedMessage parsed = Parse(Message(
      "assistant",
      R"({"reasoningContent":{"reasoningText":{"text":"ab","signature":"s"}}},)"
      R"({"reasoningContent":{"redactedContent":"12345678"}})"));
  EXPECT_TRUE(parsed.has_thinking);
  EXPECT_EQ(parsed.tokens, (StageTokens{.assistant = 2'002}));
}

TEST(BedrockConverseTest, ReasoningMayBeLeftOutWhereSomethingIsLeft) {
  constexpr absl::string_view kThought =
      R"({"reasoningContent":{"redactedContent":"12345678"}})";
  const std::string message =
      Message("assistant", absl::StrCat(R"({"text":"ab"},)", kThought));
  const ParsedMessage parsed = Parse(message);
  ASSERT_EQ(parsed.reasoning.size(), 1U);
  EXPECT_EQ(At(message, parsed.reasoning[0].element), kThought);
  EXPECT_TRUE(parsed.reasoning[0].is_removable);
  EXPECT_EQ(parsed.reasoning[0].token_count, 2);
  EXPECT_EQ(parsed.reasoning[0].tokens_before, 2'000);
  // Roles take turns, so a message of nothing else has to stay.
  for (const absl::string_view rest :
       {"", R"(,{"cachePoint":{"type":"default"}})"}) {
    const ParsedMessage lone =
        Parse(Message("assistant", absl::StrCat(kThought, rest)));
    EXPECT_FALSE(lone.reasoning.at(0).is_removable) << rest;
  }
}

TEST(BedrockConverseTest, BlocksCountByWhatTheyAre) {
  const ParsedMessage parsed = Parse(Message(
      "user",
      R"({"image":{"format":"png","source":{"bytes":"iVBO"}}},)"
      R"({"image":{"format":"png","source":{"s3Location":{"uri":"s3://a"}}}},)"
      R"({"document":{"format":"pdf","name":"a","source":{"bytes":"JVBE"}}},)"
      R"({"document":{"format":"csv","name":"a","source":{"bytes":"YSxi1234"}}},)"
      R"({"document":{"format":"txt","name":"a","source":{"text":"abc"}}},)"
      R"({"document":{"name":"a","source":{"content":[{}]}}},)"
      R"({"video":{"format":"mp4","source":{"bytes":"AAAA"}}},)"
      R"({"audio":{"format":"wav","source":{"s3Location":{}}}},)"
      R"({"guardContent":{"image":{"source":{"bytes":"iVBO"}}}},)"
      R"({"guardContent":{"text":{"text":"ab"}}},)"
      R"({"cachePoint":{"type":"default"}},{"citationsContent":{}},{})"));
  EXPECT_EQ(parsed.image_count, 2);
  EXPECT_EQ(parsed.part_count, 13);
  EXPECT_EQ(parsed.tokens.user, 5'000'000 + 1'000'000 + 5'000'000 + 2 + 3'000 +
                                    4 + 1 + 1 + 5'002'000 + 0 + 23 + 2);
}

// --- calls -----------------------------------------------------------------

TEST(BedrockConverseTest, FindsCalls) {
  const std::string first = Use(R"(,"input": {"p":1.0} )");
  const std::string message = Message(
      "assistant", absl::StrCat(R"({"text":"ab"},)", first, ",", Use(""),
                                R"(,{"cachePoint":{"type":"default"}})"));
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.part_count, 4);
  ASSERT_EQ(parsed.calls.size(), 2U);
  EXPECT_EQ(parsed.calls[0].id, "t");
  EXPECT_EQ(parsed.calls[0].tool, "read");
  EXPECT_EQ(At(message, parsed.calls[0].arguments), R"({"p":1.0})");
  EXPECT_EQ(At(message, parsed.calls[0].element), first);
  EXPECT_TRUE(parsed.calls[0].is_removable);
  EXPECT_EQ(parsed.calls[0].token_count, 13);
  EXPECT_EQ(parsed.calls[0].tokens_before, 2'000);
  EXPECT_EQ(parsed.calls[1].arguments, ByteSpan());
  EXPECT_EQ(parsed.calls[1].tokens_before, 2'013);
  EXPECT_EQ(parsed.tokens, (StageTokens{.assistant = 2'000, .calls = 17}));
}

TEST(BedrockConverseTest, ToolsOfTheServerAreLeftAlone) {
  const ParsedMessage parsed = Parse(Message(
      "assistant",
      absl::StrCat(Use(R"(,"type":"server_tool_use")"), ",",
                   ResultOf(R"(,"content":[{"text":"a"}],"type":"x")"))));
  EXPECT_TRUE(parsed.calls.empty());
  EXPECT_TRUE(parsed.results.empty());
  EXPECT_EQ(parsed.part_count, 2);
}

// --- results ---------------------------------------------------------------

TEST(BedrockConverseTest, FindsResultsInTheirOrder) {
  const std::string first = ResultOf(R"(,"content": [{"text":"a\nb"}] )");
  const std::string message =
      Message("user", absl::StrCat(first, R"(,{"text":"ab"},)",
                                   ResultOf(R"(,"status":"error","content":)"
                                            R"([{"text":"no"}])")));
  const ParsedMessage parsed = Parse(message);
  EXPECT_EQ(parsed.part_count, 3);
  ASSERT_EQ(parsed.results.size(), 2U);
  const ParsedResult& result = parsed.results[0];
  EXPECT_EQ(result.call_id, "t");
  EXPECT_EQ(result.tool, "");
  EXPECT_EQ(At(message, result.content), R"([{"text":"a\nb"}])");
  EXPECT_EQ(At(message, result.element), first);
  EXPECT_FALSE(result.is_error);
  EXPECT_TRUE(result.maskable);
  EXPECT_TRUE(result.is_removable);
  EXPECT_EQ(result.line_count, 2);
  EXPECT_EQ(result.token_count, 4'000);
  EXPECT_TRUE(parsed.results[1].is_error);
  EXPECT_EQ(parsed.results[1].tokens_before, 6'000);
  EXPECT_EQ(parsed.tokens, (StageTokens{.user = 2'000, .observations = 6'000}));
}

TEST(BedrockConverseTest, ResultsOfManyBlocksAreMeasuredAsOne) {
  const ParsedResult result =
      ParseResult(R"([{"text":"a\nb"},{"json":{"a":1}},{"text":"c"},)"
                  R"({"image":{"format":"png","source":{"bytes":"iVBO"}}},)"
                  R"({"document":{"format":"txt","source":{"text":"abc"}}},)"
                  R"({"video":{"format":"mp4","source":{"bytes":"AAAA"}}},)"
                  R"({"searchResult":{}}])");
  EXPECT_EQ(result.image_count, 1);
  EXPECT_EQ(result.document_count, 1);
  EXPECT_EQ(result.line_count, 3);
  EXPECT_EQ(result.token_count, 5'000 + 16 + 5'000'000 + 3'000 + 1 + 19);
}

TEST(BedrockConverseTest, AResultIsMaskedByOneTextBlock) {
  const std::string message = Message(
      "user", absl::StrCat(ResultOf(R"(,"content":[{"text":"a"},{"json":{}}])"
                                    R"(,"status":"error")"),
                           R"(,{"cachePoint":{"type":"default"}})"));
  EXPECT_EQ(
      Masked(message),
      Message("user", absl::StrCat(ResultOf(R"(,"content":[{"text":"[m]"}])"
                                            R"(,"status":"error")"),
                                   R"(,{"cachePoint":{"type":"default"}})")));
  EXPECT_EQ(Masked(Masked(message)), Masked(message));
}

TEST(BedrockConverseTest, NothingIsNotMaskable) {
  EXPECT_FALSE(ParseResult("[]").maskable);
  EXPECT_FALSE(ParseResult("null").maskable);
  EXPECT_FALSE(Parse(Message("user", ResultOf(""))).results.at(0).maskable);
}

// --- what is refused -------------------------------------------------------

TEST(BedrockConverseTest, SaysWhatIsWrongAndWhere) {
  const std::string long_id(kCallIdBytesMax + 1, 'x');
  constexpr absl::string_view kRoles =
      "role: expected user, assistant or system";
  const struct {
    std::string message;
    absl::string_view error;
  } kCases[] = {
      {"", "empty, expected a JSON object"},
      {"[]", "message: expected a JSON object"},
      {"{}", kRoles},
      {Message("tool", ""), kRoles},
      {R"({"role":"user"})", "content: expected an array"},
      {R"({"role":"user","content":"a"})", "content: expected an array"},
      {Message("user", R"({},"a")"), "content[1]: expected an object"},
      {Message("user", Use("")),
       "content[0].toolUse: in a message that is not the assistant's"},
      {Message("assistant", R"({"toolUse":{"name":"a"}})"),
       "content[0].toolUse.toolUseId: missing"},
      {Message("assistant", R"({"toolUse":{"toolUseId":"a","name":7}})"),
       "content[0].toolUse.name: expected a string"},
      {Message("assistant", R"({"toolUse":"a"})"),
       "content[0].toolUse.toolUseId: missing"},
      {Message("assistant", Use(R"(,"input":"{}")")),
       "content[0].toolUse.input: expected an object"},
      {Message("assistant",
               absl::StrCat(R"({"toolUse":{"toolUseId":")", long_id, R"("}})")),
       "content[0].toolUse.toolUseId: longer than 1024 bytes"},
      {Message("assistant", ResultOf("")),
       "content[0].toolResult: in a message that is not the user's"},
      {Message("user", R"({"toolResult":{"content":[]}})"),
       "content[0].toolResult.toolUseId: missing"},
      {Message("user", ResultOf(R"(,"content":"a")")),
       "content[0].toolResult.content: expected an array"},
      {Message("user", ResultOf(R"(,"content":[{},7])")),
       "content[0].toolResult.content[1]: expected an object"},
  };
  for (const auto& test_case : kCases) {
    EXPECT_EQ(ErrorOf(test_case.message), test_case.error) << test_case.message;
  }
}

}  // namespace
}  // namespace clerestory
