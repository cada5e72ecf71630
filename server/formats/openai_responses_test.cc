// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/openai_responses.h"

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
      OpenaiResponses().Parse(message, counter);
  EXPECT_THAT(parsed, IsOk()) << message;
  return parsed.ok() ? *parsed : ParsedMessage();
}

std::string ErrorOf(absl::string_view message) {
  const FormTokenCounter counter;
  const absl::StatusOr<ParsedMessage> parsed =
      OpenaiResponses().Parse(message, counter);
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
  return Splice(message, OpenaiResponses().Mask(message, result, "[m]"));
}

std::string Message(absl::string_view role, absl::string_view content) {
  return absl::StrCat(R"({"type":"message","role":")", role, R"(","content":)",
                      content, "}");
}

std::string Output(absl::string_view type, absl::string_view output) {
  return absl::StrCat(R"({"type":")", type, R"(","call_id":"c","output":)",
                      output, "}");
}

std::string Shell(absl::string_view entries) {
  return Output("shell_call_output", absl::StrCat("[", entries, "]"));
}

// --- who speaks, and text --------------------------------------------------

TEST(OpenaiResponsesTest, MessagesKnowEveryRoleAndNeedNoType) {
  EXPECT_EQ(Parse(Message("user", R"("ab")")).role, Role::kUser);
  EXPECT_EQ(Parse(Message("assistant", R"("ab")")).role, Role::kAssistant);
  EXPECT_EQ(Parse(Message("system", R"("ab")")).role, Role::kSystem);
  EXPECT_EQ(Parse(Message("developer", R"("ab")")).role, Role::kSystem);
  const ParsedMessage parsed = Parse(R"({"role":"user","content":"ab"})");
  EXPECT_EQ(parsed.role, Role::kUser);
  EXPECT_EQ(parsed.tokens, (StageTokens{.user = 2'000}));
  EXPECT_EQ(parsed.part_count, 1);
  EXPECT_EQ(Parse(Message("assistant", R"("ab")")).tokens,
            (StageTokens{.assistant = 2'000}));
}

TEST(OpenaiResponsesTest, PartsCountByWhatTheyAre) {
  const ParsedMessage parsed = Parse(Message(
      "user",
      R"([{"type":"input_text","text":"ab"},{"type":"output_text","text":"c"},)"
      R"({"type":"refusal","refusal":"no"},)"
      R"({"type":"input_image","image_url":"data:image/png;base64,iVBO"},)"
      R"({"type":"input_image","image_url":"https://e.com","detail":"low"},)"
      R"({"type":"input_image","file_id":"f","detail":"auto"},)"
      R"({"type":"input_file","file_data":"data:a/pdf;base64,JVBE"},)"
      R"({"type":"input_audio","input_audio":{"data":"UklG"}},)"
      R"({"type":"made_up"},{}])"));
  EXPECT_EQ(parsed.image_count, 3);
  EXPECT_EQ(parsed.part_count, 1);
  EXPECT_EQ(parsed.tokens.user,
            5'000 + 5'100'000 + 70 + 1'100'000 + 5'100'000 + 1 + 18 + 2);
}

TEST(OpenaiResponsesTest, ReasoningIsFoundAndCounted) {
  const ParsedMessage parsed = Parse(
      R"({"type":"reasoning","id":"rs_1","summary":)"
      R"([{"type":"summary_text","text":"ab"}],"content":)"
      R"([{"type":"reasoning_text","text":"c"}],"encrypted_content":"gAAA5678"})");
  EXPECT_EQ(parsed.role, Role::kAssistant);
  EXPECT_TRUE(parsed.has_thinking);
  EXPECT_EQ(parsed.tokens, (StageTokens{.assistant = 3'002}));
  EXPECT_TRUE(
      Parse(R"({"type":"reasoning","encrypted_content":"g"})").has_thinking);
  EXPECT_TRUE(Parse(R"({"type":"reasoning","id":"rs_1"})").has_thinking);
  EXPECT_FALSE(Parse(R"({"type":"reasoning","summary":[],"content":null,)"
                     R"("encrypted_content":null})")
                   .has_thinking);
}

TEST(OpenaiResponsesTest, ReasoningIsFoundAndStaysWithWhatFollowsIt) {
  const std::string item =
      R"({"type":"reasoning","id":"rs_1","encrypted_content":"gAAA5678"})";
  const ParsedMessage parsed = Parse(item);
  ASSERT_EQ(parsed.reasoning.size(), 1U);
  EXPECT_EQ(parsed.reasoning[0].element.size, item.size());
  EXPECT_FALSE(parsed.reasoning[0].is_removable);
  EXPECT_EQ(parsed.reasoning[0].token_count, 2);
  EXPECT_TRUE(Parse(R"({"type":"compaction","encrypted_content":"g"})")
                  .reasoning.empty());
}

TEST(OpenaiResponsesTest, ItemsThatTheModelOrTheServerMadeAreTheAssistants) {
  for (const absl::string_view type :
       {"mcp_call", "web_search_call", "code_interpreter_call",
        "file_search_call", "tool_search_call", "made_up_call",
        "mcp_list_tools", "mcp_approval_request", "program"}) {
    const std::string item =
        absl::StrCat(R"({"type":")", type, R"(","id":"x","output":"text"})");
    const ParsedMessage parsed = Parse(item);
    EXPECT_EQ(parsed.role, Role::kAssistant) << type;
    EXPECT_TRUE(parsed.calls.empty()) << type;
    EXPECT_FALSE(parsed.has_thinking) << type;
    EXPECT_EQ(parsed.tokens.assistant, static_cast<std::int64_t>(item.size()));
  }
}

TEST(OpenaiResponsesTest, OtherItemsArePassedOn) {
  const struct {
    absl::string_view type;
    Role role;
  } kCases[] = {{"additional_tools", Role::kSystem},
                {"configuration_update", Role::kSystem},
                {"mcp_approval_response", Role::kUser},
                {"item_reference", Role::kUser},
                {"made_up", Role::kUser}};
  for (const auto& test_case : kCases) {
    const std::string item =
        absl::StrCat(R"({"type":")", test_case.type, R"(","role":"x"})");
    EXPECT_EQ(Parse(item).role, test_case.role) << item;
    EXPECT_EQ(Parse(item).tokens,
              (StageTokens{.user = static_cast<std::int64_t>(item.size())}));
  }
  EXPECT_EQ(Parse(R"({"id":"msg_1"})").role, Role::kUser);
  const ParsedMessage search = Parse(R"({"type":"tool_search_output"})");
  EXPECT_EQ(search.role, Role::kTool);
  EXPECT_TRUE(search.results.empty());
  EXPECT_EQ(search.tokens, (StageTokens{.observations = 29}));
}

TEST(OpenaiResponsesTest, WhatIsEncryptedOrAPictureIsNoText) {
  const ParsedMessage compaction = Parse(
      R"({"type":"compaction","id":"cmp_1","encrypted_content":"12345678"})");
  EXPECT_EQ(compaction.role, Role::kAssistant);
  EXPECT_EQ(compaction.tokens, (StageTokens{.assistant = 2}));
  EXPECT_FALSE(compaction.has_thinking);
  const ParsedMessage picture =
      Parse(R"({"type":"image_generation_call","id":"i","result":"iVBO"})");
  EXPECT_EQ(picture.role, Role::kAssistant);
  EXPECT_EQ(picture.image_count, 1);
  EXPECT_EQ(picture.tokens, (StageTokens{.assistant = 5'100'000}));
}

// --- calls -----------------------------------------------------------------

TEST(OpenaiResponsesTest, FindsACall) {
  const std::string item =
      R"({"type":"function_call","id":"fc_1","call_id":"call_1",)"
      R"("name":"read","arguments": "{\"p\":1}" ,"status":"completed"})";
  const ParsedMessage parsed = Parse(item);
  EXPECT_EQ(parsed.role, Role::kAssistant);
  ASSERT_EQ(parsed.calls.size(), 1U);
  const ParsedCall& call = parsed.calls[0];
  EXPECT_EQ(call.id, "call_1");
  EXPECT_EQ(call.tool, "read");
  EXPECT_EQ(At(item, call.arguments), R"("{\"p\":1}")");
  EXPECT_EQ(At(item, call.element), item);
  EXPECT_TRUE(call.is_removable);
  EXPECT_EQ(call.token_count, 4 + 9'000);
  EXPECT_EQ(call.tokens_before, 0);
  EXPECT_EQ(parsed.part_count, 1);
  EXPECT_EQ(parsed.tokens, (StageTokens{.calls = 9'004}));
}

TEST(OpenaiResponsesTest, FindsCallsOfEveryKind) {
  const struct {
    absl::string_view members;
    absl::string_view tool;
    bool is_removable;
    std::int64_t token_count;
  } kCases[] = {
      {R"("type":"custom_tool_call","name":"sh","input":"ls")", "sh", true,
       2'002},
      {R"("type":"shell_call","action":{"commands":[]})", "shell", true, 20},
      {R"("type":"apply_patch_call","operation":{})", "apply_patch", true, 13},
      {R"("type":"local_shell_call","action":{})", "local_shell", false, 13},
      {R"("type":"computer_call","action":{})", "computer", false, 10},
  };
  for (const auto& test_case : kCases) {
    const ParsedMessage parsed =
        Parse(absl::StrCat(R"({"call_id":"",)", test_case.members, "}"));
    EXPECT_EQ(parsed.role, Role::kAssistant);
    ASSERT_EQ(parsed.calls.size(), 1U) << test_case.members;
    EXPECT_EQ(parsed.calls[0].id, "");
    EXPECT_EQ(parsed.calls[0].tool, test_case.tool);
    EXPECT_EQ(parsed.calls[0].arguments, ByteSpan());
    EXPECT_EQ(parsed.calls[0].is_removable, test_case.is_removable)
        << test_case.members;
    EXPECT_EQ(parsed.calls[0].token_count, test_case.token_count)
        << test_case.members;
  }
}

TEST(OpenaiResponsesTest, WhatCodeCalledStays) {
  constexpr absl::string_view kCaller =
      R"("caller":{"type":"program","caller_id":"p"}})";
  EXPECT_FALSE(Parse(absl::StrCat(R"({"type":"function_call","call_id":"c",)",
                                  R"("name":"f",)", kCaller))
                   .calls.at(0)
                   .is_removable);
  EXPECT_FALSE(
      Parse(absl::StrCat(R"({"type":"function_call_output","call_id":"c",)",
                         R"("output":"a",)", kCaller))
          .results.at(0)
          .is_removable);
}

// --- results ---------------------------------------------------------------

TEST(OpenaiResponsesTest, FindsAResult) {
  const std::string item = Output("function_call_output", R"("one\ntwo")");
  const ParsedMessage parsed = Parse(item);
  EXPECT_EQ(parsed.role, Role::kTool);
  EXPECT_EQ(parsed.part_count, 1);
  ASSERT_EQ(parsed.results.size(), 1U);
  const ParsedResult& result = parsed.results[0];
  EXPECT_EQ(result.call_id, "c");
  EXPECT_EQ(result.tool, "");
  EXPECT_EQ(At(item, result.content), R"("one\ntwo")");
  EXPECT_EQ(At(item, result.element), item);
  EXPECT_EQ(result.attachments, ByteSpan());
  EXPECT_FALSE(result.is_error);
  EXPECT_TRUE(result.maskable);
  EXPECT_TRUE(result.is_removable);
  EXPECT_EQ(result.line_count, 2);
  EXPECT_EQ(result.token_count, 8'000);
  EXPECT_EQ(parsed.tokens, (StageTokens{.observations = 8'000}));
  EXPECT_EQ(Masked(item), Output("function_call_output", R"("[m]")"));
}

TEST(OpenaiResponsesTest, AListOfPartsIsMaskedByAString) {
  const std::string item =
      Output("custom_tool_call_output",
             R"([{"type":"input_text","text":"a\nb"},{"type":"input_image",)"
             R"("image_url":"data:image/png;base64,iVBO"},)"
             R"({"type":"input_file","file_id":"f"}])");
  const ParsedMessage parsed = Parse(item);
  const ParsedResult& result = parsed.results.at(0);
  EXPECT_EQ(result.image_count, 1);
  EXPECT_EQ(result.document_count, 1);
  EXPECT_EQ(result.line_count, 2);
  EXPECT_EQ(result.token_count, 4'000 + 5'100'000 + 1'100'000);
  EXPECT_EQ(parsed.image_count, 0);
  EXPECT_EQ(Masked(item), Output("custom_tool_call_output", R"("[m]")"));
}

TEST(OpenaiResponsesTest, AResultOfALocalShellIsCalledByItsItemsId) {
  EXPECT_EQ(Parse(R"({"type":"local_shell_call_output","id":"i","output":"a"})")
                .results.at(0)
                .call_id,
            "i");
  const ParsedResult both =
      Parse(R"({"type":"local_shell_call_output","id":"i","call_id":"c",)"
            R"("output":"a"})")
          .results.at(0);
  EXPECT_EQ(both.call_id, "c");
  EXPECT_FALSE(both.is_removable);
  EXPECT_TRUE(both.maskable);
}

TEST(OpenaiResponsesTest, APatchMayHaveNoOutput) {
  const ParsedResult none =
      Parse(R"({"type":"apply_patch_call_output","call_id":"c",)"
            R"("status":"completed"})")
          .results.at(0);
  EXPECT_FALSE(none.maskable);
  EXPECT_FALSE(none.is_error);
  EXPECT_TRUE(none.is_removable);
  const std::string failed =
      R"({"type":"apply_patch_call_output","call_id":"c","status":"failed",)"
      R"("output":"no such file"})";
  EXPECT_TRUE(Parse(failed).results.at(0).is_error);
  EXPECT_TRUE(Parse(failed).results.at(0).maskable);
}

TEST(OpenaiResponsesTest, AShellKeepsItsShapeAndOutcomes) {
  const std::string item = Shell(
      R"({"stdout":"a\nb", "stderr":"c","outcome":{"type":"exit","exit_code":0}},)"
      R"( {"outcome" : {"type":"exit","exit_code":-0},"stderr":"d","stdout":"e"})");
  const ParsedResult result = Parse(item).results.at(0);
  EXPECT_FALSE(result.is_error);
  EXPECT_EQ(result.line_count, 5);
  EXPECT_EQ(result.token_count, 7'000);
  EXPECT_EQ(
      Masked(item),
      Shell(
          R"({"stdout":"[m]", "stderr":"","outcome":{"type":"exit","exit_code":0}},)"
          R"( {"outcome" : {"type":"exit","exit_code":-0},"stderr":"","stdout":""})"));
  EXPECT_EQ(Masked(Masked(item)), Masked(item));
  // The first text is not always the one that is replaced.
  EXPECT_EQ(Masked(Shell(R"({"stderr":"a"},{"stderr":"b","stdout":""})")),
            Shell(R"({"stderr":""},{"stderr":"","stdout":"[m]"})"));
}

TEST(OpenaiResponsesTest, AShellFailsByTimeOrByExitCode) {
  const auto is_error = [](absl::string_view outcome) {
    return Parse(Shell(absl::StrCat(R"({"stdout":"a","stderr":"","outcome":)",
                                    outcome, "}")))
        .results.at(0)
        .is_error;
  };
  EXPECT_FALSE(is_error(R"({"type":"exit","exit_code":0})"));
  EXPECT_FALSE(is_error(R"({"type":"exit"})"));
  EXPECT_TRUE(is_error(R"({"type":"exit","exit_code":2})"));
  EXPECT_TRUE(is_error(R"({"type":"timeout"})"));
}

TEST(OpenaiResponsesTest, WhatHasNoLegalPlaceholderIsNotMaskable) {
  for (const std::string& item :
       {Output("function_call_output", R"("")"),
        Output("function_call_output", "[]"), Shell(""), Shell("{}"),
        Shell(R"({"stderr":"a"})"), Shell(R"({"stdout":"","stderr":""})"),
        Output("computer_call_output",
               R"({"type":"computer_screenshot","image_url":"https://e.com"})"),
        Output("computer_call_output", "null")}) {
    EXPECT_FALSE(Parse(item).results.at(0).maskable) << item;
  }
  const ParsedResult screen =
      Parse(Output("computer_call_output",
                   R"({"type":"computer_screenshot","file_id":"f"})"))
          .results.at(0);
  EXPECT_EQ(screen.image_count, 1);
  EXPECT_EQ(screen.token_count, 1'100'000);
  EXPECT_FALSE(screen.is_removable);
  EXPECT_EQ(screen.content, ByteSpan());
}

// --- what is refused -------------------------------------------------------

TEST(OpenaiResponsesTest, SaysWhatIsWrongAndWhere) {
  const std::string long_id(kCallIdBytesMax + 1, 'x');
  constexpr absl::string_view kRoles =
      "role: expected user, assistant, system or developer";
  constexpr absl::string_view kContent =
      "content: expected a string or an array";
  constexpr absl::string_view kOutput = "output: expected a string or an array";
  const struct {
    std::string message;
    absl::string_view error;
  } kCases[] = {
      {"", "empty, expected a JSON object"},
      {"[]", "message: expected a JSON object"},
      {"{}", "type: missing"},
      {R"({"type":null,"id":7})", "type: missing"},
      {R"({"role":"tool","content":"a"})", kRoles},
      {R"({"type":"message","content":"a"})", kRoles},
      {Message("User", R"("a")"), kRoles},
      {R"({"role":"user"})", kContent},
      {Message("user", "7"), kContent},
      {Message("user", "null"), kContent},
      {Message("user", R"([{},"a"])"), "content[1]: expected an object"},
      {R"({"type":"reasoning","summary":7})",
       "summary: expected a string or an array"},
      {R"({"type":"reasoning","encrypted_content":7})",
       "encrypted_content: expected a string"},
      {R"({"type":"function_call","name":"a"})", "call_id: missing"},
      {R"({"type":"function_call","call_id":7,"name":"a"})",
       "call_id: expected a string"},
      {R"({"type":"function_call","call_id":"c"})", "name: missing"},
      {R"({"type":"custom_tool_call","call_id":"c"})", "name: missing"},
      {R"({"type":"shell_call","call_id":"c","name":7})",
       "name: expected a string"},
      {R"({"type":"function_call","call_id":"c","name":"a","arguments":{}})",
       "arguments: expected a string"},
      {R"({"type":"shell_call","call_id":"c","action":"ls"})",
       "action: expected an object"},
      {absl::StrCat(R"({"type":"function_call","call_id":")", long_id, "\"}"),
       "call_id: longer than 1024 bytes"},
      {R"({"type":"function_call_output","output":"a"})", "call_id: missing"},
      {R"({"type":"function_call_output","call_id":"c"})", kOutput},
      {Output("function_call_output", "null"), kOutput},
      {Output("custom_tool_call_output", "7"), kOutput},
      {Output("apply_patch_call_output", "{}"), kOutput},
      {Output("function_call_output", "[7]"), "output[0]: expected an object"},
      {R"({"type":"local_shell_call_output","output":"a"})", "id: missing"},
      {Output("shell_call_output", R"("a")"), "output: expected an array"},
      {Shell("{},7"), "output[1]: expected an object"},
      {Shell(R"({"stdout":7})"), "output[0].stdout: expected a string"},
      {Shell(R"({"stderr":[]})"), "output[0].stderr: expected a string"},
      {Output("computer_call_output", R"("a")"), "output: expected an object"},
  };
  for (const auto& test_case : kCases) {
    EXPECT_EQ(ErrorOf(test_case.message), test_case.error) << test_case.message;
  }
}

}  // namespace
}  // namespace clerestory
