// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/outlook.h"

#include <algorithm>
#include <cstdint>

#include "server/cost/prices.h"
#include "server/model/money.h"

namespace clerestory {

bool IsWorthWaiting(const Outlook& outlook) {
  if (SaturatingMultiply(outlook.rent, 100) >
      SaturatingMultiply(outlook.price, kWaitRentPercentMax)) {
    return false;
  }
  const TokenRates& rates = outlook.rates;
  const std::int64_t calls = std::max<std::int64_t>(1, outlook.call_count);
  const PicoUsd cost = SaturatingAdd(outlook.rent, outlook.price);
  PicoUsd rent = outlook.rent;
  std::int64_t saving = outlook.saving;
  // By how much a break then writes more than one now.
  std::int64_t more = outlook.new_tokens;
  std::int64_t waited = 0;
  for (const std::int64_t next : outlook.next_savings) {
    ++waited;
    rent = SaturatingAdd(rent, SaturatingMultiply(saving, rates.read));
    saving += next;
    more -= next;
    const PicoUsd price = std::max<PicoUsd>(
        0, SaturatingAdd(outlook.price,
                         SaturatingMultiply(more, rates.write - rates.read)));
    if (SaturatingMultiply(SaturatingAdd(rent, price), calls) <
        SaturatingMultiply(cost, calls + waited)) {
      return true;
    }
    more += outlook.turn_tokens;
  }
  return false;
}

}  // namespace clerestory
