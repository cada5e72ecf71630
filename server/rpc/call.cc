// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/call.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/executor.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/metrics/server_metrics.h"
#include "server/model/record.h"
#include "server/rpc/convert.h"
#include "server/rpc/status.h"

namespace clerestory {

CallMeter::CallMeter(ServerMetrics& metrics, absl::string_view method)
    : metrics_(metrics),
      method_(method),
      start_(std::chrono::steady_clock::now()) {
  metrics_.RpcStarted(method_);
}

void CallMeter::Done(absl::StatusCode code) const {
  const auto took = std::chrono::steady_clock::now() - start_;
  metrics_.RpcHandled(
      method_, code,
      std::chrono::duration_cast<std::chrono::microseconds>(took).count());
}

void LogFailure(const ServiceContext& service, absl::string_view method,
                const absl::Status& status) {
  if (status.ok()) return;
  if (DetailOf(status).reason == Reason::kShuttingDown) return;
  const bool ours = status.code() == absl::StatusCode::kInternal ||
                    status.code() == absl::StatusCode::kDataLoss ||
                    status.code() == absl::StatusCode::kUnavailable ||
                    DetailOf(status).reason == Reason::kUnspecified;
  service.logger.Write(
      ours ? Severity::kError : Severity::kInfo, "call_failed",
      {{"method", std::string(method)},
       {"code", absl::StatusCodeToString(status.code())},
       {"reason", std::string(ReasonName(DetailOf(status).reason))},
       {"message", std::string(status.message())}});
}

grpc::ServerUnaryReactor* RunUnary(const ServiceContext& service,
                                   grpc::CallbackServerContext* context,
                                   absl::string_view method,
                                   std::function<absl::Status()> handler) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  service.executor.Run([&service, reactor, method, handler = std::move(handler),
                        meter = CallMeter(service.metrics, method)] {
    absl::Status status = CheckServing(service);
    if (status.ok()) status = handler();
    LogFailure(service, method, status);
    meter.Done(status.code());
    reactor->Finish(ToGrpcStatus(status));
  });
  return reactor;
}

absl::Status CheckServing(const ServiceContext& service) {
  if (!service.draining) return absl::OkStatus();
  return MakeError(absl::StatusCode::kUnavailable, Reason::kShuttingDown,
                   "the server is about to stop; try again");
}

absl::StatusOr<SessionKey> KeyOf(const ServiceContext& service,
                                 const std::string& session_id) {
  CLERESTORY_RETURN_IF_ERROR(CheckSessionId(session_id));
  return SessionKey{.tenant = service.tenant, .session = session_id};
}

absl::StatusOr<TimeMicros> CallTime(const ServiceContext& service,
                                    bool is_given,
                                    const google::protobuf::Timestamp& given) {
  if (!is_given) return service.clock.Now();
  if (!service.development) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     Reason::kCallTimeRefused,
                     "call_time: accepted in development mode only; leave it "
                     "out",
                     {{"field", "call_time"}});
  }
  return ToTime(given);
}

}  // namespace clerestory
