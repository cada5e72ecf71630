// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What leaves the view with a failed attempt, and what of a call is masked.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Format kAnthropic = Format::kAnthropicMessages;
constexpr Format kConverse = Format::kBedrockConverse;

ScriptedSession DroppingSession(Format format = kAnthropic) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.errors = ErrorRule::kDrop;
  s.Append(UserMessage(format, "go"));
  return s;
}

ResultSpec Failed(const std::string& id) {
  return {.id = id, .content = LiteralOf(100), .is_error = true};
}

ResultSpec Done(const std::string& id) {
  return {.id = id, .content = LiteralOf(100)};
}

// Serves `s` when what it holds is old, and returns the view.
std::vector<std::string> Aged(ScriptedSession& s, Format format) {
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(CheckValidHistory(format, s.view()), IsOk());
  EXPECT_EQ(SessionText(s.session()), SessionText(s.Replayed()));
  return s.view();
}

TEST(DropTest, AFailedAttemptGoesWhole) {
  for (const Format format : {kAnthropic, kConverse, Format::kGemini}) {
    ScriptedSession s = DroppingSession(format);
    s.Append(AssistantMessage(format, "", {{.id = "x"}}));
    s.Append(ResultMessages(format, {Failed("x")}));
    EXPECT_EQ(Aged(s, format).size(), 1 + 2 * 3U);
    EXPECT_EQ(s.session().ledger().drop_count, 1);
    EXPECT_TRUE(s.session().observations()[0].is_dropped);
  }
}

TEST(DropTest, HistoryKeepsWhatTheViewDropped) {
  ScriptedSession s = DroppingSession();
  const std::string call = AssistantMessage(kAnthropic, "", {{.id = "x"}});
  s.Append(call);
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  Aged(s, kAnthropic);
  EXPECT_EQ(*s.session().messages()[1].raw, call);
  EXPECT_EQ(s.session().messages()[1].view, nullptr);
}

TEST(DropTest, ThePrefixIsToldByTheCallAndNotByTheResult) {
  ScriptedSession s = DroppingSession();
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  s.Turns(2, 100);
  s.Serve();
  s.Turn(100);
  const View view = s.Serve();
  EXPECT_EQ(view.first_change, 1);
  EXPECT_EQ(view.stable.message_count, 1);
  EXPECT_EQ(view.whole.message_count, 7);
  EXPECT_EQ(view.cache_marks.back(), 6) << "an index into the view";
}

TEST(DropTest, OfParallelCallsOnlyTheFailedOneGoes) {
  for (const Format format : {kAnthropic, kConverse, Format::kGemini}) {
    ScriptedSession s = DroppingSession(format);
    s.Append(AssistantMessage(format, "", {{.id = "good"}, {.id = "bad"}}));
    s.Append(ResultMessages(format, {Done("good"), Failed("bad")}));
    const std::vector<std::string> view = Aged(s, format);
    ASSERT_EQ(view.size(), 3 + 2 * 3U);
    EXPECT_THAT(view[1], HasSubstr("good"));
    EXPECT_THAT(view[1], Not(HasSubstr("bad")));
    EXPECT_THAT(view[2], Not(HasSubstr("bad")));
  }
}

TEST(DropTest, BesideTextAFailureIsMaskedSinceRolesTakeTurns) {
  ScriptedSession s = DroppingSession(kConverse);
  s.Append(AssistantMessage(kConverse, "I try", {{.id = "x"}}));
  s.Append(ResultMessages(kConverse, {Failed("x")}));
  EXPECT_THAT(Aged(s, kConverse)[2], HasSubstr("[failed]"));
  EXPECT_EQ(s.session().ledger().drop_count, 0);
}

