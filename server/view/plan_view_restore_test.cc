// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// When what is masked is shown again. A turn of `n` has 3 tokens of call and
// `n` of result, and masking a result of 100 saves 92.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/eligible.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Format kAnthropic = Format::kAnthropicMessages;
constexpr TimeMicros kHour = 3'600 * kMicrosPerSecond;

// All but the newest three of `count` observations, in messages 1, 3, 5 and so
// on, are masked, and its cache is warm.
ScriptedSession MaskedSession(int count, Format format = kAnthropic) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  s.Turns(count, 100);
  s.Serve();
  return s;
}

std::vector<std::string> History(const ScriptedSession& s) {
  std::vector<std::string> texts;
  for (const SessionMessage& message : s.session().messages()) {
    texts.push_back(*message.raw);
  }
  return texts;
}

void ExpectReplays(const ScriptedSession& s) {
  EXPECT_EQ(SessionText(s.Replayed()), SessionText(s.session()));
}

// --- When --------------------------------------------------------------------

TEST(ShowAgainTest, NothingIsInAWarmCacheWithoutAnotherBreak) {
  ScriptedSession s = MaskedSession(5);
  const std::vector<std::string> before = s.view();
  s.unmasked_tools = {"r"};
  s.PinObservation(0);
  s.Turns(5, 100);
  const View view = s.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kNone);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1)) << "and no future one";
  EXPECT_EQ(view.stable.message_count,
            static_cast<std::int64_t>(before.size()));
}

TEST(ShowAgainTest, AllIsInAColdCacheThoughNothingIsMasked) {
  for (const Mode mode :
       {Mode::kAdaptive, Mode::kBlock, Mode::kThreshold, Mode::kEveryTurn}) {
    ScriptedSession s = MaskedSession(5);
    s.policy.mode = mode;
    s.policy.block_size = 1;
    s.unmasked_tools = {"r"};
    s.now += kHour;
    const View view = s.Serve();
    EXPECT_EQ(view.decision.break_reason, BreakReason::kCacheCold);
    EXPECT_EQ(view.decision.break_price, 0);
    EXPECT_EQ(view.first_change, 1);
    EXPECT_THAT(s.masked(), IsEmpty());
    EXPECT_EQ(s.view(), History(s)) << "its very bytes";
    EXPECT_EQ(view.decision.view_tokens, view.decision.raw_tokens);
    EXPECT_EQ(s.session().view_tokens(), s.session().raw_tokens().total());
    ExpectReplays(s);
    EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone) << "once";
  }
}

TEST(ShowAgainTest, ANewModelIsAFreeBreakAsWell) {
  ScriptedSession s = MaskedSession(5);
  s.PinObservation(1);
  s.model = "another";
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kModelChanged);
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(ShowAgainTest, NothingIsWhereThePolicyLeavesViewsAlone) {
  for (const Mode mode : {Mode::kOff, Mode::kDelegate}) {
    ScriptedSession s = MaskedSession(5);
    s.policy.mode = mode;
    s.unmasked_tools = {"r"};
    s.now += kHour;
    EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kNone);
    EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  }
}

// Six observations, of which 0 and 2 are masked and are pinned now, and 1, of
// `middle_tokens`, was pinned and is eligible.
ScriptedSession DueSession(std::int64_t middle_tokens = 100) {
  ScriptedSession s(kAnthropic);
  s.policy.mode = Mode::kEveryTurn;
  s.Turn(100);
  s.Turn(middle_tokens);
  s.Turns(4, 100);
  s.PinObservation(1);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 2));
  s.PinObservation(1, /*is_pinned=*/false);
  s.PinObservation(0);
  s.PinObservation(2);
  return s;
}

TEST(ShowAgainTest, ABreakShowsAgainWhatStandsBehindItsFirstChange) {
  ScriptedSession s = DueSession();
  const View view = s.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kSchedule);
  EXPECT_EQ(view.first_change, 3);
  EXPECT_THAT(
      view.decision.masks,
      ElementsAre(
          Mask{.sequence = 3, .placeholder = "[masked]"},
          Mask{.sequence = 5, .placeholder = "[masked]", .is_restored = true}));
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(s.view()[5], History(s)[5]);
  EXPECT_EQ(view.decision.view_tokens.total(), 6 * 103 - 2 * 92);
  EXPECT_EQ(view.whole.token_count, view.decision.view_call.total());
  ExpectReplays(s);
}

