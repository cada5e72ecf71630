// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/breaker/tool_breaker.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/breaker/rate_test.h"
#include "server/model/breaker_record.h"
#include "server/model/money.h"
#include "server/model/tool_outcome.h"

namespace clerestory {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kMinute = 60 * kMicrosPerSecond;
constexpr std::int64_t kDay = 1'440 * kMinute;
constexpr TimeMicros kStart = 20'000 * kDay;
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// The break-even is 13 %.
const BreakerOptions kFixed = {.rate_permille = 130};

class ToolBreakerTest : public testing::Test {
 protected:
  void Learn(std::int64_t masked, std::int64_t refetched,
             const BreakerOptions& options = kFixed, PicoUsd saved = 0,
             PicoUsd lost = 0) {
    breaker_.Learn({.tool = "Read",
                    .masked_count = masked,
                    .refetched_count = refetched,
                    .saved = saved,
                    .lost = lost},
                   options, now_, transitions_);
  }

  void Advance(const BreakerOptions& options = kFixed) {
    breaker_.Advance("Read", options, now_, transitions_);
  }

  BreakerState State(const BreakerOptions& options = kFixed) const {
    return breaker_.Figures(options).state;
  }

  // Of 1,000 sessions, how many the tool is masked in.
  int MaskedSessions() const {
    int count = 0;
    for (int i = 0; i < 1'000; ++i) {
      if (breaker_.IsMaskedIn("tenant", "Read", absl::StrCat("s", i))) ++count;
    }
    return count;
  }

  // Learns so that the tool is unmasked.
  void Open() {
    Learn(30, 20);
    ASSERT_EQ(State(), BreakerState::kUnmasked);
  }

  // Lets so much time pass that all that was masked is ripe.
  void Ripen() { now_ += 2 * ToolBreaker::kRipening; }

  // And lets its cool-off pass.
  void OpenAndProbe() {
    Open();
    now_ = breaker_.next_change();
    Advance();
    ASSERT_EQ(State(), BreakerState::kProbing);
    transitions_.clear();
  }

  // Lets the cool-off pass, and nothing be fetched again.
  void ProbeWell() {
    now_ = breaker_.next_change();
    Learn(200, 0);
    Ripen();
    Learn(0, 0);
    ASSERT_EQ(State(), BreakerState::kMasked);
  }

