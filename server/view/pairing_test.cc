// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Which call a result answers: by id, turn and position.

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;

constexpr Format kAnthropic = Format::kAnthropicMessages;

// The tools that the observations of `session` are results of, in order.
std::vector<std::string> ToolsOf(const Session& session) {
  std::vector<std::string> tools;
  for (const Observation& observation : session.observations()) {
    tools.push_back(observation.tool);
  }
  return tools;
}

std::string Calls(const std::vector<CallSpec>& calls) {
  return AssistantMessage(kAnthropic, "", calls);
}

std::string Results(const std::vector<std::string>& ids) {
  std::vector<ResultSpec> results;
  for (const std::string& id : ids) {
    results.push_back({.id = id, .content = LiteralOf(100)});
  }
  return ResultMessages(kAnthropic, results).front();
}

TEST(PairingTest, AnIdOfEveryTurnMeansTheCallOfItsTurn) {
  ScriptedSession s;
  s.Append(Calls({{.id = "call_0", .tool = "a"}}));
  s.Append(Results({"call_0"}));
  s.Append(Calls({{.id = "call_0", .tool = "b"}}));
  s.Append(Results({"call_0"}));
  EXPECT_THAT(ToolsOf(s.session()), ElementsAre("a", "b"));
  EXPECT_EQ(s.session().observations()[1].batch, 2);
}

TEST(PairingTest, ACallOfAnEarlierTurnThatStayedOpenIsNotMeant) {
  ScriptedSession s;
  s.Append(Calls({{.id = "call_0", .tool = "aborted"}}));
  s.Append(Calls({{.id = "x", .tool = "same turn"}}));
  s.Append(UserMessage(kAnthropic, "go on"));
  s.Append(Calls({{.id = "call_0", .tool = "b"}}));
  s.Append(Results({"call_0"}));
  EXPECT_THAT(ToolsOf(s.session()), ElementsAre("b"));
}

TEST(PairingTest, EqualIdsInOneMessageAreAnsweredInOrder) {
  ScriptedSession s;
  s.Append(Calls({{.id = "same", .tool = "a"}, {.id = "same", .tool = "b"}}));
  s.Append(Results({"same", "same"}));
  EXPECT_THAT(ToolsOf(s.session()), ElementsAre("a", "b"));
}

// One message of this many calls may come from any client.
TEST(PairingTest, ManyCallsOfOneIdArePairedWithoutDelay) {
  ScriptedSession s;
  const std::size_t count = 60'000;
  const auto start = std::chrono::steady_clock::now();
  s.Append(Calls(std::vector<CallSpec>(count, {.id = "same"})));
  s.Append(Results(std::vector<std::string>(count, "same")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_EQ(s.session().calls().back().first_observation, count - 1);
}

TEST(PairingTest, EmptyIdsAreIdsLikeOthers) {
  ScriptedSession s;
  s.Append(Calls({{.id = "", .tool = "a"}, {.id = "", .tool = "b"}}));
  s.Append(Results({"", ""}));
  s.Append(Calls({{.id = "", .tool = "c"}}));
  s.Append(Results({""}));
  EXPECT_THAT(ToolsOf(s.session()), ElementsAre("a", "b", "c"));
}

TEST(PairingTest, OfTwoResultsTheFirstAnswersAndBothAreKept) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Append(Calls({{.id = "job", .tool = "a"}}));
  s.Append(Results({"job"}));  // Pending.
  s.Turns(2, 100);
  s.Append(Results({"job"}));  // Final.
  ASSERT_EQ(s.session().observations().size(), 4U);
  const Call& call = s.session().calls().front();
  EXPECT_EQ(call.first_observation, 0U);
  EXPECT_EQ(call.observation_count, 2);
  EXPECT_EQ(s.session().observations()[3].tool, "a");
  // A second result keeps the batch from nothing: the first one is masked.
  s.Turns(1, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(PairingTest, ArgumentsAreMaskedWithTheFirstOfTwoResults) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.argument_tokens_min = 50;
  s.Append(UserMessage(kAnthropic, "go"));
  s.Append(
      Calls({{.id = "job",
              .arguments = absl::StrCat(R"({"a":)", LiteralOf(100), "}")}}));
  s.Append(Results({"job"}));
  s.Append(Results({"job"}));
  s.Turns(4, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2));
  EXPECT_EQ(s.session().ledger().argument_mask_count, 1);
}

TEST(PairingTest, ASecondResultOfADroppedCallStays) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.errors = ErrorRule::kDrop;
  s.Append(UserMessage(kAnthropic, "go"));
  s.Append(Calls({{.id = "job"}}));
  s.Append(ResultMessages(
      kAnthropic,
      {{.id = "job", .content = LiteralOf(100), .is_error = true}}));
  s.Turns(4, 100);
  s.Serve();
  ASSERT_EQ(s.session().ledger().drop_count, 1);
  const std::string second = Results({"job"});
  s.Append(second);
  s.Turns(4, 100);
  s.Serve();
  EXPECT_EQ(*s.session().messages()[11].view, second);
  EXPECT_THAT(s.masked(), ElementsAre(1, 2, 3, 4, 6));
}

