// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/prices.h"

#include <cstdint>

#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {

TokenRates RatesFor(const ModelPrices& prices, std::int64_t prompt_tokens,
                    bool is_long_life) {
  PriceTier tier{.input = prices.input,
                 .write = prices.write,
                 .long_write = prices.long_write,
                 .read = prices.read,
                 .output = prices.output};
  for (const PriceTier& other : prices.tiers) {
    if (prompt_tokens > other.above_tokens) tier = other;
  }
  if (prompt_tokens < prices.cache_tokens_min) {
    return {.input = tier.input,
            .write = tier.input,
            .read = tier.input,
            .output = tier.output};
  }
  const bool is_long = is_long_life && prices.long_ttl_seconds > 0;
  return {.input = tier.input,
          .write = is_long ? tier.long_write : tier.write,
          .read = tier.read,
          .output = tier.output};
}

PicoUsd InputCost(const ModelPrices& prices, const CallTokens& tokens,
                  bool is_long_life) {
  const TokenRates rates = RatesFor(prices, tokens.total(), is_long_life);
  return SaturatingAdd(
      SaturatingAdd(SaturatingMultiply(tokens.read, rates.read),
                    SaturatingMultiply(tokens.written, rates.write)),
      SaturatingMultiply(tokens.uncached, rates.input));
}

}  // namespace clerestory
