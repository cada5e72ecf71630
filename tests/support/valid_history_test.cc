// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/valid_history.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "tests/support/messages.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat,
                               Format::kOpenaiResponses, Format::kGemini,
                               Format::kBedrockConverse};

void Append(const std::vector<std::string>& messages,
            std::vector<std::string>& history) {
  history.insert(history.end(), messages.begin(), messages.end());
}

// A history that goes on with `results` after a question and a turn with the
// calls `a` and `b`.
std::vector<std::string> AfterTwoCalls(Format format,
                                       const std::vector<ResultSpec>& results) {
  std::vector<std::string> history = {UserMessage(format, "go")};
  Append(AssistantMessages(format, "so", {{.id = "a"}, {.id = "b"}}), history);
  Append(ResultMessages(format, results), history);
  return history;
}

std::string AnthropicResult(const std::string& id, const std::string& content) {
  return absl::StrCat(R"({"type":"tool_result","tool_use_id":")", id,
                      R"(","content":)", content, "}");
}

absl::Status CheckAnthropic(const std::vector<std::string>& messages) {
  return CheckValidHistory(Format::kAnthropicMessages, messages);
}

TEST(CheckValidHistoryTest, AcceptsResultsOfAllCallsInAnyOrder) {
  for (const Format format : kFormats) {
    std::vector<std::string> history = AfterTwoCalls(
        format,
        {{.id = "b", .content = R"("1")"}, {.id = "a", .content = R"("")"}});
    EXPECT_THAT(CheckValidHistory(format, history), IsOk());
    history.push_back(AssistantMessage(format, "done"));
    EXPECT_THAT(CheckValidHistory(format, history), IsOk());
  }
}

TEST(CheckValidHistoryTest, RefusesACallWithoutAResult) {
  for (const Format format : kFormats) {
    std::vector<std::string> history =
        AfterTwoCalls(format, {{.id = "a", .content = R"("1")"}});
    EXPECT_FALSE(CheckValidHistory(format, history).ok());
    history.push_back(AssistantMessage(format, "done"));
    EXPECT_FALSE(CheckValidHistory(format, history).ok());
    history = {UserMessage(format, "go"),
               AssistantMessage(format, "", {{.id = "a"}})};
    EXPECT_FALSE(CheckValidHistory(format, history).ok());
  }
}

TEST(CheckValidHistoryTest, RefusesAResultWithoutACall) {
  for (const Format format : kFormats) {
    std::vector<std::string> history = {UserMessage(format, "go"),
                                        AssistantMessage(format, "so")};
    history.push_back(
        ResultMessages(format, {{.id = "x", .content = R"("1")"}})[0]);
    EXPECT_FALSE(CheckValidHistory(format, history).ok());
  }
}

TEST(CheckValidHistoryTest, RefusesAResultOfAnEarlierTurnsCall) {
  for (const Format format : kFormats) {
    std::vector<std::string> history = AfterTwoCalls(
        format,
        {{.id = "a", .content = R"("1")"}, {.id = "b", .content = R"("1")"}});
    history.push_back(AssistantMessage(format, "", {{.id = "c"}}));
    Append(ResultMessages(format, {{.id = "c", .content = R"("1")"},
                                   {.id = "a", .content = R"("1")"}}),
           history);
    EXPECT_FALSE(CheckValidHistory(format, history).ok());
  }
}

TEST(CheckValidHistoryTest, RefusesASecondResultOfACall) {
  for (const Format format : kFormats) {
    EXPECT_FALSE(
        CheckValidHistory(
            format, AfterTwoCalls(format, {{.id = "a", .content = R"("1")"},
                                           {.id = "b", .content = R"("1")"},
                                           {.id = "a", .content = R"("2")"}}))
            .ok());
  }
}

TEST(CheckValidHistoryTest, RefusesWhatStandsBetweenACallAndItsResult) {
  const Format chat = Format::kOpenaiChat;
  std::vector<std::string> history = AfterTwoCalls(
      chat,
      {{.id = "a", .content = R"("1")"}, {.id = "b", .content = R"("1")"}});
  history.insert(history.end() - 1, UserMessage(chat, "well?"));
  EXPECT_FALSE(CheckValidHistory(chat, history).ok());

  const std::string call =
      AssistantMessage(Format::kAnthropicMessages, "", {{.id = "a"}});
  const std::string result = AnthropicResult("a", R"("1")");
  EXPECT_THAT(CheckAnthropic({call, AnthropicUser({result, TextBlock("k")})}),
              IsOk());
  EXPECT_THAT(
      CheckAnthropic({call, AnthropicUser({TextBlock("k"), result})}).message(),
      HasSubstr("messages.1.content.1: results must come first"));
  EXPECT_FALSE(CheckAnthropic({call, R"({"role":"system","content":"s"})",
                               AnthropicUser({result})})
                   .ok());
}

