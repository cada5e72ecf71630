// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/formats/format.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/naive_session.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

ScriptedSession EagerSession(Format format = Format::kAnthropicMessages) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

// A history with whatever a result may have, which its provider accepts, and of
// which every view after it masks the first eight results.
ScriptedSession RichSession(Format format) {
  const std::string text = TextBlock(std::string(200, 't'));
  const std::string marked = MarkedTextBlock(std::string(200, 't'));
  ScriptedSession s = EagerSession(format);
  s.Ask(10);
  s.Batch({LiteralOf(300), Literal(std::string(200, '"') + "\\\n\t\x01"),
           absl::StrCat("[", text, "]")});
  s.Batch({absl::StrCat("[ ", text, " ,\n", marked, "]"),
           Literal("\u6f22\u5b57 \u00e9 \U0001f600" + std::string(99, 'x'))});
  s.Append(AssistantMessage(format, "so", {{.id = "e1"}, {.id = "e2"}}));
  s.Append(ResultMessages(
      format, {{.id = "e2", .content = LiteralOf(100), .is_error = true},
               {.id = "e1", .content = R"("")"}}));
  s.Turns(2, 500);
  s.Answer();
  s.Ask(10);
  s.Turns(3, 100);
  return s;
}

std::vector<std::string> History(const ScriptedSession& s) {
  std::vector<std::string> history;
  for (const SessionMessage& message : s.session().messages()) {
    history.push_back(*message.raw);
  }
  return history;
}

// --- Lossless ----------------------------------------------------------------

TEST(LosslessTest, MaskingChangesViewsNeverHistory) {
  for (const Format format : kFormats) {
    ScriptedSession s = RichSession(format);
    std::vector<std::string> appended;
    for (const Record& record : s.records()) {
      appended.push_back(*std::get<MessageAppended>(record).message);
    }
    s.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4, 5, 7, 8));
    EXPECT_EQ(History(s), appended);
  }
}

TEST(LosslessTest, PuttingTheContentsBackGivesTheHistory) {
  for (const Format format : kFormats) {
    ScriptedSession s = RichSession(format);
    const View view = s.Serve();
    const FormatAdapter& adapter = AdapterFor(format);
    std::int64_t masked = 0;
    for (std::size_t m = 0; m < view.messages.size(); ++m) {
      const SessionMessage& message = s.session().messages()[m];
      const absl::StatusOr<ParsedMessage> shown =
          adapter.Parse(*view.messages[m], CharacterCounter());
      ASSERT_THAT(shown, IsOk());
      std::vector<Replacement> contents;
      for (std::size_t i = 0; i < message.observation_count; ++i) {
        const Observation& observation =
            s.session().observations()[message.first_observation + i];
        if (!observation.placeholder.has_value()) continue;
        ++masked;
        const ByteSpan content = observation.result.content;
        contents.push_back(
            {.at = shown->results[i].content,
             .value = message.raw->substr(content.offset, content.size)});
      }
      EXPECT_EQ(Splice(*view.messages[m], contents), *message.raw);
    }
    EXPECT_EQ(masked, 8);
  }
}

