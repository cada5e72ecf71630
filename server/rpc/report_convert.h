// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_REPORT_CONVERT_H_
#define CLERESTORY_SERVER_RPC_REPORT_CONVERT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/report_service.pb.h"
#include "server/engine/tenant_report.h"

namespace clerestory {

// Between our values and the messages of clerestory.v1.ReportService. What is
// refused is kFieldInvalid with the name of the field in the request.

// Without its place in the list of sessions.
absl::StatusOr<TenantReportRequest> ToReportRequest(
    const v1::TenantReportRequest& request, absl::string_view tenant);

// What a page token of `request` is tied to: all that chooses its sessions.
std::string ReportScope(const TenantReportRequest& request);

// Without the token of the next page.
v1::TenantReportResponse FromReport(const TenantReport& report);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_REPORT_CONVERT_H_
