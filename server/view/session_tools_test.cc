// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a session knows of its tools, and of damage in what it is told of them.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/tool_outcome.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimeMicros kHour = 3'600 * kMicrosPerSecond;

void CallTool(ScriptedSession& s, const std::string& tool,
              std::size_t tokens = 100) {
  s.Call({.id = "", .tool = tool}, LiteralOf(tokens));
}

// A session of five observations of the tool "r", of which the first two are
// masked.
ScriptedSession MaskedSession() {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.refetch_session_limit = 0;
  s.Turns(5, 100);
  s.Serve();
  return s;
}

const ToolTally& TallyOf(const ScriptedSession& s,
                         const std::string& tool = "r") {
  return s.session().tools().at(tool);
}

// Shows again what is masked and pinned, in a cold cache.
void ServeCold(ScriptedSession& s) {
  s.now += kHour;
  s.Serve();
}

// --- Tallies -----------------------------------------------------------------

TEST(ToolTallyTest, AnObservationIsCountedOnceHoweverOftenItIsMasked) {
  ScriptedSession s = MaskedSession();
  EXPECT_EQ(TallyOf(s).observation_count, 5);
  EXPECT_EQ(TallyOf(s).mask_count, 2);
  EXPECT_EQ(TallyOf(s).masked_tokens, 2 * 92);
  s.PinObservation(0);
  ServeCold(s);
  ASSERT_THAT(s.masked(), ElementsAre(1));
  EXPECT_EQ(TallyOf(s).mask_count, 2);
  EXPECT_EQ(TallyOf(s).masked_tokens, 92);
  EXPECT_EQ(s.session().ledger().mask_count, 1);
  EXPECT_EQ(s.session().ledger().restore_count, 1);
  s.PinObservation(0, /*is_pinned=*/false);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(TallyOf(s).mask_count, 2);
  EXPECT_EQ(TallyOf(s).masked_tokens, 2 * 92);
  EXPECT_EQ(s.session().ledger().mask_count, 2);
}

TEST(ToolTallyTest, AReFetchedObservationIsCountedOnceAndEachReFetchCosts) {
  ScriptedSession s = MaskedSession();
  s.NoteRepeat(3, 0, RepeatKind::kRefetch, 70);
  s.NoteRepeat(4, 0, RepeatKind::kRefetch, 30);
  s.NoteRecall(0, 5);
  const ToolTally& tally = TallyOf(s);
  EXPECT_EQ(tally.refetched_count, 1);
  EXPECT_EQ(tally.repeats[static_cast<std::size_t>(RepeatKind::kRefetch)], 2);
  EXPECT_EQ(tally.recall_count, 1);
  EXPECT_EQ(tally.fetch_count(), 3);
  EXPECT_EQ(tally.refetch_turns, 3 + 4);
  EXPECT_EQ(tally.lost, 105);
}

TEST(ToolTallyTest, WhatWasNeverMaskedIsNoneOfThoseThatWereReFetched) {
  ScriptedSession s = MaskedSession();
  s.NoteRepeat(4, 3);
  EXPECT_EQ(TallyOf(s).refetched_count, 0);
  EXPECT_LE(TallyOf(s).refetched_count, TallyOf(s).mask_count);
}

TEST(ToolTallyTest, KindsAreCountedApartAndOnlyReFetchesCost) {
  ScriptedSession s = MaskedSession();
  int count = 0;
  for (const RepeatKind kind : {RepeatKind::kDuplicate, RepeatKind::kRefresh,
                                RepeatKind::kPaging, RepeatKind::kPoll}) {
    for (int i = 0; i <= count; ++i) s.NoteRepeat(3, 0, kind, 1'000);
    ++count;
  }
  EXPECT_THAT(TallyOf(s).repeats, ElementsAre(0, 0, 1, 2, 3, 4));
  EXPECT_EQ(TallyOf(s).refetch_turns, 0);
  EXPECT_EQ(TallyOf(s).refetched_count, 0);
  EXPECT_EQ(TallyOf(s).lost, 0);
}

TEST(ToolTallyTest, ReadingARecalledObservationOnIsOneRecall) {
  ScriptedSession s = MaskedSession();
  s.NoteRecall(1, 40);
  s.NoteRecall(1, 40);
  EXPECT_EQ(TallyOf(s).recall_count, 1);
  EXPECT_EQ(TallyOf(s).lost, 40);
}

TEST(ToolTallyTest, ReadingWhatTheViewShowsIsNoRecallNorSparesALaterOne) {
  ScriptedSession s = MaskedSession();
  s.NoteRecall(2, 40);
  EXPECT_EQ(TallyOf(s).recall_count, 0);
  EXPECT_EQ(TallyOf(s).lost, 0);
  s.Turn(100);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1, 2));
  s.NoteRecall(2, 40);
  EXPECT_EQ(TallyOf(s).recall_count, 1);
  EXPECT_EQ(TallyOf(s).refetched_count, 1);
  EXPECT_EQ(TallyOf(s).lost, 40);
}

