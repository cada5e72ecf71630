// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_POLICY_SERVICE_H_
#define CLERESTORY_SERVER_RPC_POLICY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <functional>

#include "absl/status/status.h"
#include "clerestory/v1/policy_service.grpc.pb.h"
#include "clerestory/v1/policy_service.pb.h"
#include "google/protobuf/empty.pb.h"
#include "server/breaker/tool_breaker.h"
#include "server/rpc/call.h"
#include "server/rpc/trial_limits.h"

namespace clerestory {

// clerestory.v1.PolicyService over the registries of a SessionEngine: parses,
// calls, converts.
class PolicyService final : public v1::PolicyService::CallbackService {
 public:
  // `service` must outlive it.
  explicit PolicyService(const ServiceContext& service) : service_(service) {}

  grpc::ServerUnaryReactor* GetPolicy(grpc::CallbackServerContext* context,
                                      const v1::GetPolicyRequest* request,
                                      v1::GetPolicyResponse* response) override;
  grpc::ServerUnaryReactor* ListPolicies(
      grpc::CallbackServerContext* context,
      const v1::ListPoliciesRequest* request,
      v1::ListPoliciesResponse* response) override;
  grpc::ServerUnaryReactor* SetPolicy(grpc::CallbackServerContext* context,
                                      const v1::SetPolicyRequest* request,
                                      v1::SetPolicyResponse* response) override;
  grpc::ServerUnaryReactor* DeletePolicy(
      grpc::CallbackServerContext* context,
      const v1::DeletePolicyRequest* request,
      google::protobuf::Empty* response) override;
  grpc::ServerUnaryReactor* CheckPolicy(
      grpc::CallbackServerContext* context,
      const v1::CheckPolicyRequest* request,
      v1::CheckPolicyResponse* response) override;
  grpc::ServerUnaryReactor* ListTools(grpc::CallbackServerContext* context,
                                      const v1::ListToolsRequest* request,
                                      v1::ListToolsResponse* response) override;
  grpc::ServerUnaryReactor* ResetTool(grpc::CallbackServerContext* context,
                                      const v1::ResetToolRequest* request,
                                      v1::ResetToolResponse* response) override;

 private:
  // What Check has to know of its call: an error if it is over.
  using CheckCall = std::function<absl::Status()>;

  absl::Status Get(const v1::GetPolicyRequest& request,
                   v1::GetPolicyResponse& response) const;
  absl::Status List(v1::ListPoliciesResponse& response) const;
  absl::Status Set(const v1::SetPolicyRequest& request,
                   v1::SetPolicyResponse& response) const;
  absl::Status Delete(const v1::DeletePolicyRequest& request) const;
  absl::Status Check(const v1::CheckPolicyRequest& request,
                     const CheckCall& check_call,
                     v1::CheckPolicyResponse& response);
  // What tools are judged by in a session without labels.
  BreakerOptions ToolOptions() const;
  absl::Status ListAllTools(const v1::ListToolsRequest& request,
                            v1::ListToolsResponse& response) const;
  absl::Status Reset(const v1::ResetToolRequest& request,
                     v1::ResetToolResponse& response) const;

  const ServiceContext& service_;
  TrialSlots slots_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_POLICY_SERVICE_H_
