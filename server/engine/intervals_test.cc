// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/intervals.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace clerestory {

void PrintTo(const Estimate& estimate, std::ostream* out) {
  *out << estimate.value << " [" << estimate.low << ", " << estimate.high
       << "]";
}

namespace {

QuotientSums SumsOf(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& sessions) {
  QuotientSums sums;
  for (const auto& [x, y] : sessions) sums.Add(x, y);
  return sums;
}

// Of 8 values with mean 5 and standard deviation sqrt(32/7): its error is that
// divided by sqrt(8), 0.7559.
TEST(IntervalsTest, AMeanHasItsStandardError) {
  const QuotientSums sums =
      SumsOf({{2, 1}, {4, 1}, {4, 1}, {4, 1}, {5, 1}, {5, 1}, {7, 1}, {9, 1}});
  EXPECT_EQ(sums.Quotient(1'000), 5'000);
  EXPECT_EQ(sums.StandardError(1'000), 756);
  EXPECT_EQ(sums.Interval(1'000),
            (Estimate{.value = 5'000, .low = 3'518, .high = 6'482}));
}

// 100 dollars for 3 resolved: 33.3 each. The sum of (cost - 33.3 resolved)^2 is
// 544.4 + 400 + 11.1 + 44.4 + 0 = 1,000; times 5/4, its root, by 3: 11.785.
TEST(IntervalsTest, ACostPerResolvedSessionHasTheDeltaMethods) {
  const QuotientSums sums = SumsOf({{10'000'000, 1},
                                    {20'000'000, 0},
                                    {30'000'000, 1},
                                    {40'000'000, 1},
                                    {0, 0}});
  EXPECT_EQ(sums.Quotient(1), 33'333'333);
  EXPECT_EQ(sums.StandardError(1), 11'785'113);
  EXPECT_EQ(
      sums.Interval(1),
      (Estimate{.value = 33'333'333, .low = 10'234'512, .high = 56'432'154}));
}

TEST(IntervalsTest, AProportionHasWilsons) {
  EXPECT_EQ(SumsOf({{10, 100}}).Proportion(),
            (Estimate{.value = 100'000, .low = 55'229, .high = 174'367}));
  EXPECT_EQ(SumsOf({{0, 10}}).Proportion(),
            (Estimate{.value = 0, .low = 0, .high = 277'540}));
  EXPECT_EQ(SumsOf({{10, 10}}).Proportion(),
            (Estimate{.value = 1'000'000, .low = 722'460, .high = 1'000'000}));
}

// Of ten sessions with ten each, all or nothing: as few as nine trials say it.
TEST(IntervalsTest, SessionsThatDifferByMoreThanChanceWidenIt) {
  QuotientSums clustered;
  QuotientSums even;
  for (int i = 0; i < 10; ++i) {
    clustered.Add(i % 2 == 0 ? 10 : 0, 10);
    even.Add(5, 10);
  }
  EXPECT_EQ(clustered.Proportion(),
            (Estimate{.value = 500'000, .low = 226'526, .high = 773'474}));
  // Never narrower than of a hundred trials.
  EXPECT_EQ(even.Proportion(), SumsOf({{50, 100}}).Proportion());
}

TEST(IntervalsTest, NothingIsKnownOfNothing) {
  EXPECT_EQ(QuotientSums().Quotient(1), std::nullopt);
  EXPECT_EQ(QuotientSums().Interval(1), std::nullopt);
  EXPECT_EQ(QuotientSums().Proportion(), std::nullopt);
  const QuotientSums none = SumsOf({{5, 0}, {7, 0}});
  EXPECT_EQ(none.Quotient(1), std::nullopt);
  EXPECT_EQ(none.Interval(1), std::nullopt);
  EXPECT_EQ(none.Proportion(), std::nullopt);
  // Of one session there is a mean, and no error.
  EXPECT_EQ(SumsOf({{5, 1}}).Quotient(1), 5);
  EXPECT_EQ(SumsOf({{5, 1}}).Interval(1), std::nullopt);
}

TEST(IntervalsTest, EqualSessionsHaveNoWidth) {
  EXPECT_EQ(SumsOf({{7, 1}, {7, 1}, {7, 1}}).Interval(1'000),
            (Estimate{.value = 7'000, .low = 7'000, .high = 7'000}));
}

TEST(IntervalsTest, WhatIsTooLargeStaysInBounds) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  QuotientSums sums;
  for (int i = 0; i < 50'000; ++i) sums.Add(kMax, i % 2 == 0 ? kMax : 1);
  const auto interval = sums.Interval(1'000);
  ASSERT_TRUE(interval.has_value());
  EXPECT_LE(interval->low, interval->value);
  EXPECT_GE(interval->high, interval->value);
  const auto proportion = sums.Proportion();
  ASSERT_TRUE(proportion.has_value());
  EXPECT_GE(proportion->low, 0);
  EXPECT_LE(proportion->high, kPpm);
  // Less than nothing is nothing.
  EXPECT_EQ(SumsOf({{-5, 1}, {-5, 1}}).Quotient(1), 0);
}

// Errors of 3 and 4 are one of 5.
TEST(IntervalsTest, ADifferenceHasTheErrorsOfBoth) {
  EXPECT_EQ(Difference(100, 300, 600, 400),
            (Estimate{.value = -500, .low = -1'480, .high = 480}));
  EXPECT_EQ(Difference(5, 0, 2, 0),
            (Estimate{.value = 3, .low = 3, .high = 3}));
}

}  // namespace
}  // namespace clerestory
