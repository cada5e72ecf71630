// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a policy keeps, whatever a break costs. A turn has 3 tokens of call and
// a result; a placeholder has 8.

#include "server/view/eligible.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A session that masks whatever is eligible, in every call.
ScriptedSession Eager() {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

std::vector<std::size_t> MaskedIn(ScriptedSession& s) {
  s.Serve();
  return s.masked();
}

// --- What all observations share ---------------------------------------------

TEST(KeepTest, TheNewestTokensAreKept) {
  ScriptedSession s = Eager();
  s.policy.keep_tokens = 500;
  s.Turns(5, 100);
  EXPECT_THAT(MaskedIn(s), IsEmpty()) << "together they have no more";
  s.Turn(100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0)) << "with it they have";
}

TEST(KeepTest, ALargeObservationIsNotKeptWithTheNewestTokens) {
  ScriptedSession s = Eager();
  s.policy.keep_tokens = 500;
  s.Turn(201);
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0));
}

TEST(KeepTest, TheNewestThreeAreKeptHoweverLargeTheyAre) {
  ScriptedSession s = Eager();
  s.policy.keep_tokens = 1;
  s.Turns(4, 10'000);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0));
}

TEST(KeepTest, OfObservationsTurnsAndTokensTheMostIsKept) {
  ScriptedSession s = Eager();
  s.Turns(10, 100);
  s.policy.keep_observations = 9;
  s.policy.keep_turns = 4;
  s.policy.keep_tokens = 200;
  EXPECT_THAT(MaskedIn(s), ElementsAre(0));
  s.policy.keep_observations = 3;
  s.policy.keep_tokens = 800;
  EXPECT_THAT(MaskedIn(s), ElementsAre(0, 1));
  s.policy.keep_tokens = 200;
  EXPECT_THAT(MaskedIn(s), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(KeepTest, ABatchIsKeptWholeByItsTokens) {
  ScriptedSession s = Eager();
  s.policy.keep_tokens = 350;
  s.Batch({LiteralOf(100), LiteralOf(100)});
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0, 1)) << "its last one is not kept";
  ScriptedSession more = Eager();
  more.policy.keep_tokens = 400;
  more.Batch({LiteralOf(100), LiteralOf(100)});
  more.Turns(3, 100);
  EXPECT_THAT(MaskedIn(more), IsEmpty()) << "its last one is";
}

// --- What tools' rules keep --------------------------------------------------

void CallTool(ScriptedSession& s, const std::string& tool,
              std::size_t tokens = 100) {
  s.Call({.id = "", .tool = tool}, LiteralOf(tokens));
}

TEST(ToolRuleTest, TheNewestOfItsToolsAreKeptBesideWhatAllKeep) {
  ScriptedSession s = Eager();
  s.policy.tools = {{.tool = "read", .keep_observations = 2}};
  for (const char* tool : {"read", "bash", "read", "bash", "read"}) {
    CallTool(s, tool);
  }
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0, 1, 3));
  CallTool(s, "read");
  EXPECT_THAT(MaskedIn(s), ElementsAre(0, 1, 2, 3, 5));
}

TEST(ToolRuleTest, ThoseOfAllToolsOfOneRuleAreCountedTogether) {
  ScriptedSession s = Eager();
  s.policy.tools = {{.tool = "read*", .keep_observations = 2}};
  for (const char* tool : {"read", "read_all", "read"}) CallTool(s, tool);
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0));
}

TEST(ToolRuleTest, TheFirstRuleThatMatchesIsTheToolsRule) {
  ScriptedSession s = Eager();
  s.policy.tools = {{.tool = "read", .keep_observations = 0},
                    {.tool = "*", .keep_observations = 9}};
  CallTool(s, "read");
  CallTool(s, "bash");
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0));
}

// Otherwise what a rule lets go would come with the rent of all the time in
// which it was kept, and break the cache at once.
TEST(ToolRuleTest, RentRunsFromWhenARuleLetsGoAsIfAllWereKept) {
  ScriptedSession by_rule;
  by_rule.policy.tools = {{.tool = "*", .keep_observations = 6}};
  ScriptedSession by_age;
  by_age.policy.keep_observations = 6;
  int breaks = 0;
  for (int turn = 0; turn < 40; ++turn) {
    by_rule.Turn(100);
    by_age.Turn(100);
    const ViewServed rule = by_rule.Serve().decision;
    const ViewServed age = by_age.Serve().decision;
    EXPECT_EQ(rule.masks, age.masks) << turn;
    EXPECT_EQ(rule.break_rent, age.break_rent) << turn;
    EXPECT_EQ(rule.break_price, age.break_price) << turn;
    EXPECT_EQ(rule.every_turn_call, age.every_turn_call) << turn;
    if (!rule.masks.empty()) ++breaks;
  }
  EXPECT_GT(breaks, 1);
}

