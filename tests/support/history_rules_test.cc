// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// One wrong history for each rule of each provider, and right ones beside it.

#include "tests/support/history_rules.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "tests/support/messages.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::vector<std::string> history;
  std::string why;  // Part of the refusal; empty if it is accepted.
};

void CheckCases(Format format, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.history.back());
    const absl::Status status = CheckValidHistory(format, c.history);
    if (c.why.empty()) {
      EXPECT_THAT(status, IsOk());
    } else {
      EXPECT_THAT(status.message(), HasSubstr(c.why));
    }
  }
}

std::string WithContent(const std::string& role, const std::string& parts) {
  return absl::StrCat(R"({"role":")", role, R"(","content":[)", parts, "]}");
}

TEST(HistoryRulesTest, AnthropicRefusesWhatItsDocumentsRefuse) {
  const Format format = Format::kAnthropicMessages;
  const std::string go = UserMessage(format, "go");
  const std::string call = AssistantMessage(format, "", {{.id = "a"}});
  const std::string server =
      R"({"type":"server_tool_use","id":"srvtoolu_1","name":"web_search",)"
      R"("input":{}})";
  const std::string searched =
      R"({"type":"web_search_tool_result","tool_use_id":"srvtoolu_1",)"
      R"("content":[]})";
  const std::string use =
      R"({"type":"tool_use","id":"a","name":"r","input":{}})";
  const std::string ok =
      R"({"type":"tool_result","tool_use_id":"a","content":"1"})";
  const auto result = [](const std::string& parts) {
    return WithContent(
        "user", absl::StrCat(R"({"type":"tool_result",)",
                             R"("tool_use_id":"a","content":[)", parts, "]}"));
  };
  const std::string mark = MarkedTextBlock("t");
  const std::string four = absl::StrCat(mark, ",", mark, ",", mark, ",", mark);
  const std::string system = R"({"role":"system","content":"s"})";
  CheckCases(
      format,
      {{{go, call, result(R"({"type":"audio"})")}, "a result of type: audio"},
       {{go, call, result(R"({"type":"image"})")}, "source"},
       {{go, call, result(R"({"type":"tool_reference"})")}, "tool_name"},
       {{go, call, result(R"({"type":"tool_reference","tool_name":"g"})")}, ""},
       {{go, call, result(R"({"type":"browser_state"},)" + TextBlock("t"))},
        "a browser_state stands alone"},
       {{go, call, result(four)}, ""},
       {{go, call, result(four + "," + mark)},
        "A maximum of 4 blocks with cache_control may be provided. Found 5"},
       {{WithContent("user", four), AssistantMessage(format, "so"),
         WithContent("user", mark)},
        "A maximum of 4"},
       {{go, WithContent("assistant",
                         R"({"type":"thinking","thinking":"","signature":"s",)"
                         R"("cache_control":{"type":"ephemeral"}})")},
        "cache_control of thinking"},
       {{go, WithContent("assistant", R"({"type":"thinking","thinking":""})")},
        "thinking without a signature"},
       {{go, WithContent("assistant", R"({"type":"redacted_thinking"})")},
        "data"},
       {{WithContent("user", ThinkingBlock())}, "thinking"},
       {{go, WithContent("assistant", R"({"type":"compaction","content":""})")},
        "non-whitespace"},
       {{go, WithContent("assistant", server)},
        "web_search tool use with id srvtoolu_1 was found without"},
       {{go, WithContent("assistant", searched)},
        "must have a corresponding `server_tool_use` block before it"},
       {{go,
         WithContent("assistant",
                     server + R"(,{"type":"web_fetch_tool_result",)"
                              R"("tool_use_id":"srvtoolu_1","content":{}})")},
        "must have a corresponding"},
       {{go, WithContent("assistant", server + "," + use),
         WithContent("user", ok), WithContent("assistant", searched)},
        ""},
       {{go, WithContent("assistant", server + "," + use),
         WithContent("user", ok + "," + TextBlock("t"))},
        "only tool_result blocks"},
       {{go, WithContent("assistant", server + "," + searched), system}, ""},
       {{go, AssistantMessage(format, "so"), system}, "follows a user turn"},
       {{go, call, system}, "between a call and its result"},
       {{system}, "comes first"},
       {{go, R"({"role":"system","clear_at":"next_user_message","content":[)" +
                 mark + "]}"},
        "clear_at"},
       {{go, WithContent("user", R"({"type":"from_the_future","n":1})")}, ""}});
}

