// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/tenant_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/engine/decide.h"
#include "server/engine/session_engine.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"
#include "server/policy/policy.h"
#include "server/store/memory/memory_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr PicoUsd kMicro = 1'000'000;

const ArmReport& ArmOf(const TenantReport& report, SessionArm arm) {
  return report.arms[static_cast<std::size_t>(arm)];
}

// Closed sessions, in the order of their ids.
class TenantReportTest : public ::testing::Test {
 protected:
  SessionHeader& Add(SessionArm arm, Outcome outcome,
                     std::int64_t micro_usd = 0) {
    SessionHeader header;
    header.key = {.tenant = "t",
                  .session = absl::StrCat(100'000 + sessions_.size())};
    header.outcome = outcome;
    header.close_time = outcome == Outcome::kOpen ? 0 : 50;
    header.totals.arm = arm;
    header.totals.view_cost = micro_usd * kMicro;
    sessions_.push_back(header);
    return sessions_.back();
  }

  // A thousand sessions with outcomes and costs that differ a little.
  void AddMany(SessionArm arm, int count, std::int64_t micro_usd) {
    for (int i = 0; i < count; ++i) {
      Add(arm, i % 4 == 0 ? Outcome::kFailed : Outcome::kResolved,
          micro_usd + 10 * (i % 7));
    }
  }

  TenantReport Report(const TenantReportRequest& request = {.tenant = "t"},
                      std::int64_t sessions_max = kReportSessionsMax) {
    const absl::StatusOr<TenantReport> report = MakeTenantReport(
        request,
        [this](absl::string_view after, std::int64_t limit)
            -> absl::StatusOr<std::vector<SessionHeader>> {
          std::vector<SessionHeader> page;
          for (const SessionHeader& header : sessions_) {
            if (absl::string_view(header.key.session) <= after) continue;
            if (static_cast<std::int64_t>(page.size()) == limit) break;
            page.push_back(header);
          }
          return page;
        },
        [this] {
          ++checks_;
          return check_;
        },
        sessions_max);
    EXPECT_EQ(report.status(), check_);
    return report.ok() ? *report : TenantReport();
  }

  std::vector<SessionHeader> sessions_;
  absl::Status check_;
  int checks_ = 0;
};

TEST_F(TenantReportTest, ATenantWithoutSessionsHasAnEmptyReport) {
  const TenantReport report = Report();
  EXPECT_EQ(report.scanned_count, 0);
  EXPECT_EQ(report.verdict, MaskingVerdict::kTooFewSessions);
  EXPECT_EQ(report.cost_difference_micro_usd, std::nullopt);
  EXPECT_THAT(report.tools, IsEmpty());
  EXPECT_EQ(report.next_after, "");
}

TEST_F(TenantReportTest, SumsAndRatesAreOfTheArmsOwnSessions) {
  for (int i = 0; i < 3; ++i) {
    SessionTotals& totals =
        Add(SessionArm::kMasked,
            i == 0 ? Outcome::kAbandoned : Outcome::kResolved, 30)
            .totals;
    totals.turn_count = 10;
    totals.call_count = 11;
    totals.raw_tokens = 1'000;
    totals.view_tokens = 600;
    totals.raw_cost = 40 * kMicro;
    totals.output_cost = 10 * kMicro;
    totals.usage_cost = 41 * kMicro;
    totals.observation_count = 20;
    totals.masked_count = 10;
    totals.refetched_count = 1;
    totals.repeats = {0, 1, 1, 2, 3, 4};
    totals.recall_count = 1;
    totals.lost = 9;
  }
  Add(SessionArm::kControl, Outcome::kFailed, 70);
  Add(SessionArm::kNone, Outcome::kFailed);
  Add(SessionArm::kMasked, Outcome::kOpen, 1'000);
  const TenantReport report = Report();
  EXPECT_EQ(report.scanned_count, 6);
  EXPECT_EQ(report.open_count, 1);
  EXPECT_EQ(ArmOf(report, SessionArm::kNone).session_count, 1);
  const ArmReport& masked = ArmOf(report, SessionArm::kMasked);
  EXPECT_EQ(masked.session_count, 3);
  EXPECT_THAT(masked.outcomes, testing::ElementsAre(0, 2, 0, 1));
  EXPECT_EQ(masked.turn_count, 30);
  EXPECT_EQ(masked.call_count, 33);
  EXPECT_EQ(masked.raw_tokens, 3'000);
  EXPECT_EQ(masked.view_tokens, 1'800);
  EXPECT_EQ(masked.raw_cost, 120 * kMicro);
  EXPECT_EQ(masked.view_cost, 90 * kMicro);
  EXPECT_EQ(masked.output_cost, 30 * kMicro);
  EXPECT_EQ(masked.usage_cost, 123 * kMicro);
  EXPECT_EQ(masked.lost, 27);
  EXPECT_EQ(masked.observation_count, 60);
  EXPECT_EQ(masked.masked_count, 30);
  EXPECT_EQ(masked.refetched_count, 3);
  EXPECT_THAT(masked.repeats, testing::ElementsAre(0, 3, 3, 6, 9, 12));
  EXPECT_EQ(masked.recall_count, 3);
  // 120 for 2 resolved; 3 * 40 and 3 * 10 for 3.
  EXPECT_EQ(masked.cost_per_resolved_micro_usd->value, 60);
  EXPECT_EQ(masked.cost_per_session_micro_usd->value, 40);
  EXPECT_EQ(masked.milliturns_per_session->value, 10'000);
  EXPECT_EQ(masked.resolved_ppm->value, 666'667);
  EXPECT_EQ(masked.refetched_ppm->value, 100'000);
  EXPECT_EQ(masked.repeated_ppm->value, 100'000);
  const ArmReport& control = ArmOf(report, SessionArm::kControl);
  EXPECT_EQ(control.session_count, 1);
  EXPECT_EQ(control.cost_per_resolved_micro_usd, std::nullopt);
  EXPECT_EQ(control.refetched_ppm, std::nullopt);
}

TEST_F(TenantReportTest, FewSessionsHaveNoVerdictHoweverClearTheyAre) {
  AddMany(SessionArm::kMasked, 200, 100);
  AddMany(SessionArm::kControl, 29, 1'000);
  TenantReport report = Report();
  EXPECT_EQ(report.verdict, MaskingVerdict::kTooFewSessions);
  EXPECT_LT(report.cost_difference_micro_usd->high, 0);
  AddMany(SessionArm::kControl, 1, 1'000);
  report = Report();
  EXPECT_EQ(report.verdict, MaskingVerdict::kMaskedCheaper);
}

TEST_F(TenantReportTest, FewResolvedOnesHaveNoVerdictEither) {
  AddMany(SessionArm::kMasked, 40, 100);
  for (int i = 0; i < 40; ++i) {
    Add(SessionArm::kControl, i < 9 ? Outcome::kResolved : Outcome::kFailed,
        1'000 + i);
  }
  EXPECT_EQ(Report().verdict, MaskingVerdict::kTooFewSessions);
  Add(SessionArm::kControl, Outcome::kResolved, 1'000);
  EXPECT_EQ(Report().verdict, MaskingVerdict::kMaskedCheaper);
}

TEST_F(TenantReportTest, WhatIsAsDearMakesNoDifference) {
  AddMany(SessionArm::kMasked, 40, 100);
  AddMany(SessionArm::kControl, 40, 101);
  EXPECT_EQ(Report().verdict, MaskingVerdict::kNoDifference);
}

// Masking is cheaper a session, and dearer a resolved one.
TEST_F(TenantReportTest, SessionsThatFailAreCharged) {
  for (int i = 0; i < 100; ++i) {
    Add(SessionArm::kMasked, i % 5 == 0 ? Outcome::kResolved : Outcome::kFailed,
        90 + i % 3);
  }
  AddMany(SessionArm::kControl, 100, 100);
  const TenantReport report = Report();
  EXPECT_LT(
      ArmOf(report, SessionArm::kMasked).cost_per_session_micro_usd->high,
      ArmOf(report, SessionArm::kControl).cost_per_session_micro_usd->low);
  EXPECT_EQ(report.verdict, MaskingVerdict::kControlCheaper);
}

TEST_F(TenantReportTest, MixedSessionsAreInNoComparison) {
  AddMany(SessionArm::kMasked, 40, 100);
  AddMany(SessionArm::kMixed, 400, 1);
  AddMany(SessionArm::kControl, 40, 900);
  const TenantReport report = Report();
  EXPECT_EQ(ArmOf(report, SessionArm::kMixed).session_count, 400);
  EXPECT_EQ(ArmOf(report, SessionArm::kMasked).session_count, 40);
  EXPECT_EQ(report.verdict, MaskingVerdict::kMaskedCheaper);
}

TEST_F(TenantReportTest, TimesAndLabelsChooseSessions) {
  for (const std::int64_t time : {10, 20, 30}) {
    SessionHeader& header = Add(SessionArm::kMasked, Outcome::kResolved);
    header.close_time = time;
    header.labels = {{"app", time == 20 ? "b" : "a"}, {"team", "x"}};
  }
  const auto count = [&](const TenantReportRequest& request) {
    return ArmOf(Report(request), SessionArm::kMasked).session_count;
  };
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count({.close_from = 20}), 2);
  EXPECT_EQ(count({.close_before = 20}), 1);
  EXPECT_EQ(count({.close_from = 20, .close_before = 30}), 1);
  EXPECT_EQ(count({.labels = {{"app", "a"}}}), 2);
  EXPECT_EQ(count({.close_from = 11, .labels = {{"app", "a"}}}), 1);
  EXPECT_EQ(count({.labels = {{"app", "a"}, {"team", "y"}}}), 0);
  EXPECT_EQ(count({.labels = {{"other", ""}}}), 0);
}

TEST_F(TenantReportTest, MoreSessionsThanItMayLookAtAreLeftForTheNext) {
  AddMany(SessionArm::kMasked, 1'200, 1);
  TenantReportRequest request = {.tenant = "t"};
  std::vector<std::int64_t> counts;
  do {
    const TenantReport report = Report(request, 500);
    EXPECT_EQ(ArmOf(report, SessionArm::kMasked).session_count,
              report.scanned_count);
    counts.push_back(report.scanned_count);
    request.after = report.next_after;
  } while (!request.after.empty());
  EXPECT_THAT(counts, testing::ElementsAre(500, 500, 200));
  EXPECT_EQ(Report({.tenant = "t"}, 1'200).next_after, "");
  EXPECT_EQ(Report().scanned_count, 1'200);
}

TEST_F(TenantReportTest, ACallThatIsOverEndsIt) {
  AddMany(SessionArm::kMasked, 1'200, 1);
  Report();
  EXPECT_EQ(checks_, 3);
  check_ = MakeError(absl::StatusCode::kCancelled, Reason::kCallCancelled, "");
  Report();
  EXPECT_EQ(checks_, 4);
}

TEST_F(TenantReportTest, ToolsComeWithTheirAdviceTheWorstFirst) {
  const auto add = [&](const ToolTotals& tool) {
    Add(SessionArm::kControl, Outcome::kFailed).totals.tools = {tool};
  };
  const ToolTotals reads = {.tool = "read",
                            .observation_count = 15,
                            .token_count = 900,
                            .judged_count = 10,
                            .unreferenced_count = 5,
                            .unreferenced_tokens = 400};
  add(reads);
  add({.tool = "status",
       .observation_count = 100,
       .judged_count = 100,
       .unreferenced_count = 49,
       .unreferenced_tokens = 600,
       .identical_call_count = 20});
  add({.observation_count = 1});
  TenantReport report = Report();
  ASSERT_THAT(report.tools, SizeIs(3));
  EXPECT_EQ(report.tools[0].totals.tool, "status");
  EXPECT_FALSE(report.tools[0].reads_too_much);
  EXPECT_TRUE(report.tools[0].repeats_calls);
  EXPECT_EQ(report.tools[1].totals, reads);
  // Too few were judged.
  EXPECT_FALSE(report.tools[1].reads_too_much);
  EXPECT_EQ(report.tools[2].totals.tool, "");
  add(reads);
  report = Report();
  EXPECT_EQ(report.tools[0].totals.tool, "read");
  EXPECT_EQ(report.tools[0].totals.unreferenced_tokens, 800);
  EXPECT_TRUE(report.tools[0].reads_too_much);
  EXPECT_FALSE(report.tools[0].repeats_calls);
}

TEST_F(TenantReportTest, ToolsBeyondTheMostAreOne) {
  for (int i = 0; i < 1'100; ++i) {
    Add(SessionArm::kMasked, Outcome::kFailed).totals.tools = {
        {.tool = absl::StrCat("tool", i), .observation_count = 1}};
  }
  const TenantReport report = Report();
  ASSERT_THAT(report.tools, SizeIs(kReportToolsMax + 1));
  EXPECT_EQ(report.tools.back().totals.tool, "");
  EXPECT_EQ(report.tools.back().totals.observation_count, 1'000);
}

TEST(TenantReportEngineTest, ClosedSessionsOfBothArmsAreInIt) {
  MemoryStore store;
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  policy.keep_observations = 3;
  policy.control_permille = 500;
  SessionEngine engine(store, CharacterCounter(), {.policy = policy});
  std::int64_t control_count = 0;
  for (int i = 0; i < 40; ++i) {
    SessionHeader header;
    header.key = {.tenant = "t", .session = absl::StrCat("s", i)};
    header.format = Format::kAnthropicMessages;
    ASSERT_THAT(engine.CreateSession(header), IsOk());
    bool is_control = false;
    for (int turn = 0; turn < 6; ++turn) {
      BuildViewRequest request;
      request.append.now = 1'000 + turn;
      request.append.messages = {ToBytes(UserMessage(header.format, "do it"))};
      if (turn > 0) {
        const std::string id = absl::StrCat("c", turn);
        request.append.messages = {
            ToBytes(AssistantMessage(header.format, "t", {{.id = id}})),
            ToBytes(ResultMessages(
                header.format, {{.id = id, .content = LiteralOf(400)}})[0])};
      }
      const auto built = engine.BuildView(header.key, request);
      ASSERT_THAT(built, IsOk());
      is_control = built->is_control;
    }
    control_count += is_control ? 1 : 0;
    ASSERT_THAT(engine.CloseSession(header.key, Outcome::kResolved, 2'000),
                IsOk());
  }
  const auto report =
      engine.ReportOnTenant({.tenant = "t"}, [] { return absl::OkStatus(); });
  ASSERT_THAT(report, IsOk());
  const ArmReport& masked = ArmOf(*report, SessionArm::kMasked);
  const ArmReport& control = ArmOf(*report, SessionArm::kControl);
  EXPECT_EQ(control.session_count, control_count);
  EXPECT_EQ(masked.session_count, 40 - control_count);
  EXPECT_GT(control.session_count, 0);
  EXPECT_GT(masked.session_count, 0);
  EXPECT_EQ(masked.masked_count, 2 * masked.session_count);
  EXPECT_EQ(control.masked_count, 0);
  EXPECT_EQ(control.view_tokens, control.raw_tokens);
  EXPECT_LT(masked.view_tokens, masked.raw_tokens);
  EXPECT_EQ(control.outcomes[static_cast<std::size_t>(Outcome::kResolved)],
            control_count);
  ASSERT_THAT(report->tools, SizeIs(1));
  EXPECT_EQ(report->tools[0].totals.observation_count, 200);
  const auto other = engine.ReportOnTenant({.tenant = "other"},
                                           [] { return absl::OkStatus(); });
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(other->scanned_count, 0);
}

}  // namespace
}  // namespace clerestory
