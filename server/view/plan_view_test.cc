// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What may be masked, and what each mode masks. What a break costs, and when it
// is made, is in plan_view_price_test.cc.

#include "server/view/plan_view.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/candidate.h"
#include "server/view/eligible.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

// A session that masks whatever is eligible.
ScriptedSession EagerSession(Format format = Format::kAnthropicMessages) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

std::string TextResult(std::size_t tokens) { return LiteralOf(tokens); }

// --- Eligibility -------------------------------------------------------------

TEST(EligibilityTest, TheNewestTenObservationsAreKept) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.policy.keep_observations = Policy().keep_observations;
    s.Turns(12, 100);
    s.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  }
}

TEST(EligibilityTest, ABatchAtTheBoundaryIsKeptWhole) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.Batch({TextResult(100), TextResult(100)});
    s.Turns(2, 100);
    s.Serve();
    EXPECT_THAT(s.masked(), IsEmpty()) << "one of the two is among the newest";
    s.Turn(100);
    s.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  }
}

TEST(EligibilityTest, WhatTheModelDidNotActUponIsKept) {
  ScriptedSession s = EagerSession();
  s.policy.keep_observations = 0;
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), IsEmpty());
  s.Ask(5);
  s.Serve();
  EXPECT_THAT(s.masked(), IsEmpty()) << "a question is no action";
  s.Answer();
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(EligibilityTest, ABatchWaitsForItsLastResult) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.Append(AssistantMessage(format, "", {{.id = "x"}, {.id = "late"}}));
    s.Append(ResultMessages(format, {{.id = "x", .content = TextResult(100)}}));
    s.Turns(4, 100);
    s.Serve();
    EXPECT_THAT(s.masked(), IsEmpty());
    s.Append(
        ResultMessages(format, {{.id = "late", .content = TextResult(100)}}));
    s.Turns(2, 100);
    s.Serve();
    EXPECT_THAT(s.masked(), IsEmpty()) << "the late one is among the newest";
    s.Turn(100);
    s.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(EligibilityTest, ACallThatIsNeverAnsweredDoesNotStopMasking) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.Append(AssistantMessage(format, "", {{.id = "x"}, {.id = "never"}}));
    s.Append(ResultMessages(format, {{.id = "x", .content = TextResult(100)}}));
    s.Turns(kBatchHoldTurns - 1, 100);
    s.Serve();
    EXPECT_THAT(s.masked(), IsEmpty());
    s.Turn(100);
    s.Serve();
    EXPECT_EQ(s.masked().size(), 18U) << "all but the newest three";
  }
}

TEST(EligibilityTest, CallsThatAreAnsweredLateAllTheTimeDoNotStopMasking) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    for (int i = 0; i < 60; ++i) {
      const std::string id = absl::StrCat("c", i);
      const std::string slow = absl::StrCat("slow", i);
      s.Append(AssistantMessage(format, "", {{.id = id}, {.id = slow}}));
      s.Append(ResultMessages(format, {{.id = id, .content = TextResult(90)}}));
      if (i < 9) continue;
      s.Append(ResultMessages(format, {{.id = absl::StrCat("slow", i - 9),
                                        .content = TextResult(90)}}));
      s.Serve();
    }
    EXPECT_GT(s.masked().size(), 60U);
  }
}

TEST(EligibilityTest, TheWindowWaitsForNoBatch) {
  ScriptedSession s = EagerSession();
  s.prices.window_tokens = 600;
  s.Append(AssistantMessage(Format::kAnthropicMessages, "",
                            {{.id = "x"}, {.id = "never"}}));
  s.Append(ResultMessages(Format::kAnthropicMessages,
                          {{.id = "x", .content = TextResult(100)}}));
  s.Turns(6, 100);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kWindow);
  EXPECT_EQ(s.masked().front(), 0U);
}

