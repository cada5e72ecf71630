// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/status.h"

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "clerestory/v1/errors.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/base/reason.h"
#include "server/base/status.h"

namespace clerestory {
namespace {

// When to try again what failed for want of the store or of a server.
constexpr int kRetryMillis = 250;

}  // namespace

absl::string_view ReasonName(Reason reason) {
  const std::string& name =
      v1::ErrorReason_Name(static_cast<v1::ErrorReason>(reason));
  return absl::StripPrefix(absl::string_view(name), "ERROR_REASON_");
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  ErrorDetail detail = DetailOf(status);
  absl::StatusCode code = status.code();
  std::string message(status.message());
  if (detail.reason == Reason::kUnspecified) {
    code = absl::StatusCode::kInternal;
    detail.reason = Reason::kInternal;
    message = "a fault of the service; its log has more";
  }

  google::rpc::Status out;
  out.set_code(static_cast<int>(code));
  out.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(detail.reason)));
  info.set_domain(kErrorDomain);
  std::vector<Violation> violations = ViolationsOf(status);
  for (const auto& [key, value] : detail.metadata) {
    // What several violations say is in the BadRequest alone.
    if (!violations.empty() && key != "field") continue;
    info.mutable_metadata()->insert({key, value});
  }
  out.add_details()->PackFrom(info);
  if (code == absl::StatusCode::kInvalidArgument) {
    if (violations.empty()) {
      violations.push_back(
          {.field = MetadataOf(status, "field"), .description = message});
    }
    google::rpc::BadRequest bad;
    for (Violation& violation : violations) {
      google::rpc::BadRequest::FieldViolation& to = *bad.add_field_violations();
      to.set_field(std::move(violation.field));
      to.set_description(std::move(violation.description));
    }
    out.add_details()->PackFrom(bad);
  }
  if (code == absl::StatusCode::kUnavailable ||
      code == absl::StatusCode::kResourceExhausted) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(kRetryMillis * 1'000'000);
    out.add_details()->PackFrom(retry);
  }
  return {static_cast<grpc::StatusCode>(code), message,
          out.SerializeAsString()};
}

}  // namespace clerestory
