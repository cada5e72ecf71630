// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_CALL_H_
#define CLERESTORY_SERVER_RPC_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/executor.h"
#include "server/base/log.h"
#include "server/base/time.h"
#include "server/engine/session_engine.h"
#include "server/metrics/server_metrics.h"
#include "server/model/record.h"

namespace clerestory {

// What every service works with. All that is referred to must outlive the
// services.
struct ServiceContext {
  SessionEngine& engine;
  Executor& executor;
  const Clock& clock;
  Logger& logger;
  ServerMetrics& metrics;
  // The tenant of every caller, until callers have identities.
  std::string tenant;
  // Whether a call may bring its own time.
  bool development = false;
  // Set when the server is about to stop: new calls are told to go elsewhere.
  std::atomic<bool> draining = false;
};

// Counts a call, from when it is made until Done. Copies are of one call.
class CallMeter {
 public:
  // `method` must live as long as the program.
  CallMeter(ServerMetrics& metrics, absl::string_view method);

  // It ended so. REQUIRES: called once for a call.
  void Done(absl::StatusCode code) const;

 private:
  ServerMetrics& metrics_;
  absl::string_view method_;
  std::chrono::steady_clock::time_point start_;
};

// Runs `handler`, which does a unary call, on the executor, and finishes the
// call with what it returns. Every unary call goes through here. The request
// and the response live until then. A failed call is one line in the log.
grpc::ServerUnaryReactor* RunUnary(const ServiceContext& service,
                                   grpc::CallbackServerContext* context,
                                   absl::string_view method,
                                   std::function<absl::Status()> handler);

// Writes the line of a call that failed with `status`, which is none if it is
// OK. Says nothing of what was sent.
void LogFailure(const ServiceContext& service, absl::string_view method,
                const absl::Status& status);

// kShuttingDown while the server drains, else OK.
absl::Status CheckServing(const ServiceContext& service);

// The key of the caller's session `session_id`. kFieldInvalid.
absl::StatusOr<SessionKey> KeyOf(const ServiceContext& service,
                                 const std::string& session_id);

// The time of the call: `given` if it is there, else now. kCallTimeRefused
// outside development mode, kFieldInvalid.
absl::StatusOr<TimeMicros> CallTime(const ServiceContext& service,
                                    bool is_given,
                                    const google::protobuf::Timestamp& given);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_CALL_H_
