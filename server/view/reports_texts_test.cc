// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of other systems reported about loops of reading again, about what
// placeholders say and what models make of them, and about errors that were
// lost. The number of a test is that of the report; what failed there is said
// above it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/served_views.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

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

// A turn with one call and its result.
void AppendTurn(ScriptedSession& s, const CallSpec& call,
                const std::string& content, bool is_error = false) {
  const Format format = s.session().header().format;
  s.Append(AssistantMessage(format, "", {call}));
  s.Append(ResultMessages(
      format, {{.id = call.id, .content = content, .is_error = is_error}}));
}

// The ids of the calls that `view` has masked the results of.
std::vector<std::string> NewlyMaskedCalls(const Session& session,
                                          const View& view) {
  std::vector<std::string> ids;
  for (const Mask& mask : view.decision.masks) {
    for (const Observation& observation : session.observations()) {
      if (observation.sequence == mask.sequence &&
          observation.index == mask.index) {
        ids.push_back(session.calls()[observation.call].call.id);
      }
    }
  }
  return ids;
}

// --- Reading again -----------------------------------------------------------

// HKUDS/Vibe-Trading#1350: the client refused 44 calls with "use the previous
// result", which was masked.
TEST(ReportTest, N67_AViewSaysOfWhichCallsItMasksTheResults) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    for (int i = 0; i < 5; ++i) {
      AppendTurn(s, {.id = absl::StrCat("read", i)}, LiteralOf(100));
    }
    EXPECT_THAT(NewlyMaskedCalls(s.session(), views.Serve()),
                ElementsAre("read0", "read1"));
    AppendTurn(s, {.id = "read5"}, LiteralOf(100));
    EXPECT_THAT(NewlyMaskedCalls(s.session(), views.Serve()),
                ElementsAre("read2"));
  }
}

// HKUDS/nanobot#5775: an "already read" stub answered a read whose original was
// masked. A repeated read is a result of its own, and shown while it is new.
TEST(ReportTest, N68_ASecondReadIsShownThoughTheFirstIsMasked) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    const std::string arguments = R"({"path":"a.cc"})";
    const std::string text = Literal(std::string(100, 'f'));
    AppendTurn(s, {.id = "1", .arguments = arguments}, text);
    s.Turns(3, 100);
    views.Serve();
    ASSERT_THAT(s.masked(), ElementsAre(0));
    EXPECT_EQ(CountOf(text, views.last()), 0U);
    AppendTurn(s, {.id = "2", .arguments = arguments}, text);
    views.Serve();
    EXPECT_EQ(CountOf(text, views.last()), 1U);
    // Since when and why each is masked can be asked at any time.
    EXPECT_EQ(s.session().observations()[0].mask_reason,
              BreakReason::kSchedule);
    EXPECT_EQ(s.session().observations()[0].mask_time, s.now);
    EXPECT_FALSE(s.session().observations()[4].placeholder.has_value());
  }
}

// cniska/acolyte#311: results were masked in each step while 70 to 95 % of the
// budget was free, and tests were run again.
TEST(ReportTest, N69_NothingIsMaskedBelowTheTrigger) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.policy.mode = Mode::kThreshold;
    s.policy.threshold_tokens = 100'000;
    s.policy.low_water_tokens = 50'000;
    ServedViews views(s);
    for (int i = 0; i < 30; ++i) {
      s.Turn(1'000);
      views.Serve();
    }
    EXPECT_THAT(s.masked(), IsEmpty());
    EXPECT_EQ(views.last(), HistoryOf(s));
  }
}

// --- Placeholders ------------------------------------------------------------

// trpc-group/trpc-agent-go#1651: "omitted" was read as a failure and tried
// again for ever; and a text was longer than what it stood for.
TEST(ReportTest, N75_APlaceholderSoundsLikeNoFailure) {
  const Policy policy;
  for (const std::string& text :
       {policy.placeholder, policy.argument_placeholder}) {
    const std::string lower = absl::AsciiStrToLower(text);
    for (const absl::string_view word :
         {"omit", "fail", "error", "again", "re-run", "rerun", "retry",
          "invoke", "missing", "lost", "truncat", "..."}) {
      EXPECT_FALSE(absl::StrContains(lower, word)) << text << ": " << word;
    }
  }
}

// trpc-group/trpc-agent-go#1651, as above.
TEST(ReportTest, N75_APlaceholderIsNeverLongerThanWhatItStandsFor) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.policy.placeholder = Policy().placeholder;
    ServedViews views(s);
    for (std::int64_t size = 1; size < 120; ++size) s.Turn(size);
    views.Serve();  // Checks of each message that it has become smaller.
    EXPECT_THAT(s.masked(), Not(IsEmpty()));
    for (const Observation& observation : s.session().observations()) {
      EXPECT_LT(observation.placeholder.value_or("").size(),
                observation.result.content.size);
    }
  }
}

