// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/write_gate.h"

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/model/record.h"

namespace clerestory {

WriteGate::WriteGate(std::function<bool()> stopped,
                     std::function<absl::Status()> recover)
    : stopped_(std::move(stopped)), recover_(std::move(recover)) {}

absl::Status WriteGate::Enter(const SessionKey& key) {
  while (true) {
    {
      MutexLock lock(mutex_);
      const std::int64_t recoveries = recoveries_;
      bool stopped = stopped_();
      while (recovering_ ||
             (stopped ? !inside_.empty() : inside_.contains(key))) {
        changed_.Wait(mutex_);
        stopped = stopped_();
      }
      if (!stopped) {
        inside_.insert(key);
        return absl::OkStatus();
      }
      if (recoveries_ != recoveries && !recovered_.ok()) return recovered_;
      recovering_ = true;
    }
    absl::Status recovered = recover_();
    MutexLock lock(mutex_);
    recovering_ = false;
    ++recoveries_;
    recovered_ = recovered;
    changed_.SignalAll();
    if (!recovered.ok()) return recovered;
  }
}

void WriteGate::Leave(const SessionKey& key) {
  MutexLock lock(mutex_);
  inside_.erase(key);
  changed_.SignalAll();
}

}  // namespace clerestory