TEST(EligibilityTest, TheNewestTurnsOfThePolicyAreKept) {
  ScriptedSession s = EagerSession();
  s.policy.keep_turns = 5;
  s.Turns(6, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(EligibilityTest, WhatAStricterPolicyKeepsIsKeptAtOnce) {
  ScriptedSession s = EagerSession();
  s.policy.reclaim_tokens_min = 1'000;
  s.Turns(7, 100);
  s.Serve();
  ASSERT_EQ(s.session().eligible_count(), 4);
  ASSERT_THAT(s.masked(), IsEmpty());
  s.policy.reclaim_tokens_min = 0;
  s.policy.keep_observations = 6;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(EligibilityTest, AnObservationSmallerThanItsPlaceholderIsNeverMasked) {
  ScriptedSession s = EagerSession();
  s.Turn(8);  // `[masked]` has 8.
  s.Turn(9);
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
}

TEST(EligibilityTest, APlaceholderIsMeasuredAsItStandsInTheView) {
  // 11 characters, and 23 bytes of JSON with their escapes and quotes.
  ScriptedSession s = EagerSession();
  s.policy.placeholder = R"(""""""""""m)";
  s.Turn(18);  // 20 bytes of JSON.
  s.Turn(30);
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
}

TEST(EligibilityTest, TheLeastSizeHoldsInEveryCall) {
  ScriptedSession s = EagerSession();
  s.policy.placeholder = "~";
  s.Turn(kMaskableTokensMin - 1);
  s.Turn(kMaskableTokensMin);
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
}

TEST(EligibilityTest, WhatHasNoLegalPlaceholderIsNeverMasked) {
  ScriptedSession s = EagerSession();
  s.Batch({R"([{"type":"tool_reference","tool_name":"a_very_long_name"}])",
           R"("")", "[]", TextResult(100)});
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(3));
}

TEST(EligibilityTest, NothingIsMaskedBeforeReasoningWhereThatIsAvoided) {
  ScriptedSession s = EagerSession();
  s.policy.thinking = ThinkingRule::kAvoid;
  s.prices.reasoning_prefix_bound = true;
  s.Turns(2, 100);
  s.Append(AnthropicAssistant({ThinkingBlock(), TextBlock("so")}));
  s.Turns(4, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(2));
  s.policy.window_tokens = 1;
  s.now += 3'600 * kMicrosPerSecond;
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(2, 3)) << "not for the window either";
}

TEST(EligibilityTest, ReasoningThatIsNotBoundStopsNothing) {
  ScriptedSession s = EagerSession();
  s.Turns(2, 100);
  s.Append(AnthropicAssistant({ThinkingBlock(), TextBlock("so")}));
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(EligibilityTest, AnErrorGetsThePlaceholderOfErrors) {
  ScriptedSession s = EagerSession();
  s.Append(AssistantMessage(Format::kAnthropicMessages, "", {{.id = "x"}}));
  s.Append(ResultMessages(
      Format::kAnthropicMessages,
      {{.id = "x", .content = TextResult(100), .is_error = true}}));
  s.Turns(3, 100);
  s.Serve();
  EXPECT_EQ(s.view()[1],
            R"({"role":"user","content":[{"type":"tool_result",)"
            R"("tool_use_id":"x","is_error":true,"content":"[failed]"}]})");
}

// --- Saving and frontier -----------------------------------------------------

TEST(MaskSavingTest, IsWhatTheObservationHasMoreThanItsPlaceholder) {
  ScriptedSession s = EagerSession();
  s.Turn(100);
  s.Turn(8);
  s.Turns(3, 50);
  EXPECT_EQ(MaskSaving(s.session(), s.policy, s.prices, 0), 92);
  EXPECT_EQ(MaskSaving(s.session(), s.policy, s.prices, 1), 0) << "too small";
  s.Serve();
  EXPECT_EQ(MaskSaving(s.session(), s.policy, s.prices, 0), 0) << "masked";
  EXPECT_EQ(MaskSaving(s.session(), s.policy, s.prices, 4), 42) << "any age";
}

TEST(FrontierTest, IsTheFirstMessageWithAnObservationThatCouldBeMasked) {
  ScriptedSession s = EagerSession();
  s.Turns(4, 100);
  EXPECT_EQ(FrontierOf(s.session(), s.policy, s.prices), 1);
  EXPECT_EQ(s.Serve().frontier, 3);
  s.Turn(100);
  EXPECT_EQ(s.Serve().frontier, 5);
}

TEST(FrontierTest, IsTheEndWhereNothingCouldBeMasked) {
  ScriptedSession s = EagerSession();
  s.Ask(5);
  s.Answer(100);
  s.Turn(8);
  EXPECT_EQ(s.Serve().frontier, 4);
  s.Turn(100);
  s.policy.mode = Mode::kOff;
  EXPECT_EQ(s.Serve().frontier, 6);
}

TEST(FrontierTest, PassesWhatTheWindowForcedToBeMasked) {
  ScriptedSession s;
  s.policy.keep_observations = 10;
  s.Turns(5, 100);
  s.policy.window_tokens = 1;
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(FrontierOf(s.session(), s.policy, s.prices), 5);
}

TEST(FrontierTest, PassesWhatReasoningKeepsFromBeingMasked) {
  ScriptedSession s;
  s.policy.thinking = ThinkingRule::kAvoid;
  s.prices.reasoning_prefix_bound = true;
  s.Turn(100);
  s.Append(AnthropicAssistant({ThinkingBlock(), TextBlock("so")}));
  s.Turn(100);
  EXPECT_EQ(FrontierOf(s.session(), s.policy, s.prices), 4);
}

// --- Modes -------------------------------------------------------------------

TEST(ModeTest, OffNeverMasksNotEvenForTheWindow) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.policy.window_tokens = 1;
  s.Turns(9, 100);
  const View view = s.Serve();
  EXPECT_THAT(s.masked(), IsEmpty());
  EXPECT_EQ(view.decision.break_reason, BreakReason::kNone);
  s.now += 3'600 * kMicrosPerSecond;
  s.model = "another";
  s.Serve();
  EXPECT_THAT(s.masked(), IsEmpty());
}

TEST(ModeTest, EveryTurnMasksAsSoonAsAnObservationIsEligible) {
  ScriptedSession s = EagerSession();
  s.Turns(3, 100);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kNone);
  s.Turn(100);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kSchedule);
  EXPECT_THAT(s.masked(), ElementsAre(0));
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(ModeTest, BlockMasksWhenSoManyObservationsAreEligible) {
  ScriptedSession s;
  s.policy.mode = Mode::kBlock;
  s.policy.block_size = 3;
  for (int turn = 1; turn <= 9; ++turn) {
    s.Turn(100);
    const BreakReason reason = s.Serve().decision.break_reason;
    EXPECT_EQ(reason, turn == 6 || turn == 9 ? BreakReason::kSchedule
                                             : BreakReason::kNone)
        << turn;
  }
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ModeTest, ThresholdMasksOnlyWhatHasMoreTokens) {
  ScriptedSession s;
  s.policy.mode = Mode::kThreshold;
  s.Turns(6, 100);
  s.policy.threshold_tokens = 618;  // A turn has 103.
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
  s.preamble_tokens = 1;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kSchedule);
  EXPECT_EQ(s.Plan().masks.size(), 3U) << "down to 0, or as far as it goes";
}

TEST(ModeTest, ThresholdMasksTheOldestDownToTheLowWaterMark) {
  ScriptedSession s;
  s.policy.mode = Mode::kThreshold;
  s.policy.threshold_tokens = 700;
  s.policy.low_water_tokens = 721 - 2 * 92;
  s.Turns(7, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(ModeTest, ThresholdMasksABatchWhole) {
  ScriptedSession s;
  s.policy.mode = Mode::kThreshold;
  s.policy.threshold_tokens = 1;
  s.policy.low_water_tokens = 500;
  s.Batch({TextResult(100), TextResult(100), TextResult(100)});
  s.Turns(3, 100);  // 618 in all: two masks would do.
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
}

TEST(ModeTest, ABreakThatRemovesTooLittleIsNotMadeInAnyMode) {
  for (const Mode mode :
       {Mode::kAdaptive, Mode::kBlock, Mode::kThreshold, Mode::kEveryTurn}) {
    ScriptedSession s;
    s.policy.mode = mode;
    s.policy.block_size = 1;
    s.policy.threshold_tokens = 1;
    s.policy.reclaim_tokens_min = 93;
    s.Turns(4, 100);
    EXPECT_THAT(s.Plan().masks, IsEmpty()) << ModeName(mode);
    s.policy.reclaim_tokens_min = 92;
    EXPECT_EQ(s.Plan().masks.size(), 1U) << ModeName(mode);
    s.policy.reclaim_tokens_min = 93;
    s.policy.window_tokens = 400;
    EXPECT_EQ(s.Plan().masks.size(), 1U) << "but the window forces it";
  }
}

TEST(PlanViewTest, ChangesNothing) {
  ScriptedSession s = EagerSession();
  s.Turns(5, 100);
  const std::string before = SessionText(s.session());
  const ViewServed first = s.Plan();
  EXPECT_EQ(SessionText(s.session()), before);
  EXPECT_EQ(s.Plan(), first);
}

// What is left of such a template when its marks are filled in is short.
TEST(EligibilityTest, ATemplateThatRepeatsAMarkMasksWhatItIsShorterThan) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.placeholder = "{tokens}{tokens}{tokens}{tokens}{tokens}";
  s.Turns(5, 20);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace clerestory
