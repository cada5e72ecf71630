// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/methods.h"

#include <vector>

#include "clerestory/v1/history_service.grpc.pb.h"
#include "clerestory/v1/policy_service.grpc.pb.h"
#include "clerestory/v1/session_service.grpc.pb.h"
#include "clerestory/v1/view_service.grpc.pb.h"
#include "google/protobuf/descriptor.h"
#include "server/base/check.h"
#include "server/metrics/server_metrics.h"

namespace clerestory {

std::vector<RpcMethod> RpcMethods() {
  std::vector<RpcMethod> methods;
  for (const char* name : {v1::HistoryService::service_full_name(),
                           v1::PolicyService::service_full_name(),
                           v1::SessionService::service_full_name(),
                           v1::ViewService::service_full_name()}) {
    const google::protobuf::ServiceDescriptor* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            name);
    CLERESTORY_CHECK(service != nullptr);
    for (int i = 0; i < service->method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service->method(i);
      methods.push_back({.is_stream = method.server_streaming(),
                         .service = service->full_name(),
                         .method = method.name()});
    }
  }
  return methods;
}

}  // namespace clerestory
