// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/usage_cost.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {

std::optional<PicoUsd> UsageCost(const ModelPrices& prices, const Usage& usage,
                                 bool is_long_life) {
  if (!usage.input_uncached.has_value() || !usage.output.has_value()) {
    return std::nullopt;
  }
  const std::int64_t read = usage.cache_read.value_or(0);
  const std::int64_t write = usage.cache_write.value_or(0);
  const std::int64_t prompt =
      SaturatingAdd(*usage.input_uncached, SaturatingAdd(read, write));
  const TokenRates rates =
      RatesFor(prices, std::max(prompt, prices.cache_tokens_min), is_long_life);
  if (!usage.cache_read.has_value() && rates.read != rates.input) {
    return std::nullopt;
  }
  if (!usage.cache_write.has_value() && rates.write != rates.input) {
    return std::nullopt;
  }
  const PicoUsd input =
      SaturatingAdd(SaturatingMultiply(*usage.input_uncached, rates.input),
                    SaturatingMultiply(read, rates.read));
  const PicoUsd rest =
      SaturatingAdd(SaturatingMultiply(write, rates.write),
                    SaturatingMultiply(*usage.output, rates.output));
  return SaturatingAdd(input, rest);
}

}  // namespace clerestory