TEST(ShowAgainTest, ABreakCostsWhatIsWrittenAgainAndNotWhatIsShownAgain) {
  ScriptedSession s = DueSession();
  ScriptedSession without = s;
  without.PinObservation(2, /*is_pinned=*/false);
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.masks.size(), 2U);
  EXPECT_EQ(without.Plan().masks.size(), 1U);
  EXPECT_EQ(view.break_price, without.Plan().break_price);
  EXPECT_GT(view.break_price, 0);
}

TEST(ShowAgainTest, ABlockDoesSoToo) {
  ScriptedSession s = DueSession();
  s.policy.mode = Mode::kBlock;
  s.policy.block_size = 2;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone) << "not due yet";
  s.policy.block_size = 1;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(ShowAgainTest, AThresholdDoesSoWhereRoomWasMade) {
  ScriptedSession s = DueSession(/*middle_tokens=*/600);
  s.policy.mode = Mode::kThreshold;
  s.policy.low_water_tokens = 100;
  s.policy.threshold_tokens = 1'000;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone) << "not due yet";
  s.policy.threshold_tokens = 900;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(s.session().view_tokens(), 6 * 103 - 2 * 92);
}

TEST(ShowAgainTest, ABreakThatPaysDoesSoToo) {
  ScriptedSession s = DueSession();
  s.policy.mode = Mode::kAdaptive;
  for (int turn = 0; turn < 60 && s.masked() == std::vector<std::size_t>{0, 2};
       ++turn) {
    s.Turn(100);
    const ViewServed view = s.Serve().decision;
    if (view.break_reason == BreakReason::kNone) continue;
    EXPECT_EQ(view.break_reason, BreakReason::kPays);
    EXPECT_EQ(view.masks.front().sequence, 3);
  }
  EXPECT_FALSE(s.session().observations()[2].placeholder.has_value());
  EXPECT_TRUE(s.session().observations()[0].placeholder.has_value());
  ExpectReplays(s);
}

// --- The window --------------------------------------------------------------

TEST(ShowAgainTest, AForcedBreakShowsNothingAgain) {
  ScriptedSession s = DueSession();
  s.policy.keep_observations = 10;
  s.policy.window_tokens = 6 * 103 - 2 * 92 - 1;
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kWindow);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
}

// The least limit of which five sixths are `tokens`.
std::int64_t LimitFor(std::int64_t tokens) {
  std::int64_t limit = tokens;
  while (limit - limit / 6 < tokens) ++limit;
  return limit;
}

TEST(ShowAgainTest, TheNewestAreAsFarAsASixthOfTheWindowStaysFree) {
  ScriptedSession s = MaskedSession(7);
  ASSERT_THAT(s.masked(), ElementsAre(0, 1, 2, 3));
  s.unmasked_tools = {"r"};
  s.now += kHour;
  s.policy.window_tokens = LimitFor(7 * 103 - 2 * 92) - 1;
  EXPECT_EQ(s.Plan().masks.size(), 1U);
  s.policy.window_tokens += 1;
  const ViewServed view = s.Serve().decision;
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(view.break_reason, BreakReason::kCacheCold);
  EXPECT_EQ(view.view_tokens.total(), 7 * 103 - 2 * 92);
  // So that the next turn breaks nothing.
  s.policy.mode = Mode::kAdaptive;
  s.Turn(50);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kNone);
}

TEST(ShowAgainTest, ASixthOfTheThresholdStaysFree) {
  ScriptedSession s = MaskedSession(7);
  s.unmasked_tools = {"r"};
  s.policy.mode = Mode::kThreshold;
  s.now += kHour;
  s.policy.threshold_tokens = LimitFor(7 * 103 - 2 * 92) - 1;
  EXPECT_EQ(s.Plan().masks.size(), 1U);
  s.policy.threshold_tokens += 1;
  EXPECT_EQ(s.Plan().masks.size(), 2U);
  s.policy.mode = Mode::kEveryTurn;
  EXPECT_EQ(s.Plan().masks.size(), 4U) << "where there is no threshold";
}

TEST(ShowAgainTest, NothingIsThatGetsTheCallIntoADearerTier) {
  ScriptedSession s = MaskedSession(7);
  s.unmasked_tools = {"r"};
  s.now += kHour;
  const auto shown_with = [&](std::int64_t above_tokens, PicoUsd input,
                              PicoUsd output) {
    s.prices.tiers = {{.above_tokens = above_tokens,
                       .input = input,
                       .write = s.prices.write,
                       .read = s.prices.read,
                       .output = output}};
    return s.Plan().masks.size();
  };
  const PicoUsd input = s.prices.input;
  const PicoUsd output = s.prices.output;
  const std::int64_t tokens = 7 * 103 - 2 * 92;  // With two shown again.
  EXPECT_EQ(shown_with(tokens, 2 * input, output), 2U);
  EXPECT_EQ(shown_with(tokens - 1, 2 * input, output), 1U);
  EXPECT_EQ(shown_with(tokens - 1, input, output + 1), 1U);
  EXPECT_EQ(shown_with(tokens - 1, input, output), 4U) << "not dearer";
  EXPECT_EQ(shown_with(1, 2 * input, output + 1), 4U) << "in it already";
}

