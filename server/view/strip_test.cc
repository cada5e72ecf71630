// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Reasoning that is bound to its prefix: what a break leaves out of it, and
// when it is made.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/served_views.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Format kAnthropic = Format::kAnthropicMessages;

std::string Thought(absl::string_view text) {
  return absl::StrCat(R"({"type":"thinking","thinking":")", text,
                      R"(","signature":"Eq"})");
}

std::string Converse(absl::string_view blocks) {
  return absl::StrCat(R"({"role":"assistant","content":[)", blocks, "]}");
}

constexpr absl::string_view kConverseThought =
    R"({"reasoningContent":{"reasoningText":{"text":"hmm","signature":"E"}}})";

class StripTest : public ::testing::Test {
 protected:
  StripTest() : s_(NewSession(kAnthropic)) {}

  static ScriptedSession NewSession(Format format) {
    ScriptedSession s(format);
    s.policy.mode = Mode::kEveryTurn;
    s.prices.reasoning_prefix_bound = true;
    s.Append(UserMessage(format, "go"));
    return s;
  }

  // A turn that thinks `text`, calls `id` and has a result of 100 tokens.
  static void Think(ScriptedSession& s, const std::string& text,
                    const std::string& id) {
    s.Append(AnthropicAssistant(
        {Thought(text), absl::StrCat(R"({"type":"tool_use","id":")", id,
                                     R"(","name":"r","input":{}})")}));
    s.Append(
        ResultMessages(kAnthropic, {{.id = id, .content = LiteralOf(100)}}));
  }

  ScriptedSession s_;
};

TEST_F(StripTest, ABreakLeavesOutTheReasoningBehindItsFirstChange) {
  Think(s_, "early", "a");  // Messages 1 and 2.
  s_.policy.keep_observations = 5;
  s_.Turns(1, 100);
  Think(s_, "later", "b");  // Messages 5 and 6.
  s_.Turns(4, 100);
  const View view = s_.Serve();
  EXPECT_THAT(s_.masked(), ElementsAre(0, 1));
  EXPECT_EQ(view.decision.break_reason, BreakReason::kSchedule);
  EXPECT_EQ(view.decision.strip_from, 5);
  EXPECT_EQ(view.first_change, 2);
  EXPECT_EQ(CountOf("early", s_.view()), 1U);
  EXPECT_EQ(CountOf("later", s_.view()), 0U);
  EXPECT_EQ(s_.view()[5],
            AnthropicAssistant(
                {R"({"type":"tool_use","id":"b","name":"r","input":{}})"}));
  EXPECT_EQ(s_.session().stripped_tokens(), 5);
  EXPECT_EQ(view.decision.view_tokens.assistant,
            view.decision.raw_tokens.assistant - 5);
  EXPECT_EQ(view.whole.token_count, view.decision.view_call.total());
}

TEST_F(StripTest, WhatIsThoughtAfterTheBreakStays) {
  Think(s_, "before", "a");
  s_.Turns(4, 100);
  EXPECT_EQ(s_.Serve().decision.strip_from, std::nullopt);
  Think(s_, "after", "b");
  s_.Answer();
  s_.Serve();
  EXPECT_THAT(s_.masked(), ElementsAre(0, 1, 2));
  EXPECT_EQ(CountOf("before", s_.view()), 1U);
  EXPECT_EQ(CountOf("after", s_.view()), 0U) << "behind the second break";
  Think(s_, "newest", "c");
  EXPECT_EQ(s_.Serve().decision.strip_from, std::nullopt);
  EXPECT_EQ(CountOf("newest", s_.view()), 1U);
  EXPECT_EQ(CountOf("after", s_.view()), 0U);
  EXPECT_EQ(SessionText(s_.session()), SessionText(s_.Replayed()));
}

TEST_F(StripTest, NoBreakIsMadeInTheMiddleOfATurnWithReasoning) {
  s_.Turns(4, 100);
  Think(s_, "now", "a");
  EXPECT_TRUE(s_.session().IsMidTurn());
  s_.Serve();
  EXPECT_THAT(s_.masked(), IsEmpty());
  s_.Answer();
  EXPECT_FALSE(s_.session().IsMidTurn());
  s_.Serve();
  EXPECT_THAT(s_.masked(), ElementsAre(0, 1));
}

TEST_F(StripTest, TheWindowForcesABreakInTheMiddleOfATurn) {
  s_.Turns(4, 100);
  Think(s_, "now", "a");
  s_.policy.window_tokens = 400;
  s_.policy.reserve_tokens = 1;
  const View view = s_.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kWindow);
  EXPECT_EQ(view.decision.strip_from, 9);
  EXPECT_EQ(CountOf("now", s_.view()), 0U);
}

TEST_F(StripTest, AvoidanceKeepsWhatStandsBeforeReasoning) {
  s_.policy.thinking = ThinkingRule::kAvoid;
  s_.Turns(1, 100);
  Think(s_, "hm", "a");
  s_.Turns(4, 100);
  const View view = s_.Serve();
  EXPECT_THAT(s_.masked(), ElementsAre(1, 2));
  EXPECT_EQ(view.decision.strip_from, std::nullopt);
  EXPECT_EQ(CountOf("\"hm\"", s_.view()), 1U);
}

