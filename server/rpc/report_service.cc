// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/report_service.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "clerestory/v1/report_service.pb.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/engine/session_engine.h"
#include "server/engine/tenant_report.h"
#include "server/rpc/call.h"
#include "server/rpc/page_token.h"
#include "server/rpc/report_convert.h"

namespace clerestory {

grpc::ServerUnaryReactor* ReportService::TenantReport(
    grpc::CallbackServerContext* context,
    const v1::TenantReportRequest* request,
    v1::TenantReportResponse* response) {
  // The context lives until the call is finished, which is after the work.
  const auto check_call = [this, context] {
    if (context->IsCancelled()) {
      return MakeError(absl::StatusCode::kCancelled, Reason::kCallCancelled,
                       "the call was cancelled or its deadline has passed");
    }
    return CheckServing(service_);
  };
  return RunUnary(service_, context, "TenantReport", [=, this] {
    return Report(*request, check_call, *response);
  });
}

absl::Status ReportService::Report(
    const v1::TenantReportRequest& request,
    const std::function<absl::Status()>& check_call,
    v1::TenantReportResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(TenantReportRequest asked,
                              ToReportRequest(request, service_.tenant));
  const std::string scope = ReportScope(asked);
  CLERESTORY_ASSIGN_OR_RETURN(asked.after,
                              ReadPageToken(scope, request.page_token()));
  CLERESTORY_ASSIGN_OR_RETURN(
      const clerestory::TenantReport report,
      service_.engine.ReportOnTenant(asked, check_call));
  response = FromReport(report);
  if (!report.next_after.empty()) {
    response.set_next_page_token(MakePageToken(scope, report.next_after));
  }
  return absl::OkStatus();
}

}  // namespace clerestory
