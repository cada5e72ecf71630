// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a break costs, when it is made, and what a call is estimated to cost.
// The sums are done by hand: a character is a token, a turn of `n` has 3 tokens
// of call and `n` of result, a placeholder has 8, and reads cost 1.

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
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimeMicros kTtl = 300 * kMicrosPerSecond;

// --- Rent or buy -------------------------------------------------------------

// Plays turns of 100 tokens, each with its call, until one breaks.
int TurnsToBreak(ScriptedSession& s) {
  for (int turn = 1; turn < 100; ++turn) {
    s.Turn(100);
    if (!s.Serve().decision.masks.empty()) return turn;
  }
  return 0;
}

// After k + 3 turns of 103 tokens, k observations are eligible. Masking each
// saves 92; the first has paid k calls of rent, the next k - 1, and so on:
// 92 * k * (k + 1) / 2. Behind the first one's call, 3 tokens, there are
// 103 * (k + 3) - 3 tokens, of which 92 * k would go and 103 are new anyway:
// 203 + 11 * k are written that would have been read.
TEST(NeverDearerTest, ABreakIsMadeInTheCallInWhichItsRentReachesItsPrice) {
  ScriptedSession s;  // A write costs 10 more than a read.
  EXPECT_EQ(TurnsToBreak(s), 8 + 3);
  const ViewServed& view = *s.session().last_view();
  EXPECT_EQ(view.break_reason, BreakReason::kPays);
  EXPECT_EQ(view.break_price, (203 + 11 * 8) * 10);  // 2910
  EXPECT_EQ(view.break_rent, 92 * 8 * 9 / 2);        // 3312; after 7: 2576
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(NeverDearerTest, RentThatEqualsThePriceIsEnough) {
  // After 7 calls: a price of 280 writes for reads, a rent of 2576 reads.
  ScriptedSession equal;
  equal.prices.read = 10;
  equal.prices.write = 10 + 92;
  EXPECT_EQ(TurnsToBreak(equal), 7 + 3);
  EXPECT_EQ(equal.session().last_view()->break_price,
            equal.session().last_view()->break_rent);
  ScriptedSession dearer;
  dearer.prices.read = 10;
  dearer.prices.write = 10 + 93;
  EXPECT_EQ(TurnsToBreak(dearer), 8 + 3);
}

// After 9 calls: a rent of 4140 for a price of 3020, after 10: 5060 for 3130.
TEST(NeverDearerTest, TheFirstBreakWaitsForThePercentageOfItsPrice) {
  ScriptedSession s;
  s.policy.first_break_percent = 140;
  s.policy.later_break_percent = 1;
  EXPECT_EQ(TurnsToBreak(s), 10 + 3);
  s.policy.first_break_percent = 10'000;
  // One observation: a rent of 92 for a price of 2140.
  EXPECT_EQ(TurnsToBreak(s), 1) << "a later one waits for its own";
  EXPECT_LT(s.session().last_view()->break_rent,
            s.session().last_view()->break_price);
}

// Twelve observations are enough for a break: a rent of 92 * 78 = 7176 for a
// price of (203 + 11 * 12 + 380) * 10 = 7150, of which 3800 are for writing the
// thirteenth anew, which has 480 tokens. One call later it can go, too.
TEST(NeverDearerTest, ARipeBreakWaitsForALargeObservation) {
  for (const std::int64_t ahead : {0, 1, 12}) {
    ScriptedSession s;
    s.policy.look_ahead_calls = ahead;
    s.policy.reclaim_tokens_min = 92 * 12;
    while (s.masked().empty()) {
      s.Turn(s.session().observations().size() == 12 ? 480 : 100);
      s.Serve();
    }
    const ViewServed& view = *s.session().last_view();
    EXPECT_EQ(view.masks.size(), ahead == 0 ? 12U : 13U);
    EXPECT_EQ(view.break_rent, ahead == 0 ? 7'176 : 7'176 + 12 * 92 + 472);
  }
}

TEST(NeverDearerTest, AFreeOrForcedBreakIsNotTheFirst) {
  ScriptedSession s;
  s.policy.later_break_percent = 1;
  s.Turns(4, 100);
  ASSERT_EQ(s.Serve().decision.break_reason, BreakReason::kCacheCold);
  s.Turn(100);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kNone);
}