TEST(HistoryRulesTest, ChatRefusesWhatItsDocumentsRefuse) {
  const Format format = Format::kOpenaiChat;
  const std::string call = AssistantMessage(format, "", {{.id = "a"}});
  CheckCases(
      format,
      {{{call, UserMessage(format, "t")},
        "must be followed by tool messages responding to each"},
       {{R"({"role":"tool","tool_call_id":"a","content":"1"})"},
        "must be a response to a preceeding message"},
       {{call, R"({"role":"tool","tool_call_id":"a","content":[]})"},
        "neither a string nor parts"},
       {{call, R"({"role":"tool","tool_call_id":"a"})"},
        "neither a string nor parts"},
       {{R"({"role":"assistant","content":null})"}, "nothing in it"},
       {{R"({"role":"assistant","content":"t","tool_calls":[]})"}, "empty"},
       {{R"({"role":"assistant","tool_calls":[{"id":"a","type":"function",)"
         R"("function":{"name":"f","arguments":{}}}]})"},
        "without name or arguments"}});
}

TEST(HistoryRulesTest, ResponsesRefusesWhatItsDocumentsRefuse) {
  const Format format = Format::kOpenaiResponses;
  const std::string call = AssistantMessage(format, "", {{.id = "a"}});
  const std::string ok =
      ResultMessages(format, {{.id = "a", .content = R"("1")"}})[0];
  const std::string reasoning =
      R"({"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"g"})";
  const std::string shell = R"({"type":"shell_call","call_id":"a"})";
  const auto output = [](const std::string& type, const std::string& value) {
    return absl::StrCat(R"({"call_id":"a","type":")", type, R"(","output":)",
                        value, "}");
  };
  const std::string screen = R"({"type":"computer_call","call_id":"a"})";
  CheckCases(
      format,
      {{{call, ok}, ""},
       {{call, ok, call, ok}, ""},
       {{call}, "No tool output found for function call a."},
       {{ok, call}, "No tool call found for function call output with call_id"},
       {{call, output("custom_tool_call_output", R"("1")")},
        "No tool call found"},
       {{call, call, ok}, "call_id is repeated"},
       {{reasoning, call, ok}, ""},
       {{reasoning, AssistantMessage(format, "t")}, ""},
       {{reasoning}, "was provided without its required following item."},
       {{call, reasoning, ok}, "without its required following item."},
       {{reasoning, UserMessage(format, "t")}, "required following item."},
       {{R"({"type":"reasoning","id":"x","summary":[]})"},
        "Expected an ID that begins with 'rs'"},
       {{R"({"type":"reasoning","id":"rs_1","encrypted_content":"g"})"},
        "summary"},
       {{R"({"type":"reasoning","id":"rs_1","summary":[]})"},
        "Items are not persisted when store is set to false."},
       {{R"({"type":"function_call","id":"x","call_id":"a","name":"f",)"
         R"("arguments":""})"},
        "Expected an ID that begins with 'fc'"},
       {{R"({"type":"function_call","call_id":"a","name":"f","arguments":{}})"},
        "a call without name or arguments"},
       {{AssistantMessage(format, "", {{.id = std::string(65, 'a')}})},
        "1 to 64"},
       {{call, output("function_call_output", "[]")}, "neither a string nor"},
       {{call, output("function_call_output",
                      R"([{"type":"output_text","text":"t"}])")},
        "Invalid value: 'output_text'"},
       {{call, output("function_call_output", R"([{"type":"input_image"}])")},
        "an image without"},
       {{shell, output("shell_call_output", R"("1")")}, "output is no list"},
       {{shell, output("shell_call_output", R"([{"stdout":"","stderr":""}])")},
        "outcome"},
       {{shell,
         output("shell_call_output", R"([{"stdout":"","stderr":"","outcome":)"
                                     R"({"type":"exit","exit_code":1}}])")},
        ""},
       {{screen, output("computer_call_output", R"("1")")},
        "output is no computer_screenshot"},
       {{R"({"type":"apply_patch_call","call_id":"a"})",
         R"({"type":"apply_patch_call_output","call_id":"a"})"},
        "status"},
       {{R"({"type":"message","role":"user","content":[{"type":"text",)"
         R"("text":"t"}]})"},
        "Invalid value: 'text'"}});
}

