// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/methods.h"

#include <vector>

#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/policy_service.pb.h"
#include "clerestory/v1/report_service.pb.h"
#include "clerestory/v1/session_service.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "google/protobuf/descriptor.h"
#include "server/metrics/server_metrics.h"

namespace clerestory {

std::vector<RpcMethod> RpcMethods() {
  std::vector<RpcMethod> methods;
  // A message of each file that has services.
  for (const google::protobuf::Descriptor* message :
       {v1::ReadHistoryRequest::descriptor(),
        v1::GetPolicyRequest::descriptor(),
        v1::TenantReportRequest::descriptor(),
        v1::GetSessionRequest::descriptor(),
        v1::BuildViewRequest::descriptor()}) {
    const google::protobuf::FileDescriptor& file = *message->file();
    for (int s = 0; s < file.service_count(); ++s) {
      const google::protobuf::ServiceDescriptor& service = *file.service(s);
      for (int i = 0; i < service.method_count(); ++i) {
        const google::protobuf::MethodDescriptor& method = *service.method(i);
        methods.push_back({.is_stream = method.server_streaming(),
                           .service = service.full_name(),
                           .method = method.name()});
      }
    }
  }
  return methods;
}

}  // namespace clerestory