TEST_F(StripTest, WhatTheProviderDroppedIsLeftOutWhenItNoLongerIsToldTo) {
  s_.policy.thinking = ThinkingRule::kDropBlock;
  s_.Turns(1, 100);
  Think(s_, "hm", "a");
  s_.Turns(4, 100);
  EXPECT_EQ(s_.Serve().decision.strip_from, std::nullopt);
  EXPECT_EQ(s_.masked().size(), 3U);
  EXPECT_EQ(CountOf("\"hm\"", s_.view()), 1U);
  EXPECT_EQ(s_.session().stale_from(), 3);

  s_.policy.thinking = ThinkingRule::kAvoid;
  const View view = s_.Serve();
  EXPECT_THAT(view.decision.masks, IsEmpty());
  EXPECT_EQ(view.decision.break_reason, BreakReason::kSchedule);
  EXPECT_EQ(view.decision.strip_from, 3);
  EXPECT_EQ(view.first_change, 3);
  EXPECT_EQ(s_.session().stale_from(), std::nullopt);
  EXPECT_EQ(s_.session().last_thinking(), -1);
  EXPECT_EQ(CountOf("\"hm\"", s_.view()), 0U);
  EXPECT_EQ(s_.Serve().decision.break_reason, BreakReason::kNone);
  EXPECT_EQ(SessionText(s_.session()), SessionText(s_.Replayed()));
}

TEST_F(StripTest, ANewModelThatBindsReasoningIsNotShownWhatIsStale) {
  s_.prices.reasoning_prefix_bound = false;
  s_.Turns(1, 100);
  Think(s_, "hm", "a");
  s_.Turns(4, 100);
  s_.Serve();
  EXPECT_EQ(s_.session().stale_from(), 3);
  s_.prices.reasoning_prefix_bound = true;
  s_.model = "n";
  s_.policy.mode = Mode::kOff;
  const View view = s_.Serve();
  EXPECT_EQ(view.decision.break_reason, BreakReason::kModelChanged);
  EXPECT_EQ(view.decision.strip_from, 3);
}

TEST_F(StripTest, AMessageOfNothingElseGoesWhereRolesNeedNotTakeTurns) {
  s_.Turns(1, 100);
  s_.Append(AnthropicAssistant({Thought("cut off")}));
  s_.Ask(2);
  s_.Turns(4, 100);
  const View view = s_.Serve();
  EXPECT_EQ(view.decision.strip_from, 3);
  EXPECT_EQ(s_.session().messages()[3].view, nullptr);
  EXPECT_EQ(view.whole.message_count, s_.session().message_count() - 1);
}

TEST_F(StripTest, WhereTheyMustNothingInFrontOfItIsMasked) {
  ScriptedSession s = NewSession(Format::kBedrockConverse);
  s.Turns(1, 100);
  s.Append(Converse(kConverseThought));
  s.Ask(2);
  EXPECT_FALSE(s.session().CanStripFrom(2));
  EXPECT_TRUE(s.session().CanStripFrom(4));
  s.Turns(2, 100);
  s.Append(Converse(absl::StrCat(kConverseThought, R"(,{"text":"so"})")));
  s.Ask(2);
  s.Turns(3, 100);
  s.Answer();
  const View view = s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1, 2));
  EXPECT_EQ(view.decision.strip_from, 9);
  EXPECT_EQ(s.view()[9], Converse(R"({"text":"so"})"));
}

TEST_F(StripTest, ItemsThatTheProviderDropsStay) {
  ScriptedSession s = NewSession(Format::kOpenaiResponses);
  s.Turns(1, 100);
  s.Append(R"({"type":"reasoning","id":"rs_1","summary":[],)"
           R"("encrypted_content":"0123456789"})");
  s.Turns(4, 100);
  EXPECT_EQ(s.session().LostReasoning(0), 2);
  EXPECT_EQ(s.session().StripSaving(0), 0);
  const View view = s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(view.decision.strip_from, std::nullopt);
  EXPECT_EQ(CountOf("rs_1", s.view()), 1U);
  EXPECT_EQ(s.session().LostReasoning(0), 0);
  EXPECT_EQ(s.session().stale_from(), std::nullopt);
}

TEST_F(StripTest, TellsWhatLeavingOutWouldSave) {
  Think(s_, "abc", "a");
  Think(s_, "defgh", "b");
  EXPECT_EQ(s_.session().StripSaving(0), 8);
  EXPECT_EQ(s_.session().StripSaving(2), 5);
  EXPECT_EQ(s_.session().StripSaving(4), 0);
  EXPECT_EQ(s_.session().LostReasoning(2), 5);
  EXPECT_EQ(s_.session().StripFrom(2), 3);
  EXPECT_EQ(s_.session().StripFrom(4), std::nullopt);
}

TEST_F(StripTest, ARecordThatLeavesOutWhatIsNotThereIsCorrupt) {
  Think(s_, "abc", "a");
  for (const std::int64_t from : {-1, 0, 2, 3}) {
    ViewServed view = s_.Plan();
    view.strip_from = from;
    Session session = s_.session();
    EXPECT_THAT(session.Replay(view),
                FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt))
        << from;
  }
  ViewServed view = s_.Plan();
  view.strip_from = 1;
  Session session = s_.session();
  EXPECT_THAT(session.Replay(view), IsOk());
}

}  // namespace
}  // namespace clerestory
