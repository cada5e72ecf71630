// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_ROCKS_WRITE_GATE_H_
#define CLERESTORY_SERVER_STORE_ROCKS_WRITE_GATE_H_

#include <cstdint>
#include <functional>
#include <set>

#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/model/record.h"

namespace clerestory {

// Lets writers in: one at a time to a session, any number to different ones,
// and none while the database recovers. So no lock is held while the disk is
// waited for, and writers of different sessions share its syncs. Safe from any
// thread.
class WriteGate {
 public:
  // `stopped` tells whether the database takes no more writes, and `recover`
  // makes it take them again or says why it does not. `recover` is never called
  // twice at once, nor beside a writer; `stopped` is quick.
  WriteGate(std::function<bool()> stopped,
            std::function<absl::Status()> recover);
  WriteGate(const WriteGate&) = delete;
  WriteGate& operator=(const WriteGate&) = delete;

  // Waits until nobody else writes to `key`, and lets the caller in. If the
  // database has stopped, `recover` is called first; where that fails, its
  // status is returned to everyone who waited for it, and none of them is let
  // in.
  absl::Status Enter(const SessionKey& key);

  // Lets the caller out. REQUIRES: Enter returned OK.
  void Leave(const SessionKey& key);

 private:
  const std::function<bool()> stopped_;
  const std::function<absl::Status()> recover_;

  Mutex mutex_;
  CondVar changed_;
  std::set<SessionKey> inside_ CLERESTORY_GUARDED_BY(mutex_);
  bool recovering_ CLERESTORY_GUARDED_BY(mutex_) = false;
  // How often `recover` was called, and what it returned last.
  std::int64_t recoveries_ CLERESTORY_GUARDED_BY(mutex_) = 0;
  absl::Status recovered_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_ROCKS_WRITE_GATE_H_
