// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_STATUS_H_
#define CLERESTORY_SERVER_RPC_STATUS_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/reason.h"

namespace clerestory {

// The `domain` of every ErrorInfo.
inline constexpr char kErrorDomain[] = "clerestory.dev";

// `FIELD_INVALID` and so on: the name of the value of
// clerestory.v1.ErrorReason, without its prefix.
absl::string_view ReasonName(Reason reason);

// What a caller is told of `status`: its code and message with one ErrorInfo;
// if it is INVALID_ARGUMENT a BadRequest with the field, and if it is worth
// trying again a RetryInfo. An error without a reason becomes INTERNAL, and its
// text is not passed on.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_STATUS_H_