TEST(CheckReasoningKeptTest, RefusesAnItemWithoutTheReasoningItHad) {
  const auto reasoning = [](const std::string& id) {
    return absl::StrCat(R"({"type":"reasoning","id":")", id, R"("})");
  };
  const std::string call = R"({"type":"function_call","id":"fc_1"})";
  const std::vector<std::string> history = {reasoning("rs_1"), call};
  EXPECT_THAT(CheckReasoningKept(history, history), IsOk());
  EXPECT_THAT(CheckReasoningKept(history, {}), IsOk());
  EXPECT_THAT(CheckReasoningKept({call}, {call}), IsOk());
  EXPECT_THAT(CheckReasoningKept(history, {call}).message(),
              HasSubstr("Item 'fc_1' was provided without its required "
                        "'reasoning' item: 'rs_1'."));
  EXPECT_FALSE(CheckReasoningKept(history, {reasoning("rs_2"), call}).ok());
}

TEST(HistoryRulesTest, GeminiRefusesWhatItsDocumentsRefuse) {
  const Format format = Format::kGemini;
  const std::string go = UserMessage(format, "go");
  const std::string call = AssistantMessage(format, "", {{.id = ""}});
  const auto model = [](const std::string& parts) {
    return absl::StrCat(R"({"role":"model","parts":[)", parts, "]}");
  };
  const auto user = [](const std::string& parts) {
    return absl::StrCat(R"({"parts":[)", parts, "]}");
  };
  const std::string ok =
      ResultMessages(format, {{.id = "", .content = R"("1")"}})[0];
  const std::string signed_call =
      model(R"({"function_call":{"name":"r"},"thought_signature":"C"},)"
            R"({"functionCall":{"name":"r"}})");
  const std::string two = ResultMessages(
      format,
      {{.id = "", .content = R"("1")"}, {.id = "", .content = "{}"}})[0];
  CheckCases(
      format,
      {{{go, call, ok, call, ok}, ""},
       {{go, call, two}, "number of function response parts is equal"},
       {{go, call, go}, "number of function response parts is equal"},
       {{go, call}, "number of function response parts is equal"},
       {{go, ok}, "number of function response parts is equal"},
       {{call, ok}, "comes immediately after a user turn"},
       {{go, AssistantMessage(format, "t"), call, ok},
        "comes immediately after a user turn"},
       {{go, signed_call, two}, ""},
       {{go, signed_call, two, call, ok},
        "messages.3.parts.0: Function call is missing a thought_signature"},
       {{go, signed_call, two, call, ok, go}, ""},
       {{go, call, ok, go, signed_call, two}, ""},
       {{go, call, user(R"({"functionResponse":{"name":"x","response":{}}})")},
        "a function response of no call"},
       {{go, AssistantMessage(format, "", {{.id = "a"}}),
         user(R"({"functionResponse":{"id":"b","name":"r","response":{}}})")},
        "a function response of no call: r b"},
       {{go, call, user(R"({"functionResponse":{"name":"r","response":"1"}})")},
        "response is no object"},
       {{go, call, user(R"({"functionResponse":{"response":{}}})")},
        "Name cannot be empty"},
       {{go, call,
         user(R"({"functionResponse":{"name":"r","response":{},)"
              R"("parts":[{"text":"t"}]}})")},
        "a response's part is either of two"},
       {{user(R"({"text":""})")}, "empty text"},
       {{go, model(R"({"text":"","thoughtSignature":"C"})")}, ""},
       {{go, model(R"({"text":"t","thoughtSignature":""})")},
        "Invalid thought signature"},
       {{user("{}")}, "must have one initialized field"},
       {{user("")}, "must not be empty"},
       {{user(R"({"text":"t","inlineData":{"data":"","mimeType":"m"}})")},
        "oneof field 'data' is already set"},
       {{user(R"({"inlineData":{"data":"AA"}})")}, "mimeType"}});
}

