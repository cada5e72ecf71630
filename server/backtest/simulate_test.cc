// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/simulate.h"

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/backtest/backtest.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

// The plain rule, by which the table was made.
Policy RentOrBuy() {
  Policy policy;
  policy.first_break_percent = 100;
  policy.later_break_percent = 100;
  return policy;
}

BacktestResult Simulate(std::int64_t turns, Mode mode,
                        Policy policy = RentOrBuy()) {
  policy.mode = mode;
  absl::StatusOr<BacktestResult> result =
      Backtest(SimulatedSession(turns), WithSimulationPlaceholder(policy),
               SimulationCounter());
  EXPECT_THAT(result, IsOk());
  return *result;
}

PicoUsd Optimum(std::int64_t turns) {
  const absl::StatusOr<PicoUsd> cost =
      OptimumCost(SimulatedSession(turns), WithSimulationPlaceholder(Policy()),
                  SimulationCounter());
  EXPECT_THAT(cost, IsOk());
  return *cost;
}

// The table of DESIGN.md 6.3, in dollars.
struct Row {
  std::int64_t turns;
  std::string raw;
  std::string every_turn;
  std::string block;
  std::string adaptive;
  std::string optimum;
};

class PublishedTableTest : public ::testing::TestWithParam<Row> {};

TEST_P(PublishedTableTest, ComesOutToTheLastDigit) {
  const Row& row = GetParam();
  EXPECT_EQ(FormatUsd(Simulate(row.turns, Mode::kOff).cost, 3), row.raw);
  EXPECT_EQ(FormatUsd(Simulate(row.turns, Mode::kEveryTurn).cost, 3),
            row.every_turn);
  EXPECT_EQ(FormatUsd(Simulate(row.turns, Mode::kBlock).cost, 3), row.block);
  EXPECT_EQ(FormatUsd(Simulate(row.turns, Mode::kAdaptive).cost, 3),
            row.adaptive);
  EXPECT_EQ(FormatUsd(Optimum(row.turns), 3), row.optimum);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, PublishedTableTest,
    ::testing::Values(Row{20, "0.383", "0.932", "0.383", "0.383", "0.383"},
                      Row{40, "0.998", "2.612", "0.981", "0.958", "0.953"},
                      Row{60, "1.860", "4.322", "1.610", "1.568", "1.567"},
                      Row{100, "4.320", "7.838", "2.961", "2.930", "2.889"},
                      Row{200, "14.777", "17.172", "6.886", "6.798", "6.738"},
                      Row{300, "31.383", "27.286", "11.590", "11.448",
                          "11.367"}),
    [](const ::testing::TestParamInfo<Row>& row) {
      return std::to_string(row.param.turns) + "Turns";
    });

// A session that ends right after its first break has paid for nothing: the
// worst is one of 28 turns. No rule that does not know the length can do better
// than 1.09 of the optimum at every length, nor stay within 1.01 of raw at
// every length without costing 1.8 times the optimum at another.
// A session that ends right after its first break has paid for nothing. No rule
// that does not know the length can do better than 1.09 of the optimum at every
// length, nor stay within 1.01 of raw at every length without costing 1.8 times
// the optimum at another.
TEST(NeverDearerTest, AtNoLengthDoesItCostMuchMoreThanTheBest) {
  for (std::int64_t turns = 1; turns <= 120; ++turns) {
    const PicoUsd raw = Simulate(turns, Mode::kOff).cost;
    const PicoUsd optimum = Optimum(turns);
    for (const Policy& policy : {RentOrBuy(), Policy()}) {
      const PicoUsd cost = Simulate(turns, Mode::kAdaptive, policy).cost;
      EXPECT_LE(cost, raw * 112 / 100) << turns;
      EXPECT_LE(cost, optimum * 112 / 100) << turns;
    }
  }
}

TEST(NeverDearerTest, InThePublishedRowsItNeverCostsMoreThanRaw) {
  for (const std::int64_t turns : {20, 40, 60, 100, 200, 300}) {
    const PicoUsd raw = Simulate(turns, Mode::kOff).cost;
    for (const Policy& policy : {RentOrBuy(), Policy()}) {
      EXPECT_LE(Simulate(turns, Mode::kAdaptive, policy).cost, raw) << turns;
    }
  }
}

TEST(SimulatedSessionTest, HasTheTokensOfThePublishedSimulation) {
  const BacktestResult raw = Simulate(3, Mode::kOff);
  ASSERT_EQ(raw.calls.size(), 3U);
  for (std::int64_t turn = 0; turn < 3; ++turn) {
    const BacktestCall& call = raw.calls[static_cast<std::size_t>(turn)];
    EXPECT_EQ(call.view.raw_call.total(), 6'000 + turn * 2'050);
    EXPECT_EQ(call.view.raw_tokens.observations, turn * 1'800);
    EXPECT_EQ(call.output_tokens, 250);
  }
}

TEST(SimulatedSessionTest, MasksWithTenTokens) {
  const BacktestResult result = Simulate(12, Mode::kEveryTurn);
  const ViewServed& view = result.calls.back().view;
  ASSERT_EQ(view.masks.size(), 1U);
  EXPECT_EQ(view.raw_tokens.total() - view.view_tokens.total(), 1'790);
}

}  // namespace
}  // namespace clerestory
