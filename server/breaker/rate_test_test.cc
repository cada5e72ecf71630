// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/breaker/rate_test.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace clerestory {
namespace {

RateSample Of(std::int64_t trials, std::int64_t successes) {
  return {.trials = trials * kCountUnit, .successes = successes * kCountUnit};
}

TEST(RateTestTest, QuantilesAreThoseOfTheNormalDistribution) {
  EXPECT_EQ(QuantileSquare(50), 0);
  EXPECT_EQ(QuantileSquare(90), 1'642);
  EXPECT_EQ(QuantileSquare(95), 2'706);
  EXPECT_EQ(QuantileSquare(99), 5'412);
  for (std::int64_t percent = 50; percent <= 99; ++percent) {
    const double z = std::sqrt(static_cast<double>(QuantileSquare(percent)) /
                               static_cast<double>(kCountUnit));
    EXPECT_NEAR(100 * 0.5 * std::erfc(-z / std::sqrt(2.0)),
                static_cast<double>(percent), 0.6);
  }
  EXPECT_EQ(QuantileSquare(std::numeric_limits<std::int64_t>::min()), 0);
  EXPECT_EQ(QuantileSquare(std::numeric_limits<std::int64_t>::max()), 5'412);
}

TEST(RateTestTest, ARateIsAboveOrBelowAsTheScoreTestInFloatingPointSays) {
  for (const std::int64_t trials : {1, 20, 57, 200, 4'096}) {
    for (std::int64_t tenth = 0; tenth <= 10; ++tenth) {
      const std::int64_t successes = trials * tenth / 10;
      for (const std::int64_t rate :
           {1'000, 50'000, 130'000, 333'333, 500'000, 999'000}) {
        const double n = static_cast<double>(trials);
        const double p = static_cast<double>(rate) / 1e6;
        const double off = static_cast<double>(successes) - n * p;
        const double z2 = 2.706 * n * p * (1 - p);
        EXPECT_EQ(IsRateAbove(Of(trials, successes), rate, 2'706),
                  off > 0.5 && (off - 0.5) * (off - 0.5) > z2);
        EXPECT_EQ(IsRateBelow(Of(trials, successes), rate, 2'706),
                  off < -0.5 && (off + 0.5) * (off + 0.5) > z2);
      }
    }
  }
}

TEST(RateTestTest, NothingIsKnownWithoutTrials) {
  EXPECT_EQ(RateOf({}), 0);
  EXPECT_EQ(RateIntervalOf({}, 2'706), (RateInterval{0, kRateOne}));
  for (const std::int64_t rate : {std::int64_t{0}, kRateOne / 2, kRateOne}) {
    EXPECT_FALSE(IsRateAbove({}, rate, 0));
    EXPECT_FALSE(IsRateBelow({}, rate, 0));
  }
}

TEST(RateTestTest, TheIntervalIsWhereTheRateIsNeitherAboveNorBelow) {
  for (const std::int64_t trials : {1, 2, 20, 200, 4'096, 100'000}) {
    for (std::int64_t tenth = 0; tenth <= 10; ++tenth) {
      const RateSample sample = Of(trials, trials * tenth / 10);
      for (const std::int64_t square : {0, 2'706, 8'000}) {
        const RateInterval interval = RateIntervalOf(sample, square);
        EXPECT_LE(interval.low, RateOf(sample));
        EXPECT_GE(interval.high, RateOf(sample));
        EXPECT_FALSE(IsRateAbove(sample, interval.low, square));
        EXPECT_FALSE(IsRateBelow(sample, interval.high, square));
        if (interval.low > 0) {
          EXPECT_TRUE(IsRateAbove(sample, interval.low - 1, square));
        }
        if (interval.high < kRateOne) {
          EXPECT_TRUE(IsRateBelow(sample, interval.high + 1, square));
        }
      }
    }
  }
}

TEST(RateTestTest, TheLargestCountsDoNotOverflow) {
  const RateSample all = {.trials = kCountMax, .successes = kCountMax};
  EXPECT_TRUE(IsRateAbove(all, kRateOne - 100, 5'412));
  EXPECT_FALSE(IsRateAbove(all, kRateOne, 5'412));
  EXPECT_TRUE(IsRateBelow({.trials = kCountMax}, 1'000, 5'412));
  EXPECT_EQ(RateOf(all), kRateOne);
}

}  // namespace
}  // namespace clerestory
