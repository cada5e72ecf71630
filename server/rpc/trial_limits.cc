// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/trial_limits.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/backtest/backtest.h"
#include "server/base/limits.h"
#include "server/base/mutex.h"
#include "server/base/reason.h"
#include "server/base/status.h"

namespace clerestory {

absl::StatusOr<std::shared_ptr<void>> TrialSlots::Take(
    absl::string_view tenant) {
  std::string name(tenant);
  const MutexLock lock(mutex_);
  if (!taken_.insert(name).second) {
    return MakeError(absl::StatusCode::kResourceExhausted, Reason::kTrialBusy,
                     "another session of the tenant is being played; try again "
                     "when that call is over");
  }
  return std::shared_ptr<void>(this, [name = std::move(name)](void* slots) {
    static_cast<TrialSlots*>(slots)->Leave(name);
  });
}

void TrialSlots::Leave(const std::string& tenant) {
  const MutexLock lock(mutex_);
  taken_.erase(tenant);
}

GoOn LimitTrial(absl::string_view field,
                std::function<absl::Status()> check_call) {
  return [field = std::string(field), check_call = std::move(check_call),
          sum = std::int64_t{0}](std::int64_t observations) mutable {
    sum += observations;
    if (sum > kTrialObservationsMax) {
      return FieldError(
          field,
          absl::StrCat("too long to be played: its calls look at more than ",
                       kTrialObservationsMax,
                       " observations in all; give fewer messages, or use "
                       "`clerestory backtest`"));
    }
    return check_call();
  };
}

absl::Status CheckTrialBytes(absl::string_view field, std::int64_t bytes) {
  if (bytes <= kTrialBytesMax) return absl::OkStatus();
  return FieldError(field, absl::StrCat("too long to be played: it has ", bytes,
                                        " bytes, and at most ", kTrialBytesMax,
                                        " are; use `clerestory backtest`"));
}

}  // namespace clerestory
