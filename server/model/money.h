// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_MONEY_H_
#define CLERESTORY_SERVER_MODEL_MONEY_H_

#include <cstdint>
#include <limits>
#include <string>

namespace clerestory {

// An amount of money in US pico-dollars: a price of one dollar per million
// tokens is 1,000,000 of them a token, and the smallest published price (Nova
// Micro's cache reads, 0.00875) is a whole number too. 64 bits hold nine
// million dollars.
using PicoUsd = std::int64_t;

inline constexpr PicoUsd kPicoUsdPerUsd = 1'000'000'000'000;

// The price of a token, in pico-dollars, from one in micro-dollars per million
// tokens ("0.30 dollars per million" is 300,000).
constexpr PicoUsd PerToken(std::int64_t micro_usd_per_million) {
  return micro_usd_per_million;
}

// Sums and products of tokens and money stay at the largest value, instead of
// going beyond it: no true session comes near, but a caller may say that it
// does.
constexpr std::int64_t SaturatingAdd(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

constexpr std::int64_t SaturatingMultiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? std::numeric_limits<std::int64_t>::min()
                            : std::numeric_limits<std::int64_t>::max();
}

// `amount` in dollars with `decimals` digits behind the point (at most 12),
// rounded half away from zero: "0.998".
std::string FormatUsd(PicoUsd amount, int decimals);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_MONEY_H_
