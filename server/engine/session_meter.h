// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_SESSION_METER_H_
#define CLERESTORY_SERVER_ENGINE_SESSION_METER_H_

#include <vector>

#include "server/metrics/server_metrics.h"
#include "server/metrics/tenant_sums.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {

// Counts what one write to a session changed, as its ledger has it: so that
// metrics are the sums of ledgers.
class SessionMeter {
 public:
  // `session` as it is before the write. Nothing is counted if `metrics` is
  // null; else it must outlive the meter.
  SessionMeter(ServerMetrics* metrics, const Session& session);

  // Counts. REQUIRES: `records` were applied to `session` and are stored.
  void Stored(const Session& session, const std::vector<Record>& records) const;

 private:
  ServerMetrics* const metrics_;
  const TenantSums before_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_SESSION_METER_H_
