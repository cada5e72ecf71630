// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_REPORT_COMMAND_H_
#define CLERESTORY_CLIENT_CLI_REPORT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clerestory/v1/report_service.pb.h"

namespace clerestory {

struct ReportOptions {
  std::string target = "127.0.0.1:7171";
  std::vector<std::string> labels;  // KEY=VALUE each.
};

// `clerestory report`: asks a running server what closed sessions came to, with
// masking and without, and prints it. Of a tenant with more sessions than one
// report looks at, each part follows the one before.
//
// INVALID_ARGUMENT if a label is none; INTERNAL if a call failed.
absl::Status RunReport(const ReportOptions& options);

// What is printed of one report.
std::string FormatReport(const v1::TenantReportResponse& report);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_REPORT_COMMAND_H_