TEST(LosslessTest, WhatIsNotMaskedIsTheClientsBytes) {
  ScriptedSession s = EagerSession();
  const std::string odd =
      "{ \"content\" : [{\"type\":\"from_the_future\",\"n\":1.50e+3}] ,\n"
      "\"role\":\"user\", \"x\":\"\\u00e9\\/\"}";
  s.Append(odd);
  s.Turns(4, 100);
  const View view = s.Serve();
  EXPECT_EQ(*view.messages[0], odd);
  for (std::size_t m : {1U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    EXPECT_EQ(view.messages[m], s.session().messages()[m].raw)
        << "not even a copy";
  }
}

// --- Valid -------------------------------------------------------------------

TEST(ValidTest, AViewOfAValidHistoryIsValid) {
  for (const Format format : kFormats) {
    ScriptedSession s = RichSession(format);
    ASSERT_THAT(CheckValidHistory(format, History(s)), IsOk());
    const View view = s.Serve();
    EXPECT_THAT(CheckValidHistory(format, Texts(view.messages)), IsOk());
    EXPECT_EQ(view.decision.masks.size(), 8U);
  }
}

TEST(ValidTest, AMaskedObservationKeepsItsIdErrorFlagAndCacheMark) {
  ScriptedSession s = RichSession(Format::kAnthropicMessages);
  const View view = s.Serve();
  EXPECT_EQ(*view.messages[4],
            R"({"role":"user","content":[{"type":"tool_result",)"
            R"("tool_use_id":"c3","content":[{"type":"text",)"
            R"("text":"[masked]","cache_control":{"type":"ephemeral"}}]},)"
            R"({"type":"tool_result","tool_use_id":"c4",)"
            R"("content":"[masked]"}]})");
  EXPECT_EQ(*view.messages[6],
            R"({"role":"user","content":[{"type":"tool_result",)"
            R"("tool_use_id":"e2","is_error":true,"content":"[failed]"},)"
            R"({"type":"tool_result","tool_use_id":"e1","content":""}]})");
}

TEST(ValidTest, ATemplateMayHoldWhatJsonEscapes) {
  ScriptedSession s = EagerSession();
  s.policy.placeholder = "\"\\\n\x01 masked";
  s.Turns(4, 100);
  const std::string view = *s.Serve().messages[1];
  const absl::StatusOr<json::Document> document = json::Document::Parse(view);
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->root()["content"].children()[0]["content"].string(),
            s.policy.placeholder);
}

// --- PrefixStable ------------------------------------------------------------

// Serves, and checks the view against the one before it.
View ServeNext(ScriptedSession& s, const View& before) {
  View view = s.Serve();
  const std::vector<std::string> old = Texts(before.messages);
  const std::vector<std::string> now = Texts(view.messages);
  std::size_t same = 0;
  while (same < old.size() && old[same] == now[same]) ++same;
  EXPECT_EQ(view.stable.message_count, static_cast<std::int64_t>(same));
  EXPECT_EQ(same < old.size(),
            view.decision.break_reason != BreakReason::kNone);
  std::size_t bytes = 0;
  std::int64_t tokens = s.preamble_tokens;
  for (std::size_t m = 0; m < same; ++m) {
    bytes += now[m].size();
    tokens += AdapterFor(s.session().header().format)
                  .Parse(now[m], CharacterCounter())
                  ->tokens.total();
  }
  EXPECT_EQ(view.stable.byte_count, static_cast<std::int64_t>(bytes));
  EXPECT_EQ(view.stable.token_count, tokens);
  EXPECT_EQ(view.stable.digest.ToHex(),
            ChainDigest({now.begin(),
                         now.begin() + static_cast<std::ptrdiff_t>(same)}));
  return view;
}

TEST(PrefixStableTest, AViewBeginsWithTheOneBeforeOrDeclaresWhereItBreaks) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.preamble_tokens = 77;
    s.Ask(10);
    View view = s.Serve();
    std::int64_t breaks = 0;
    for (int turn = 1; turn <= 40; ++turn) {
      s.Turn(turn % 7 == 0 ? 900 : 100);
      if (turn % 9 == 0) s.now += 3'600 * kMicrosPerSecond;
      view = ServeNext(s, view);
      breaks += view.decision.break_reason != BreakReason::kNone ? 1 : 0;
    }
    EXPECT_GT(breaks, 4);
  }
}

TEST(PrefixStableTest, TheFirstViewHasNothingBeforeIt) {
  ScriptedSession s;
  s.Turns(5, 100);
  const View view = s.Serve();
  EXPECT_EQ(view.stable.message_count, 0);
  EXPECT_EQ(view.stable.byte_count, 0);
  EXPECT_EQ(view.stable.token_count, 0);
  EXPECT_EQ(view.stable.digest, Digest());
}

TEST(PrefixStableTest, TheSameInputsGiveTheSameBytes) {
  for (const Format format : kFormats) {
    ScriptedSession a = RichSession(format);
    ScriptedSession b = RichSession(format);
    const View view = a.Serve();
    EXPECT_EQ(view.whole.digest, b.Serve().whole.digest);
    const Session again = a.Replayed();
    EXPECT_EQ(again.ViewDigest(again.message_count()), view.whole.digest);
  }
}

