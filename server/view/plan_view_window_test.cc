// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Breaks that the model's window forces. A turn of `n` has 3 tokens of call and
// `n` of result, and masking a result of 100 saves 92.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cost/prices.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/plan_view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WindowTest, TheMostTokensLeaveTheReserveForTheAnswer) {
  Policy policy;
  ModelPrices prices;
  prices.window_tokens = 1'000;
  prices.output_tokens_max = 150;
  EXPECT_EQ(PromptTokensMax(policy, prices), 850);
  prices.output_tokens_max = 900;
  EXPECT_EQ(PromptTokensMax(policy, prices), 800) << "at most a fifth";
  policy.reserve_tokens = 300;
  EXPECT_EQ(PromptTokensMax(policy, prices), 700);
  policy.window_tokens = 500;
  EXPECT_EQ(PromptTokensMax(policy, prices), 200);
}

// A session of 10 kept turns and a warm cache, in which nothing is eligible.
ScriptedSession FullSession() {
  ScriptedSession s;
  s.policy.keep_observations = 10;
  s.Turns(10, 100);
  s.Serve();
  return s;
}

TEST(WindowTest, AViewThatJustFitsIsNotBroken) {
  ScriptedSession s = FullSession();
  s.policy.window_tokens = 1'030;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone);
  s.policy.window_tokens = 1'029;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kWindow);
  s.policy.window_tokens = 1'030;
  s.preamble_tokens = 1;
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kWindow);
}

TEST(WindowTest, ForcesTheOldestUntilASixthOfTheWindowIsFree) {
  ScriptedSession s = FullSession();
  s.policy.window_tokens = 1'030 - 2 * 92;
  const ViewServed view = s.Serve().decision;
  // Of 846 at most 705: with three masked it would be 754.
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(view.view_tokens.total(), 1'030 - 4 * 92);
}

TEST(WindowTest, ForcesDownToTheNewestThreeAndNeverBelow) {
  ScriptedSession s = FullSession();
  s.policy.keep_turns = 10;
  s.policy.window_tokens = 1;
  const ViewServed view = s.Serve().decision;
  EXPECT_EQ(view.break_reason, BreakReason::kWindow);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_GT(view.view_tokens.total(), 1);
  EXPECT_EQ(s.Plan().break_reason, BreakReason::kNone) << "nothing is left";
}

TEST(WindowTest, NeverForcesWhatTheModelDidNotActUpon) {
  ScriptedSession s;
  s.Batch(std::vector<std::string>(9, LiteralOf(100)));
  s.policy.window_tokens = 1;
  EXPECT_THAT(s.Serve().decision.masks, IsEmpty());
  s.Batch(std::vector<std::string>(2, LiteralOf(100)));
  EXPECT_THAT(s.Serve().decision.masks, IsEmpty()) << "one is of the newest 3";
  s.Turn(100);
  EXPECT_EQ(s.Serve().decision.masks.size(), 9U);
}

TEST(WindowTest, AForcedBreakMasksEverythingEligible) {
  ScriptedSession s;
  s.Turns(3, 100);
  s.Serve();
  s.Turns(3, 100);
  s.prices.write = 1'000;  // So that none would pay.
  s.policy.window_tokens = 618 - 1;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2)) << "though one would fit";
}

TEST(WindowTest, AForcedBreakSaysWhatItCosts) {
  ScriptedSession s;
  s.policy.keep_observations = 5;
  for (int turn = 1; turn <= 50; ++turn) {
    s.Turn(100);
    if (s.Plan().break_reason == BreakReason::kPays) break;
    s.Serve();
  }
  ASSERT_GT(s.Plan().break_price, 0);
  s.policy.window_tokens = 1;
  const ViewServed view = s.Plan();
  EXPECT_EQ(view.break_reason, BreakReason::kWindow);
  EXPECT_GT(view.break_price, 0);
  EXPECT_GT(view.break_rent, 0);
}

}  // namespace
}  // namespace clerestory
