// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_TRIAL_LIMITS_H_
#define CLERESTORY_SERVER_RPC_TRIAL_LIMITS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/backtest/backtest.h"
#include "server/base/mutex.h"

namespace clerestory {

// Which tenants have a trial under way: one each at most, so that none keeps
// all threads from the others. Safe from any thread.
class TrialSlots {
 public:
  TrialSlots() = default;
  TrialSlots(const TrialSlots&) = delete;
  TrialSlots& operator=(const TrialSlots&) = delete;

  // Returns what is held while a trial of `tenant` is under way; the slots must
  // outlive it. RESOURCE_EXHAUSTED with kTrialBusy if there is one.
  absl::StatusOr<std::shared_ptr<void>> Take(absl::string_view tenant)
      CLERESTORY_EXCLUDES(mutex_);

 private:
  void Leave(const std::string& tenant) CLERESTORY_EXCLUDES(mutex_);

  Mutex mutex_;
  std::set<std::string> taken_ CLERESTORY_GUARDED_BY(mutex_);
};

// Ends a back-test that looks at more than kTrialObservationsMax observations,
// summed over its calls: kFieldInvalid for `field`. And one whose call is over:
// what `check_call` returns if that is not OK. For one back-test.
GoOn LimitTrial(absl::string_view field,
                std::function<absl::Status()> check_call);

// kFieldInvalid for `field` if a session has more than kTrialBytesMax.
absl::Status CheckTrialBytes(absl::string_view field, std::int64_t bytes);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_TRIAL_LIMITS_H_
