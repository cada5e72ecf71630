// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report_command.h"

#include <string>

#include "clerestory/v1/report_service.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void Set(v1::Estimate& estimate, int value, int low, int high) {
  estimate.set_value(value);
  estimate.set_low(low);
  estimate.set_high(high);
}

TEST(ReportCommandTest, AReportIsATableOfArmsAVerdictAndATableOfTools) {
  v1::TenantReportResponse report;
  report.set_scanned_session_count(70);
  report.set_open_session_count(2);
  v1::ArmReport& masked = *report.add_arms();
  masked.set_arm(v1::SESSION_ARM_MASKED);
  masked.set_session_count(33);
  Set(*masked.mutable_cost_per_resolved_session_micro_usd(), 41'200, 39'000,
      43'400);
  Set(*masked.mutable_resolved_rate_ppm(), 905'000, 800'000, 950'000);
  Set(*masked.mutable_turns_per_session_thousandths(), 12'300, 11'000, 13'990);
  report.add_arms()->set_arm(v1::SESSION_ARM_CONTROL);
  report.mutable_comparison()->set_verdict(v1::MASKING_VERDICT_MASKED_CHEAPER);
  Set(*report.mutable_comparison()->mutable_cost_difference_micro_usd(),
      -20'000, -30'000, -10'000);
  v1::ToolReport& tool = *report.add_tools();
  tool.set_tool("read_file");
  tool.add_advice(v1::TOOL_ADVICE_READ_LESS);
  tool.add_advice(v1::TOOL_ADVICE_CALL_ONCE);
  report.add_tools();
  const std::string text = FormatReport(report);
  for (const char* const part :
       {"70 sessions, 2 of them open", "masked", "control", "33",
        "0.0412 (0.0390 to 0.0434)", "90.5 % (80.0 % to 95.0 %)",
        "12.3 (11.0 to 13.9)", "A resolved session costs less with masking.",
        "-0.0200 (-0.0300 to -0.0100)", "read_file", "read less, call once",
        "(others)"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ReportCommandTest, WithoutClosedSessionsThereIsNothingToCompare) {
  v1::TenantReportResponse report;
  report.set_scanned_session_count(3);
  report.set_open_session_count(3);
  const std::string text = FormatReport(report);
  EXPECT_THAT(text, HasSubstr("3 sessions, 3 of them open"));
  EXPECT_THAT(text, Not(HasSubstr("resolved")));
}

}  // namespace
}  // namespace clerestory
