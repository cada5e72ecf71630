// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_APP_REFRESH_METRICS_H_
#define CLERESTORY_SERVER_APP_REFRESH_METRICS_H_

#include "server/app/config.h"
#include "server/app/policy_files.h"
#include "server/engine/session_engine.h"
#include "server/metrics/server_metrics.h"

namespace clerestory {

// Takes over what is counted elsewhere, and which tenants and tools policies
// name. Done before metrics are read. Safe from any thread.
void RefreshMetrics(const Config& config, SessionEngine& engine,
                    const PolicyFiles& files, ServerMetrics& metrics);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_APP_REFRESH_METRICS_H_