TEST(ToolTallyTest, ToolsBeyondTheMostAreCountedTogether) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.prices.write = s.prices.read;  // Breaks cost nothing.
  s.prices.input = s.prices.read;
  const std::size_t count = kSessionToolsMax + 40;
  for (std::size_t i = 0; i < count; ++i) CallTool(s, absl::StrCat("t", i));
  s.Serve();
  const Session& session = s.session();
  EXPECT_EQ(session.tools().size(), kSessionToolsMax);
  const ToolTally& others = session.other_tools();
  EXPECT_EQ(others.observation_count, 40);
  EXPECT_EQ(others.mask_count, 40 - 3);
  EXPECT_EQ(others.masked_tokens, 37 * 92);
  EXPECT_EQ(others.saved, 37 * 92 * s.session().last_view()->read_price);
  EXPECT_EQ(TallyOf(s, "t0").saved, 92 * session.last_view()->read_price);
  s.NoteRepeat(count - 1, count - 10, RepeatKind::kRefetch, 7);
  EXPECT_EQ(others.fetch_count(), 1);
  EXPECT_EQ(others.refetched_count, 1);
  EXPECT_EQ(others.lost, 7);
  EXPECT_EQ(SessionText(s.Replayed()), SessionText(session));

  Session copy = session;
  const std::vector<ToolOutcome> outcomes = copy.TakeToolOutcomes();
  EXPECT_EQ(outcomes.size(), kSessionToolsMax) << "others have no name";
}

