// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/backtest_run.h"

#include <string>
#include <utility>
#include <vector>

#include "client/transcripts/transcript.h"
#include "gtest/gtest.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/policy/policy.h"
#include "tests/support/form_token_counter.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

PolicyOutcome Outcome(const std::string& name, PicoUsd cost,
                      double any_length) {
  PolicyOutcome outcome;
  outcome.policy = name;
  outcome.result.cost = cost;
  outcome.ratio_to_raw_any_length = any_length;
  return outcome;
}

SessionOutcome Session(PicoUsd raw, PicoUsd optimum,
                       std::vector<PolicyOutcome> policies) {
  SessionOutcome session;
  session.raw_cost = raw;
  session.optimum_cost = optimum;
  session.policies = std::move(policies);
  return session;
}

Transcript SomeTranscript() {
  Transcript transcript;
  transcript.format = Format::kAnthropicMessages;
  transcript.messages = {
      {.bytes = R"({"role":"user","content":"task"})", .time = 1, .model = ""},
      {.bytes = R"({"role":"assistant","content":"ok"})",
       .time = 2,
       .model = "claude-opus-4-5"}};
  return transcript;
}

TEST(RatioTest, IsPartByWhole) {
  EXPECT_DOUBLE_EQ(Ratio(1, 4), 0.25);
  EXPECT_DOUBLE_EQ(Ratio(6, 4), 1.5);
  EXPECT_DOUBLE_EQ(Ratio(0, 4), 0);
}

TEST(RatioTest, OfNothingToNothingIsOne) { EXPECT_DOUBLE_EQ(Ratio(0, 0), 1); }

TEST(SummarizeTest, OfNoSessionsIsEmpty) { EXPECT_TRUE(Summarize({}).empty()); }

TEST(SummarizeTest, OfOneSessionIsItsOwnRatios) {
  const std::vector<PolicySummary> summaries =
      Summarize({Session(100, 40, {Outcome("p", 50, 1.25)})});
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0].policy, "p");
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_raw_total, 0.5);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_raw_worst, 0.5);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_raw_any_length, 1.25);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_optimum_mean, 1.25);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_optimum_worst, 1.25);
}

TEST(SummarizeTest, TotalsAreOfSumsAndMeansOfSessions) {
  const std::vector<PolicySummary> summaries = Summarize(
      {Session(1000, 400, {Outcome("p", 500, 1), Outcome("q", 400, 1.1)}),
       Session(10, 10, {Outcome("p", 15, 1.75), Outcome("q", 10, 1)})});
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].policy, "p");
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_raw_total, 515.0 / 1010);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_raw_worst, 1.5);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_raw_any_length, 1.75);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_optimum_mean, (1.25 + 1.5) / 2);
  EXPECT_DOUBLE_EQ(summaries[0].ratio_to_optimum_worst, 1.5);
  EXPECT_EQ(summaries[1].policy, "q");
  EXPECT_DOUBLE_EQ(summaries[1].ratio_to_raw_total, 410.0 / 1010);
  EXPECT_DOUBLE_EQ(summaries[1].ratio_to_raw_worst, 1);
  EXPECT_DOUBLE_EQ(summaries[1].ratio_to_raw_any_length, 1.1);
  EXPECT_DOUBLE_EQ(summaries[1].ratio_to_optimum_mean, 1);
  EXPECT_DOUBLE_EQ(summaries[1].ratio_to_optimum_worst, 1);
}

TEST(ToInputTest, TakesTheTranscriptsModelsUnlessOneIsGiven) {
  const BacktestInput own = ToInput(SomeTranscript(), "", 7);
  EXPECT_EQ(own.format, Format::kAnthropicMessages);
  EXPECT_EQ(own.preamble_tokens, 7);
  ASSERT_EQ(own.messages.size(), 2U);
  EXPECT_EQ(*own.messages[1].bytes, SomeTranscript().messages[1].bytes);
  EXPECT_EQ(own.messages[1].time, 2);
  EXPECT_EQ(own.messages[1].model, "claude-opus-4-5");
  EXPECT_EQ(ToInput(SomeTranscript(), "m", 7).messages[1].model, "m");
}

TEST(RunSessionTest, WithNothingToMaskEveryPolicyCostsWhatRawDoes) {
  const FormTokenCounter counter;
  Policy off;
  off.mode = Mode::kOff;
  const auto outcome =
      RunSession(ToInput(SomeTranscript(), "", 7),
                 {{.name = "off", .policy = off}, {.name = "on", .policy = {}}},
                 counter, ListPrices());
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->call_count, 1);
  EXPECT_GT(outcome->raw_cost, 0);
  EXPECT_EQ(outcome->optimum_cost, outcome->raw_cost);
  ASSERT_EQ(outcome->policies.size(), 2U);
  for (const PolicyOutcome& policy : outcome->policies) {
    EXPECT_EQ(policy.result.cost, outcome->raw_cost) << policy.policy;
    EXPECT_DOUBLE_EQ(policy.ratio_to_raw_any_length, 1);
  }
  EXPECT_EQ(outcome->policies[1].policy, "on");
}

}  // namespace
}  // namespace clerestory
