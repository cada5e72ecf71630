// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cc/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace clerestory {
namespace {

constexpr std::chrono::milliseconds kRetryPause(100);

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A server that was restarted is found again at once.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace

Client::Client(const std::string& target)
    : channel_(MakeChannel(target)),
      sessions_(v1::SessionService::NewStub(channel_)),
      history_(v1::HistoryService::NewStub(channel_)),
      views_(v1::ViewService::NewStub(channel_)),
      reports_(v1::ReportService::NewStub(channel_)) {}

grpc::Status CallWithRetry(
    int retry_seconds,
    const std::function<grpc::Status(grpc::ClientContext&)>& call) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(retry_seconds);
  while (true) {
    grpc::ClientContext context;
    const grpc::Status status = call(context);
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
        std::chrono::steady_clock::now() >= end) {
      return status;
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return "";
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

std::string DescribeError(const grpc::Status& status) {
  const std::string reason = ReasonOf(status);
  return absl::StrCat(absl::StatusCodeToString(
                          static_cast<absl::StatusCode>(status.error_code())),
                      reason.empty() ? "" : absl::StrCat(" (", reason, ")"),
                      ": ", status.error_message());
}

}  // namespace clerestory
