// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_HISTORY_SERVICE_H_
#define CLERESTORY_SERVER_RPC_HISTORY_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "clerestory/v1/history_service.grpc.pb.h"
#include "clerestory/v1/history_service.pb.h"
#include "server/rpc/call.h"

namespace clerestory {

// clerestory.v1.HistoryService over a SessionEngine: parses, calls, converts.
class HistoryService final : public v1::HistoryService::CallbackService {
 public:
  // `service` must outlive it.
  explicit HistoryService(const ServiceContext& service) : service_(service) {}

  grpc::ServerUnaryReactor* AppendMessages(
      grpc::CallbackServerContext* context,
      const v1::AppendMessagesRequest* request,
      v1::AppendMessagesResponse* response) override;
  grpc::ServerWriteReactor<v1::ReadHistoryResponse>* ReadHistory(
      grpc::CallbackServerContext* context,
      const v1::ReadHistoryRequest* request) override;
  grpc::ServerUnaryReactor* ListObservations(
      grpc::CallbackServerContext* context,
      const v1::ListObservationsRequest* request,
      v1::ListObservationsResponse* response) override;
  grpc::ServerUnaryReactor* ReadObservation(
      grpc::CallbackServerContext* context,
      const v1::ReadObservationRequest* request,
      v1::ReadObservationResponse* response) override;
  grpc::ServerUnaryReactor* RecallObservation(
      grpc::CallbackServerContext* context,
      const v1::RecallObservationRequest* request,
      v1::RecallObservationResponse* response) override;
  grpc::ServerUnaryReactor* PinObservation(
      grpc::CallbackServerContext* context,
      const v1::PinObservationRequest* request,
      v1::PinObservationResponse* response) override;

 private:
  absl::Status Append(const v1::AppendMessagesRequest& request,
                      v1::AppendMessagesResponse& response) const;
  absl::Status List(const v1::ListObservationsRequest& request,
                    v1::ListObservationsResponse& response) const;
  absl::Status Read(const v1::ReadObservationRequest& request,
                    v1::ReadObservationResponse& response) const;
  absl::Status Recall(const v1::RecallObservationRequest& request,
                      v1::RecallObservationResponse& response) const;
  absl::Status Pin(const v1::PinObservationRequest& request,
                   v1::PinObservationResponse& response) const;

  const ServiceContext& service_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_HISTORY_SERVICE_H_
