// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/refresh_metrics.h"

#include <cstdint>
#include <string>
#include <vector>

#include "server/app/config.h"
#include "server/app/policy_files.h"
#include "server/engine/calibration_registry.h"
#include "server/engine/policy_document.h"
#include "server/engine/session_engine.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"

namespace clerestory {
namespace {

// Adds the tools that `policy` names in full, not by a pattern.
void AddNamedTools(const Policy& policy, std::vector<std::string>& tools) {
  const auto add = [&](const std::string& glob) {
    if (glob.find_first_of("*?") == std::string::npos) tools.push_back(glob);
  };
  for (const ToolRule& rule : policy.tools) add(rule.tool);
  for (const std::string& glob : policy.include) add(glob);
  for (const std::string& glob : policy.exclude) add(glob);
}

void RefreshPolicies(const Config& config, const SessionEngine& engine,
                     ServerMetrics& metrics) {
  std::vector<std::string> tools;
  AddNamedTools(config.policy, tools);
  metrics.NameTenant(config.tenant, tools);
  std::int64_t stored_count = 0;
  std::int64_t file_count = 0;
  for (const auto& [tenant, document] : engine.policies().Documents()) {
    ++(document->source() == PolicySource::kStored ? stored_count : file_count);
    tools.clear();
    for (const TenantPolicy& policy : document->policies().policies()) {
      AddNamedTools(policy.policy, tools);
    }
    metrics.NameTenant(tenant, tools);
  }
  metrics.Set(Metric::kPolicyDocuments, "stored", stored_count);
  metrics.Set(Metric::kPolicyDocuments, "file", file_count);
}

}  // namespace

void RefreshMetrics(const Config& config, SessionEngine& engine,
                    const PolicyFiles& files, ServerMetrics& metrics) {
  RefreshPolicies(config, engine, metrics);

  const PolicyFiles::Counters read = files.counters();
  metrics.Set(Metric::kFileReloads, "accepted", read.loaded);
  metrics.Set(Metric::kFileReloads, "refused", read.refused);
  metrics.Set(Metric::kFiles, "", read.files);
  metrics.Set(Metric::kFilesLastSuccess, "", read.last_success_time);
  metrics.Set(Metric::kPriceTableTimestamp, "", engine.prices()->as_of());

  const CalibrationCounts samples = engine.calibrations().counts();
  metrics.Set(Metric::kCalibrationSamples, "learned", samples.learned_count);
  metrics.Set(Metric::kCalibrationSamples, "passed_over",
              samples.passed_over_count);
  metrics.Set(Metric::kCalibrationSamples, "no_room", samples.no_room_count);
  metrics.Set(Metric::kCalibrationWriteFailures, "",
              samples.failed_write_count);

  metrics.Set(Metric::kCachedSessions, "",
              static_cast<std::int64_t>(engine.cache().size()));
  metrics.Set(Metric::kSessionCacheBytes, "", engine.cache().bytes());
  metrics.Set(Metric::kSessionCacheLimit, "", config.cache_bytes);
}

}  // namespace clerestory
