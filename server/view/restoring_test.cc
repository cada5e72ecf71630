// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/restoring.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "server/view/candidate.h"
#include "server/view/exempt.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Observations of the tool "r" in messages 1, 3, 5 and so on, of which all but
// the newest three are masked: four of seven.
ScriptedSession MaskedSession() {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Turns(7, 100);
  s.Serve();
  return s;
}

std::vector<Candidate> AllRestorings(const ScriptedSession& s,
                                     std::int64_t from = 0,
                                     std::int64_t more_max = 1'000'000,
                                     bool may_show_images = true) {
  const std::set<std::string> unmasked = {"r"};
  return Restorings(s.session(), Exempt(s.session(), s.policy, &unmasked), from,
                    may_show_images, [&](std::int64_t more_tokens) {
                      return more_tokens <= more_max;
                    });
}

std::vector<std::int64_t> Sequences(const std::vector<Candidate>& candidates) {
  std::vector<std::int64_t> sequences;
  for (const Candidate& candidate : candidates) {
    sequences.push_back(candidate.mask.sequence);
  }
  return sequences;
}

TEST(RestoringsTest, AreTheMaskedOnesNewestFirst) {
  const ScriptedSession s = MaskedSession();
  EXPECT_THAT(Sequences(AllRestorings(s)), ElementsAre(7, 5, 3, 1));
  for (const Candidate& restoring : AllRestorings(s)) {
    EXPECT_TRUE(restoring.mask.is_restored);
    EXPECT_EQ(restoring.mask.placeholder, "[masked]");
    EXPECT_EQ(restoring.mask.arguments, "");
    EXPECT_EQ(restoring.saving(), -92);
    EXPECT_EQ(restoring.rent, 0);
    EXPECT_EQ(restoring.first_sequence, restoring.mask.sequence);
    EXPECT_EQ(restoring.tokens_before,
              restoring.observation->view_tokens_before);
  }
}

TEST(RestoringsTest, AreThoseThatNeitherPinNorBreakerHasMasked) {
  ScriptedSession s = MaskedSession();
  const auto restorings = [&] {
    return Restorings(s.session(), Exempt(s.session(), s.policy, nullptr), 0,
                      true, [](std::int64_t) { return true; });
  };
  EXPECT_THAT(restorings(), IsEmpty());
  s.PinObservation(2);
  s.PinObservation(5);  // It is shown.
  EXPECT_THAT(Sequences(restorings()), ElementsAre(5));
}

TEST(RestoringsTest, ChangeNoMessageBeforeTheOneThatIsGiven) {
  const ScriptedSession s = MaskedSession();
  EXPECT_THAT(Sequences(AllRestorings(s, 3)), ElementsAre(7, 5, 3));
  EXPECT_THAT(Sequences(AllRestorings(s, 4)), ElementsAre(7, 5));
  EXPECT_THAT(AllRestorings(s, 8), IsEmpty());
}

TEST(RestoringsTest, EndWithTheFirstThatDoesNotFit) {
  const ScriptedSession s = MaskedSession();
  EXPECT_THAT(Sequences(AllRestorings(s, 0, 2 * 92)), ElementsAre(7, 5));
  EXPECT_THAT(Sequences(AllRestorings(s, 0, 2 * 92 - 1)), ElementsAre(7));
  EXPECT_THAT(AllRestorings(s, 0, 91), IsEmpty());
}

TEST(RestoringsTest, ASmallerOneBehindOneThatDoesNotFitStays) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Turn(20);
  s.Turn(500);
  s.Turns(4, 100);
  s.Serve();
  EXPECT_THAT(Sequences(AllRestorings(s, 0, 200)), ElementsAre(5));
}

TEST(RestoringsTest, ShowTheArgumentsWithTheResult) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 50;
  s.policy.argument_placeholder = "[{tokens}]";
  s.Ask(1);
  s.Call(
      {.id = "", .arguments = absl::StrCat(R"({"text":)", LiteralOf(60), "}")},
      LiteralOf(100));
  s.Turns(3, 100);
  s.Serve();
  const std::vector<Candidate> restorings = AllRestorings(s);
  ASSERT_EQ(restorings.size(), 1U);
  EXPECT_EQ(restorings[0].mask.arguments,
            *s.session().calls().front().arguments);
  EXPECT_EQ(restorings[0].call_saving, -(60 - 4));
  EXPECT_EQ(restorings[0].observation_saving, -92);
  EXPECT_EQ(restorings[0].first_sequence, 1);
  EXPECT_EQ(restorings[0].mask.sequence, 2);
  EXPECT_THAT(AllRestorings(s, 2), IsEmpty()) << "the call stands before";
}

TEST(RestoringsTest, WhatIsDroppedStaysAway) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.errors = ErrorRule::kDrop;
  s.Ask(1);
  s.Call({}, LiteralOf(100), /*is_error=*/true);
  s.Turns(4, 100);
  s.Serve();
  ASSERT_EQ(s.session().ledger().drop_count, 1);
  ASSERT_THAT(s.masked(), ElementsAre(1));
  EXPECT_THAT(Sequences(AllRestorings(s)), ElementsAre(4));
}

TEST(RestoringsTest, PicturesStayWhereNoneMayBeShown) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Batch({absl::StrCat("[", ImageBlock(), "]"), LiteralOf(100)});
  s.Turns(3, 100);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(AllRestorings(s).size(), 2U);
  const std::vector<Candidate> others = AllRestorings(s, 0, 1'000'000, false);
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].mask.index, 1);
}

}  // namespace
}  // namespace clerestory
