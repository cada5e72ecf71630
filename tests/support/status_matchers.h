// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define CLERESTORY_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "server/base/reason.h"
#include "server/base/status.h"

namespace clerestory {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// A status, or a StatusOr, that is OK.
MATCHER(IsOk, "is OK") {
  *result_listener << "whose status is " << StatusOf(arg);
  return arg.ok();
}

// A status, or a StatusOr, with this code and this reason.
MATCHER_P2(FailsWith, code, reason, "fails with the code and the reason") {
  *result_listener << "whose status is " << StatusOf(arg) << " and reason "
                   << static_cast<int>(DetailOf(StatusOf(arg)).reason);
  return StatusOf(arg).code() == code &&
         DetailOf(StatusOf(arg)).reason == reason;
}

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_STATUS_MATCHERS_H_
