// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_OUTLOOK_H_
#define CLERESTORY_SERVER_VIEW_OUTLOOK_H_

#include <cstdint>
#include <vector>

#include "server/cost/prices.h"
#include "server/model/money.h"

namespace clerestory {

// A break that could be made now, and what is known of the calls to come.
struct Outlook {
  // What a token costs, now and then.
  TokenRates rates;
  PicoUsd rent = 0;
  PicoUsd price = 0;
  // What it would save in every call, in tokens.
  std::int64_t saving = 0;
  // How many calls its oldest observation has accrued rent for.
  std::int64_t call_count = 0;
  // Tokens of the prompt that the cache does not hold yet.
  std::int64_t new_tokens = 0;
  // Tokens that a turn adds on average.
  std::int64_t turn_tokens = 0;
  // What masking would save of the observations that will be old enough in the
  // next call, in the one after it, and so on.
  std::vector<std::int64_t> next_savings;
};

// A rent of more than so many percent of the price waits for nothing.
inline constexpr std::int64_t kWaitRentPercentMax = 220;

// Whether the break is better made a few calls later, because large
// observations are about to be old enough, which it would write anew, and a
// later one mask.
//
// Breaks come again and again, so what counts is what a cycle, with its rent
// and the price at its end, costs for each of its calls. It is worth waiting if
// that would be less after one of the next calls, should the session go on as
// it did. With observations of one size it is least when the rent has reached
// the price, which is the rule of rent or buy. Pure.
bool IsWorthWaiting(const Outlook& outlook);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_OUTLOOK_H_
