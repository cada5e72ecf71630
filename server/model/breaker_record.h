// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_BREAKER_RECORD_H_
#define CLERESTORY_SERVER_MODEL_BREAKER_RECORD_H_

#include <cstdint>

#include "server/base/time.h"
#include "server/model/money.h"

namespace clerestory {

// Whether the outputs of a tool are masked in a tenant's sessions.
enum class BreakerState {
  kObserving,  // Masked; not yet so often that it can be judged.
  kMasked,     // Masked; not re-fetched so often that it would not pay.
  kUnmasked,   // Not masked until its cool-off is over.
  kProbing,    // Masked in some sessions, to see whether it would pay.
};

// All that is stored of a tool. Counts and sums decay with time
// (ToolBreaker of server/breaker).
struct BreakerRecord {
  // kObserving and kMasked are one: which it is follows from the policy.
  BreakerState state = BreakerState::kMasked;
  // When it came into the state; 0 if it was always masked.
  TimeMicros since = 0;
  // How long it is unmasked, and then in how many of a thousand sessions it is
  // masked.
  std::int64_t cool_off = 0;  // In microseconds.
  std::int64_t probe_permille = 0;
  // How often in a row it was unmasked again soon (ToolBreaker says how soon).
  std::int64_t relapse_count = 0;
  // How often it was unmasked. Each time, other sessions are probed.
  std::int64_t epoch = 0;

  // In thousandths, decayed: what was masked, and re-fetched of that, since
  // when it was last probed.
  std::int64_t masked = 0;
  std::int64_t refetched = 0;
  // What was saved and lost, and the counts that belong to it.
  std::int64_t priced_masked = 0;
  std::int64_t priced_refetched = 0;
  PicoUsd saved = 0;
  PicoUsd lost = 0;
  // Up to when all of these are decayed.
  TimeMicros decay_time = 0;

  // The latest time there was.
  TimeMicros time = 0;

  // Parts of `masked`, decayed with it: what was masked so lately that it tells
  // little that it was not fetched again. `fresh` was masked since `ripe_time`.
  std::int64_t ripening = 0;
  std::int64_t fresh = 0;
  TimeMicros ripe_time = 0;

  friend bool operator==(const BreakerRecord&, const BreakerRecord&) = default;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_BREAKER_RECORD_H_