TEST(ToolTallyTest, PinsAndNamesTakeMemory) {
  ScriptedSession s;
  const std::int64_t before = s.session().memory_bytes();
  const Pin pin = {.resource = std::string(4'000, 'a')};
  s.SetPin(pin);
  EXPECT_GT(s.session().memory_bytes(), before + 4'000);
  EXPECT_EQ(s.Replayed().memory_bytes(), s.session().memory_bytes());
  s.SetPin(pin);  // Is one.
  s.SetPin(pin, /*is_pinned=*/false);
  EXPECT_EQ(s.session().memory_bytes(), before);
  EXPECT_EQ(s.session().pin_change_count(), 3);

  // Beside its call's, a new tool's name takes memory; a known one's does not.
  CallTool(s, std::string(1'000, 'x'));
  const std::int64_t one = s.session().memory_bytes() - before;
  CallTool(s, std::string(1'000, 'x'));
  const std::int64_t two = s.session().memory_bytes() - before - one;
  EXPECT_GT(one, two + 1'000);
}

TEST(ToolTallyTest, WhatIsKnownOfCallsForPinsTakesMemory) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  for (int i = 0; i < 5; ++i) {
    CallTool(s, absl::StrCat("t", i));
    s.Call({.id = "",
            .tool = "Read",
            .arguments = absl::StrCat("{\"file_path\":\"/", i,
                                      std::string(3'000, 'a'), "\"}")},
           LiteralOf(100));
  }
  s.SetPin({.resource = "/elsewhere"});
  const std::int64_t before = s.session().memory_bytes();
  s.Plan();
  const std::int64_t after = s.session().memory_bytes();
  EXPECT_GT(after, before + 3 * 3'000) << "of those that are old enough";
  s.Plan();
  EXPECT_EQ(s.session().memory_bytes(), after) << "once";
}

// --- Money -------------------------------------------------------------------

TEST(SavedByToolTest, IsWhatTheCallsDidNotReadLessWhatTheBreaksCost) {
  ScriptedSession s;
  PicoUsd read = 0;
  PicoUsd breaks = 0;
  std::int64_t break_count = 0;
  std::int64_t masked_tokens = 0;  // Of what all breaks masked.
  const auto serve = [&] {
    const ViewServed view = s.Serve().decision;
    read += view.read_price *
            (view.raw_tokens.observations - view.view_tokens.observations);
    breaks += view.break_price;
    break_count += view.break_price > 0 ? 1 : 0;
    for (const Mask& mask : view.masks) {
      if (mask.is_restored) continue;
      const std::size_t i = *s.session().Find({mask.sequence, mask.index});
      masked_tokens += s.session().observations()[i].result.token_count;
    }
  };
  for (int turn = 0; turn < 60; ++turn) {
    CallTool(s,
             turn % 3 == 0   ? "a"
             : turn % 2 == 0 ? "b"
                             : "c",
             static_cast<std::size_t>(40 + 97 * turn % 300));
    if (turn == 40) s.SetPin({.tool = "a"});
    serve();
    // The same call again saves nothing more. Twice in a cold cache, the first
    // masks what is left and the second shows again.
    for (int i = 0; i < 2; ++i) {
      if (turn == 40) s.now += kHour;
      serve();
    }
    if (turn == 45) s.SetPin({.tool = "a"}, /*is_pinned=*/false);
  }
  ASSERT_GT(break_count, 1);
  ASSERT_GT(s.session().ledger().restore_count, 0);
  PicoUsd saved = 0;
  for (const auto& [tool, tally] : s.session().tools()) saved += tally.saved;
  EXPECT_GE(saved, read - breaks);
  EXPECT_LE(saved, read - breaks + masked_tokens)
      << "a price is cut to whole parts for each token";
}

TEST(SavedByToolTest, ABreaksOwnCallIsSavedByWhatItMasks) {
  ScriptedSession s = MaskedSession();
  // The first view is free, and nothing of it was read before.
  EXPECT_EQ(TallyOf(s).saved, 2 * 92 * 1);
  s.Turn(100);
  const ViewServed view = s.Serve().decision;
  ASSERT_EQ(view.masks.size(), 1U);
  EXPECT_EQ(TallyOf(s).saved, 2 * 92 + 3 * 92 - view.break_price / 100 * 100);
}

TEST(SavedByToolTest, WhatIsShownAgainSavesNothingFromThatCallOn) {
  ScriptedSession s = MaskedSession();
  s.PinObservation(0);
  s.PinObservation(1);
  s.PinObservation(2);
  const PicoUsd before = TallyOf(s).saved;
  s.Turn(100);
  ServeCold(s);
  ASSERT_THAT(s.masked(), IsEmpty());
  EXPECT_EQ(TallyOf(s).saved, before);
}

TEST(SavedByToolTest, ABreakIsSharedBySize) {
  ScriptedSession s;
  s.policy.mode = Mode::kBlock;
  s.policy.block_size = 2;
  s.Turns(3, 100);
  s.Serve();
  CallTool(s, "r");
  for (const auto& [tool, tokens] : std::vector<std::pair<std::string, int>>{
           {"small", 50}, {"large", 150}, {"r", 100}, {"r", 100}, {"r", 100}}) {
    CallTool(s, tool, static_cast<std::size_t>(tokens));
  }
  s.SetPin({.tool = "r"});
  s.Serve();
  const ViewServed& view = *s.session().last_view();
  ASSERT_EQ(view.masks.size(), 2U);
  const PicoUsd each = view.break_price / 200;
  EXPECT_EQ(TallyOf(s, "small").saved, 42 - 50 * each);
  EXPECT_EQ(TallyOf(s, "large").saved, 142 - 150 * each);
  EXPECT_EQ(TallyOf(s, "r").saved, 0);
}

// --- Outcomes ----------------------------------------------------------------

TEST(ToolOutcomeTest, IsWhatCameSinceItWasTaken) {
  ScriptedSession s = MaskedSession();
  Session session = s.Replayed();
  EXPECT_THAT(session.TakeToolOutcomes(),
              ElementsAre(ToolOutcome{
                  .tool = "r", .masked_count = 2, .saved = 2 * 92}));
  EXPECT_THAT(session.TakeToolOutcomes(), IsEmpty());
  s.NoteRepeat(4, 1, RepeatKind::kRefetch, 9);
  session.Apply(ObservationRepeated{.later = {.sequence = 9},
                                    .earlier = {.sequence = 3},
                                    .kind = RepeatKind::kRefetch,
                                    .cost = 9});
  EXPECT_THAT(
      session.TakeToolOutcomes(),
      ElementsAre(ToolOutcome{.tool = "r", .refetched_count = 1, .lost = 9}));
  EXPECT_EQ(SessionText(session), SessionText(s.session()));
}

TEST(ToolOutcomeTest, AfterAReplayItIsAllThatTheTalliesSay) {
  ScriptedSession s = MaskedSession();
  CallTool(s, "a");
  s.NoteRepeat(5, 0, RepeatKind::kRefetch, 11);
  for (int i = 0; i < 3; ++i) CallTool(s, "b");
  s.Serve();
  s.NoteRecall(5, 13);
  s.PinObservation(1);
  ServeCold(s);
  Session session = s.Replayed();
  const std::vector<ToolOutcome> outcomes = session.TakeToolOutcomes();
  ASSERT_EQ(outcomes.size(), 2U) << "nothing came of the third tool";
  for (const ToolOutcome& outcome : outcomes) {
    const ToolTally& tally = TallyOf(s, outcome.tool);
    EXPECT_EQ(outcome, (ToolOutcome{.tool = outcome.tool,
                                    .masked_count = tally.mask_count,
                                    .refetched_count = tally.refetched_count,
                                    .saved = tally.saved,
                                    .lost = tally.lost}));
  }
  EXPECT_EQ(outcomes[0].tool, "a");
  EXPECT_EQ(outcomes[0].lost, 13);
  EXPECT_EQ(outcomes[1].tool, "r");
  EXPECT_EQ(outcomes[1].lost, 11);
}

// --- Damage ------------------------------------------------------------------

TEST(ReplayNotesTest, WhatItDoesNotHaveIsDataLoss) {
  // Observations in messages 1, 3, 5, 7 and 9.
  const ScriptedSession s = MaskedSession();
  std::vector<Record> corrupt;
  const auto add_repeat = [&](ObservationId later, ObservationId earlier,
                              int kind) {
    corrupt.emplace_back(
        ObservationRepeated{.later = later,
                            .earlier = earlier,
                            .kind = static_cast<RepeatKind>(kind)});
  };
  const ObservationId first = {.sequence = 1, .index = 0};
  const ObservationId last = {.sequence = 9, .index = 0};
  std::vector<ObservationId> unknown = {{.sequence = -1},
                                        {.sequence = 10},
                                        {.sequence = 0},
                                        {.sequence = 1, .index = -1},
                                        {.sequence = 1, .index = 1}};
  for (const ObservationId& id : unknown) {
    add_repeat(id, first, 1);
    add_repeat(last, id, 1);
    corrupt.emplace_back(ObservationRecalled{.observation = id});
    corrupt.emplace_back(PinChanged{.pin = {.observation = id}});
  }
  add_repeat(first, first, 1);
  add_repeat(first, last, 1);
  add_repeat(last, first, -1);
  add_repeat(last, first, static_cast<int>(kRepeatKindCount));
  Session session = s.Replayed();
  const std::string before = SessionText(session);
  for (std::size_t i = 0; i < corrupt.size(); ++i) {
    EXPECT_THAT(session.Replay(corrupt[i]),
                FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt))
        << i;
    EXPECT_EQ(SessionText(session), before) << i;
  }
}

TEST(ReplayNotesTest, NothingIsShownAgainThatIsNotMaskedSo) {
  ScriptedSession s = MaskedSession();
  const Mask good = {
      .sequence = 1, .placeholder = "[masked]", .is_restored = true};
  std::vector<std::vector<Mask>> corrupt(6, {good});
  corrupt[0][0].sequence = 5;  // It is shown.
  corrupt[1][0].placeholder = "[other]";
  corrupt[2][0].placeholder = "";
  corrupt[3][0].arguments = "{}";  // They are shown.
  corrupt[4][0].is_dropped = true;
  corrupt[5].push_back(good);  // Twice.
  Session session = s.Replayed();
  const std::string before = SessionText(session);
  ViewServed view;
  view.message_count = session.message_count();
  view.break_reason = BreakReason::kCacheCold;
  for (std::size_t i = 0; i < corrupt.size(); ++i) {
    view.masks = corrupt[i];
    EXPECT_THAT(session.Replay(view),
                FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt))
        << i;
    EXPECT_EQ(SessionText(session), before) << i;
  }
  view.masks = {good};
  EXPECT_THAT(session.Replay(view), IsOk()) << "so much for the others";
  EXPECT_THAT(session.Replay(view),
              FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt));
}

}  // namespace
}  // namespace clerestory