  ToolBreaker breaker_;
  TimeMicros now_ = kStart;
  std::vector<BreakerTransition> transitions_;
};

TEST_F(ToolBreakerTest, AToolIsMaskedAtFirstAndObserved) {
  EXPECT_EQ(State(), BreakerState::kObserving);
  EXPECT_EQ(MaskedSessions(), 1'000);
  EXPECT_EQ(breaker_.next_change(), ToolBreaker::kNever);
  const BreakerFigures figures = breaker_.Figures({});
  EXPECT_EQ(figures.break_even, 130'000);
  EXPECT_EQ(figures.interval, RateInterval());
}

TEST_F(ToolBreakerTest, FewerObservationsThanTheMinimumAreNotJudged) {
  for (int i = 0; i < 19; ++i) Learn(1, 1);
  EXPECT_EQ(State(), BreakerState::kObserving);
  EXPECT_THAT(transitions_, IsEmpty());
  Learn(1, 1);
  EXPECT_EQ(State(), BreakerState::kUnmasked);
}

TEST_F(ToolBreakerTest, AToolThatIsReFetchedMoreOftenThanPaysIsUnmasked) {
  Learn(40, 5);
  EXPECT_EQ(State(), BreakerState::kMasked);
  Learn(0, 15);
  EXPECT_EQ(State(), BreakerState::kUnmasked);
  EXPECT_EQ(MaskedSessions(), 0);
  ASSERT_THAT(transitions_, SizeIs(1));
  const BreakerTransition& opened = transitions_.front();
  EXPECT_EQ(opened.tool, "Read");
  EXPECT_EQ(opened.from, BreakerState::kMasked);
  EXPECT_EQ(opened.to, BreakerState::kUnmasked);
  EXPECT_EQ(opened.time, kStart);
  EXPECT_EQ(opened.figures.masked_count, 40);
  EXPECT_EQ(opened.figures.refetched_count, 20);
  EXPECT_EQ(opened.figures.rate, 500'000);
  EXPECT_EQ(opened.figures.break_even, 130'000);
  EXPECT_GT(opened.figures.interval.low, 130'000);
  EXPECT_EQ(breaker_.Figures(kFixed).next_probe, kStart + kDay);
}

TEST_F(ToolBreakerTest, AToolThatIsSeldomReFetchedStaysMasked) {
  for (int i = 0; i < 5'000; ++i) {
    Learn(10, i % 2);
    now_ += kMinute;
  }
  EXPECT_EQ(State(), BreakerState::kMasked);
  EXPECT_THAT(transitions_, IsEmpty());
}

TEST_F(ToolBreakerTest, BreakEvenIsWhatIsSavedByWhatIsLost) {
  // Saves 100 an observation, and a re-fetch costs 400.
  Learn(1'000, 200, {}, 100'000, 80'000);
  const BreakerFigures figures = breaker_.Figures({});
  EXPECT_NEAR(static_cast<double>(figures.break_even), 250'000, 2'000);
  EXPECT_EQ(figures.rate, 200'000);
  EXPECT_EQ(figures.state, BreakerState::kMasked);
  // A fixed one is taken as it is.
  EXPECT_EQ(breaker_.Figures(kFixed).break_even, 130'000);
  EXPECT_EQ(breaker_.Figures({.rate_permille = 5'000}).break_even, kRateOne);
}

TEST_F(ToolBreakerTest, FewReFetchesHardlyMoveTheBreakEven) {
  Learn(10, 1, {}, 1'000, 100);
  // One of three: 2 parts of 13 % and 1 of 100 %.
  EXPECT_EQ(breaker_.Figures({}).break_even, 420'000);
}

TEST_F(ToolBreakerTest, BreakEvenStaysWithinItsBounds) {
  Learn(1'000, 100, {}, kMin, 80'000);
  EXPECT_EQ(breaker_.Figures({}).break_even, 2'549);  // The prior's part.
  EXPECT_EQ(State({}), BreakerState::kUnmasked);

  breaker_ = ToolBreaker();
  Learn(1'000, 900, {}, kMax, 1);
  EXPECT_LE(breaker_.Figures({}).break_even, kRateOne);
  EXPECT_GT(breaker_.Figures({}).break_even, 990'000);
  EXPECT_EQ(State({}), BreakerState::kMasked);

  // Re-fetches that cost nothing are no reason not to mask.
  breaker_ = ToolBreaker();
  Learn(1'000, 900, {}, 1, 0);
  EXPECT_GT(breaker_.Figures({}).break_even, 990'000);
  EXPECT_EQ(State({}), BreakerState::kMasked);
}

TEST_F(ToolBreakerTest, AfterTheCoolOffItIsMaskedInTheProbeShareOfSessions) {
  Open();
  now_ += kDay - 1;
  Advance();
  EXPECT_EQ(MaskedSessions(), 0);
  now_ += 1;
  Advance();
  EXPECT_EQ(State(), BreakerState::kProbing);
  EXPECT_NEAR(MaskedSessions(), 100, 30);
  ASSERT_THAT(transitions_, SizeIs(2));
  EXPECT_EQ(transitions_.back().to, BreakerState::kProbing);
  // Decayed by a day.
  EXPECT_EQ(transitions_.back().figures.refetched_count, 18);
  // Only what comes of probing counts from now on.
  EXPECT_EQ(breaker_.Figures(kFixed).masked_count, 0);
}

TEST_F(ToolBreakerTest, WhichSessionsAreProbedDependsOnAllNamesAndTheEpoch) {
  OpenAndProbe();
  const auto sessions = [](const ToolBreaker& breaker,
                           const std::string& tenant, const std::string& tool) {
    std::vector<bool> masked;
    for (int i = 0; i < 300; ++i) {
      masked.push_back(breaker.IsMaskedIn(tenant, tool, absl::StrCat(i)));
    }
    return masked;
  };
  const std::vector<bool> first = sessions(breaker_, "a", "b");
  EXPECT_EQ(sessions(ToolBreaker(breaker_.record()), "a", "b"), first);
  EXPECT_NE(sessions(breaker_, "b", "b"), first);
  EXPECT_NE(sessions(breaker_, "a", "a"), first);
  BreakerRecord next = breaker_.record();
  ++next.epoch;
  EXPECT_NE(sessions(ToolBreaker(next), "a", "b"), first);
}

TEST_F(ToolBreakerTest, ProbingThatGoesWellMasksAgain) {
  OpenAndProbe();
  Learn(19, 0);
  EXPECT_EQ(State(), BreakerState::kProbing);
  Learn(60, 0);
  EXPECT_EQ(State(), BreakerState::kProbing);
  Ripen();
  Learn(0, 0);
  EXPECT_EQ(State(), BreakerState::kMasked);
  ASSERT_THAT(transitions_, SizeIs(1));
  EXPECT_EQ(transitions_[0].from, BreakerState::kProbing);
  EXPECT_LT(transitions_[0].figures.interval.high, 130'000);
  EXPECT_EQ(MaskedSessions(), 1'000);
}

TEST_F(ToolBreakerTest, ProbingThatGoesBadlyUnmasksForTwiceAsLongUpToABound) {
  Open();
  std::int64_t days = 1;
  for (int round = 0; round < 8; ++round) {
    EXPECT_EQ(breaker_.next_change(), now_ + days * kDay);
    now_ = breaker_.next_change();
    Advance();
    ASSERT_EQ(State(), BreakerState::kProbing);
    Learn(30, 20);
    ASSERT_EQ(State(), BreakerState::kUnmasked);
    days = std::min(days * 2, std::int64_t{32});
  }
  // Once it was masked again for as long, the next cool-off is a short one.
  ProbeWell();
  now_ += 32 * kDay + 1;
  Learn(1'000, 1'000);
  EXPECT_EQ(breaker_.next_change(), now_ + kDay);
}

TEST_F(ToolBreakerTest, AToolThatWasMaskedByMistakeRelapsesToo) {
  Open();
  for (const std::int64_t days : {2, 4, 8}) {
    ProbeWell();
    now_ += kDay;
    Learn(1'000, 1'000);
    ASSERT_EQ(State(), BreakerState::kUnmasked);
    EXPECT_EQ(breaker_.next_change(), now_ + days * kDay);
  }
  // That it was never unmasked before is no relapse.
  breaker_ = ToolBreaker();
  Open();
  EXPECT_EQ(breaker_.next_change(), now_ + kDay);
}

TEST_F(ToolBreakerTest, WhatIsInBetweenGoesOnBeingProbed) {
  OpenAndProbe();
  for (int i = 0; i < 50; ++i) Learn(100, 13);
  EXPECT_EQ(State(), BreakerState::kProbing);
  EXPECT_THAT(transitions_, IsEmpty());
}

TEST_F(ToolBreakerTest, ARateAtTheThresholdDoesNotFlap) {
  std::int64_t transition_count = 0;
  constexpr int kRuns = 20;
  std::mt19937_64 random(7);
  for (int run = 0; run < kRuns; ++run) {
    breaker_ = ToolBreaker();
    now_ = kStart;
    transitions_.clear();
    for (int i = 0; i < 10'000; ++i) {
      now_ += kDay / 200;
      Advance();
      if (!breaker_.IsMaskedIn("t", "Read", absl::StrCat(i))) continue;
      Learn(1, random() % 1'000 < 130 ? 1 : 0);
    }
    transition_count += std::ssize(transitions_);
    EXPECT_LE(std::ssize(transitions_), 12);
  }
  EXPECT_LE(transition_count, 3 * kRuns);
}

TEST_F(ToolBreakerTest, ReFetchesOfWhatWasMaskedBeforeProbingDoNotCount) {
  OpenAndProbe();
  Learn(0, 100);
  EXPECT_EQ(breaker_.Figures(kFixed).refetched_count, 0);
  EXPECT_EQ(State(), BreakerState::kProbing);
}

TEST_F(ToolBreakerTest, WhatWasSeenLosesHalfOfItsWeightInAHalfLife) {
  Learn(400, 40, kFixed, 4'000, 400);
  now_ += ToolBreaker::kHalfLife / 2;
  Advance();
  EXPECT_NEAR(static_cast<double>(breaker_.Figures(kFixed).masked_count), 283,
              1);
  now_ += ToolBreaker::kHalfLife / 2;
  Advance();
  const BreakerFigures figures = breaker_.Figures(kFixed);
  EXPECT_EQ(figures.masked_count, 200);
  EXPECT_EQ(figures.refetched_count, 20);
  EXPECT_NEAR(static_cast<double>(breaker_.record().saved), 2'000, 5);
  EXPECT_NEAR(static_cast<double>(breaker_.record().lost), 200, 5);
}

TEST_F(ToolBreakerTest, HowOftenOneLooksMakesNoDifferenceToWhatDecays) {
  Learn(400, 40);
  ToolBreaker seldom = breaker_;
  for (int i = 0; i < 10'000; ++i) {
    now_ += kDay / 10'000 * 5;
    Advance();
  }
  seldom.Advance("Read", kFixed, now_, transitions_);
  EXPECT_NEAR(static_cast<double>(seldom.record().masked),
              static_cast<double>(breaker_.record().masked), 100);
}

TEST_F(ToolBreakerTest, AsManyAsThePolicyAsksForAreEverJudged) {
  const BreakerOptions options = {.rate_permille = 130, .samples_min = 100'000};
  for (int i = 0; i < 99; ++i) Learn(1'000, 900, options);
  EXPECT_THAT(transitions_, IsEmpty());
  Learn(1'000, 900, options);
  EXPECT_THAT(transitions_, SizeIs(1));
}

TEST_F(ToolBreakerTest, MoreThanTheLargestSampleIsForgotten) {
  for (int i = 0; i < 100; ++i) Learn(1'000, 10);
  EXPECT_LE(breaker_.Figures(kFixed).masked_count, ToolBreaker::kSampleMax);
  EXPECT_NEAR(static_cast<double>(breaker_.Figures(kFixed).rate), 10'000, 500);
}

TEST_F(ToolBreakerTest, AClockThatGoesFarAheadCostsNoMoreThanHalf) {
  Learn(400, 4);
  now_ += 1'000'000 * kDay;
  Advance();
  EXPECT_EQ(breaker_.Figures(kFixed).masked_count, 200);
  // And back, where it goes on as ever.
  now_ = kStart;
  Advance();
  EXPECT_EQ(breaker_.Figures(kFixed).masked_count, 200);
  now_ += ToolBreaker::kHalfLife / 2;
  Advance();
  EXPECT_LT(breaker_.Figures(kFixed).masked_count, 160);
}

TEST_F(ToolBreakerTest, AToolUnmaskedByAClockFarAheadIsProbedInTime) {
  now_ = kStart + 1'000'000 * kDay;
  Open();
  now_ = kStart;
  Advance();
  EXPECT_EQ(State(), BreakerState::kUnmasked);
  EXPECT_EQ(breaker_.next_change(), kStart + kDay);
  // Replicas' clocks differ.
  now_ -= kMinute;
  Advance();
  EXPECT_EQ(breaker_.next_change(), kStart + kDay);
}

TEST_F(ToolBreakerTest, AskingWithAnOlderTimeChangesNothing) {
  Open();
  const BreakerRecord opened = breaker_.record();
  transitions_.clear();
  for (const std::int64_t days : {1, 8, 400}) {
    now_ = kStart - days * kDay;
    Advance();
    EXPECT_EQ(breaker_.record(), opened);
    now_ = kStart;
    Advance();
    EXPECT_EQ(breaker_.record(), opened);
  }
  EXPECT_THAT(transitions_, IsEmpty());
}

TEST_F(ToolBreakerTest, TheOutcomesOfAnOldSessionCountAsOfNow) {
  Learn(400, 4);
  now_ = kStart - 8 * kDay;
  Learn(400, 4);
  EXPECT_EQ(breaker_.Figures(kFixed).masked_count, 800);
  now_ = kStart;
  Advance();
  EXPECT_EQ(breaker_.Figures(kFixed).masked_count, 800);
}

TEST_F(ToolBreakerTest, NoTimeAndNoOutcomeIsTooMuch) {
  std::mt19937_64 random(3);
  const std::vector<std::int64_t> values = {kMin,  kMin + 1, -1,       0,   1,
                                            1'000, kStart,   kMax - 1, kMax};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int i = 0; i < 20'000; ++i) {
    now_ = any();
    const BreakerOptions options = {.rate_permille = any(),
                                    .samples_min = random() % 2 ? 1 : any(),
                                    .confidence_percent = any(),
                                    .cool_off_minutes = any(),
                                    .probe_permille = any()};
    Learn(any(), any(), options, any(), any());
    const BreakerRecord& record = breaker_.record();
    EXPECT_GE(record.refetched, 0);
    EXPECT_LE(record.refetched, record.masked);
    EXPECT_LE(record.masked, kCountMax);
    EXPECT_GE(std::min(record.ripening, record.fresh), 0);
    EXPECT_LE(record.refetched + record.ripening + record.fresh, record.masked);
    EXPECT_EQ(ToolBreaker(record).record(), record);
    if (random() % 8 == 0) {
      breaker_ = ToolBreaker({.state = static_cast<BreakerState>(random() % 4),
                              .since = any(),
                              .cool_off = any(),
                              .probe_permille = any(),
                              .relapse_count = any(),
                              .epoch = any(),
                              .masked = any(),
                              .refetched = any(),
                              .priced_masked = any(),
                              .priced_refetched = any(),
                              .saved = any(),
                              .lost = any(),
                              .decay_time = any(),
                              .time = any(),
                              .ripening = any(),
                              .fresh = any(),
                              .ripe_time = any()});
    }
    transitions_.clear();
  }
}

TEST_F(ToolBreakerTest, AResetForgetsAllAndSaysSo) {
  Open();
  transitions_.clear();
  breaker_.Reset("Read", kFixed, now_, transitions_);
  EXPECT_EQ(breaker_.record(), BreakerRecord());
  ASSERT_THAT(transitions_, SizeIs(1));
  EXPECT_EQ(transitions_[0].from, BreakerState::kUnmasked);
  EXPECT_EQ(transitions_[0].to, BreakerState::kObserving);
  EXPECT_EQ(transitions_[0].figures.masked_count, 30);
  breaker_.Reset("Read", kFixed, now_, transitions_);
  EXPECT_THAT(transitions_, SizeIs(1));
}

TEST_F(ToolBreakerTest, EqualOutcomesAtEqualTimesGiveEqualStates) {
  std::mt19937_64 random(11);
  ToolBreaker other;
  std::vector<BreakerTransition> others;
  for (int i = 0; i < 3'000; ++i) {
    now_ += static_cast<std::int64_t>(random() % 10'000'000'000);
    const ToolOutcome outcome = {
        .tool = "Read",
        .masked_count = static_cast<std::int64_t>(random() % 5),
        .refetched_count = static_cast<std::int64_t>(random() % 3),
        .saved = 100,
        .lost = 700};
    breaker_.Learn(outcome, {}, now_, transitions_);
    // As if it were stored and read each time.
    other = ToolBreaker(other.record());
    other.Learn(outcome, {}, now_, others);
    ASSERT_EQ(other.record(), breaker_.record());
  }
  EXPECT_EQ(others, transitions_);
  EXPECT_FALSE(others.empty());
}

}  // namespace
}  // namespace clerestory