TEST(ToolRuleTest, RentOfWhatARuleKeepsBeginsWithTheOneThatPushesItOut) {
  ScriptedSession s;
  s.policy.tools = {{.tool = "read", .keep_observations = 2}};
  s.policy.reclaim_tokens_min = 1'000'000;  // No break.
  CallTool(s, "read");
  CallTool(s, "bash");
  s.Serve();
  for (int i = 0; i < 6; ++i) {
    CallTool(s, i == 3 ? "read" : "bash");
    s.Serve();
  }
  EXPECT_EQ(Eligible(s.session(), s.policy).RentBase(0),
            s.session().read_price_sum())
      << "nothing has pushed it out";
  const PicoUsd before = s.session().read_price_sum();
  CallTool(s, "read");
  s.Serve();
  CallTool(s, "bash");
  EXPECT_EQ(Eligible(s.session(), s.policy).RentBase(0), before);
  EXPECT_LT(Eligible(s.session(), s.policy).RentBase(1), before) << "by age";
}

TEST(ToolRuleTest, WhatARuleKeepsTheWindowTakes) {
  ScriptedSession s = Eager();
  s.policy.tools = {{.tool = "read", .keep_observations = 9}};
  s.policy.window_tokens = 400;
  s.policy.reserve_tokens = 1;
  CallTool(s, "read");
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(0));
  EXPECT_EQ(s.session().last_view()->break_reason, BreakReason::kWindow);
}

TEST(ToolRuleTest, WhatIsNeverMaskedStaysEvenIfTheWindowForcesABreak) {
  ScriptedSession s = Eager();
  s.policy.tools = {{.tool = "plan", .is_never_masked = true}};
  s.policy.window_tokens = 50;
  s.policy.reserve_tokens = 1;
  CallTool(s, "plan");
  CallTool(s, "bash");
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(1));
  EXPECT_EQ(s.session().last_view()->break_reason, BreakReason::kSchedule)
      << "the window adds nothing";
}

TEST(ToolRuleTest, ExcludeBeatsIncludeAndTheWindow) {
  ScriptedSession s = Eager();
  s.policy.include = {"b*", "read"};
  s.policy.exclude = {"bash"};
  s.policy.window_tokens = 50;
  s.policy.reserve_tokens = 1;
  for (const char* tool : {"bash", "batch", "read", "write"}) CallTool(s, tool);
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(1, 2));
}

TEST(ToolRuleTest, AnMcpToolIsNamedByItsServer) {
  ScriptedSession s = Eager();
  s.policy.exclude = {"github/get_*"};
  CallTool(s, "mcp__github__get_issue");
  CallTool(s, "mcp__github__list_issues");
  CallTool(s, "github/get_issue");
  s.Turns(3, 100);
  EXPECT_THAT(MaskedIn(s), ElementsAre(1));
}

// --- Duplicates --------------------------------------------------------------

class DuplicateTest : public ::testing::Test {
 protected:
  DuplicateTest() {
    s_.policy.keep_observations = 20;
    s_.policy.duplicates = DuplicateRule::kIdentical;
  }

  // A call of `path` that finds `letter` a hundred times.
  void Read(const std::string& path, char letter, bool is_error = false) {
    s_.Call(CallOf(path), Literal(std::string(100, letter)), is_error);
  }
  static CallSpec CallOf(const std::string& path) {
    return {.id = "",
            .tool = "read",
            .arguments = R"({"p":)" + Literal(path) + "}"};
  }
  std::vector<std::size_t> Masked() { return MaskedIn(s_); }

  ScriptedSession s_ = Eager();
};

TEST_F(DuplicateTest, TheEarlierOfTwoGoesAtOnceHoweverNewItIs) {
  Read("a", 'x');
  Read("b", 'y');
  EXPECT_THAT(Masked(), IsEmpty());
  Read("c", 'x');
  EXPECT_THAT(Masked(), ElementsAre(0)) << "the last, 'c', shows it";
}

TEST_F(DuplicateTest, OffKeepsThemAll) {
  s_.policy.duplicates = DuplicateRule::kOff;
  Read("a", 'x');
  Read("a", 'x');
  EXPECT_THAT(Masked(), IsEmpty());
}