TEST(NeverDearerTest, WritesThatCostNoMoreThanReadsBreakAtOnce) {
  ScriptedSession s;
  s.prices.write = s.prices.read;
  EXPECT_EQ(TurnsToBreak(s), 4);
  EXPECT_EQ(s.session().last_view()->break_price, 0);
}

// A small observation, 200 tokens of a question, then large observations, of
// which 8 have to be eligible before the policy lets a break happen. From the
// first large one on: a rent of 992 * 36 = 35712 for a price of
// (11 * 11 + 1970) * 10 = 20910. From the small one on: 12 * 9 more rent,
// 200 + 23 - 12 more tokens to write.
TEST(NeverDearerTest, TheSuffixWithTheLargestSurplusIsMaskedNotTheLongest) {
  ScriptedSession s;
  s.policy.reclaim_tokens_min = 992 * 8;
  s.Turn(20);
  s.Ask(200);
  s.Serve();
  for (int turn = 1; turn <= 10; ++turn) {
    s.Turn(1'000);
    ASSERT_THAT(s.Serve().decision.masks, IsEmpty());
  }
  s.Turn(1'000);
  const ViewServed view = s.Serve().decision;
  EXPECT_THAT(s.masked(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(view.break_rent, 35'712);
  EXPECT_EQ(view.break_price, 20'910);
  EXPECT_EQ(s.session().candidates(), std::vector<std::size_t>{0})
      << "it waits for a break that reaches it";
}

// As before, but from the small one on there are 20 * 9 more rent, and 7 + 28 +
// 3 - 20 more tokens to write: the same surplus.
TEST(NeverDearerTest, OfEqualSurplusesTheLongestIsMasked) {
  ScriptedSession s;
  s.policy.reclaim_tokens_min = 992 * 8;
  s.Turn(28);
  s.Ask(7);
  s.Serve();
  for (int turn = 1; turn <= 11; ++turn) {
    s.Turn(1'000);
    s.Serve();
  }
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

// Masking the second alone would leave the first one's 8 tokens, and save
// its 2.
TEST(NeverDearerTest, ASuffixBeginsWithAWholeBatch) {
  ScriptedSession s;
  s.Batch({LiteralOf(10), LiteralOf(2'000)});
  s.Serve();
  s.Turns(3, 10);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kPays);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(NeverDearerTest, RentAccruesFromTheFirstCallInWhichItIsEligible) {
  ScriptedSession s;
  s.policy.reclaim_tokens_min = 92;
  s.prices.write = s.prices.read;
  s.Turns(3, 100);
  for (int i = 0; i < 5; ++i) {
    s.Ask(1);
    s.Serve();
  }
  s.Turn(100);
  EXPECT_EQ(s.Plan().break_rent, 92);
}

TEST(NeverDearerTest, TheSameCallAgainAddsNoRentAndNothingToTheLedger) {
  ScriptedSession s;
  s.Turns(4, 100);
  s.policy.reclaim_tokens_min = 1'000;
  const View first = s.Serve();
  const std::string ledger = LedgerText(s.session().ledger());
  const std::int64_t breaks = s.session().ledger().breaks[0];
  for (int i = 0; i < 50; ++i) {
    const View again = s.Serve();
    EXPECT_FALSE(again.decision.is_new_call);
    EXPECT_EQ(Texts(again.messages), Texts(first.messages));
    EXPECT_EQ(again.whole.digest, first.whole.digest);
    EXPECT_EQ(again.stable.message_count, 8);
  }
  EXPECT_EQ(s.session().read_price_sum(), s.prices.read);
  EXPECT_EQ(s.session().ledger().breaks[0], breaks) << "a repeat is no view";
  EXPECT_EQ(LedgerText(s.session().ledger()), ledger);
}

// In the last view stand 103 tokens of a turn and 10000 of a question. 8 turns
// of 5000 are appended in one go: of those, 5 are eligible at once, and masking
// them writes nothing that could have been read. Masking the first one too
// would write 10000 - 92 + 100 tokens again.
TEST(NeverDearerTest, WhatWasNeverSentIsMaskedWithoutABreak) {
  ScriptedSession s;
  s.Turn(100);
  s.Ask(10'000);
  s.Serve();
  s.Turns(8, 5'000);
  const View view = s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(view.decision.break_price, 0);
  EXPECT_EQ(view.stable.message_count, 3) << "all of the view before";
  EXPECT_EQ(view.decision.view_call.read, 10'103);
}

// --- Breaks that are free ----------------------------------------------------

TEST(ColdCacheTest, TheFirstViewMasksEverythingEligible) {
  ScriptedSession s;
  s.Turns(6, 100);
  const View view = s.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kCacheCold);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
  EXPECT_EQ(view.stable.message_count, 0);
}

TEST(ColdCacheTest, AtTheTtlTheCacheIsWarmAndAMicrosecondLaterCold) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  s.now += kTtl;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
  EXPECT_GT(s.Plan().view_call.read, 0);
  s.now += 1;
  const ViewServed cold = s.Plan();
  EXPECT_EQ(cold.break_reason, BreakReason::kCacheCold);
  EXPECT_EQ(cold.masks.size(), 1U);
  EXPECT_EQ(cold.view_call.read, 0);
  EXPECT_EQ(cold.raw_call.read, 0);
}

TEST(ColdCacheTest, TheTtlIsTheModels) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  s.now += kTtl + 1;
  s.prices.cache_ttl_seconds = 301;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
}

TEST(ColdCacheTest, EveryCallKeepsTheCacheWarmARepeatedOneToo) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.now += kTtl;
  s.Serve();
  s.Turn(100);
  s.now += kTtl;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
}

TEST(ColdCacheTest, TheClockSurvivesARestart) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  const Session again = s.Replayed();
  const ViewRequest warm = {.now = s.now + kTtl, .model = s.model};
  const ViewRequest cold = {.now = s.now + kTtl + 1, .model = s.model};
  EXPECT_EQ(PlanView(again, s.policy, s.prices, warm).break_reason,
            BreakReason::kNone);
  EXPECT_EQ(PlanView(again, s.policy, s.prices, cold).break_reason,
            BreakReason::kCacheCold);
}

TEST(ColdCacheTest, AClockThatGoesBackIsWarm) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  s.now -= 10 * kTtl;
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kNone);
  EXPECT_EQ(view.view_call, (CallTokens{.read = 309, .written = 103}));
}

TEST(ColdCacheTest, AnotherModelIsFreeAndReadsNothing) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  s.model = "another";
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kModelChanged);
  EXPECT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(view.view_call, (CallTokens{.read = 0, .written = 320}));
  s.Turn(100);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kNone);
}

// --- Pictures ----------------------------------------------------------------

// A session whose first observation is a picture, with 500 tokens before it.
ScriptedSession PictureSession(Format format) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  s.preamble_tokens = 1'000;
  s.Ask(500);
  s.Batch({format == Format::kAnthropicMessages
               ? absl::StrCat("[", ImageBlock(), "]")
               : R"([{"type":"image_url","image_url":{"url":"https://e/"}}])"});
  s.Turns(2, 100);
  s.Serve();
  return s;
}

TEST(LastImageTest, MaskingItLosesTheCacheOfAllMessages) {
  ScriptedSession s = PictureSession(Format::kAnthropicMessages);
  s.Turn(100);
  const ViewServed view = s.Serve().decision;
  ASSERT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(view.view_call.read, 1'000) << "the preamble is kept";
}

TEST(LastImageTest, IsNothingSpecialWhileAnotherIsShown) {
  ScriptedSession s = PictureSession(Format::kAnthropicMessages);
  s.Append(AnthropicUser({ImageBlock()}));
  s.Turn(100);
  const ViewServed view = s.Serve().decision;
  ASSERT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(view.view_call.read, 1'503);
}

TEST(LastImageTest, IsNothingSpecialInChat) {
  ScriptedSession s = PictureSession(Format::kOpenaiChat);
  s.Turn(100);
  const ViewServed view = s.Serve().decision;
  ASSERT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(view.view_call.read, 1'503);
}

TEST(LastImageTest, IsPricedFromTheFirstMessage) {
  for (const Format format :
       {Format::kAnthropicMessages, Format::kOpenaiChat}) {
    ScriptedSession s = PictureSession(format);
    s.policy.mode = Mode::kAdaptive;
    const std::int64_t picture =
        s.session().observations()[0].result.token_count;
    const std::int64_t turns = 2 + TurnsToBreak(s);
    const ViewServed view = *s.session().last_view();
    ASSERT_EQ(view.break_reason, BreakReason::kPays);
    ASSERT_THAT(s.masked(), Contains(0U));
    const std::int64_t others =
        static_cast<std::int64_t>(s.masked().size()) - 1;
    const std::int64_t before = format == Format::kAnthropicMessages ? 0 : 503;
    const std::int64_t last_view = 503 + picture + 103 * (turns - 1);
    const std::int64_t saved = picture - 8 + 92 * others;
    EXPECT_EQ(view.break_price, (last_view - saved - before) * 10);
  }
}

// --- What a call costs -------------------------------------------------------

TEST(ExplainedTest, ACallReadsTheLastViewAndWritesTheRest) {
  ScriptedSession s;
  s.preamble_tokens = 50;
  s.Turn(100);
  const ViewServed first = s.Serve().decision;
  EXPECT_EQ(first.view_call, (CallTokens{.read = 0, .written = 153}));
  EXPECT_EQ(first.view_cost, 153 * 11);
  s.Turn(200);
  const ViewServed second = s.Serve().decision;
  EXPECT_EQ(second.view_call, (CallTokens{.read = 153, .written = 203}));
  EXPECT_EQ(second.raw_call, second.view_call);
  EXPECT_EQ(second.view_cost, 153 * 1 + 203 * 11);
  EXPECT_EQ(second.raw_cost, second.view_cost);
  EXPECT_EQ(second.preamble_tokens, 50);
}

TEST(ExplainedTest, ABreakReadsWhatStandsBeforeItAndRawAllOfTheLastView) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.preamble_tokens = 50;
  s.Ask(7);
  s.Turns(3, 100);
  s.Serve();
  s.Turn(100);
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.view_call, (CallTokens{.read = 60, .written = 317}));
  EXPECT_EQ(view.raw_call, (CallTokens{.read = 366, .written = 103}));
  EXPECT_EQ(view.raw_tokens,
            (StageTokens{
                .user = 7, .assistant = 0, .calls = 12, .observations = 400}));
  EXPECT_EQ(view.view_tokens,
            (StageTokens{
                .user = 7, .assistant = 0, .calls = 12, .observations = 308}));
  s.Turn(100);
  const ViewServed next = s.Serve().decision;
  EXPECT_EQ(next.raw_call.read, 469) << "as if nothing had ever been masked";
  EXPECT_EQ(next.view_call.read, 50 + 7 + 3 + 8 + 3);
}

TEST(ExplainedTest, TheAnswerIsCountedWithTheCallAfterIt) {
  ScriptedSession s;
  s.Ask(10);
  s.Answer(1'000);  // Of no call of ours.
  EXPECT_EQ(s.Serve().decision.output_tokens, 0);
  s.Answer(20);
  s.Ask(10);
  s.Turn(100);
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.output_tokens, 23);
  EXPECT_EQ(view.output_cost, 23 * 50);
  EXPECT_EQ(s.Serve().decision.output_tokens, 0);
}

}  // namespace
}  // namespace clerestory
