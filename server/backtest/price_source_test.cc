// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/price_source.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/backtest/backtest.h"
#include "server/backtest/simulate.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const absl::string_view name : PriceStructureNames()) {
    names.emplace_back(name);
  }
  return names;
}

Policy OfMode(Mode mode) {
  Policy policy = WithSimulationPlaceholder(Policy());
  policy.mode = mode;
  return policy;
}

BacktestResult Play(const BacktestInput& input, Mode mode,
                    const PriceSource& prices) {
  return *Backtest(input, OfMode(mode), SimulationCounter(), prices);
}

TEST(ListPricesTest, AreEachModelsOwn) {
  EXPECT_EQ(&ListPrices().Of("claude-opus-4-5", 7),
            &BuiltInPrices().Of("claude-opus-4-5", 0));
}

TEST(PriceStructureTest, AnUnknownNameHasNone) {
  EXPECT_EQ(FindPriceStructure("1.25/0.2"), nullptr);
  EXPECT_EQ(FindPriceStructure(""), nullptr);
}

TEST(PriceStructureTest, HasTheMultiplesOfItsName) {
  struct Row {
    const char* name;
    PicoUsd write;
    PicoUsd read;
  };
  constexpr Row kRows[] = {
      {"1.25/0.1", 3'750'000, 300'000},  {"1.25/0.05", 3'750'000, 150'000},
      {"1.25/0.025", 3'750'000, 75'000}, {"1.0/0.1", 3'000'000, 300'000},
      {"1.0/0.5", 3'000'000, 1'500'000}, {"no-cache", 3'000'000, 3'000'000}};
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    names.emplace_back(row.name);
    const PriceSource* const source = FindPriceStructure(row.name);
    ASSERT_NE(source, nullptr) << row.name;
    const ModelPrices& prices = source->Of("any-model", 0);
    EXPECT_EQ(prices.input, 3'000'000);
    EXPECT_EQ(prices.output, 15'000'000);
    EXPECT_EQ(prices.write, row.write) << row.name;
    EXPECT_EQ(prices.read, row.read) << row.name;
  }
  EXPECT_EQ(Names(), names);
}

TEST(PriceStructureTest, ThatOfClaudeSonnetCostsWhatItDoes) {
  const BacktestInput input = SimulatedSession(60);
  EXPECT_EQ(Play(input, Mode::kAdaptive, *FindPriceStructure("1.25/0.1")).cost,
            Play(input, Mode::kAdaptive, ListPrices()).cost);
}

class EveryStructureTest : public ::testing::TestWithParam<std::string> {
 protected:
  const PriceSource& prices() const { return *FindPriceStructure(GetParam()); }
};

TEST_P(EveryStructureTest, NoPolicyBeatsTheOptimumOfThePublishedSession) {
  for (const std::int64_t turns : {5, 20, 60, 100}) {
    const BacktestInput input = SimulatedSession(turns);
    const PicoUsd optimum = *OptimumCost(input, OfMode(Mode::kAdaptive),
                                         SimulationCounter(), prices());
    for (const Mode mode :
         {Mode::kOff, Mode::kAdaptive, Mode::kBlock, Mode::kEveryTurn}) {
      EXPECT_LE(optimum, Play(input, mode, prices()).cost) << turns;
    }
  }
}

TEST_P(EveryStructureTest, TheDefaultPolicyIsNearTheOptimum) {
  for (const std::int64_t pause_percent : {0, 10}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const BacktestInput input = LogNormalSession(
          {.turns = 80, .seed = seed, .pause_percent = pause_percent});
      const PicoUsd optimum = *OptimumCost(input, OfMode(Mode::kAdaptive),
                                           SimulationCounter(), prices());
      EXPECT_LE(Play(input, Mode::kAdaptive, prices()).cost,
                optimum * 120 / 100)
          << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryStructureTest, ::testing::ValuesIn(Names()),
                         [](const ::testing::TestParamInfo<std::string>& name) {
                           std::string word;
                           for (const char c : name.param) {
                             word += c == '.' || c == '/' || c == '-' ? '_' : c;
                           }
                           return word;
                         });

TEST(NoCacheTest, MaskingAtOnceComesOutByItself) {
  const PriceSource& prices = *FindPriceStructure("no-cache");
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const BacktestInput input =
        LogNormalSession({.turns = 60, .seed = seed, .pause_percent = 0});
    const BacktestResult adaptive = Play(input, Mode::kAdaptive, prices);
    const BacktestResult every_turn = Play(input, Mode::kEveryTurn, prices);
    EXPECT_EQ(adaptive.cost, every_turn.cost);
    EXPECT_EQ(adaptive.masked_count, every_turn.masked_count);
    EXPECT_EQ(adaptive.cost, *OptimumCost(input, OfMode(Mode::kAdaptive),
                                          SimulationCounter(), prices));
  }
}

}  // namespace
}  // namespace clerestory
