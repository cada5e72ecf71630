// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of other systems reported about signed reasoning, empty blocks,
// cache marks and characters that were cut. The number of a test is that of the
// report; what failed there is said above it.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/utf8.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/served_views.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Format kAnthropic = Format::kAnthropicMessages;
constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

ScriptedSession EagerSession(Format format = kAnthropic) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

// So many characters of base64 that are no repetition.
std::string Base64Of(std::size_t count) {
  constexpr absl::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  unsigned state = 1;
  while (text.size() < count) {
    state = state * 1'103'515'245U + 12'345U;
    text += kAlphabet[(state >> 16) % kAlphabet.size()];
  }
  return text;
}

std::string Thinking(absl::string_view text, absl::string_view signature) {
  return absl::StrCat(R"({"type":"thinking","thinking":)", Literal(text),
                      R"(,"signature":)", Literal(signature), "}");
}

std::string ToolUse(absl::string_view id, absl::string_view input = "{}") {
  return absl::StrCat(R"({"type":"tool_use","id":)", Literal(id),
                      R"(,"name":"r","input":)", input, "}");
}

std::string ToolResult(absl::string_view id, absl::string_view content,
                       absl::string_view more = "") {
  return absl::StrCat(R"({"type":"tool_result","tool_use_id":)", Literal(id),
                      R"(,"content":)", content, more, "}");
}

std::string LongArguments() {
  return absl::StrCat(R"({"text":")", std::string(500, 'w'), R"("})");
}

// --- Reasoning ---------------------------------------------------------------

// QwenLM/qwen-code#8162: a call was taken out beside signed thinking, whose
// signature then no longer held.
TEST(ReportTest, N31_SignedThinkingKeepsTheCallsBesideIt) {
  for (const ErrorRule errors : {ErrorRule::kMask, ErrorRule::kDrop}) {
    ScriptedSession s = EagerSession();
    s.policy.errors = errors;
    s.policy.argument_tokens_min = 50;
    ServedViews views(s);
    s.Ask(5);
    const std::string signed_turn = AnthropicAssistant(
        {Thinking("two ways", "EqQBCkgIARABGAI"), ToolUse("a", LongArguments()),
         ToolUse("b", LongArguments())});
    s.Append(signed_turn);
    s.Append(
        AnthropicUser({ToolResult("a", LiteralOf(100), R"(,"is_error":true)"),
                       ToolResult("b", LiteralOf(100))}));
    s.Turns(4, 100);
    views.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
    EXPECT_EQ(views.last()[1], signed_turn);
  }
}

