// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// The sums are done by hand: a character is a token.

#include "server/view/call_cost.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

// A session that nothing is masked in, of which 1000 tokens are cached, and 200
// are new.
class CallCostTest : public ::testing::Test {
 protected:
  CallCostTest() {
    s_.policy.mode = Mode::kOff;
    Restart(1'000, 200);
  }

  void Restart(std::int64_t cached, std::int64_t appended) {
    s_.Ask(cached);
    s_.Serve();
    s_.Ask(appended);
  }
  CallCost Cost() {
    request_.now = s_.now;
    request_.model = s_.model;
    return CallCost(s_.session(), s_.policy, s_.prices, request_);
  }

  ScriptedSession s_;  // Reads cost 1, writes 11, other input 10, output 50.
  ViewRequest request_;
};

// --- A call ------------------------------------------------------------------

TEST_F(CallCostTest, ReadsWhatIsCachedAndWritesTheRest) {
  const CallCost cost = Cost();
  EXPECT_EQ(cost.cold_reason(), BreakReason::kNone);
  EXPECT_EQ(cost.cached_view_tokens(), 1'000);
  EXPECT_EQ(cost.Split(1'200, 1'000),
            (CallTokens{.read = 1'000, .written = 200}));
  EXPECT_EQ(cost.Cost({.read = 1'000, .written = 200}), 1'000 + 200 * 11);
}

TEST_F(CallCostTest, ThePreambleIsPartOfThePrompt) {
  request_.preamble_tokens = 50;
  EXPECT_EQ(Cost().PromptTokens(1'200), 1'250);
  EXPECT_EQ(Cost().Split(1'200, 50),
            (CallTokens{.read = 50, .written = 1'200}));
}

TEST_F(CallCostTest, ReadsNoMoreThanThereIs) {
  EXPECT_EQ(Cost().Split(400, 1'000), (CallTokens{.read = 400}));
  EXPECT_EQ(Cost().Split(400, -5), (CallTokens{.written = 400}));
}

TEST_F(CallCostTest, WhereNothingIsCachedAllCostsTheInput) {
  s_.prices.read = s_.prices.write = s_.prices.input;
  const CallCost cost = Cost();
  EXPECT_EQ(cost.Split(1'200, 1'000), (CallTokens{.uncached = 1'200}));
  EXPECT_EQ(cost.Cost({.uncached = 1'200}), 12'000);
  EXPECT_EQ(cost.BreakPrice({.saving = 300, .tokens_before = 100}), 0);
}

TEST_F(CallCostTest, AProviderThatIsSeenToCacheNothingCostsTheInput) {
  s_.Ask(10'000);
  for (int i = 0; i < 3; ++i) {
    s_.Serve();
    s_.Ask(100);
    s_.Serve();
    s_.Report({.input_uncached = 11'000,
               .cache_read = 0,
               .cache_write = std::nullopt,
               .output = 1,
               .reasoning = std::nullopt});
    s_.Ask(100);
  }
  ASSERT_EQ(s_.session().cache().StatusOf(s_.model), CacheStatus::kAbsent);
  const CallCost cost = Cost();
  EXPECT_EQ(cost.RatesOf(11'000),
            (TokenRates{.input = 10, .write = 10, .read = 10, .output = 50}));
  EXPECT_EQ(cost.BreakPrice({.saving = 300, .tokens_before = 100}), 0);
  EXPECT_FALSE(cost.LosesCache(11'000)) << "there is none to lose";
}

// --- The least size ----------------------------------------------------------

TEST_F(CallCostTest, APromptBelowTheLeastSizeIsNotCached) {
  s_.prices.cache_tokens_min = 1'200;
  EXPECT_EQ(Cost().Split(1'199, 1'000), (CallTokens{.uncached = 1'199}));
  EXPECT_EQ(Cost().Split(1'200, 1'000),
            (CallTokens{.read = 1'000, .written = 200}));
}

TEST_F(CallCostTest, ABreakLosesTheCacheIfItLeavesLessThanTheLeastSize) {
  s_.prices.cache_tokens_min = 900;
  EXPECT_FALSE(Cost().LosesCache(300));
  EXPECT_TRUE(Cost().LosesCache(301));
  request_.preamble_tokens = 1;
  EXPECT_FALSE(Cost().LosesCache(301)) << "the preamble counts";
  s_.prices.cache_tokens_min = 1'202;
  EXPECT_FALSE(Cost().LosesCache(301)) << "it is too short already";
}

// --- A break -----------------------------------------------------------------

TEST_F(CallCostTest, ABreakWritesAgainWhatItWouldHaveRead) {
  // 1000 cached: 100 stand before the change, 300 of the rest go.
  EXPECT_EQ(Cost().BreakPrice(
                {.saving = 300, .cached_saving = 300, .tokens_before = 100}),
            (1'000 - 300 - 100) * 10);
}

TEST_F(CallCostTest, WhatWasNotSentIsWrittenAnyway) {
  EXPECT_EQ(Cost().BreakPrice({.saving = 100, .tokens_before = 1'000}), 0);
  EXPECT_EQ(Cost().BreakPrice({.saving = 100, .tokens_before = 990}), 100);
}

TEST_F(CallCostTest, LostReasoningIsPaidAsOutput) {
  EXPECT_EQ(Cost().BreakPrice(
                {.saving = 100, .tokens_before = 1'000, .lost_reasoning = 7}),
            7 * 50);
}

TEST_F(CallCostTest, ThePriceIsNeverBelowNothing) {
  EXPECT_EQ(
      Cost().BreakPrice(
          {.saving = 1'200, .cached_saving = 1'200, .tokens_before = 1'000}),
      0);
}

// --- Tiers -------------------------------------------------------------------

PriceTier DoubleAbove(std::int64_t tokens) {
  return {.above_tokens = tokens,
          .input = 20,
          .write = 22,
          .long_write = 0,
          .read = 2,
          .output = 75};
}

TEST_F(CallCostTest, ATierBeginsAboveItsTokens) {
  s_.prices.tiers = {DoubleAbove(1'200)};
  EXPECT_EQ(Cost().RatesOf(1'200).read, 1);
  EXPECT_EQ(Cost().RatesOf(1'201).read, 2);
  EXPECT_EQ(Cost().RatesOf(1'201).output, 75);
  EXPECT_EQ(Cost().Cost({.read = 1'001, .written = 200}), 2'002 + 4'400)
      << "all of the request";
}

TEST_F(CallCostTest, GettingIntoACheaperTierIsTakenOffThePrice) {
  s_.prices.tiers = {DoubleAbove(1'150)};
  // 1100 are left, at the lower prices. 20 of the 50 that go were cached, and
  // 900 stand before them: 80 are written again. The whole call saves half.
  const BreakSize size = {
      .saving = 100, .cached_saving = 20, .tokens_before = 900};
  EXPECT_EQ(Cost().BreakPrice(size), 0);
  const PicoUsd there = 900 * 2 + 200 * 22;
  const PicoUsd here = 900 * 1 + 200 * 11;
  ASSERT_GT(there - here, 80 * 10);
  // With reasoning lost it is what is left of that.
  BreakSize thinking = size;
  thinking.lost_reasoning = 100;
  EXPECT_EQ(Cost().BreakPrice(thinking), 80 * 10 + 100 * 50 - (there - here));
}

TEST_F(CallCostTest, ABreakThatStaysInItsTierPaysThePricesOfThat) {
  s_.prices.tiers = {DoubleAbove(100)};
  EXPECT_EQ(Cost().BreakPrice(
                {.saving = 300, .cached_saving = 300, .tokens_before = 100}),
            600 * 20);
}

TEST_F(CallCostTest, ACheaperTierSavesAsMuchWhereNothingIsCached) {
  s_.prices.read = s_.prices.write = s_.prices.input;
  PriceTier tier = DoubleAbove(1'150);
  tier.read = tier.write = tier.input;
  s_.prices.tiers = {tier};
  EXPECT_EQ(Cost().BreakPrice(
                {.saving = 100, .tokens_before = 900, .lost_reasoning = 300}),
            300 * 50 - 1'100 * 10);
}

// --- Life --------------------------------------------------------------------

TEST_F(CallCostTest, TheLongLifeIsAskedForWhereThereIsOne) {
  s_.policy.cache_life = CacheLife::kLong;
  EXPECT_EQ(Cost().RatesOf(1'000).write, 11);
  s_.prices.long_ttl_seconds = 3'600;
  s_.prices.long_write = 21;
  EXPECT_EQ(Cost().RatesOf(1'000).write, 21);
  s_.now += 3'600 * kMicrosPerSecond;
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kNone);
  s_.now += 1;
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kCacheCold);
  s_.policy.cache_life = CacheLife::kShort;
  EXPECT_EQ(Cost().RatesOf(1'000).write, 11);
}

TEST_F(CallCostTest, AReadExtendsTheLifeWhereTheProviderSaysSo) {
  const TimeMicros begin = s_.now;
  s_.now += 200 * kMicrosPerSecond;
  EXPECT_EQ(Cost().cache_time(), s_.now);
  s_.prices.is_refreshed_by_read = false;
  EXPECT_EQ(Cost().cache_time(), begin);
  s_.Serve();
  s_.now += 100 * kMicrosPerSecond + 1;
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kCacheCold);
  EXPECT_EQ(Cost().cache_time(), s_.now) << "all is written anew";
}

TEST_F(CallCostTest, NothingIsFoundOfWhatIsCold) {
  s_.now += 300 * kMicrosPerSecond + 1;
  EXPECT_EQ(Cost().cached_view_tokens(), 0);
  EXPECT_EQ(Cost().cached_raw_tokens(), 0);
  EXPECT_EQ(Cost().cached_every_turn_tokens(), 0);
  EXPECT_EQ(Cost().CachedBefore({.tokens_before = 500}), 0);
  EXPECT_EQ(Cost().BreakPrice({.saving = 300, .tokens_before = 100}), 0);
}

// --- Why nothing is found ----------------------------------------------------

TEST_F(CallCostTest, AnotherPreambleIsToldByItsDigest) {
  request_.preamble_digest = "a";
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kNone) << "was not said before";
  s_.preamble_digest = "a";
  s_.Serve();
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kNone);
  request_.preamble_digest = "b";
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kPreambleChanged);
  request_.preamble_digest = "";
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kNone) << "is not said";
}

TEST_F(CallCostTest, AModelThatComesBackInTimeFindsWhatItHad) {
  s_.model = "other";
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kModelChanged);
  s_.Serve();
  s_.Ask(300);
  s_.model = "m";
  EXPECT_EQ(Cost().cold_reason(), BreakReason::kNone);
  EXPECT_EQ(Cost().cached_view_tokens(), 1'000);
}

// --- Pictures ----------------------------------------------------------------

TEST(CallCostImageTest, WithoutTheLastPictureOnlyThePreambleIsFound) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.preamble_tokens = 70;
  s.Ask(100);
  s.Batch({"[" + ImageBlock() + "]"});
  s.Serve();
  const ViewRequest request = {
      .now = s.now, .model = s.model, .preamble_tokens = 70};
  const CallCost cost(s.session(), s.policy, s.prices, request);
  EXPECT_EQ(cost.CachedBefore({.tokens_before = 100, .image_count = 1}), 70);
  EXPECT_EQ(cost.CachedBefore({.tokens_before = 100, .image_count = 0}), 170);
}

// --- Absurd numbers ----------------------------------------------------------

TEST_F(CallCostTest, AbsurdPricesStayAtTheLargestNumber) {
  s_.prices.input = kHuge;
  s_.prices.write = kHuge;
  s_.prices.read = 0;
  s_.prices.output = kHuge;
  const CallCost cost = Cost();
  EXPECT_EQ(cost.Cost({.read = 1, .written = 1'000'000}), kHuge);
  EXPECT_EQ(cost.BreakPrice({.saving = 300, .tokens_before = 100}), kHuge);
  EXPECT_EQ(
      cost.BreakPrice(
          {.saving = 300, .tokens_before = 1'000, .lost_reasoning = 1'000'000}),
      kHuge);
}

TEST_F(CallCostTest, AnAbsurdTierMakesABreakFree) {
  PriceTier tier = DoubleAbove(1'100);
  tier.input = tier.write = tier.read = kHuge;
  tier.read -= 1;
  s_.prices.tiers = {tier};
  EXPECT_EQ(Cost().BreakPrice({.saving = 300, .tokens_before = 100}), 0);
}

}  // namespace
}  // namespace clerestory
