// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CC_CLIENT_H_
#define CLERESTORY_CLIENT_CC_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "clerestory/v1/history_service.grpc.pb.h"
#include "clerestory/v1/report_service.grpc.pb.h"
#include "clerestory/v1/session_service.grpc.pb.h"
#include "clerestory/v1/view_service.grpc.pb.h"

namespace clerestory {

// A connection to a Clerestory server: its services, over a channel that takes
// views of any size. Safe from any thread.
class Client {
 public:
  // Connects, when first used, to `target` ("127.0.0.1:7171", "unix:/path"),
  // without encryption.
  explicit Client(const std::string& target);

  v1::SessionService::Stub& sessions() const { return *sessions_; }
  v1::HistoryService::Stub& history() const { return *history_; }
  v1::ViewService::Stub& views() const { return *views_; }
  v1::ReportService::Stub& reports() const { return *reports_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SessionService::Stub> sessions_;
  std::unique_ptr<v1::HistoryService::Stub> history_;
  std::unique_ptr<v1::ViewService::Stub> views_;
  std::unique_ptr<v1::ReportService::Stub> reports_;
};

// Makes `call` until it does not fail with UNAVAILABLE, for up to
// `retry_seconds`, and returns its last status. Safe to use with calls that can
// be repeated: those that append only with `expected_sequence`.
grpc::Status CallWithRetry(
    int retry_seconds,
    const std::function<grpc::Status(grpc::ClientContext&)>& call);

// "ABORTED (APPEND_CONFLICT): ...": the code, the reason that the server gave,
// and its message.
std::string DescribeError(const grpc::Status& status);

// The reason that the server gave, as `APPEND_CONFLICT`; "" if it gave none.
std::string ReasonOf(const grpc::Status& status);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CC_CLIENT_H_
