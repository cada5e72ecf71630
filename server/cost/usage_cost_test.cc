// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/usage_cost.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

const ModelPrices& PricesOf(const char* model) {
  return BuiltInPrices().Of(model, BuiltInPrices().as_of());
}

constexpr Usage kUsage = {.input_uncached = 1'000,
                          .cache_read = 50'000,
                          .cache_write = 2'000,
                          .output = 300,
                          .reasoning = 200};

TEST(UsageCostTest, IsEachClassAtItsRate) {
  EXPECT_EQ(UsageCost(PricesOf("claude-sonnet-4-6"), kUsage, false),
            1'000 * 3'000'000LL + 50'000 * 300'000LL + 2'000 * 3'750'000LL +
                300 * 15'000'000LL);
  EXPECT_EQ(UsageCost(PricesOf("claude-sonnet-4-6"), kUsage, true),
            1'000 * 3'000'000LL + 50'000 * 300'000LL + 2'000 * 6'000'000LL +
                300 * 15'000'000LL);
}

TEST(UsageCostTest, CachedTokensCountForTheTier) {
  Usage usage = kUsage;
  usage.cache_read = 97'000;  // With the rest, 100,000.
  const ModelPrices& haiku = PricesOf("claude-haiku-5-5");
  EXPECT_EQ(UsageCost(haiku, usage, false),
            1'000 * 100'000LL + 97'000 * 10'000LL + 2'000 * 125'000LL +
                300 * 500'000LL);
  usage.cache_read = 97'001;
  EXPECT_EQ(UsageCost(haiku, usage, false),
            1'000 * 500'000LL + 97'001 * 50'000LL + 2'000 * 625'000LL +
                300 * 2'500'000LL);
}

TEST(UsageCostTest, IsUnknownWithoutTheInputOrTheOutput) {
  const ModelPrices& prices = PricesOf("gpt-5.4");
  Usage usage = kUsage;
  usage.output = std::nullopt;
  EXPECT_EQ(UsageCost(prices, usage, false), std::nullopt);
  usage = kUsage;
  usage.input_uncached = std::nullopt;
  EXPECT_EQ(UsageCost(prices, usage, false), std::nullopt);
  EXPECT_EQ(UsageCost(prices, {}, false), std::nullopt);
  usage = kUsage;
  usage.reasoning = std::nullopt;
  EXPECT_EQ(UsageCost(prices, usage, false), UsageCost(prices, kUsage, false));
}

TEST(UsageCostTest, ACacheClassMayBeMissingWhereItCostsWhatInputDoes) {
  Usage usage = kUsage;
  usage.cache_write = std::nullopt;
  // Writes are charged.
  EXPECT_EQ(UsageCost(PricesOf("claude-sonnet-4-6"), usage, false),
            std::nullopt);
  EXPECT_EQ(UsageCost(PricesOf("gpt-6.2-sol"), usage, false), std::nullopt);
  // They are not.
  EXPECT_EQ(UsageCost(PricesOf("gpt-5.4"), usage, false),
            1'000 * 2'500'000LL + 50'000 * 250'000LL + 300 * 15'000'000LL);
  usage.cache_read = std::nullopt;
  EXPECT_EQ(UsageCost(PricesOf("gpt-5.4"), usage, false), std::nullopt);
  // There is no cache.
  EXPECT_EQ(UsageCost(PricesOf("nova-premier"), usage, false),
            1'000 * 2'500'000LL + 300 * 12'500'000LL);
}

// A usage without reasoning.
Usage UsageOf(std::int64_t input, std::optional<std::int64_t> read,
              std::int64_t write, std::int64_t output) {
  Usage usage;
  usage.input_uncached = input;
  usage.cache_read = read;
  usage.cache_write = write;
  usage.output = output;
  return usage;
}

TEST(UsageCostTest, WhatIsSaidToBeCachedIsHoweverShort) {
  const ModelPrices& opus = PricesOf("claude-opus-4-5");
  EXPECT_EQ(UsageCost(opus, UsageOf(1, 10, 0, 1), false),
            5'000'000 + 10 * 500'000 + 25'000'000);
  // Nor is it known that nothing was read because little else was.
  EXPECT_EQ(UsageCost(opus, UsageOf(1, std::nullopt, 0, 1), false),
            std::nullopt);
}

TEST(UsageCostTest, TheLargestUsageFits) {
  EXPECT_EQ(
      UsageCost(PricesOf("claude-opus-4"),
                UsageOf(kTokensMax, kTokensMax, kTokensMax, kTokensMax), false),
      kTokensMax * (15'000'000 + 1'500'000 + 18'750'000 + 75'000'000));
}

}  // namespace
}  // namespace clerestory
