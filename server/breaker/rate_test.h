// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BREAKER_RATE_TEST_H_
#define CLERESTORY_SERVER_BREAKER_RATE_TEST_H_

#include <cstdint>

namespace clerestory {

// Whether a rate is above or below another one, by Wilson's score test on
// whole numbers. All of it is pure and exact, but for what a step says.

// Counts are in thousandths, since what decays does not stay whole.
inline constexpr std::int64_t kCountUnit = 1'000;

// Rates are in millionths.
inline constexpr std::int64_t kRateOne = 1'000'000;

// The most that is counted of one thing; keeps every product in 128 bits.
inline constexpr std::int64_t kCountMax = 200'000 * kCountUnit;

// Successes among trials, in thousandths. REQUIRES: 0 <= successes <= trials <=
// kCountMax.
struct RateSample {
  std::int64_t trials = 0;
  std::int64_t successes = 0;
};

// The square of the quantile of the normal distribution for `percent` on one
// side, in thousandths: 2706 for 95. What is below 50 counts as 50, what is
// above 99 as 99.
std::int64_t QuantileSquare(std::int64_t percent);

// Whether the rate behind `sample` is above `rate`, or below it: whether a
// sample that is farther off than this one by half a success would be as rare
// as `quantile_square` (in thousandths) says,
//
//   (|r - n p| - 1/2)^2 > z^2 n p (1 - p)
//
// with n trials, r successes and the rate p. False without trials.
bool IsRateAbove(const RateSample& sample, std::int64_t rate,
                 std::int64_t quantile_square);
bool IsRateBelow(const RateSample& sample, std::int64_t rate,
                 std::int64_t quantile_square);

// Successes by trials; 0 without trials.
std::int64_t RateOf(const RateSample& sample);

// The rates that the sample is neither above nor below of, both ends included:
// from 0 to kRateOne without trials.
struct RateInterval {
  std::int64_t low = 0;
  std::int64_t high = kRateOne;

  friend bool operator==(const RateInterval&, const RateInterval&) = default;
};
RateInterval RateIntervalOf(const RateSample& sample,
                            std::int64_t quantile_square);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BREAKER_RATE_TEST_H_
