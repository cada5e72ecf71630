// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a session says of its breaks, of masking in every turn instead, and of
// what was reported. A turn has 3 tokens of call and a result; a placeholder
// has 8; reads cost 1, writes 11.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

// --- Masking in every turn instead -------------------------------------------

// Plays `turns` with a policy in two sessions, one of them in mode every_turn.
// What the first says of masking in every turn is what the other did.
void ExpectTheSame(ScriptedSession s, ScriptedSession every,
                   const std::vector<std::int64_t>& turns) {
  every.policy = s.policy;
  every.policy.mode = Mode::kEveryTurn;
  every.prices = s.prices;
  every.preamble_tokens = s.preamble_tokens;
  for (ScriptedSession* const session : {&s, &every}) {
    session->Ask(40);
    for (const std::int64_t tokens : turns) {
      if (tokens < 0) session->now += 301 * kMicrosPerSecond;
      if (tokens == 0) session->Batch({LiteralOf(50), LiteralOf(9)});
      if (tokens > 0) session->Turn(tokens);
      session->Serve();
    }
  }
  const Ledger& said = s.session().ledger();
  const Ledger& done = every.session().ledger();
  EXPECT_EQ(said.every_turn_call, done.view_call);
  EXPECT_EQ(said.every_turn_cost, done.view_cost);
  EXPECT_EQ(done.every_turn_cost, done.view_cost);
  EXPECT_EQ(said.raw_cost, done.raw_cost);
  EXPECT_NE(said.raw_cost, done.view_cost);
}

const std::vector<std::int64_t> kTurns = {100, 20, 3,  500, 0, 60, 8,   -1,
                                          70,  0,  90, 11,  0, 0,  700, 30};

TEST(EveryTurnTest, IsWhatTheModeCosts) {
  for (const Mode mode : {Mode::kOff, Mode::kAdaptive, Mode::kDelegate}) {
    ScriptedSession s;
    s.policy.mode = mode;
    s.preamble_tokens = 17;
    ExpectTheSame(std::move(s), ScriptedSession(), kTurns);
  }
}

TEST(EveryTurnTest, IsPricedByTheTierThatItWouldBeIn) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.prices.tiers = {{.above_tokens = 900,
                     .input = 20,
                     .write = 22,
                     .long_write = 0,
                     .read = 2,
                     .output = 75}};
  ExpectTheSame(std::move(s), ScriptedSession(), kTurns);
}

TEST(EveryTurnTest, IsPricedWithoutTheCacheWhereItWouldBeTooShortForIt) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.prices.cache_tokens_min = 900;
  ExpectTheSame(std::move(s), ScriptedSession(), kTurns);
}

// By hand: 4 turns of 100. The fourth call would mask the first observation: it
// finds 3 tokens, and has 309 + 11 of its own to write.
TEST(EveryTurnTest, ReadsUpToWhatItWouldMask) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  for (int i = 0; i < 4; ++i) {
    s.Turn(100);
    s.Serve();
  }
  const ViewServed& view = *s.session().last_view();
  EXPECT_EQ(view.every_turn_saving, 92);
  EXPECT_EQ(view.every_turn_call, (CallTokens{.read = 3, .written = 317}));
  EXPECT_EQ(view.every_turn_cost, 3 + 317 * 11);
}

TEST(EveryTurnTest, WhatAPolicyNeverMasksItDoesNotEither) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.policy.exclude = {"*"};
  s.Turns(8, 100);
  s.Serve();
  EXPECT_EQ(s.session().every_turn_saving(), 0);
}

