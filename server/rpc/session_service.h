// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_SESSION_SERVICE_H_
#define CLERESTORY_SERVER_RPC_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "clerestory/v1/session_service.grpc.pb.h"
#include "clerestory/v1/session_service.pb.h"
#include "google/protobuf/empty.pb.h"
#include "server/rpc/call.h"

namespace clerestory {

// clerestory.v1.SessionService over a SessionEngine: parses, calls, converts.
class SessionService final : public v1::SessionService::CallbackService {
 public:
  // `service` must outlive it.
  explicit SessionService(const ServiceContext& service) : service_(service) {}

  grpc::ServerUnaryReactor* CreateSession(
      grpc::CallbackServerContext* context,
      const v1::CreateSessionRequest* request,
      v1::CreateSessionResponse* response) override;
  grpc::ServerUnaryReactor* GetSession(
      grpc::CallbackServerContext* context,
      const v1::GetSessionRequest* request,
      v1::GetSessionResponse* response) override;
  grpc::ServerUnaryReactor* ListSessions(
      grpc::CallbackServerContext* context,
      const v1::ListSessionsRequest* request,
      v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* CloseSession(
      grpc::CallbackServerContext* context,
      const v1::CloseSessionRequest* request,
      v1::CloseSessionResponse* response) override;
  grpc::ServerUnaryReactor* DeleteSession(
      grpc::CallbackServerContext* context,
      const v1::DeleteSessionRequest* request,
      google::protobuf::Empty* response) override;

 private:
  absl::Status Create(const v1::CreateSessionRequest& request,
                      v1::CreateSessionResponse& response) const;
  absl::Status Get(const v1::GetSessionRequest& request,
                   v1::GetSessionResponse& response) const;
  absl::Status List(const v1::ListSessionsRequest& request,
                    v1::ListSessionsResponse& response) const;
  absl::Status Close(const v1::CloseSessionRequest& request,
                     v1::CloseSessionResponse& response) const;
  absl::Status Delete(const v1::DeleteSessionRequest& request) const;

  const ServiceContext& service_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_SESSION_SERVICE_H_