TEST(ShowAgainTest, NothingIsWhereTheWindowHoldsNone) {
  ScriptedSession s = MaskedSession(5);
  s.unmasked_tools = {"r"};
  s.now += kHour;
  s.policy.window_tokens = LimitFor(5 * 103 - 2 * 92 + 92) - 1;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
}

// --- Reasoning ---------------------------------------------------------------

TEST(ShowAgainTest, NoColdCacheIsEnoughWhereReasoningIsBound) {
  ScriptedSession s = MaskedSession(5);
  s.prices.reasoning_prefix_bound = true;
  s.unmasked_tools = {"r"};
  s.now += kHour;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
}

TEST(ShowAgainTest, ABreakThatMasksIsWhereReasoningIsBound) {
  ScriptedSession s = DueSession();
  s.prices.reasoning_prefix_bound = true;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(ShowAgainTest, ABreakThatOnlyLeavesOutReasoningIsOneToo) {
  ScriptedSession s(kAnthropic);
  s.policy.mode = Mode::kEveryTurn;
  s.Ask(1);
  s.Turn(100);  // Message 2 has the result.
  s.Append(AnthropicAssistant(
      {ThinkingBlock(),
       R"({"type":"tool_use","id":"x","name":"r","input":{}})"}));  // Message
                                                                    // 3.
  s.Append(
      ResultMessages(kAnthropic, {{.id = "x", .content = LiteralOf(100)}}));
  s.Turns(4, 100);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1, 2));
  s.unmasked_tools = {"r"};
  ASSERT_EQ(s.Plan().break_reason, BreakReason::kNone);
  s.prices.reasoning_prefix_bound = true;
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kSchedule);
  EXPECT_EQ(view.strip_from, 3);
  EXPECT_THAT(s.masked(), ElementsAre(0)) << "it stands before the change";
  EXPECT_FALSE(s.session().stale_from().has_value());
  ExpectReplays(s);
}

// --- What --------------------------------------------------------------------

TEST(ShowAgainTest, MaskedArgumentsAreWithTheResult) {
  for (const Format format :
       {kAnthropic, Format::kOpenaiChat, Format::kOpenaiResponses,
        Format::kGemini, Format::kBedrockConverse}) {
    ScriptedSession s(format);
    s.policy.mode = Mode::kEveryTurn;
    s.policy.argument_tokens_min = 50;
    s.policy.argument_placeholder = "[{tokens}]";
    s.Ask(1);
    s.Call({.id = "",
            .arguments = absl::StrCat(R"({"text":)", LiteralOf(60), "}")},
           LiteralOf(100));
    s.Turns(3, 100);
    const std::int64_t memory = s.session().memory_bytes();
    s.Serve();
    ASSERT_EQ(s.session().ledger().argument_mask_count, 1);
    s.PinObservation(0);
    s.now += kHour;
    const View view = s.Serve();
    EXPECT_EQ(view.first_change, 1);
    EXPECT_EQ(s.view(), History(s));
    EXPECT_FALSE(s.session().calls()[0].arguments.has_value());
    EXPECT_EQ(s.session().ledger().argument_mask_count, 1) << "ever";
    EXPECT_EQ(s.session().saved_call_tokens(), 0);
    EXPECT_EQ(view.decision.view_tokens, view.decision.raw_tokens);
    s.PinObservation(0, /*is_pinned=*/false);
    EXPECT_EQ(s.session().memory_bytes(), memory);
    ExpectReplays(s);
  }
}

TEST(ShowAgainTest, ArgumentsThatStandBeforeTheChangeKeepTheirResultMasked) {
  ScriptedSession s(kAnthropic);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 50;
  s.Ask(1);
  s.Append(AssistantMessage(
      kAnthropic, "",
      {{.id = "x",
        .arguments = absl::StrCat(R"({"text":)", LiteralOf(90), "}")},
       {.id = "y"}}));
  s.Append(
      ResultMessages(kAnthropic, {{.id = "x", .content = LiteralOf(100)},
                                  {.id = "y", .content = LiteralOf(100)}}));
  s.Turns(3, 100);
  s.PinObservation(1);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0));
  ASSERT_TRUE(s.session().calls()[0].arguments.has_value());
  s.PinObservation(1, /*is_pinned=*/false);
  s.PinObservation(0);
  EXPECT_EQ(s.Serve().first_change, 2);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(ShowAgainTest, DroppedPairsStayAway) {
  ScriptedSession s(kAnthropic);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.errors = ErrorRule::kDrop;
  s.Ask(1);
  s.Call({}, LiteralOf(100), /*is_error=*/true);
  s.Turns(4, 100);
  s.Serve();
  ASSERT_EQ(s.session().ledger().drop_count, 1);
  s.unmasked_tools = {"r"};
  s.PinObservation(0);
  s.now += kHour;
  s.Serve();
  EXPECT_THAT(s.masked(), IsEmpty());
  EXPECT_TRUE(s.session().observations()[0].is_dropped);
  EXPECT_EQ(s.view().size(), History(s).size() - 2);
  ExpectReplays(s);
}