// What a rule keeps is masked when the rule lets it go, in front of what has
// been masked long before.
TEST(EveryTurnTest, KeepsWhatAToolsRuleKeeps) {
  ScriptedSession said;
  said.policy.tools = {{.tool = "read", .keep_observations = 2},
                       {.tool = "b*", .keep_observations = 5}};
  ScriptedSession every;
  every.policy = said.policy;
  every.policy.mode = Mode::kEveryTurn;
  for (ScriptedSession* const s : {&said, &every}) {
    s->preamble_tokens = 17;
    for (const char* const tool :
         {"read", "bash", "x",    "read", "x",    "x",    "bash", "read",
          "x",    "x",    "read", "bash", "x",    "read", "read", "bash",
          "bash", "bash", "x",    "bash", "read", "x",    "read", "x"}) {
      s->Call({.id = "", .tool = tool}, LiteralOf(120));
      s->Serve();
    }
  }
  EXPECT_EQ(said.session().ledger().every_turn_call,
            every.session().ledger().view_call);
  EXPECT_EQ(said.session().ledger().every_turn_cost,
            every.session().ledger().view_cost);
  EXPECT_EQ(every.session().ledger().every_turn_cost,
            every.session().ledger().view_cost);
}

TEST(EveryTurnTest, TheSameCallAgainAddsNothing) {
  ScriptedSession s;
  s.policy.mode = Mode::kOff;
  s.Turns(8, 100);
  s.Serve();
  const std::string ledger = LedgerText(s.session().ledger());
  const std::int64_t saving = s.session().every_turn_saving();
  s.Serve();
  EXPECT_EQ(LedgerText(s.session().ledger()), ledger);
  EXPECT_EQ(s.session().every_turn_saving(), saving);
}

// --- Breaks ------------------------------------------------------------------

TEST(BreakEntryTest, SaysWhenWhereWhyAndWhatItCost) {
  ScriptedSession s;
  s.policy.mode = Mode::kBlock;
  s.policy.block_size = 2;
  s.Ask(10);
  for (int i = 0; i < 5; ++i) {
    s.Turn(100);
    s.now += kMicrosPerSecond;
    s.Serve();
  }
  ASSERT_EQ(s.session().ledger().break_entries.size(), 1);
  const BreakEntry& entry = s.session().ledger().break_entries.front();
  EXPECT_EQ(entry.time, s.now);
  EXPECT_EQ(entry.message_count, 11);
  EXPECT_EQ(entry.first_sequence, 2);
  EXPECT_EQ(entry.reason, BreakReason::kSchedule);
  // Of the 422 tokens that are cached 13 stand before it, and 184 go.
  EXPECT_EQ(entry.price, (422 - 13 - 184) * 10);
  EXPECT_EQ(entry.rent, 92 * 2 + 92);
  EXPECT_EQ(entry.mask_count, 2);
  EXPECT_EQ(entry.saved_tokens, 184);
  EXPECT_EQ(entry.read_price_sum, 4) << "of the calls before";
}

TEST(BreakEntryTest, SavesItsTokensInEveryCallFromItsOwnOn) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Turns(4, 100);
  s.Serve();
  s.policy.mode = Mode::kOff;
  const BreakEntry& entry = s.session().ledger().break_entries.front();
  const auto saved = [&] {
    return entry.saved_tokens *
           (s.session().read_price_sum() - entry.read_price_sum);
  };
  EXPECT_EQ(saved(), 92);
  s.Serve();
  EXPECT_EQ(saved(), 92) << "the same call";
  s.Turn(10);
  s.prices.read = 3;
  s.Serve();
  EXPECT_EQ(saved(), 92 * (1 + 3));
}

TEST(BreakEntryTest, OfManyTheNewestHundredAreKept) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Turns(3, 100);
  for (int i = 0; i < 105; ++i) {
    s.Turn(100);
    s.Serve();
  }
  const Ledger& ledger = s.session().ledger();
  ASSERT_EQ(ledger.break_entries.size(), kBreakEntriesMax);
  EXPECT_EQ(ledger.break_entries.front().message_count, 2 * (3 + 6));
  EXPECT_EQ(ledger.break_entries.back().message_count, 2 * (3 + 105));
  std::int64_t breaks = 0;
  for (const std::int64_t count : ledger.breaks) breaks += count;
  EXPECT_EQ(breaks, 105) << "the counts forget nothing";
}

