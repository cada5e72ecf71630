// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How a break depends on what the provider's cache holds. A turn has 3 tokens
// of call and a result; a placeholder has 8; reads cost 1, writes 11.

#include <cstdint>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/cost/prices.h"
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

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Usage UsageOf(std::int64_t read, std::optional<std::int64_t> written) {
  return {.input_uncached = 1,
          .cache_read = read,
          .cache_write = written,
          .output = std::nullopt,
          .reasoning = std::nullopt};
}

// Turns of 3000 tokens, each with its call; nothing is eligible yet.
ScriptedSession LargeSession() {
  ScriptedSession s;
  for (int i = 0; i < 3; ++i) {
    s.Turn(3'000);
    s.Serve();
  }
  return s;
}

// --- No cache ----------------------------------------------------------------

TEST(NoCacheTest, WhatIsEligibleIsMaskedAtOnce) {
  ScriptedSession s;
  s.prices.read = s.prices.write = s.prices.input;
  s.prices.cache_ttl_seconds = 0;
  for (int i = 0; i < 6; ++i) {
    s.Turn(100);
    s.Serve();
    s.now += 1;
  }
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
  EXPECT_EQ(s.session().ledger().break_entries.size(), 3);
  for (const BreakEntry& entry : s.session().ledger().break_entries) {
    EXPECT_EQ(entry.price, 0);
  }
}

TEST(NoCacheTest, ThreeReportsWithoutAReadAreEnoughToMaskAtOnce) {
  ScriptedSession s;
  s.policy.first_break_percent = 10'000;
  s.Ask(20'000);
  s.Turns(3, 3'000);
  s.Serve();
  for (int i = 0; i < 3; ++i) {
    s.Report(UsageOf(0, std::nullopt));
    s.Turn(100);
    ASSERT_EQ(s.Plan().masks.empty(), i < 2) << i;
    s.Serve();
  }
}

TEST(NoCacheTest, APromptThatIsTooShortToBeCachedIsMaskedAtOnce) {
  ScriptedSession s;
  s.prices.cache_tokens_min = 1'000;
  for (int i = 0; i < 5; ++i) {
    s.Turn(100);
    s.Serve();
  }
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(NoCacheTest, NoBreakMakesAPromptTooShortToBeCached) {
  ScriptedSession s;
  s.prices.cache_tokens_min = 400;
  s.now = 0;
  for (int i = 0; i < 4; ++i) {
    s.Turn(100);
    s.now += 1'000 * kMicrosPerSecond;  // Free, were it not for that.
    s.Serve();
  }
  EXPECT_THAT(s.masked(), IsEmpty());
  s.Turn(100);  // 515 tokens: with two observations masked it has 331.
  s.now += 1'000 * kMicrosPerSecond;
  EXPECT_THAT(s.Plan().masks, IsEmpty());
}

// --- Cold --------------------------------------------------------------------

TEST(ColdTest, AnotherPreambleIsFree) {
  ScriptedSession s = LargeSession();
  s.preamble_digest = "a";
  s.Turn(10);
  ASSERT_THAT(s.Serve().decision.masks, IsEmpty()) << "not told before";
  s.preamble_digest = "b";
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kPreambleChanged);
  EXPECT_EQ(view.break_price, 0);
  EXPECT_GT(view.break_rent, 0);
  EXPECT_EQ(view.view_call.read, 0);
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(ColdTest, AReportedMissIsFree) {
  ScriptedSession s = LargeSession();
  s.Report(UsageOf(0, 0));
  s.Turn(10);
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kCacheMissed);
  EXPECT_EQ(view.break_price, 0);
  EXPECT_EQ(view.view_call.read, 0);
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(ColdTest, AMissThatWasWrittenAgainIsNot) {
  ScriptedSession s = LargeSession();
  s.Report(UsageOf(0, 9'009));
  s.Turn(10);
  EXPECT_THAT(s.Serve().decision.masks, IsEmpty());
}

TEST(ColdTest, AReportedHitIsNot) {
  ScriptedSession s = LargeSession();
  s.Report(UsageOf(6'006, 3'003));
  s.Turn(10);
  EXPECT_THAT(s.Serve().decision.masks, IsEmpty());
}

TEST(ColdTest, OneBreakAtMostUntilTheNextReport) {
  ScriptedSession s = LargeSession();
  s.Report(UsageOf(0, 0));
  s.Turn(3'000);
  ASSERT_EQ(s.Serve().decision.break_reason, BreakReason::kCacheMissed);
  s.Turn(3'000);
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kNone)
      << "the view was written since";
}

TEST(ColdTest, ModelsThatAlternateBreakOnceEach) {
  ScriptedSession s = LargeSession();
  for (int i = 0; i < 4; ++i) {
    s.model = i % 2 == 0 ? "other" : "m";
    s.Turn(10);
    s.Serve();
  }
  const auto& breaks = s.session().ledger().breaks;
  EXPECT_EQ(breaks[static_cast<std::size_t>(BreakReason::kModelChanged)], 1);
  EXPECT_EQ(breaks[static_cast<std::size_t>(BreakReason::kCacheCold)], 0);
}

TEST(ColdTest, AModelReadsWhatAnotherModelsBreakLeft) {
  ScriptedSession s = LargeSession();
  s.model = "other";
  s.Turn(10);
  ASSERT_THAT(s.Serve().decision.masks, ::testing::SizeIs(1));
  s.model = "m";
  s.Turn(10);
  EXPECT_EQ(s.Plan().view_call.read, 3) << "what stands before the result";
  EXPECT_EQ(s.Plan().raw_call.read, 9'009);
}

// --- Tiers -------------------------------------------------------------------

TEST(TierTest, ABreakIntoACheaperOnePaysAtOnce) {
  ScriptedSession s = LargeSession();
  ScriptedSession plain = LargeSession();
  s.prices.tiers = {{.above_tokens = 10'000,
                     .input = 200,
                     .write = 220,
                     .long_write = 0,
                     .read = 20,
                     .output = 500}};
  for (ScriptedSession* const session : {&s, &plain}) session->Turn(3'000);
  EXPECT_THAT(plain.Serve().decision.masks, IsEmpty());
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kPays);
  EXPECT_EQ(view.break_price, 0);
  EXPECT_LT(view.view_call.total(), 10'000);
}

// --- Modes -------------------------------------------------------------------

TEST(DelegateTest, LeavesTheViewWhole) {
  ScriptedSession s;
  s.policy.mode = Mode::kDelegate;
  s.policy.window_tokens = 100;
  s.policy.reserve_tokens = 1;
  s.policy.duplicates = DuplicateRule::kSuperseded;
  s.Turns(8, 100);
  const View view = s.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kNone);
  EXPECT_EQ(view.decision.view_call, view.decision.raw_call);
  EXPECT_EQ(view.frontier, s.session().message_count());
}

TEST(PriceTest, OfEveryReasonIsTold) {
  // All of them remove 92 of 2 * 103 cached tokens or more behind 3.
  const auto served = [](auto change) {
    ScriptedSession s;
    s.Turns(3, 100);
    s.Serve();
    s.Turn(100);
    change(s);
    return s.Serve().decision;
  };
  const ViewServed scheduled =
      served([](ScriptedSession& s) { s.policy.mode = Mode::kEveryTurn; });
  EXPECT_EQ(scheduled.break_reason, BreakReason::kSchedule);
  EXPECT_EQ(scheduled.break_price, (309 - 3 - 92) * 10);
  EXPECT_EQ(scheduled.break_rent, 92);

  const ViewServed forced = served([](ScriptedSession& s) {
    s.policy.window_tokens = 400;
    s.policy.reserve_tokens = 1;
  });
  EXPECT_EQ(forced.break_reason, BreakReason::kWindow);
  EXPECT_EQ(forced.break_price, scheduled.break_price);
  EXPECT_EQ(forced.break_rent, 92);

  const ViewServed paid =
      served([](ScriptedSession& s) { s.policy.first_break_percent = 1; });
  EXPECT_EQ(paid.break_reason, BreakReason::kPays);
  EXPECT_EQ(paid.break_price, scheduled.break_price);
  EXPECT_EQ(paid.break_rent, 92);

  const ViewServed cold =
      served([](ScriptedSession& s) { s.now += 301 * kMicrosPerSecond; });
  EXPECT_EQ(cold.break_reason, BreakReason::kCacheCold);
  EXPECT_EQ(cold.break_price, 0);
  EXPECT_EQ(cold.break_rent, 92);

  const ViewServed other =
      served([](ScriptedSession& s) { s.model = "other"; });
  EXPECT_EQ(other.break_reason, BreakReason::kModelChanged);
  EXPECT_EQ(other.break_price, 0);
  EXPECT_EQ(other.break_rent, 92);
}

TEST(PriceTest, RentOfACopyRunsFromTheCallThatShowsIt) {
  ScriptedSession s;
  s.policy.duplicates = DuplicateRule::kIdentical;
  s.policy.keep_observations = 20;
  s.policy.first_break_percent = 10'000;
  s.Turn(100);
  s.Serve();
  s.Turn(100);
  for (int i = 0; i < 3; ++i) {
    s.Serve();
    s.Ask(1);
    s.Answer();
  }
  s.policy.first_break_percent = 1;
  EXPECT_EQ(s.Serve().decision.break_rent, 92 * 4);
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(PriceTest, AnEqualCallIsNoCopyWhereOnlyContentsCount) {
  ScriptedSession s;
  s.policy.duplicates = DuplicateRule::kIdentical;
  s.policy.keep_observations = 8;
  for (int i = 0; i < 9; ++i) {
    s.Turn(100 + i);
    s.Serve();
  }
  s.policy.first_break_percent = 1;
  s.Turn(200);
  EXPECT_EQ(s.Serve().decision.break_rent, 92 * 2 + 93)
      << "from the call on in which each was old enough";
}

}  // namespace
}  // namespace clerestory