TEST_F(DuplicateTest, OfManyTheLastStays) {
  for (int i = 0; i < 5; ++i) Read("a", 'x');
  EXPECT_THAT(Masked(), ElementsAre(0, 1, 2, 3));
  s_.Answer();
  EXPECT_THAT(Masked(), ElementsAre(0, 1, 2, 3));
  Read("a", 'x');
  EXPECT_THAT(Masked(), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(DuplicateTest, AnotherToolIsNoCopy) {
  Read("a", 'x');
  s_.Call({.id = "", .tool = "bash", .arguments = CallOf("a").arguments},
          Literal(std::string(100, 'x')));
  EXPECT_THAT(Masked(), IsEmpty());
}

TEST_F(DuplicateTest, TheSameCallWithAnotherResultIsSuperseded) {
  Read("a", 'x');
  Read("a", 'y');
  EXPECT_THAT(Masked(), IsEmpty()) << "it is not identical";
  s_.policy.duplicates = DuplicateRule::kSuperseded;
  EXPECT_THAT(Masked(), ElementsAre(0));
}

TEST_F(DuplicateTest, AFailureSupersedesNothing) {
  s_.policy.duplicates = DuplicateRule::kSuperseded;
  Read("a", 'x');
  Read("a", 'y', /*is_error=*/true);
  EXPECT_THAT(Masked(), IsEmpty());
  Read("a", 'z');
  EXPECT_THAT(Masked(), ElementsAre(0));
}

TEST_F(DuplicateTest, AResultThatIsTooSmallToBeMaskedSupersedes) {
  s_.policy.duplicates = DuplicateRule::kSuperseded;
  Read("a", 'x');
  s_.Call(CallOf("a"), R"("ok")");
  EXPECT_THAT(Masked(), ElementsAre(0));
}

// What 'a' said stands in 'b', until 'b' is called again.
TEST_F(DuplicateTest, ACopyThatIsSupersededShowsNothing) {
  s_.policy.duplicates = DuplicateRule::kSuperseded;
  Read("a", 'x');
  Read("b", 'x');
  Read("b", 'y');
  EXPECT_THAT(Masked(), ElementsAre(1)) << "in the same break";
  s_.Answer();
  EXPECT_THAT(Masked(), ElementsAre(1)) << "nor later";
}

TEST_F(DuplicateTest, ACallThatIsRepeatedBehindAMaskedCopyCounts) {
  s_.policy.duplicates = DuplicateRule::kSuperseded;
  s_.policy.mode = Mode::kOff;
  Read("a", 'x');
  Read("b", 'x');
  Read("b", 'y');
  Read("a", 'z');
  s_.policy.mode = Mode::kEveryTurn;
  EXPECT_THAT(Masked(), ElementsAre(0, 1));
}

TEST_F(DuplicateTest, WhatTheModelDidNotActUponStays) {
  s_.Batch({Literal(std::string(100, 'x')), Literal(std::string(100, 'x'))});
  EXPECT_THAT(Masked(), IsEmpty());
  s_.Answer();
  EXPECT_THAT(Masked(), ElementsAre(0));
}

TEST_F(DuplicateTest, ABatchWaitsForItsLastResult) {
  constexpr Format kFormat = Format::kAnthropicMessages;
  s_.Append(AssistantMessage(kFormat, "", {{.id = "x"}, {.id = "y"}}));
  const std::string content = Literal(std::string(100, 'x'));
  s_.Append(ResultMessages(kFormat, {{.id = "x", .content = content}}));
  s_.Batch({content});
  s_.Answer();
  EXPECT_THAT(Masked(), IsEmpty());
  s_.Append(ResultMessages(kFormat, {{.id = "y", .content = LiteralOf(9)}}));
  EXPECT_THAT(Masked(), ElementsAre(0));
}

TEST_F(DuplicateTest, WhatItsToolsRuleKeepsStaysThoughItIsCopied) {
  s_.policy.tools = {{.tool = "read", .is_never_masked = true}};
  Read("a", 'x');
  Read("a", 'x');
  EXPECT_THAT(Masked(), IsEmpty());
  s_.policy.tools = {{.tool = "read", .keep_observations = 2}};
  EXPECT_THAT(Masked(), IsEmpty());
  s_.policy.tools = {{.tool = "read", .keep_observations = 1}};
  EXPECT_THAT(Masked(), ElementsAre(0));
}

TEST_F(DuplicateTest, ByAgeTheLastCopyGoesLikeAnyOther) {
  s_.policy.keep_observations = 3;
  Read("a", 'x');
  Read("a", 'x');
  for (const std::int64_t tokens : {10, 11, 12}) s_.Turn(tokens);
  EXPECT_THAT(Masked(), ElementsAre(0, 1));
}

// --- The class ---------------------------------------------------------------

TEST(EligibleTest, CountsWhatIsOldAndListsWhatIsNotMasked) {
  ScriptedSession s = Eager();
  s.Turns(5, 100);
  EXPECT_THAT(Eligible(s.session(), s.policy).Indexes(false),
              ElementsAre(0, 1));
  s.Serve();
  s.Turns(2, 100);
  const Eligible eligible(s.session(), s.policy);
  EXPECT_EQ(eligible.old_count(), 4);
  EXPECT_THAT(eligible.Indexes(false), ElementsAre(2, 3));
}

TEST(EligibleTest, ForTheWindowThreeNewerOnesAndAnAnswerAreEnough) {
  ScriptedSession s = Eager();
  s.policy.keep_observations = 100;
  s.Turns(4, 100);
  const Eligible eligible(s.session(), s.policy);
  EXPECT_EQ(eligible.old_count(), 0);
  EXPECT_TRUE(eligible.IsMaskableForWindow(1, 1));
  EXPECT_FALSE(eligible.IsMaskableForWindow(2, 2));
  EXPECT_FALSE(eligible.IsMaskableForWindow(1, 4)) << "nothing follows it";
}

TEST(EligibleTest, AGroupIsWhatCameBetweenTwoAnswers) {
  ScriptedSession s = Eager();
  s.Batch({LiteralOf(10), LiteralOf(10)});
  s.Turn(10);
  const Eligible eligible(s.session(), s.policy);
  EXPECT_EQ(eligible.GroupEnd(0), 2);
  EXPECT_EQ(eligible.GroupEnd(2), 3);
}

}  // namespace
}  // namespace clerestory
