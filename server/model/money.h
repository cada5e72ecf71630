// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_MONEY_H_
#define CLERESTORY_SERVER_MODEL_MONEY_H_

#include <cstdint>
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

// `amount` in dollars with `decimals` digits behind the point (at most 12),
// rounded half away from zero: "0.998".
std::string FormatUsd(PicoUsd amount, int decimals);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_MONEY_H_