// lbjlaq/Antigravity-Manager#3337: thinking was shortened under its signature.
TEST(ReportTest, N32_ThinkingIsNeverShortened) {
  ScriptedSession s = EagerSession();
  s.prices.window_tokens = 6'000;
  ServedViews views(s);
  s.Ask(5);
  std::vector<std::string> turns;
  for (int i = 0; i < 8; ++i) {
    const std::string id = absl::StrCat("t", i);
    turns.push_back(AnthropicAssistant(
        {Thinking(std::string(1'000, 'h'), Base64Of(400)), ToolUse(id)}));
    s.Append(turns.back());
    s.Append(AnthropicUser({ToolResult(id, LiteralOf(300))}));
    views.Serve();
  }
  EXPECT_THAT(s.masked(), Not(IsEmpty()));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(views.last()[2 * i + 1], turns[i]);
  }
}

// openclaw/openclaw#97019: 20 of 2,979 signatures had been damaged on their way
// through the store.
TEST(ReportTest, N33_LongSignaturesAreTheSameBytesAfterARestart) {
  ScriptedSession s = EagerSession();
  s.Ask(5);
  for (std::size_t i = 0; i < 100; ++i) {
    const std::string id = absl::StrCat("t", i);
    // Padding, escaped slashes, and white space that has no meaning.
    s.Append(absl::StrCat(R"({"content": [ {"signature":"\/)",
                          Base64Of(2'000 + i),
                          R"(==","thinking":"","type":"thinking"} , )",
                          ToolUse(id), " ], \"role\":\"assistant\" }\n"));
    s.Append(AnthropicUser({ToolResult(id, LiteralOf(100))}));
  }
  s.Serve();
  ASSERT_THAT(s.masked(), Not(IsEmpty()));
  const Session restarted = s.Replayed();
  for (std::size_t i = 0; i < restarted.messages().size(); ++i) {
    EXPECT_EQ(*restarted.messages()[i].raw, HistoryOf(s)[i]);
    if (restarted.messages()[i].role == Role::kAssistant) {
      EXPECT_EQ(*restarted.messages()[i].view, HistoryOf(s)[i]);
    }
  }
}

// openclaw/openclaw#137021: what was masked came back in the next call, which
// lost the reasoning behind it and the cache.
TEST(ReportTest, N35_AViewBeginsWithTheBytesOfTheOneBefore) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    ServedViews views(s);
    s.Ask(5);
    int same = 0;
    for (int i = 0; i < 60; ++i) {
      s.Turn(100);
      if (views.Serve().decision.masks.empty()) ++same;
    }
    EXPECT_THAT(s.masked(), Not(IsEmpty()));
    EXPECT_GT(same, 40);
    // Whatever the policy becomes.
    const std::vector<std::size_t> masked = s.masked();
    s.policy.mode = Mode::kOff;
    s.policy.placeholder = "[another text]";
    s.policy.keep_observations = 60;
    s.Turn(100);
    EXPECT_THAT(views.Serve().decision.masks, IsEmpty());
    EXPECT_EQ(s.masked(), masked);
  }
}

// openclaw/openclaw#137021: where reasoning is bound to what precedes it,
// nothing before it may change, or it has to go.
TEST(ReportTest, N35_NoReasoningStandsBehindAChangeOfWhatItIsBoundTo) {
  for (const bool avoids : {false, true}) {
    ScriptedSession s = EagerSession();
    s.prices.reasoning_prefix_bound = true;
    if (avoids) s.policy.thinking = ThinkingRule::kAvoid;
    ServedViews views(s);
    s.Turns(5, 100);
    s.Append(AnthropicAssistant({ThinkingBlock(), ToolUse("t")}));
    s.Append(AnthropicUser({ToolResult("t", LiteralOf(100))}));
    s.Turns(5, 100);
    views.Serve();
    ASSERT_FALSE(s.masked().empty());
    EXPECT_EQ(s.masked().front(), avoids ? 5U : 0U);
    EXPECT_EQ(CountOf(ThinkingBlock(), views.last()), avoids ? 1U : 0U);
  }
}

// google-gemini/gemini-cli#28607: a signature in a field beside the call was
// left out. The same stands in chat as a field that the format does not know.
TEST(ReportTest, N36_UnknownFieldsOfCallsAndResultsStay) {
  const std::string call_field =
      R"("extra_content":{"google":{"thought_signature":"CswB+\/=="}})";
  const std::string result_field = R"("x_trace":{"n":1.50e+01,"a":[ ]})";
  ScriptedSession s = EagerSession(Format::kOpenaiChat);
  s.policy.argument_tokens_min = 50;
  ServedViews views(s);
  const std::string call = absl::StrCat(
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"g",)",
      call_field,
      R"(,"type":"function","function":{"name":"r","arguments":"{}"}}]})");
  s.Append(call);
  s.Append(absl::StrCat(R"({"role":"tool",)", result_field,
                        R"(,"tool_call_id":"g","content":)", LiteralOf(100),
                        "}"));
  s.Turns(3, 100);
  views.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(views.last()[0], call);
  EXPECT_THAT(views.last()[1], HasSubstr(result_field));
}

// --- Empty blocks and marks --------------------------------------------------