TEST(HistoryRulesTest, ConverseRefusesWhatItsDocumentsRefuse) {
  const Format format = Format::kBedrockConverse;
  const std::string go = UserMessage(format, "go");
  const std::string call = AssistantMessage(format, "", {{.id = "a"}});
  const auto result = [](const std::string& members) {
    return WithContent(
        "user",
        absl::StrCat(R"({"toolResult":{"toolUseId":"a",)", members, "}}"));
  };
  const std::string point = R"({"cachePoint":{"type":"default"}})";
  std::string points = R"({"text":"t"})";
  for (int i = 0; i < 5; ++i) absl::StrAppend(&points, ",", point);
  CheckCases(
      format,
      {{{go, call, result(R"("content":[{"text":"1"}])")}, ""},
       {{call}, "must start with a user message"},
       {{go, go}, "must alternate between user and assistant roles"},
       {{go, call},
        "Expected toolResult blocks at messages.content for the following "
        "Ids: a"},
       {{go, call, go}, "Expected toolResult blocks at messages.2.content"},
       {{go, AssistantMessage(format, "so"), result(R"("content":[])")},
        "exceeds the number of toolUse blocks of previous turn"},
       {{go, AssistantMessage(format, "", {{.id = "a b"}})},
        "toolUseId failed to satisfy"},
       {{go, AssistantMessage(format, "", {{.id = std::string(65, 'a')}})},
        "toolUseId failed to satisfy"},
       {{go, AssistantMessage(format, "", {{.id = "a"}, {.id = "a"}})},
        "toolUseId is repeated"},
       {{go, AssistantMessage(format, "", {{.id = "a", .tool = "a.b"}})},
        "name failed to satisfy"},
       {{UserMessage(format, " ")}, "messages.0.content.0 is blank"},
       {{go, call, result(R"("status":"error","content":[])")},
        "cannot be empty when status value is error."},
       {{go, call, result(R"("status":"success","content":[])")}, ""},
       {{go, call, result(R"("status":"bad","content":[])")}, "status"},
       {{go, call, result(R"("content":"1")")}, "Missing required parameter"},
       {{go, call, result(R"("content":[{"text":"1","json":{}}])")},
        "a ToolResultContentBlock has exactly one member"},
       {{go, call, result(R"("content":[{"cachePoint":{}}])")},
        "a result of kind: cachePoint"},
       {{go, call, result(R"("content":[{"image":{"format":"png"}}])")},
        "image without format or source"},
       {{WithContent("user", R"({"text":"t","image":{}})")},
        "a ContentBlock has exactly one member"},
       {{WithContent("user", "")}, "The content field is empty"},
       {{WithContent("user", points)}, "more than 4 cachePoint"},
       {{WithContent("user",
                     R"({"cachePoint":{"type":"default","ttl":"2h"}})")},
        "cachePoint of another type or ttl"},
       {{go, WithContent("assistant", R"({"reasoningContent":{}})")},
        "reasoningContent is text or redacted"},
       {{WithContent("user",
                     R"({"reasoningContent":{"redactedContent":"AA"}})")},
        "reasoningContent"}});
}

}  // namespace
}  // namespace clerestory
