// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/prices.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

ModelPrices Tiered() {
  return {.input = 10,
          .write = 12,
          .read = 1,
          .output = 50,
          .tiers = {{.above_tokens = 1'000,
                     .input = 20,
                     .write = 24,
                     .long_write = 40,
                     .read = 2,
                     .output = 75},
                    {.above_tokens = 5'000,
                     .input = 30,
                     .write = 36,
                     .long_write = 60,
                     .read = 3,
                     .output = 100}},
          .long_ttl_seconds = 3'600,
          .long_write = 20,
          .cache_tokens_min = 100};
}

TEST(RatesForTest, AreThoseOfTheLastTierThatThePromptIsAbove) {
  const ModelPrices prices = Tiered();
  EXPECT_EQ(RatesFor(prices, 1'000, false), (TokenRates{10, 12, 1, 50}));
  EXPECT_EQ(RatesFor(prices, 1'001, false), (TokenRates{20, 24, 2, 75}));
  EXPECT_EQ(RatesFor(prices, 5'000, false), (TokenRates{20, 24, 2, 75}));
  EXPECT_EQ(RatesFor(prices, 5'001, false), (TokenRates{30, 36, 3, 100}));
}

TEST(RatesForTest, TheLongLifeIsWrittenForMore) {
  ModelPrices prices = Tiered();
  EXPECT_EQ(RatesFor(prices, 1'000, true), (TokenRates{10, 20, 1, 50}));
  EXPECT_EQ(RatesFor(prices, 1'001, true), (TokenRates{20, 40, 2, 75}));
  // Where it is not offered, asking for it changes nothing.
  prices.long_ttl_seconds = 0;
  EXPECT_EQ(RatesFor(prices, 1'001, true), (TokenRates{20, 24, 2, 75}));
}

TEST(RatesForTest, AShortPromptPaysInputForEverything) {
  const ModelPrices prices = Tiered();
  EXPECT_EQ(RatesFor(prices, 99, false), (TokenRates{10, 10, 10, 50}));
  EXPECT_EQ(RatesFor(prices, 99, true), (TokenRates{10, 10, 10, 50}));
  EXPECT_EQ(RatesFor(prices, 100, false), (TokenRates{10, 12, 1, 50}));
}

TEST(InputCostTest, IsThatOfWhatIsReadWrittenAndNeither) {
  const ModelPrices prices = Tiered();
  EXPECT_EQ(InputCost(prices, {}), 0);
  EXPECT_EQ(InputCost(prices, {.read = 700, .written = 300}),
            700 * 1 + 300 * 12);
  EXPECT_EQ(InputCost(prices, {.read = 700, .written = 300}, true),
            700 * 1 + 300 * 20);
  EXPECT_EQ(InputCost(prices, {.read = 700, .written = 200, .uncached = 100}),
            700 * 1 + 200 * 12 + 100 * 10);
}

// One token more makes all of them dearer.
TEST(InputCostTest, TheWholePromptChoosesTheTier) {
  const ModelPrices prices = Tiered();
  EXPECT_EQ(InputCost(prices, {.read = 700, .written = 301}),
            700 * 2 + 301 * 24);
  EXPECT_EQ(InputCost(prices, {.read = 5'001, .written = 0}), 5'001 * 3);
  EXPECT_EQ(InputCost(prices, {.read = 40, .written = 50}), 90 * 10);
}

TEST(InputCostTest, StaysAtTheLargestValue) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ModelPrices prices = Tiered();
  prices.tiers.clear();
  EXPECT_EQ(InputCost(prices, {.read = kMost / 2, .written = kMost / 2}),
            kMost);
}

}  // namespace
}  // namespace clerestory