// GaloyMoney/drua#384: "invoke it again if needed" stood in place of a call
// that failed each time.
TEST(ReportTest, N76_AMaskedErrorSaysThatItWasOne) {
  const Policy defaults;
  EXPECT_NE(defaults.placeholder, defaults.error_placeholder);
  EXPECT_THAT(defaults.error_placeholder, HasSubstr("error"));
  ScriptedSession s = EagerSession();
  ServedViews views(s);
  AppendTurn(s, {.id = "bad"}, LiteralOf(100), true);
  AppendTurn(s, {.id = "good"}, LiteralOf(100));
  s.Turns(3, 100);
  views.Serve();
  EXPECT_THAT(views.last()[1], HasSubstr("[failed]"));
  EXPECT_THAT(views.last()[1], HasSubstr(R"("is_error":true)"));
  EXPECT_THAT(views.last()[3], HasSubstr("[masked]"));
}

// NousResearch/hermes-agent#83435: models copied "...[truncated]" from old
// calls into new ones: 36 tasks damaged.
TEST(ReportTest, N77_ArgumentsOfCallsAreAsTheModelWroteThem) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);  // Whatever the mode is.
    ASSERT_EQ(Policy().argument_tokens_min, 0);
    ServedViews views(s);
    for (int i = 0; i < 40; ++i) {
      const std::string id = absl::StrCat("task", i);
      AppendTurn(
          s,
          {.id = id,
           .arguments = absl::StrCat(R"({"body":)", LiteralOf(2'000), "}")},
          LiteralOf(2'000));
      views.Serve();
    }
    ASSERT_THAT(s.masked(), Not(IsEmpty()));
    for (std::size_t i = 0; i < views.last().size(); i += 2) {
      EXPECT_EQ(views.last()[i], HistoryOf(s)[i]);
    }
  }
}

// NousResearch/hermes-agent#83435: where arguments are masked all the same,
// that a model copies is seen.
TEST(ReportTest, N77_ACopyOfAMaskInANewCallIsCounted) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.policy.argument_tokens_min = 50;
    s.policy.argument_placeholder = "[argument masked: {tokens} tokens]";
    s.Ask(5);
    AppendTurn(s,
               {.id = "1",
                .arguments = absl::StrCat(R"({"body":)", LiteralOf(500), "}")},
               LiteralOf(100));
    s.Turns(3, 100);
    s.Serve();
    ASSERT_TRUE(s.session().calls()[0].arguments.has_value());
    EXPECT_EQ(s.session().ledger().copied_placeholder_count, 0);
    AppendTurn(
        s,
        {.id = "2", .arguments = R"({"body":"[argument masked: 500 tokens]"})"},
        LiteralOf(100));
    EXPECT_EQ(s.session().ledger().copied_placeholder_count, 1);
  }
}

// NousResearch/hermes-agent#83435, as above, with a text that JSON escapes:
// once in Anthropic's arguments, twice in those of chat.
TEST(ReportTest, N77_ACopyIsCountedWhereJsonEscapesIt) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.policy.placeholder = R"([the "masked" output])";
    s.Turns(5, 100);
    s.Serve();
    ASSERT_THAT(s.masked(), ElementsAre(0, 1));
    AppendTurn(s,
               {.id = "2",
                .arguments = absl::StrCat(R"({"body":)",
                                          Literal(s.policy.placeholder), "}")},
               LiteralOf(100));
    EXPECT_EQ(s.session().ledger().copied_placeholder_count, 1)
        << "format " << static_cast<int>(format);
  }
}

// cortexkit/magic-context#431: shortened arguments were half-real values, and
// files were made at wrong paths.
TEST(ReportTest, N79_AnArgumentIsWholeOrAPlaceholder) {
  const std::string path(49, 'p');
  const std::string body(800, 'b');
  const std::string arguments = absl::StrCat(
      R"({"path":")", path, R"(","body":")", body, R"(","n":[1.50,")", body,
      R"("],"deep":{"path":")", path, R"("}})");
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.policy.argument_tokens_min = 50;
    s.policy.argument_placeholder = "[argument masked]";
    ServedViews views(s);
    s.Ask(5);
    AppendTurn(s, {.id = "w", .arguments = arguments}, LiteralOf(100));
    s.Turns(3, 100);
    views.Serve();
    std::string expected = absl::StrCat(
        R"({"path":")", path, R"(","body":"[argument masked]","n":[1.50,)",
        R"("[argument masked]"],"deep":{"path":")", path, R"("}})");
    if (format == Format::kOpenaiChat) expected = Literal(expected);
    EXPECT_THAT(views.last()[1], HasSubstr(expected));
    EXPECT_EQ(CountOf("bb", views.last()), 0U);
  }
}

