// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/breaker/rate_test.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace clerestory {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kPercentMin = 50;

// Of 50 to 99 percent.
constexpr std::array<std::int64_t, 50> kQuantileSquares = {
    0,     1,     3,     6,     10,    16,    23,    31,    41,    52,
    64,    78,    93,    110,   128,   148,   170,   194,   219,   246,
    275,   306,   340,   376,   414,   455,   499,   546,   596,   650,
    708,   771,   838,   910,   989,   1'074, 1'167, 1'269, 1'381, 1'504,
    1'642, 1'798, 1'974, 2'178, 2'417, 2'706, 3'065, 3'537, 4'218, 5'412};

// Whether `distance`, in success thousandths times millionths, is that rare.
bool IsFar(Wide distance, const RateSample& sample, std::int64_t rate,
           std::int64_t quantile_square) {
  // By half a success less.
  distance -= Wide{kCountUnit} * kRateOne / 2;
  if (distance <= 0) return false;
  // The variance has one count and two rates; z^2 brings thousandths, as many
  // as the other count has.
  static_assert(kCountUnit == 1'000);
  return distance * distance >
         Wide{quantile_square} * sample.trials * rate * (kRateOne - rate);
}

Wide Distance(const RateSample& sample, std::int64_t rate) {
  return Wide{sample.successes} * kRateOne - Wide{sample.trials} * rate;
}

}  // namespace

std::int64_t QuantileSquare(std::int64_t percent) {
  constexpr std::int64_t kPercentMax =
      kPercentMin + std::int64_t{kQuantileSquares.size()} - 1;
  const std::int64_t index =
      std::clamp(percent, kPercentMin, kPercentMax) - kPercentMin;
  return kQuantileSquares[static_cast<std::size_t>(index)];
}

bool IsRateAbove(const RateSample& sample, std::int64_t rate,
                 std::int64_t quantile_square) {
  return IsFar(Distance(sample, rate), sample, rate, quantile_square);
}

bool IsRateBelow(const RateSample& sample, std::int64_t rate,
                 std::int64_t quantile_square) {
  return IsFar(-Distance(sample, rate), sample, rate, quantile_square);
}

std::int64_t RateOf(const RateSample& sample) {
  if (sample.trials == 0) return 0;
  return static_cast<std::int64_t>(Wide{sample.successes} * kRateOne /
                                   sample.trials);
}

RateInterval RateIntervalOf(const RateSample& sample,
                            std::int64_t quantile_square) {
  if (sample.trials == 0) return {};
  const std::int64_t rate = RateOf(sample);
  // `inside` is never outside of the interval, `outside` one behind its end.
  const auto search = [&](std::int64_t inside, std::int64_t outside,
                          auto is_outside) {
    while (outside - inside > 1 || inside - outside > 1) {
      const std::int64_t middle = inside + (outside - inside) / 2;
      (is_outside(middle) ? outside : inside) = middle;
    }
    return inside;
  };
  return {.low = search(rate, -1,
                        [&](std::int64_t at) {
                          return IsRateAbove(sample, at, quantile_square);
                        }),
          .high = search(rate, kRateOne + 1, [&](std::int64_t at) {
            return IsRateBelow(sample, at, quantile_square);
          })};
}

}  // namespace clerestory
