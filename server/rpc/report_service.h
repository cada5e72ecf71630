// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_REPORT_SERVICE_H_
#define CLERESTORY_SERVER_RPC_REPORT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>

#include "absl/status/status.h"
#include "clerestory/v1/report_service.grpc.pb.h"
#include "clerestory/v1/report_service.pb.h"
#include "server/rpc/call.h"

namespace clerestory {

// clerestory.v1.ReportService over a SessionEngine: parses, calls, converts.
class ReportService final : public v1::ReportService::CallbackService {
 public:
  // `service` must outlive it.
  explicit ReportService(const ServiceContext& service) : service_(service) {}

  grpc::ServerUnaryReactor* TenantReport(
      grpc::CallbackServerContext* context,
      const v1::TenantReportRequest* request,
      v1::TenantReportResponse* response) override;

 private:
  // `check_call` has an error once the call is over.
  absl::Status Report(const v1::TenantReportRequest& request,
                      const std::function<absl::Status()>& check_call,
                      v1::TenantReportResponse& response) const;

  const ServiceContext& service_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_REPORT_SERVICE_H_