TEST(PrefixStableTest, TheWholeViewIsDescribedAsItIs) {
  ScriptedSession s = RichSession(Format::kAnthropicMessages);
  s.preamble_tokens = 77;
  const View view = s.Serve();
  const std::vector<std::string> texts = Texts(view.messages);
  std::int64_t bytes = 0;
  for (const std::string& text : texts) {
    bytes += static_cast<std::int64_t>(text.size());
  }
  EXPECT_EQ(view.whole.message_count, s.session().message_count());
  EXPECT_EQ(view.whole.byte_count, bytes);
  EXPECT_EQ(view.whole.token_count, 77 + s.session().view_tokens());
  EXPECT_EQ(view.whole.digest.ToHex(), ChainDigest(texts));
}

TEST(PrefixStableTest, AnEmptySessionHasAnEmptyView) {
  ScriptedSession s;
  const View view = s.Serve();
  EXPECT_THAT(view.messages, IsEmpty());
  EXPECT_EQ(view.whole.digest, Digest());
  EXPECT_THAT(view.cache_marks, IsEmpty());
}

// --- Sticky ------------------------------------------------------------------

TEST(StickyTest, WhatIsMaskedStaysMaskedWithTheSameBytes) {
  ScriptedSession s = EagerSession();
  s.Turns(4, 100);
  s.Serve();
  const std::string masked = s.view()[1];
  s.policy = Policy();  // Another template, and ten are kept.
  for (int turn = 0; turn < 12; ++turn) {
    s.Turn(100);
    s.now += 3'600 * kMicrosPerSecond;
    s.Serve();
    EXPECT_EQ(s.view()[1], masked);
  }
  s.policy.mode = Mode::kOff;
  s.Serve();
  EXPECT_EQ(s.view()[1], masked);
  EXPECT_NE(s.view()[3], History(s)[3]) << "the later ones have the new text";
}

// --- Explained ---------------------------------------------------------------

TEST(ExplainedTest, AViewSaysWhatItMasksWhyAndWhatThatCosts) {
  ScriptedSession s = EagerSession();
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  const View view = s.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kSchedule);
  EXPECT_THAT(
      view.decision.masks,
      ElementsAre(Mask{.sequence = 1, .index = 0, .placeholder = "[masked]"}));
  EXPECT_EQ(view.decision.raw_tokens.total(), 412);
  EXPECT_EQ(view.decision.view_tokens.total(), 320);
  EXPECT_EQ(view.decision.raw_cost, 309 * 1 + 103 * 11);
  EXPECT_EQ(view.decision.view_cost, 3 * 1 + 317 * 11);
}

TEST(ExplainedTest, AViewWithoutABreakMasksNothing) {
  ScriptedSession s = EagerSession();
  s.Turns(4, 100);
  s.Serve();
  const View again = s.Serve();
  EXPECT_EQ(again.decision.break_reason, BreakReason::kNone);
  EXPECT_THAT(again.decision.masks, IsEmpty());
}

// --- Cache marks -------------------------------------------------------------

TEST(CacheMarksTest, StandAtTheFrontierTheLastViewsEndAndTheEnd) {
  ScriptedSession s;
  s.policy.mode = Mode::kBlock;
  s.Ask(10);
  s.Answer();
  s.Turns(2, 100);
  EXPECT_THAT(s.Serve().cache_marks, ElementsAre(2, 5));
  s.Turns(2, 100);
  const View view = s.Serve();
  EXPECT_EQ(view.frontier, 3);
  EXPECT_THAT(view.cache_marks, ElementsAre(2, 5, 9));
}

TEST(CacheMarksTest, StandWhereABreakBeginsInsteadOfTheLastViewsEnd) {
  ScriptedSession s = EagerSession();
  s.Turns(4, 100);
  s.Serve();
  s.Turns(3, 100);
  const View view = s.Serve();
  EXPECT_EQ(view.stable.message_count, 3);
  EXPECT_EQ(view.frontier, 9);
  EXPECT_THAT(view.cache_marks, ElementsAre(2, 8, 13));
}