// --- Pictures ----------------------------------------------------------------

// As DueSession, but observation 1 is a picture, which is masked, and 0 is
// eligible.
ScriptedSession PictureSession(Format format) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  s.Ask(500);
  s.Turn(100);
  s.Batch({format == kAnthropic
               ? absl::StrCat("[", ImageBlock(), "]")
               : R"([{"type":"image_url","image_url":{"url":"https://e/"}}])"});
  s.Turns(3, 100);
  s.PinObservation(0);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
  s.PinObservation(0, /*is_pinned=*/false);
  s.PinObservation(1);
  return s;
}

TEST(ShowAgainTest, TheFirstPictureIsNotSinceItWouldLoseTheWholeCache) {
  ScriptedSession s = PictureSession(kAnthropic);
  const ViewServed view = s.Serve().decision;
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(view.view_call.read, 503);
  s.now += kHour;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0)) << "there is none to lose";
  EXPECT_EQ(s.session().view_image_count(), 1);
  ExpectReplays(s);
}

TEST(ShowAgainTest, APictureBesideAnotherIs) {
  ScriptedSession s = PictureSession(kAnthropic);
  s.Append(AnthropicUser({ImageBlock()}));
  s.Answer();
  EXPECT_EQ(s.Serve().decision.view_call.read, 503);
  EXPECT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(s.session().view_image_count(), 2);
}

TEST(ShowAgainTest, APictureIsWhereNoCacheDependsOnIt) {
  ScriptedSession s = PictureSession(Format::kOpenaiChat);
  EXPECT_EQ(s.Serve().decision.view_call.read, 503);
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(ShowAgainTest, TheLastPictureMayGoWhereAnotherIsShownAgain) {
  ScriptedSession s(kAnthropic);
  s.policy.mode = Mode::kEveryTurn;
  const std::string picture = absl::StrCat("[", ImageBlock(), "]");
  s.Ask(500);
  s.Batch({picture});
  s.Batch({picture});
  s.Turns(3, 100);
  s.PinObservation(0);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(1));
  s.PinObservation(0, /*is_pinned=*/false);
  s.PinObservation(1);
  EXPECT_EQ(s.Serve().decision.view_call.read, 503) << "there is still one";
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

// --- Afterwards --------------------------------------------------------------

TEST(ShowAgainTest, WhatIsShownAgainMayBeMaskedAgainAndPaysRentAnew) {
  ScriptedSession s = MaskedSession(5);
  s.PinObservation(0);
  s.now += kHour;
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(1));
  s.PinObservation(0, /*is_pinned=*/false);
  ASSERT_NE(s.session().observations()[0].next_identical, kNoIndex);
  Policy with_copies = s.policy;
  with_copies.duplicates = DuplicateRule::kIdentical;
  EXPECT_EQ(Eligible(s.session(), with_copies).RentBase(0),
            s.session().read_price_sum())
      << "though its copy came long before";
  s.policy.mode = Mode::kAdaptive;
  s.Turn(100);
  s.Serve();
  EXPECT_LT(Eligible(s.session(), s.policy).RentBase(0),
            s.session().read_price_sum());
  s.policy.mode = Mode::kEveryTurn;
  s.Serve();
  EXPECT_TRUE(s.session().observations()[0].placeholder.has_value());
  ExpectReplays(s);
}

TEST(ShowAgainTest, TheLedgerSaysWhatIsMaskedAndHowManyWereShownAgain) {
  ScriptedSession s = DueSession();
  s.Serve();
  const Ledger& ledger = s.session().ledger();
  EXPECT_EQ(ledger.mask_count, 2);
  EXPECT_EQ(ledger.restore_count, 1);
  EXPECT_EQ(ledger.break_entries.back().mask_count, 1);
  EXPECT_EQ(ledger.break_entries.back().saved_tokens, 0) << "92 less 92";
}

}  // namespace
}  // namespace clerestory
