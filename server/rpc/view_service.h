// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_VIEW_SERVICE_H_
#define CLERESTORY_SERVER_RPC_VIEW_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "clerestory/v1/view_service.grpc.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "server/base/mutex.h"
#include "server/rpc/call.h"

namespace clerestory {

// clerestory.v1.ViewService over a SessionEngine: parses, calls, converts.
// BuildView is served raw: the messages of a view go out with one copy, where
// protobuf would make two.
class ViewService final
    : public v1::ViewService::WithRawCallbackMethod_BuildView<
          v1::ViewService::WithCallbackMethod_ReportUsage<
              v1::ViewService::Service>> {
 public:
  // `service` must outlive it.
  explicit ViewService(const ServiceContext& service) : service_(service) {}

  grpc::ServerUnaryReactor* BuildView(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ReportUsage(
      grpc::CallbackServerContext* context,
      const v1::ReportUsageRequest* request,
      v1::ReportUsageResponse* response) override;

 private:
  absl::Status Build(const grpc::ByteBuffer& bytes,
                     grpc::ByteBuffer& response) const;
  absl::Status Report(const v1::ReportUsageRequest& request,
                      v1::ReportUsageResponse& response) const;

  // Says in the log that nothing is known of `model`, once for each.
  void NoteUnknownModel(const std::string& model) const
      CLERESTORY_EXCLUDES(mutex_);

  const ServiceContext& service_;

  mutable Mutex mutex_;
  mutable std::set<std::string> unknown_models_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_VIEW_SERVICE_H_