TEST(PairingTest, AUserMessageMayStandBetweenCallAndResult) {
  ScriptedSession s;
  s.Append(Calls({{.id = "x", .tool = "a"}}));
  s.Append(UserMessage(kAnthropic, "are you there?"));
  s.Append(Results({"x"}));
  EXPECT_THAT(ToolsOf(s.session()), ElementsAre("a"));
}

TEST(PairingTest, AnApprovalLongAfterFindsItsCall) {
  ScriptedSession s;
  s.Append(Calls({{.id = "deploy", .tool = "deploy"}}));
  s.Turns(40, 10);
  s.Append(Results({"deploy"}));
  EXPECT_EQ(s.session().observations().back().tool, "deploy");
  EXPECT_EQ(s.session().observations().back().batch, 1);
}

TEST(PairingTest, AHistoryMayBeginWithTheAssistant) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Turns(5, 100);
  const std::string first = s.view().front();
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  EXPECT_EQ(s.view().front(), first);
}

TEST(PairingTest, AHistoryThatBeginsWithAResultIsRefusedByName) {
  const ScriptedSession s;
  const absl::Status status =
      s.session().CheckAppend({ToBytes(Results({"x"}))}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(status).reason, Reason::kResultWithoutCall);
}

TEST(PairingTest, ARunOfAssistantMessagesIsOneTurn) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.Append(Calls({{.id = "a"}}));
  s.Append(Calls({{.id = "b"}}));
  s.Append(Results({"a", "b"}));
  EXPECT_EQ(s.session().turn_count(), 1);
  s.Turns(2, 100);
  s.Serve();
  EXPECT_TRUE(s.masked().empty())
      << "two of one batch, one of the newest three";
}

// --- Copies of placeholders --------------------------------------------------

ScriptedSession SessionWithAPlaceholder() {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.placeholder = "[masked: {tokens} tokens]";
  s.Turns(5, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  return s;
}

TEST(CopiedPlaceholderTest, AMaskInTheArgumentsOfANewCallIsCounted) {
  ScriptedSession s = SessionWithAPlaceholder();
  s.Append(Calls(
      {{.id = "n", .arguments = R"({"text":"so: [masked: 100 tokens] ok"})"}}));
  EXPECT_EQ(s.session().ledger().copied_placeholder_count, 1);
  EXPECT_EQ(SessionText(s.session()), SessionText(s.Replayed()));
}

TEST(CopiedPlaceholderTest, WhatOnlyLooksLikeOneIsNot) {
  ScriptedSession s = SessionWithAPlaceholder();
  s.Append(
      Calls({{.id = "n",
              .arguments = R"({"a":"[masked: 101 tokens]","b":"[masked"})"}}));
  s.Append(UserMessage(kAnthropic, "[masked: 100 tokens]"));
  EXPECT_EQ(s.session().ledger().copied_placeholder_count, 0);
}

TEST(CopiedPlaceholderTest, APlaceholderThatBeginsWithAnotherHidesItNot) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.placeholder = "[masked] ";
  s.policy.error_placeholder = "[masked] x";
  s.Append(Calls({{.id = "a"}, {.id = "b"}}));
  s.Append(ResultMessages(
      kAnthropic, {{.id = "a", .content = LiteralOf(100)},
                   {.id = "b", .content = LiteralOf(100), .is_error = true}}));
  s.Turns(3, 100);
  s.Serve();
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  s.Append(Calls({{.id = "n", .arguments = R"({"a":"[masked] y"})"}}));
  EXPECT_EQ(s.session().ledger().copied_placeholder_count, 1);
}

}  // namespace
}  // namespace clerestory