TEST(CacheMarksTest, AreOneWhereAllThreeMeet) {
  ScriptedSession s;
  s.Ask(10);
  s.Serve();
  EXPECT_THAT(s.Serve().cache_marks, ElementsAre(0));
}

// The cache marks of a view that breaks in a turn of `count` calls at once,
// which stands in messages 5 and 6.
std::vector<std::int64_t> MarksOfABreakInABatch(std::size_t count) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.Ask(10);
  s.Turns(2, 5);
  s.Batch(std::vector<std::string>(count, LiteralOf(100)));
  s.Turns(3, 100);
  s.Serve();
  s.policy.mode = Mode::kEveryTurn;
  s.Turn(5);
  const View view = s.Serve();
  EXPECT_EQ(view.first_change, 6);
  return view.cache_marks;
}

// What stands before the break was written where the view before the turn
// ended, and is found from no mark that is more than 20 blocks behind it.
TEST(CacheMarksTest, StandWhereAnEarlierViewEndedIfTheBreakIsTooFarBehindIt) {
  EXPECT_THAT(MarksOfABreakInABatch(1), ElementsAre(5, 9, 14));
  EXPECT_THAT(MarksOfABreakInABatch(19), ElementsAre(5, 9, 14));
  EXPECT_THAT(MarksOfABreakInABatch(21), ElementsAre(4, 9, 14));
  EXPECT_THAT(MarksOfABreakInABatch(30), ElementsAre(4, 9, 14));
}

TEST(CacheMarksTest, StandWhereTheLastViewEndedHoweverMuchHasCome) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.Ask(10);
  s.Turns(2, 5);
  s.Serve();
  s.Batch(std::vector<std::string>(30, LiteralOf(100)));
  EXPECT_THAT(s.Serve().cache_marks, ElementsAre(4, 6));
}

TEST(CacheMarksTest, StandBehindNoFewerTokensThanAreCached) {
  ScriptedSession s = EagerSession();
  s.preamble_tokens = 40;
  s.Ask(10);
  s.Turns(1, 100);
  s.Serve();
  s.Turns(1, 100);
  const ViewServed decision = s.Serve().decision;
  // The messages have 10, 3, 100, 3 and 100 tokens.
  const auto marks_from = [&](std::int64_t cache_tokens_min) {
    return DescribeView(s.session(), decision, /*last_count=*/3,
                        /*frontier=*/1, cache_tokens_min)
        .cache_marks;
  };
  EXPECT_THAT(marks_from(50), ElementsAre(0, 2, 4));
  EXPECT_THAT(marks_from(51), ElementsAre(2, 4));
  EXPECT_THAT(marks_from(153), ElementsAre(2, 4));
  EXPECT_THAT(marks_from(154), ElementsAre(4));
  EXPECT_THAT(marks_from(256), ElementsAre(4));
  EXPECT_THAT(marks_from(257), IsEmpty());
}

TEST(CacheMarksTest, AreAtMostThreeInOrderAndTheLastIsTheEnd) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.Ask(10);
    for (int turn = 1; turn <= 60; ++turn) {
      if (turn % 7 == 0) s.now += 3'600 * kMicrosPerSecond;
      if (turn % 5 == 0) {
        s.Batch(std::vector<std::string>(
            static_cast<std::size_t>(turn % 31 + 1), LiteralOf(50)));
      } else {
        s.Turn(turn % 3 == 0 ? 900 : 100);
      }
      const View view = s.Serve();
      const std::vector<std::int64_t>& marks = view.cache_marks;
      ASSERT_GE(marks.size(), 1U);
      EXPECT_LE(marks.size(), 3U);
      EXPECT_GE(marks.front(), 0);
      EXPECT_EQ(marks.back(),
                static_cast<std::int64_t>(view.messages.size()) - 1);
      for (std::size_t i = 1; i < marks.size(); ++i) {
        EXPECT_LT(marks[i - 1], marks[i]);
      }
    }
  }
}

}  // namespace
}  // namespace clerestory
