// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/report_command.h"

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/report_service.pb.h"
#include "client/cc/client.h"
#include "client/cli/terminal.h"
#include "server/model/money.h"

namespace clerestory {
namespace {

constexpr PicoUsd kPicoUsdPerMicroUsd = 1'000'000;

std::string FormatMicroUsd(std::int64_t amount) {
  return FormatUsd(SaturatingMultiply(amount, kPicoUsdPerMicroUsd), 4);
}

std::string FormatThousandths(std::int64_t value) {
  return absl::StrFormat("%d.%d", value / 1'000, value % 1'000 / 100);
}

// Millionths as a percentage.
std::string FormatPpm(std::int64_t value) {
  return absl::StrFormat("%d.%d %%", value / 10'000, value % 10'000 / 1'000);
}

// "0.0412 (0.0390 to 0.0434)".
std::string FormatEstimate(
    bool is_known, const v1::Estimate& estimate,
    const std::function<std::string(std::int64_t)>& format) {
  if (!is_known) return "-";
  return absl::StrCat(format(estimate.value()), " (", format(estimate.low()),
                      " to ", format(estimate.high()), ")");
}

// A newer server may have values that are not known here.
absl::string_view ArmName(v1::SessionArm arm) {
  if (arm == v1::SESSION_ARM_UNSPECIFIED) return "without views";
  if (arm == v1::SESSION_ARM_MASKED) return "masked";
  if (arm == v1::SESSION_ARM_CONTROL) return "control";
  if (arm == v1::SESSION_ARM_MIXED) return "mixed";
  return "of another kind";
}

absl::string_view VerdictText(v1::MaskingVerdict verdict) {
  if (verdict == v1::MASKING_VERDICT_NO_DIFFERENCE) {
    return "No difference of cost per resolved session is seen.";
  }
  if (verdict == v1::MASKING_VERDICT_MASKED_CHEAPER) {
    return "A resolved session costs less with masking.";
  }
  if (verdict == v1::MASKING_VERDICT_CONTROL_CHEAPER) {
    return "A resolved session costs less without masking.";
  }
  return "There are not enough sessions to compare: 30 closed ones, 10 of them "
         "resolved, of each arm.";
}

// A row for each quantity, a column for each arm.
std::string FormatArms(const v1::TenantReportResponse& report) {
  std::vector<std::vector<std::string>> table = {
      {""},           {"sessions"},       {"resolved"},
      {"$/resolved"}, {"$/session"},      {"turns/session"},
      {"raw tokens"}, {"tokens as sent"}, {"observations"},
      {"masked"},     {"fetched again"},  {"asked again"}};
  for (const v1::ArmReport& arm : report.arms()) {
    const std::vector<std::string> column = {
        std::string(ArmName(arm.arm())),
        absl::StrCat(arm.session_count()),
        FormatEstimate(arm.has_resolved_rate_ppm(), arm.resolved_rate_ppm(),
                       FormatPpm),
        FormatEstimate(arm.has_cost_per_resolved_session_micro_usd(),
                       arm.cost_per_resolved_session_micro_usd(),
                       FormatMicroUsd),
        FormatEstimate(arm.has_cost_per_session_micro_usd(),
                       arm.cost_per_session_micro_usd(), FormatMicroUsd),
        FormatEstimate(arm.has_turns_per_session_thousandths(),
                       arm.turns_per_session_thousandths(), FormatThousandths),
        absl::StrCat(arm.raw_tokens()),
        absl::StrCat(arm.view_tokens()),
        absl::StrCat(arm.observation_count()),
        absl::StrCat(arm.masked_count()),
        FormatEstimate(arm.has_refetch_rate_ppm(), arm.refetch_rate_ppm(),
                       FormatPpm),
        FormatEstimate(arm.has_repeat_rate_ppm(), arm.repeat_rate_ppm(),
                       FormatPpm)};
    for (std::size_t row = 0; row < table.size(); ++row) {
      table[row].push_back(column[row]);
    }
  }
  return FormatTable(table);
}

std::string FormatTools(const v1::TenantReportResponse& report) {
  std::vector<std::vector<std::string>> table = {
      {"tool", "observations", "tokens", "masked", "fetched again", "judged",
       "unreferenced", "their tokens", "identical calls", "advice"}};
  for (const v1::ToolReport& tool : report.tools()) {
    std::vector<std::string> advice;
    for (const int each : tool.advice()) {
      if (each == v1::TOOL_ADVICE_READ_LESS) advice.emplace_back("read less");
      if (each == v1::TOOL_ADVICE_CALL_ONCE) advice.emplace_back("call once");
    }
    table.push_back({tool.tool().empty() ? "(others)" : tool.tool(),
                     absl::StrCat(tool.observation_count()),
                     absl::StrCat(tool.token_count()),
                     absl::StrCat(tool.masked_count()),
                     absl::StrCat(tool.refetched_count()),
                     absl::StrCat(tool.judged_count()),
                     absl::StrCat(tool.unreferenced_count()),
                     absl::StrCat(tool.unreferenced_tokens()),
                     absl::StrCat(tool.identical_call_count()),
                     absl::StrJoin(advice, ", ")});
  }
  return FormatTable(table);
}

}  // namespace

std::string FormatReport(const v1::TenantReportResponse& report) {
  std::string text = absl::StrCat(report.scanned_session_count(), " sessions, ",
                                  report.open_session_count(),
                                  " of them open. Figures in brackets: 95 % "
                                  "of such intervals hold the true one.\n\n");
  if (report.arms().empty()) return text;
  absl::StrAppend(&text, FormatArms(report), "\n",
                  VerdictText(report.comparison().verdict()));
  if (report.comparison().has_cost_difference_micro_usd()) {
    absl::StrAppend(
        &text, " Masked less control, $/resolved: ",
        FormatEstimate(true, report.comparison().cost_difference_micro_usd(),
                       FormatMicroUsd),
        ".");
  }
  absl::StrAppend(&text, "\n");
  if (report.tools().empty()) return text;
  absl::StrAppend(&text, "\n", FormatTools(report));
  return text;
}

absl::Status RunReport(const ReportOptions& options) {
  v1::TenantReportRequest request;
  for (const std::string& label : options.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--label ", label, ": expected KEY=VALUE"));
    }
    (*request.mutable_labels())[label.substr(0, equals)] =
        label.substr(equals + 1);
  }
  const Client client(options.target);
  do {
    v1::TenantReportResponse report;
    const grpc::Status status =
        CallWithRetry(0, [&](grpc::ClientContext& context) {
          return client.reports().TenantReport(&context, request, &report);
        });
    if (!status.ok()) return absl::InternalError(DescribeError(status));
    std::fputs(FormatReport(report).c_str(), stdout);
    request.set_page_token(report.next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

}  // namespace clerestory