TEST(DropTest, BehindThinkingAFailureIsMasked) {
  ScriptedSession s = DroppingSession();
  s.Append(AnthropicAssistant(
      {ThinkingBlock(),
       R"({"type":"tool_use","id":"x","name":"r","input":{}})"}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  EXPECT_THAT(Aged(s, kAnthropic)[2], HasSubstr("[failed]"));
}

TEST(DropTest, AReasoningItemKeepsItsCall) {
  constexpr Format kResponses = Format::kOpenaiResponses;
  const std::string patch =
      R"({"type":"apply_patch_call","call_id":"x","operation":{}})";
  const std::string failed = absl::StrCat(
      R"({"type":"apply_patch_call_output","call_id":"x","status":"failed",)",
      R"("output":)", LiteralOf(100), "}");
  for (const bool reasons : {false, true}) {
    ScriptedSession s = DroppingSession(kResponses);
    if (reasons) {
      s.Append(R"({"type":"reasoning","id":"rs_1","summary":[],)"
               R"("encrypted_content":"gA"})");
    }
    s.Append(patch);
    s.Append(failed);
    const std::vector<std::string> view = Aged(s, kResponses);
    EXPECT_EQ(s.session().ledger().drop_count, reasons ? 0 : 1);
    EXPECT_EQ(view.size(), (reasons ? 4 : 1) + 2 * 3U);
  }
}

TEST(DropTest, AMarkedBlockIsMaskedAndKeepsItsMark) {
  ScriptedSession s = DroppingSession();
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(AnthropicUser({absl::StrCat(
      R"({"type":"tool_result","tool_use_id":"x","is_error":true,"content":)",
      LiteralOf(100), R"(,"cache_control":{"type":"ephemeral"}})")}));
  const std::string shown = Aged(s, kAnthropic)[2];
  EXPECT_THAT(shown, HasSubstr("[failed]"));
  EXPECT_THAT(shown, HasSubstr(R"("cache_control":{"type":"ephemeral"})"));
}

TEST(DropTest, TheFirstMessageStays) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.errors = ErrorRule::kDrop;
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  s.Turns(3, 100);
  s.Serve();
  EXPECT_EQ(s.view()[0], *s.session().messages()[0].raw);
  EXPECT_EQ(s.session().ledger().drop_count, 0);
}

TEST(DropTest, ACallWithTwoResultsIsNeverDropped) {
  ScriptedSession s = DroppingSession();
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  s.Append(ResultMessages(kAnthropic, {Done("x")}));
  s.Turns(3, 100);
  s.Serve();
  EXPECT_EQ(s.session().ledger().drop_count, 0);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

// One message of this many calls may come from any client.
TEST(DropTest, ManyFailuresInOneMessageTakeNoLongTime) {
  ScriptedSession s = DroppingSession();
  std::vector<CallSpec> calls;
  std::vector<ResultSpec> results;
  for (int i = 0; i < 20'000; ++i) {
    const std::string id = absl::StrCat("x", i);
    calls.push_back({.id = id});
    results.push_back(Failed(id));
  }
  s.Append(AssistantMessage(kAnthropic, "", calls));
  s.Append(ResultMessages(kAnthropic, results));
  s.Turns(3, 100);
  const auto start = std::chrono::steady_clock::now();
  s.Serve();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_EQ(s.session().ledger().mask_count, 20'000);
}

TEST(DropTest, InsideTheWindowNothingIsDropped) {
  ScriptedSession s = DroppingSession();
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  s.Turns(2, 100);
  s.Serve();
  EXPECT_EQ(s.session().ledger().drop_count, 0);
}

// The prefix behind a mark at the frontier would be written for nothing.
TEST(DropTest, TheFrontierIsBeforeACallThatMayYetBeDropped) {
  ScriptedSession s = DroppingSession();
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  EXPECT_EQ(s.Serve().frontier, 1);
}

TEST(ErrorRuleTest, ErrorsThatAreKeptStayAsTheyAre) {
  ScriptedSession s = DroppingSession();
  s.policy.errors = ErrorRule::kKeep;
  s.Append(AssistantMessage(kAnthropic, "", {{.id = "x"}}));
  s.Append(ResultMessages(kAnthropic, {Failed("x")}));
  s.Turns(4, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
}

// --- Arguments ---------------------------------------------------------------

ScriptedSession WritingSession(Format format, const std::string& result) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 50;
  s.policy.argument_placeholder = "[{tokens}]";
  s.Append(UserMessage(format, "go"));
  s.Append(AssistantMessage(
      format, "",
      {{.id = "x",
        .arguments =
            absl::StrCat(R"({"path":"a.cc","text":)", LiteralOf(60), "}")}}));
  s.Append(ResultMessages(format, {{.id = "x", .content = result}}));
  return s;
}

TEST(ArgumentsTest, LongStringsAreMaskedWithTheResult) {
  for (const Format format : {kAnthropic, Format::kOpenaiChat, kConverse,
                              Format::kGemini, Format::kOpenaiResponses}) {
    ScriptedSession s = WritingSession(format, LiteralOf(100));
    const std::vector<std::string> view = Aged(s, format);
    EXPECT_THAT(view[1], HasSubstr("a.cc"));
    EXPECT_THAT(view[1], HasSubstr("[60]"));
    EXPECT_THAT(view[2], HasSubstr("[masked]"));
    EXPECT_EQ(s.session().ledger().argument_mask_count, 1);
  }
}

TEST(ArgumentsTest, AShortResultStaysWhereOnlyItsCallIsLong) {
  ScriptedSession s = WritingSession(kAnthropic, LiteralOf(2));
  const std::vector<std::string> view = Aged(s, kAnthropic);
  EXPECT_THAT(view[1], HasSubstr("[60]"));
  EXPECT_THAT(view[2], HasSubstr(LiteralOf(2)));
  EXPECT_FALSE(s.session().observations()[0].placeholder.has_value());
}

TEST(ArgumentsTest, TheyAreLeftAloneByDefault) {
  EXPECT_EQ(Policy().argument_tokens_min, 0);
}

TEST(ArgumentsTest, WhatTheCallsSaveIsTakenFromTheirTokens) {
  ScriptedSession s = WritingSession(kAnthropic, LiteralOf(100));
  s.Turns(3, 100);
  const ViewServed decision = s.Serve().decision;
  EXPECT_EQ(decision.raw_tokens.calls - decision.view_tokens.calls,
            s.session().saved_call_tokens());
  EXPECT_EQ(s.session().saved_call_tokens(), 60 - 4);
  EXPECT_EQ(decision.view_tokens.total(), s.session().view_tokens());
}

TEST(ArgumentsTest, TheArgumentsOfATurnWithThinkingStay) {
  ScriptedSession s(kAnthropic);
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 50;
  s.Append(UserMessage(kAnthropic, "go"));
  s.Append(AnthropicAssistant(
      {ThinkingBlock(),
       absl::StrCat(R"({"type":"tool_use","id":"x","name":"r","input":{"a":)",
                    LiteralOf(60), "}}")}));
  s.Append(ResultMessages(kAnthropic, {Done("x")}));
  const std::vector<std::string> view = Aged(s, kAnthropic);
  EXPECT_EQ(view[1], *s.session().messages()[1].raw);
  EXPECT_THAT(view[2], HasSubstr("[masked]"));
}

ScriptedSession SessionWithTwoResults() {
  ScriptedSession s = WritingSession(kAnthropic, LiteralOf(100));
  s.Append(ResultMessages(kAnthropic, {Done("x")}));
  s.Turns(3, 100);
  return s;
}

TEST(ArgumentsTest, OfACallWithTwoResultsTheyAreMaskedOnce) {
  ScriptedSession s = SessionWithTwoResults();
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(s.session().ledger().argument_mask_count, 1);
  EXPECT_EQ(SessionText(s.session()), SessionText(s.Replayed()));
}

TEST(ArgumentsTest, AStoredViewThatMasksOneCallTwiceIsDamage) {
  const ScriptedSession s = SessionWithTwoResults();
  const Mask masked = {.sequence = 2, .arguments = "{}"};
  const Mask masked_again = {.sequence = 3, .arguments = "{}"};
  const Mask dropped = {.sequence = 2, .is_dropped = true};
  const Mask dropped_again = {.sequence = 3, .is_dropped = true};
  const Mask result = {.sequence = 3, .placeholder = "[masked]"};
  for (const std::vector<Mask>& masks :
       std::vector<std::vector<Mask>>{{dropped, result},
                                      {masked, masked_again},
                                      {masked, dropped_again},
                                      {dropped, masked_again},
                                      {dropped, dropped_again}}) {
    ViewServed view;
    view.message_count = s.session().message_count();
    view.break_reason = BreakReason::kSchedule;
    view.masks = masks;
    Session session = s.session();
    EXPECT_EQ(session.Replay(view).code(), absl::StatusCode::kDataLoss);
  }
}

TEST(ArgumentsTest, WhatStandsInTheirPlaceTakesMemory) {
  ScriptedSession s = WritingSession(kAnthropic, LiteralOf(100));
  s.Turns(3, 100);
  const std::int64_t before = s.session().memory_bytes();
  s.Serve();
  const Call& call = s.session().calls().front();
  const Observation& result = s.session().observations().front();
  ASSERT_TRUE(call.arguments.has_value() && result.placeholder.has_value());
  EXPECT_EQ(s.session().memory_bytes() - before,
            static_cast<std::int64_t>(call.arguments->size() +
                                      result.placeholder->size() +
                                      s.view()[1].size() + s.view()[2].size()));
}

}  // namespace
}  // namespace clerestory