// cortexkit/magic-context#490: calls had become plain text in the history, and
// the model wrote text where it should have called.
TEST(ReportTest, N80_CallsAndResultsStayCallsAndResults) {
  for (const Format format : kFormats) {
    const bool is_chat = format == Format::kOpenaiChat;
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Ask(5);
    for (int i = 0; i < 20; ++i) s.Batch({LiteralOf(100), LiteralOf(90)});
    views.Serve();
    ASSERT_EQ(s.masked().size(), 36U);
    EXPECT_EQ(CountOf(is_chat ? R"("type":"function")" : R"("type":"tool_use")",
                      views.last()),
              40U);
    EXPECT_EQ(CountOf(is_chat ? R"("role":"tool")" : R"("type":"tool_result")",
                      views.last()),
              40U);
    EXPECT_THAT(CheckValidHistory(format, views.last()), IsOk());
  }
}

// xorbitsai/xagent#1238: evidence was taken out without a word, and the model
// made values up.
TEST(ReportTest, N81_APlaceholderSaysWhatWasThere) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.policy.placeholder = Policy().placeholder;
    ServedViews views(s);
    s.Batch({R"("first line of three\nsecond line, which is longer\nthird")"});
    s.Turns(3, 100);
    views.Serve();
    ASSERT_THAT(s.masked(), ElementsAre(0));
    EXPECT_THAT(views.last()[1],
                HasSubstr("[tool output masked: 3 lines, 54 tokens]"));
  }
}

// --- Errors ------------------------------------------------------------------

// Gitlawb/zero#873: failures were told by how their text begins, and most were
// missed; here only what is declared counts.
TEST(ReportTest, N91_AnErrorIsWhatIsDeclaredToBeOne) {
  ScriptedSession s = EagerSession();
  s.policy.errors = ErrorRule::kKeep;
  ServedViews views(s);
  const std::string more(100, '.');
  AppendTurn(s, {.id = "1"}, Literal(absl::StrCat("--- FAIL: TestX", more)));
  AppendTurn(s, {.id = "2"}, Literal(absl::StrCat("exit status 1", more)));
  AppendTurn(s, {.id = "3"}, Literal(absl::StrCat("Error: no", more)));
  AppendTurn(s, {.id = "4"}, Literal(absl::StrCat("all is well", more)), true);
  s.Turns(3, 100);
  views.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
  EXPECT_EQ(CountOf("[failed]", views.last()), 0U);
}

// esengine/DeepSeek-Reasonix#8155: the same, where errors are dropped: what
// only reads like one must not go.
TEST(ReportTest, N92_WhatOnlyReadsLikeAnErrorIsNotDropped) {
  ScriptedSession s = EagerSession();
  s.policy.errors = ErrorRule::kDrop;
  s.Ask(5);
  AppendTurn(s, {.id = "looks"}, Literal("error: " + std::string(100, 'x')));
  AppendTurn(s, {.id = "real"}, LiteralOf(100), true);
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(CheckValidHistory(kAnthropic, s.view()), IsOk());
  EXPECT_EQ(CountOf(R"("looks")", s.view()), 2U);
  EXPECT_EQ(CountOf(R"("real")", s.view()), 0U);
}

// Yeachan-Heo/gajae-code#2599: 196 of 474 results that were pruned were errors,
// and what had been tried was forgotten.
TEST(ReportTest, N93_ErrorsStayWhereThePolicySaysSo) {
  ScriptedSession s = EagerSession();
  s.policy.errors = ErrorRule::kKeep;
  s.prices.window_tokens = 40'000;
  ServedViews views(s);
  std::size_t errors = 0;
  for (int i = 0; i < 474; ++i) {
    const bool is_error = i * 196 / 474 != (i + 1) * 196 / 474;
    if (is_error) ++errors;
    AppendTurn(s, {.id = absl::StrCat("r", i)}, LiteralOf(100), is_error);
    if (i % 20 == 0) views.Serve();
  }
  views.Serve();
  ASSERT_EQ(errors, 196U);
  std::size_t shown = 0;
  for (const Observation& observation : s.session().observations()) {
    if (!observation.result.is_error) continue;
    if (!observation.placeholder.has_value()) ++shown;
  }
  EXPECT_EQ(shown, 196U);
  EXPECT_GT(s.masked().size(), 270U);
}

// Yeachan-Heo/gajae-code#2599: or for so many turns.
TEST(ReportTest, N93_ErrorsOfTheNewestTurnsStay) {
  ScriptedSession s = EagerSession();
  s.policy.keep_turns = 10;
  ServedViews views(s);
  AppendTurn(s, {.id = "e"}, LiteralOf(100), true);
  for (int newer = 1; newer <= 10; ++newer) {
    s.Turn(100);
    views.Serve();
    EXPECT_EQ(s.masked().empty(), newer < 10);
  }
}

// Gitlawb/openclaude#348: a fixed list of tools never held those of MCP
// servers, whose results were never masked.
TEST(ReportTest, N96_ToolsOfMcpServersAreMaskedLikeOthers) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    AppendTurn(s, {.id = "m", .tool = "mcp__memory__search_nodes"},
               LiteralOf(100));
    AppendTurn(s, {.id = "n", .tool = "never heard of"}, LiteralOf(100));
    s.Turns(3, 100);
    views.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  }
}

}  // namespace
}  // namespace clerestory