TEST(CheckValidHistoryTest, TakesMessagesOfOneRoleInARowAsATurn) {
  const std::string a =
      AssistantMessage(Format::kAnthropicMessages, "", {{.id = "a"}});
  const std::string b =
      AssistantMessage(Format::kAnthropicMessages, "", {{.id = "b"}});
  const std::string ra = AnthropicUser({AnthropicResult("a", R"("1")")});
  const std::string rb = AnthropicUser({AnthropicResult("b", R"("1")")});
  EXPECT_THAT(CheckAnthropic({a, b, ra, rb}), IsOk());
  EXPECT_FALSE(CheckAnthropic({a, b, ra, a, rb}).ok());
  EXPECT_FALSE(CheckAnthropic({a, a, ra}).ok());
}

TEST(CheckValidHistoryTest, RefusesBlankText) {
  EXPECT_FALSE(CheckAnthropic({R"({"role":"user","content":" \n"})"}).ok());
  EXPECT_FALSE(CheckAnthropic({AnthropicUser({TextBlock("")})}).ok());
  const std::string call =
      AssistantMessage(Format::kAnthropicMessages, "", {{.id = "a"}});
  const std::string blank = "[" + TextBlock("  ") + "]";
  EXPECT_FALSE(
      CheckAnthropic({call, AnthropicUser({AnthropicResult("a", blank)})})
          .ok());
}

TEST(CheckValidHistoryTest, RefusesSearchResultsBesideText) {
  const std::string call =
      AssistantMessage(Format::kAnthropicMessages, "", {{.id = "a"}});
  const std::string search = R"({"type":"search_result","source":"s"})";
  EXPECT_THAT(
      CheckAnthropic(
          {call, AnthropicUser({AnthropicResult("a", "[" + search + "]")})}),
      IsOk());
  const std::string mixed = "[" + search + "," + TextBlock("t") + "]";
  EXPECT_FALSE(
      CheckAnthropic({call, AnthropicUser({AnthropicResult("a", mixed)})})
          .ok());
}

TEST(CheckValidHistoryTest, PairsServerToolsInTheirOwnTurn) {
  const std::string call =
      R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}})";
  const std::string result =
      R"({"type":"web_search_tool_result","tool_use_id":"s","content":[]})";
  EXPECT_THAT(CheckAnthropic({AnthropicAssistant({call, result})}), IsOk());
  EXPECT_FALSE(CheckAnthropic({AnthropicAssistant({call})}).ok());
  EXPECT_FALSE(CheckAnthropic({AnthropicAssistant({result})}).ok());
}

TEST(CheckValidHistoryTest, RefusesImagesInChatResults) {
  const std::vector<std::string> history = {
      AssistantMessage(Format::kOpenaiChat, "", {{.id = "a"}}),
      R"({"role":"tool","tool_call_id":"a","content":[{"type":"image_url",)"
      R"("image_url":{"url":"u"}}]})"};
  EXPECT_FALSE(CheckValidHistory(Format::kOpenaiChat, history).ok());
}

TEST(CheckValidHistoryTest, PairsTheOldFunctionFormByName) {
  const std::string call =
      R"({"role":"assistant","content":null,"function_call":)"
      R"({"name":"f","arguments":"{}"}})";
  const Format chat = Format::kOpenaiChat;
  EXPECT_THAT(
      CheckValidHistory(
          chat, {call, R"({"role":"function","name":"f","content":"1"})"}),
      IsOk());
  EXPECT_FALSE(
      CheckValidHistory(
          chat, {call, R"({"role":"function","name":"g","content":"1"})"})
          .ok());
  EXPECT_FALSE(CheckValidHistory(chat, {call}).ok());
}

TEST(CheckValidHistoryTest, RefusesUnknownRolesAndWhatIsNoMessage) {
  for (const Format format : kFormats) {
    EXPECT_FALSE(CheckValidHistory(format, {}).ok());
    EXPECT_FALSE(CheckValidHistory(format, {"{"}).ok());
    EXPECT_FALSE(CheckValidHistory(format, {"[]"}).ok());
    EXPECT_FALSE(
        CheckValidHistory(format, {R"({"role":"x","content":"y"})"}).ok());
    EXPECT_FALSE(CheckValidHistory(format, {R"({"role":"user"})"}).ok());
  }
}

}  // namespace
}  // namespace clerestory