TEST(BreakEntryTest, SurvivesARestart) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Turns(6, 100);
  s.Serve();
  const Session again = s.Replayed();
  ASSERT_EQ(again.ledger().break_entries.size(), 1);
  EXPECT_EQ(again.ledger().break_entries[0].saved_tokens, 3 * 92);
}

// --- What was reported -------------------------------------------------------

UsageReported ReportOf(std::optional<std::int64_t> uncached,
                       std::optional<std::int64_t> read,
                       std::optional<std::int64_t> written) {
  UsageReported report;
  report.model = "m";
  report.usage.input_uncached = uncached;
  report.usage.cache_read = read;
  report.usage.cache_write = written;
  return report;
}

// A session that served a call of 1000 tokens.
Session Served() {
  ScriptedSession s;
  s.Ask(1'000);
  s.Serve();
  return s.session();
}

TEST(UsageTest, IsComparedWithTheEstimateOfTheLastCall) {
  Session session = Served();
  session.Apply(ReportOf(100, 700, 250));
  session.Apply(ReportOf(800, 0, std::nullopt));
  const Ledger& ledger = session.ledger();
  EXPECT_EQ(ledger.compared_count, 2);
  EXPECT_EQ(ledger.estimated_tokens, 2'000);
  EXPECT_EQ(ledger.reported_tokens, 1'050 + 800);
  EXPECT_EQ(ledger.error_tokens, 50 + 200) << "errors do not cancel out";
}

TEST(UsageTest, WhatIsNotWhollyReportedIsNotCompared) {
  Session session = Served();
  session.Apply(ReportOf(std::nullopt, 700, 250));
  EXPECT_EQ(session.ledger().usage_count, 1);
  EXPECT_EQ(session.ledger().compared_count, 0);
  // What was not cached is all that there was where nothing else is reported.
  session.Apply(ReportOf(100, std::nullopt, std::nullopt));
  EXPECT_EQ(session.ledger().compared_count, 1);
}

TEST(UsageTest, OfAnotherModelIsSummedButNotCompared) {
  Session session = Served();
  UsageReported report = ReportOf(100, 700, 250);
  report.model = "another";
  session.Apply(report);
  EXPECT_EQ(session.ledger().usage.cache_read, 700);
  EXPECT_EQ(session.ledger().compared_count, 0);
}

TEST(UsageTest, BeforeAnyCallIsSummedButNotCompared) {
  Session session = ScriptedSession().session();
  session.Apply(ReportOf(100, 700, 250));
  EXPECT_EQ(session.ledger().usage_count, 1);
  EXPECT_EQ(session.ledger().compared_count, 0);
}

TEST(UsageTest, AbsentIsNotZero) {
  Session session = Served();
  session.Apply(ReportOf(1, 0, std::nullopt));
  session.Apply(ReportOf(std::nullopt, 0, std::nullopt));
  const Usage& sum = session.ledger().usage;
  EXPECT_EQ(sum.input_uncached, 1);
  EXPECT_EQ(sum.cache_read, 0);
  EXPECT_EQ(sum.cache_write, std::nullopt);
  EXPECT_EQ(sum.output, std::nullopt);
  EXPECT_EQ(sum.reasoning, std::nullopt);
}

TEST(UsageTest, CostsAreSummedAsFarAsTheyAreKnown) {
  Session session = Served();
  UsageReported report = ReportOf(1, 2, 3);
  session.Apply(report);
  EXPECT_EQ(session.ledger().usage_cost, 0);
  report.cost = 700;
  session.Apply(report);
  session.Apply(report);
  EXPECT_EQ(session.ledger().usage_cost, 1'400);
  report.cost = INT64_MAX;
  session.Apply(report);
  EXPECT_EQ(session.ledger().usage_cost, INT64_MAX);
}

}  // namespace
}  // namespace clerestory
