// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/session_totals.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

constexpr auto kRefetch = static_cast<std::size_t>(RepeatKind::kRefetch);
constexpr auto kPoll = static_cast<std::size_t>(RepeatKind::kPoll);

// A session in which `calls` views were served, of which the first `control`
// ones were of the control group.
Session Viewed(int calls, int control) {
  ScriptedSession scripted;
  scripted.Ask(5);
  Session session = scripted.Replayed();
  for (int i = 0; i < calls; ++i) {
    ViewServed view;
    view.message_count = 1;
    view.is_control = i < control;
    session.Apply(view);
  }
  return session;
}

TEST(SessionTotalsTest, TheArmIsWhatAllCallsWere) {
  EXPECT_EQ(TotalsOf(Viewed(0, 0)).arm, SessionArm::kNone);
  EXPECT_EQ(TotalsOf(Viewed(3, 0)).arm, SessionArm::kMasked);
  EXPECT_EQ(TotalsOf(Viewed(3, 3)).arm, SessionArm::kControl);
  EXPECT_EQ(TotalsOf(Viewed(3, 2)).arm, SessionArm::kMixed);
}

TEST(SessionTotalsTest, ANewSessionCameToNothing) {
  EXPECT_EQ(TotalsOf(Viewed(0, 0)), SessionTotals());
}

TEST(SessionTotalsTest, TheyAreTheLedgersAndWhatCameOfObservations) {
  ScriptedSession scripted;
  scripted.policy.mode = Mode::kEveryTurn;
  scripted.preamble_tokens = 100;
  scripted.Ask(5);
  for (int i = 0; i < 6; ++i) {
    scripted.Turn(60);
    scripted.Serve();
  }
  Session session = scripted.Replayed();
  ASSERT_GE(session.ledger().mask_count, 2);
  // The first one is fetched again, twice; the second is recalled.
  const auto id = [&](std::size_t i) {
    const Observation& observation = session.observations()[i];
    return ObservationId{observation.sequence, observation.index};
  };
  for (const std::size_t later : {4U, 5U}) {
    session.Apply(ObservationRepeated{.later = id(later),
                                      .earlier = id(0),
                                      .kind = RepeatKind::kRefetch,
                                      .cost = 7});
  }
  session.Apply(ObservationRepeated{
      .later = id(3), .earlier = id(2), .kind = RepeatKind::kPoll});
  session.Apply(ObservationRecalled{.observation = id(1), .cost = 5});

  const SessionTotals totals = TotalsOf(session);
  const Ledger& ledger = session.ledger();
  EXPECT_EQ(totals.arm, SessionArm::kMasked);
  EXPECT_EQ(totals.turn_count, 6);
  EXPECT_EQ(totals.call_count, 6);
  EXPECT_EQ(totals.raw_tokens, 600 + ledger.raw_tokens.total());
  EXPECT_EQ(totals.view_tokens, 600 + ledger.view_tokens.total());
  EXPECT_LT(totals.view_tokens, totals.raw_tokens);
  EXPECT_EQ(totals.raw_cost, ledger.raw_cost);
  EXPECT_EQ(totals.view_cost, ledger.view_cost);
  EXPECT_EQ(totals.output_cost, ledger.output_cost);
  EXPECT_EQ(totals.usage_cost, ledger.usage_cost);
  EXPECT_EQ(totals.observation_count, 6);
  EXPECT_EQ(totals.masked_count, ledger.mask_count);
  EXPECT_EQ(totals.refetched_count, 2);
  EXPECT_EQ(totals.repeats[kRefetch], 2);
  EXPECT_EQ(totals.repeats[kPoll], 1);
  EXPECT_EQ(totals.recall_count, 1);
  EXPECT_EQ(totals.lost, 7 + 7 + 5);
  ASSERT_EQ(totals.tools.size(), 1U);
  const ToolTotals& tool = totals.tools.front();
  EXPECT_EQ(tool.tool, "r");
  EXPECT_EQ(tool.observation_count, 6);
  EXPECT_EQ(tool.token_count, session.raw_tokens().observations);
  EXPECT_EQ(tool.masked_count, totals.masked_count);
  EXPECT_EQ(tool.refetched_count, 2);
  // All calls of a turn have the arguments {}.
  EXPECT_EQ(tool.identical_call_count, 5);
}

TEST(SessionTotalsTest, TheBusiestToolsAreNamedAndTheOthersAreOne) {
  ScriptedSession scripted;
  for (std::size_t i = 0; i < kTotalsToolsMax + 8; ++i) {
    const std::string tool = absl::StrCat("tool", 100 + i);
    scripted.Call({.id = "", .tool = tool}, "\"x\"");
  }
  scripted.Call({.id = "", .tool = "tool139"}, "\"x\"");
  const SessionTotals totals = TotalsOf(scripted.session());
  ASSERT_EQ(totals.tools.size(), kTotalsToolsMax + 1);
  EXPECT_EQ(totals.tools[0].tool, "tool139");
  EXPECT_EQ(totals.tools[0].observation_count, 2);
  EXPECT_EQ(totals.tools[1].tool, "tool100");
  EXPECT_EQ(totals.tools[31].tool, "tool130");
  EXPECT_EQ(totals.tools[32].tool, "");
  EXPECT_EQ(totals.tools[32].observation_count, 8);
  EXPECT_EQ(totals.observation_count, 41);
}

TEST(SessionTotalsTest, AClosedSessionHasThemInItsHeaderAndAfterAReplay) {
  ScriptedSession scripted;
  scripted.Ask(5);
  scripted.Turns(3, 60);
  scripted.Serve();
  const SessionTotals totals = TotalsOf(scripted.session());
  EXPECT_EQ(scripted.session().header().totals, SessionTotals());
  scripted.Close(Outcome::kResolved);
  EXPECT_EQ(scripted.session().header().totals, totals);
  EXPECT_EQ(scripted.Replayed().header().totals, totals);
}

}  // namespace
}  // namespace clerestory
