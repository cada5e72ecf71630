// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/session_service.h"

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/session_service.pb.h"
#include "google/protobuf/empty.pb.h"
#include "server/base/status.h"
#include "server/engine/session_engine.h"
#include "server/model/record.h"
#include "server/rpc/call.h"
#include "server/rpc/convert.h"
#include "server/rpc/page_token.h"

namespace clerestory {

grpc::ServerUnaryReactor* SessionService::CreateSession(
    grpc::CallbackServerContext* context,
    const v1::CreateSessionRequest* request,
    v1::CreateSessionResponse* response) {
  return RunUnary(service_, context, "CreateSession",
                  [=, this] { return Create(*request, *response); });
}

grpc::ServerUnaryReactor* SessionService::GetSession(
    grpc::CallbackServerContext* context, const v1::GetSessionRequest* request,
    v1::GetSessionResponse* response) {
  return RunUnary(service_, context, "GetSession",
                  [=, this] { return Get(*request, *response); });
}

grpc::ServerUnaryReactor* SessionService::ListSessions(
    grpc::CallbackServerContext* context,
    const v1::ListSessionsRequest* request,
    v1::ListSessionsResponse* response) {
  return RunUnary(service_, context, "ListSessions",
                  [=, this] { return List(*request, *response); });
}

grpc::ServerUnaryReactor* SessionService::CloseSession(
    grpc::CallbackServerContext* context,
    const v1::CloseSessionRequest* request,
    v1::CloseSessionResponse* response) {
  return RunUnary(service_, context, "CloseSession",
                  [=, this] { return Close(*request, *response); });
}

grpc::ServerUnaryReactor* SessionService::DeleteSession(
    grpc::CallbackServerContext* context,
    const v1::DeleteSessionRequest* request, google::protobuf::Empty*) {
  return RunUnary(service_, context, "DeleteSession",
                  [=, this] { return Delete(*request); });
}

absl::Status SessionService::Create(const v1::CreateSessionRequest& request,
                                    v1::CreateSessionResponse& response) const {
  SessionHeader header;
  CLERESTORY_ASSIGN_OR_RETURN(header.key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_ASSIGN_OR_RETURN(header.format, ToFormat(request.format()));
  CLERESTORY_RETURN_IF_ERROR(CheckModel(request.model()));
  header.model = request.model();
  CLERESTORY_ASSIGN_OR_RETURN(header.labels,
                              ToLabels("labels", request.labels()));
  header.has_recall_tool = request.recall_tool();
  header.create_time = service_.clock.Now();
  CLERESTORY_ASSIGN_OR_RETURN(const SessionHeader created,
                              service_.engine.CreateSession(header));
  *response.mutable_session() = FromHeader(created);
  return absl::OkStatus();
}

absl::Status SessionService::Get(const v1::GetSessionRequest& request,
                                 v1::GetSessionResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_ASSIGN_OR_RETURN(const SessionSummary summary,
                              service_.engine.GetSession(key));
  *response.mutable_session() = FromSummary(summary);
  *response.mutable_ledger() = FromLedger(summary);
  return absl::OkStatus();
}

absl::Status SessionService::List(const v1::ListSessionsRequest& request,
                                  v1::ListSessionsResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const std::int64_t page_size,
                              PageSize(request.page_size()));
  const std::string scope = absl::StrCat("ListSessions/", service_.tenant);
  CLERESTORY_ASSIGN_OR_RETURN(const std::string after,
                              ReadPageToken(scope, request.page_token()));
  // One more than is asked for tells whether there is another page.
  CLERESTORY_ASSIGN_OR_RETURN(
      std::vector<SessionHeader> headers,
      service_.engine.ListSessions(service_.tenant, after, page_size + 1));
  if (static_cast<std::int64_t>(headers.size()) > page_size) {
    headers.resize(static_cast<std::size_t>(page_size));
    response.set_next_page_token(
        MakePageToken(scope, headers.back().key.session));
  }
  for (const SessionHeader& header : headers) {
    *response.add_sessions() = FromHeader(header);
  }
  return absl::OkStatus();
}

absl::Status SessionService::Close(const v1::CloseSessionRequest& request,
                                   v1::CloseSessionResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_ASSIGN_OR_RETURN(const Outcome outcome,
                              ToOutcome(request.outcome()));
  CLERESTORY_ASSIGN_OR_RETURN(
      const SessionSummary summary,
      service_.engine.CloseSession(key, outcome, service_.clock.Now()));
  *response.mutable_session() = FromSummary(summary);
  return absl::OkStatus();
}

absl::Status SessionService::Delete(
    const v1::DeleteSessionRequest& request) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  return service_.engine.DeleteSession(key);
}

}  // namespace clerestory