// vercel/eve#2753: an empty text block with a cache mark was refused with 400.
TEST(ReportTest, N59_AnEmptyPlaceholderIsRefused) {
  for (const absl::string_view name :
       {"placeholder", "error_placeholder", "argument_placeholder"}) {
    for (const absl::string_view blank : {"", " ", "\t \n"}) {
      EXPECT_THAT(
          ParsePolicy(absl::StrCat("adaptive,", name, "=", blank)),
          FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid));
      Policy policy;
      EXPECT_THAT(
          SetPolicyField(name, blank, policy),
          FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid));
      EXPECT_EQ(PolicyDigest(policy), PolicyDigest(Policy()));
    }
  }
}

// Martian-Engineering/lossless-claw#606: results with empty text inside, or
// with no content at all, were refused with 400.
TEST(ReportTest, N60_MaskedContentIsNeverEmpty) {
  ScriptedSession s = EagerSession();
  ServedViews views(s);
  const std::string nested = absl::StrCat(
      "[", TextBlock(""), ",", TextBlock(std::string(100, 'x')), "]");
  s.Batch({nested, "[]", R"("")", absl::StrCat("[", TextBlock(""), "]")});
  s.Turns(3, 100);
  views.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0));
  const absl::StatusOr<json::Document> view =
      json::Document::Parse(views.last()[1], {.tree_depth = 8});
  ASSERT_THAT(view, IsOk());
  const json::Value content =
      view->root()["content"].children().front()["content"];
  EXPECT_EQ(content.is_string() ? content.string()
                                : content.children().front()["text"].string(),
            "[masked]");
  // What was empty is the client's own, and as it was.
  EXPECT_THAT(views.last()[1], HasSubstr(ToolResult("c1", "[]")));
  EXPECT_THAT(views.last()[1], HasSubstr(ToolResult("c2", R"("")")));
}

// anthropics/claude-agent-sdk-typescript#432: a fifth cache mark was refused
// with 400.
TEST(ReportTest, N61_AMaskedBlockKeepsItsMarkAndNoneIsAdded) {
  constexpr absl::string_view kMark =
      R"(,"cache_control":{"type":"ephemeral"})";
  ScriptedSession s = EagerSession();
  ServedViews views(s);
  s.Append(AnthropicUser({MarkedTextBlock("system-like")}));
  s.Append(AnthropicAssistant({ToolUse("a"), ToolUse("b"), ToolUse("c")}));
  s.Append(AnthropicUser(
      {ToolResult("a", LiteralOf(100), kMark),
       ToolResult(
           "b", absl::StrCat("[", MarkedTextBlock(std::string(100, 'x')), "]")),
       ToolResult("c", LiteralOf(100))}));
  s.Append(AnthropicAssistant({TextBlock("done")}));
  s.Append(AnthropicUser({MarkedTextBlock("more")}));
  ASSERT_EQ(CountOf("cache_control", HistoryOf(s)), 4U);
  s.Turns(3, 100);
  views.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1, 2));
  EXPECT_EQ(CountOf("cache_control", views.last()), 4U);
  EXPECT_EQ(CountOf("cache_control", {views.last()[2]}), 2U);
}

// --- Unicode -----------------------------------------------------------------

// A family, a flag, a letter with two marks, and a pair of surrogates.
constexpr absl::string_view kClusters =
    "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
    "\xF0\x9F\x87\xAB\xF0\x9F\x87\xAE"
    "a\xCC\x88\xCC\xA3"
    "\xF0\x9D\x84\x9E";

void ExpectWhole(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) {
    EXPECT_TRUE(IsUtf8(message));
    EXPECT_THAT(json::Document::Parse(message, {.tree_depth = 8}), IsOk());
  }
}

