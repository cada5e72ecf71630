// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/report_convert.h"

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "clerestory/v1/report_service.pb.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/engine/tenant_report.h"
#include "server/model/record.h"
#include "server/model/session_totals.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

const auto kInvalid =
    FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid);

TEST(ReportConvertTest, ARequestComesWithItsTenantBoundsAndLabels) {
  v1::TenantReportRequest request;
  auto asked = ToReportRequest(request, "t");
  ASSERT_THAT(asked, IsOk());
  EXPECT_EQ(asked->tenant, "t");
  EXPECT_FALSE(asked->close_from.has_value());
  EXPECT_FALSE(asked->close_before.has_value());
  request.mutable_close_time_from()->set_seconds(3);
  request.mutable_close_time_before()->set_seconds(4);
  request.mutable_close_time_before()->set_nanos(5'000);
  (*request.mutable_labels())["app"] = "a";
  asked = ToReportRequest(request, "t");
  ASSERT_THAT(asked, IsOk());
  EXPECT_EQ(asked->close_from, 3'000'000);
  EXPECT_EQ(asked->close_before, 4'000'005);
  EXPECT_EQ(asked->labels, (Labels{{"app", "a"}}));
}

TEST(ReportConvertTest, WhatIsWrongIsNamed) {
  v1::TenantReportRequest request;
  request.mutable_close_time_from()->set_seconds(-1);
  EXPECT_THAT(ToReportRequest(request, "t"), kInvalid);
  EXPECT_EQ(MetadataOf(ToReportRequest(request, "t").status(), "field"),
            "close_time_from");
  request.mutable_close_time_from()->set_seconds(5);
  request.mutable_close_time_before()->set_seconds(5);
  EXPECT_THAT(ToReportRequest(request, "t"), kInvalid);
  EXPECT_EQ(MetadataOf(ToReportRequest(request, "t").status(), "field"),
            "close_time_before");
  request.mutable_close_time_before()->set_nanos(1'000'000'000);
  EXPECT_EQ(MetadataOf(ToReportRequest(request, "t").status(), "field"),
            "close_time_before");
  request.clear_close_time_before();
  (*request.mutable_labels())["a b"] = "c";
  EXPECT_EQ(MetadataOf(ToReportRequest(request, "t").status(), "field"),
            "labels");
}

TEST(ReportConvertTest, APageTokenIsTiedToAllThatChoosesSessions) {
  const TenantReportRequest plain = {.tenant = "t"};
  const std::string scope = ReportScope(plain);
  EXPECT_EQ(ReportScope({.tenant = "t", .after = "x"}), scope);
  for (const TenantReportRequest& other :
       {TenantReportRequest{.tenant = "u"},
        TenantReportRequest{.tenant = "t", .close_from = 0},
        TenantReportRequest{.tenant = "t", .close_before = 0},
        TenantReportRequest{.tenant = "t", .labels = {{"a", "b"}}}}) {
    EXPECT_NE(ReportScope(other), scope);
  }
}

TEST(ReportConvertTest, AnArmIsAllThatIsKnownOfIt) {
  TenantReport report;
  ArmReport& arm = report.arms[static_cast<std::size_t>(SessionArm::kControl)];
  arm.session_count = 6;
  arm.outcomes = {0, 1, 2, 3};
  arm.turn_count = 4;
  arm.call_count = 5;
  arm.raw_tokens = 7;
  arm.view_tokens = 8;
  arm.raw_cost = 9;
  arm.view_cost = 10;
  arm.output_cost = 11;
  arm.usage_cost = 12;
  arm.lost = 13;
  arm.observation_count = 14;
  arm.masked_count = 15;
  arm.refetched_count = 16;
  arm.repeats = {0, 17, 18, 19, 20, 21};
  arm.recall_count = 22;
  arm.cost_per_resolved_micro_usd = {.value = 30, .low = 29, .high = 31};
  arm.cost_per_session_micro_usd = {.value = 40, .low = 39, .high = 41};
  arm.milliturns_per_session = {.value = 50, .low = 49, .high = 51};
  arm.resolved_ppm = {.value = 60, .low = 59, .high = 61};
  arm.refetched_ppm = {.value = 70, .low = 69, .high = 71};
  arm.repeated_ppm = {.value = 80, .low = 79, .high = 81};
  report.verdict = MaskingVerdict::kControlCheaper;
  report.cost_difference_micro_usd = {.value = -5, .low = -6, .high = 7};
  report.tools = {{.totals = {.tool = "r",
                              .observation_count = 1,
                              .token_count = 2,
                              .masked_count = 3,
                              .refetched_count = 4,
                              .judged_count = 5,
                              .unreferenced_count = 6,
                              .unreferenced_tokens = 7,
                              .identical_call_count = 8},
                   .reads_too_much = true,
                   .repeats_calls = true}};
  report.scanned_count = 90;
  report.open_count = 91;
  EXPECT_EQ(FromReport(report).ShortDebugString(),
            "arms { arm: SESSION_ARM_CONTROL session_count: 6 "
            "resolved_count: 1 failed_count: 2 abandoned_count: 3 "
            "turn_count: 4 call_count: 5 raw_tokens: 7 view_tokens: 8 "
            "raw_cost_pico_usd: 9 view_cost_pico_usd: 10 "
            "output_cost_pico_usd: 11 usage_cost_pico_usd: 12 "
            "lost_pico_usd: 13 observation_count: 14 masked_count: 15 "
            "refetched_count: 16 repeats { refetches: 17 duplicates: 18 "
            "refreshes: 19 pagings: 20 polls: 21 } recall_count: 22 "
            "cost_per_resolved_session_micro_usd { value: 30 low: 29 high: 31 "
            "} cost_per_session_micro_usd { value: 40 low: 39 high: 41 } "
            "turns_per_session_thousandths { value: 50 low: 49 high: 51 } "
            "resolved_rate_ppm { value: 60 low: 59 high: 61 } "
            "refetch_rate_ppm { value: 70 low: 69 high: 71 } "
            "repeat_rate_ppm { value: 80 low: 79 high: 81 } } "
            "comparison { verdict: MASKING_VERDICT_CONTROL_CHEAPER "
            "cost_difference_micro_usd { value: -5 low: -6 high: 7 } } "
            "tools { tool: \"r\" observation_count: 1 token_count: 2 "
            "masked_count: 3 refetched_count: 4 judged_count: 5 "
            "unreferenced_count: 6 unreferenced_tokens: 7 "
            "identical_call_count: 8 advice: TOOL_ADVICE_READ_LESS "
            "advice: TOOL_ADVICE_CALL_ONCE } "
            "scanned_session_count: 90 open_session_count: 91");
}

TEST(ReportConvertTest, WhatCannotBeEstimatedIsAbsent) {
  TenantReport report;
  report.arms[static_cast<std::size_t>(SessionArm::kMasked)].session_count = 1;
  const v1::TenantReportResponse out = FromReport(report);
  ASSERT_EQ(out.arms_size(), 1);
  EXPECT_EQ(out.arms(0).arm(), v1::SESSION_ARM_MASKED);
  EXPECT_FALSE(out.arms(0).has_cost_per_resolved_session_micro_usd());
  EXPECT_FALSE(out.arms(0).has_refetch_rate_ppm());
  EXPECT_FALSE(out.comparison().has_cost_difference_micro_usd());
  EXPECT_EQ(out.comparison().verdict(), v1::MASKING_VERDICT_UNSPECIFIED);
}

}  // namespace
}  // namespace clerestory