// elizaOS/eliza#20358: a text was cut in the middle of a surrogate pair.
TEST(ReportTest, N63_NoViewHasHalfACharacter) {
  for (const Format format : kFormats) {
    for (std::size_t shift = 0; shift < 8; ++shift) {
      ScriptedSession s = EagerSession(format);
      s.policy.placeholder =
          absl::StrCat("[", kClusters, " {size}, {tokens} tokens]");
      s.policy.argument_tokens_min = 20;
      ServedViews views(s);
      std::string text(shift, '.');
      for (int i = 0; i < 20; ++i) absl::StrAppend(&text, kClusters);
      s.Append(AssistantMessage(
          format, "",
          {{.id = "u",
            .arguments = absl::StrCat(R"({"text":)", Literal(text), "}")}}));
      s.Append(ResultMessages(format, {{.id = "u", .content = Literal(text)}}));
      s.Append(UserMessage(format, text));
      s.Turns(3, 10);
      views.Serve();
      ASSERT_EQ(s.masked().front(), 0U);
      ExpectWhole(views.last());
      EXPECT_EQ(views.last()[2], HistoryOf(s)[2]);
    }
  }
}

// esengine/DeepSeek-Reasonix#1976: 38 KB of emoji, cut inside an escape, were
// an "unexpected end of hex escape".
TEST(ReportTest, N64_EscapedEmojiAreKeptOrMaskedWhole) {
  for (const Format format : kFormats) {
    std::string emoji = "\"";
    while (emoji.size() < 38'000) emoji += R"(\ud83d\ude00)";
    emoji += "\"";
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Batch({emoji});
    s.Turns(2, 100);
    views.Serve();
    EXPECT_EQ(views.last(), HistoryOf(s));
    s.Turn(100);
    views.Serve();
    ASSERT_THAT(s.masked(), ElementsAre(0));
    ExpectWhole(views.last());
    EXPECT_EQ(CountOf("ud83d", views.last()), 0U);
  }
}

// oguzbilgic/kern-ai#313: half a character in the history made every later call
// fail, every hour.
TEST(ReportTest, N65_HalfACharacterIsRefusedOnAppend) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.Turn(100);
    const std::string before = SessionText(s.session());
    for (const absl::string_view half :
         {"\\ud83d", "\\ude00 x", "\xF0\x9F\x98", "\xED\xA0\xBD", "\xFF"}) {
      std::string message = AssistantMessage(format, "HALF", {{.id = "x"}});
      message.replace(message.find("HALF"), 4, std::string(half));
      EXPECT_THAT(s.session().CheckAppend({ToBytes(message)}),
                  FailsWith(absl::StatusCode::kInvalidArgument,
                            Reason::kMessageInvalid));
    }
    EXPECT_EQ(SessionText(s.session()), before);
  }
}

// oguzbilgic/kern-ai#313: the same in the arguments of a call. In Anthropic's
// format they are JSON of the message; in chat, text that the message only
// carries, and may be whatever the model wrote.
TEST(ReportTest, N65_HalfACharacterInArgumentsIsRefusedOrCarriedAsItIs) {
  const std::string arguments =
      absl::StrCat(R"({"text":"\ud83d )", std::string(200, 'x'), R"("})");
  const ScriptedSession anthropic;
  EXPECT_THAT(
      anthropic.session().CheckAppend({ToBytes(AssistantMessage(
          kAnthropic, "", {{.id = "x", .arguments = arguments}}))}),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kMessageInvalid));

  ScriptedSession s = EagerSession(Format::kOpenaiChat);
  s.policy.argument_tokens_min = 50;
  ServedViews views(s);
  s.Append(AssistantMessage(Format::kOpenaiChat, "",
                            {{.id = "x", .arguments = arguments}}));
  s.Append(ResultMessages(Format::kOpenaiChat,
                          {{.id = "x", .content = LiteralOf(100)}}));
  s.Turns(3, 100);
  views.Serve();
  ExpectWhole(views.last());
  EXPECT_THAT(s.masked(), ElementsAre(0))
      << "its result is masked all the same";
}

}  // namespace
}  // namespace clerestory
