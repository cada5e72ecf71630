// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/calibration_registry.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/mutex.h"
#include "server/base/status.h"
#include "server/cost/calibration.h"
#include "server/store/session_store.h"

namespace clerestory {

absl::StatusOr<std::int64_t> CalibrationRegistry::Load() {
  CLERESTORY_ASSIGN_OR_RETURN(const StoredCalibrations stored,
                              store_.ListCalibrations());
  std::int64_t skipped_count = stored.skipped_count;
  const MutexLock lock(mutex_);
  for (const StoredCalibration& entry : stored.entries) {
    if (Find(entry.tenant, entry.model) != nullptr) continue;
    const TokenCalibration calibration(CalibrationState{
        .weights = entry.weights, .sample_count = entry.sample_count});
    if (TryAdd(entry.tenant, entry.model, calibration) == nullptr) {
      ++skipped_count;
    }
  }
  return skipped_count;
}

std::int64_t CalibrationRegistry::ScaleOf(absl::string_view tenant,
                                          absl::string_view model) const {
  const std::string tenant_name(tenant);
  const std::string model_name(model);
  const MutexLock lock(mutex_);
  const Entry* const entry = Find(tenant_name, model_name);
  if (entry == nullptr) return 0;
  const std::int64_t scale = entry->calibration.scale_ppm();
  return scale == kScaleOne ? 0 : scale;
}

void CalibrationRegistry::Learn(absl::string_view tenant,
                                absl::string_view model,
                                const CalibrationSample& sample) {
  StoredCalibration learned = {.tenant = std::string(tenant),
                               .model = std::string(model)};
  Entry* entry = nullptr;
  std::int64_t count = 0;
  {
    const MutexLock lock(mutex_);
    entry = AddSample(learned.tenant, learned.model, sample);
    if (entry == nullptr) return;
    count = ++entry->added_count;
    // Who writes now may have begun before this sample. Of those who wait for
    // that, one writes for all.
    while (entry->is_writing && entry->written_count < count) {
      written_.Wait(mutex_);
    }
    if (entry->written_count >= count) return;
    entry->is_writing = true;
    count = entry->added_count;
    CalibrationState state = entry->calibration.state();
    learned.weights = std::move(state.weights);
    learned.sample_count = state.sample_count;
  }
  const absl::Status written = store_.PutCalibration(learned);
  const MutexLock lock(mutex_);
  if (!written.ok()) ++counts_.failed_write_count;
  entry->is_writing = false;
  entry->written_count = count;
  written_.SignalAll();
}

CalibrationCounts CalibrationRegistry::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

const CalibrationRegistry::Entry* CalibrationRegistry::Find(
    const std::string& tenant, const std::string& model) const {
  const auto models = tenants_.find(tenant);
  if (models == tenants_.end()) return nullptr;
  const auto entry = models->second.find(model);
  return entry == models->second.end() ? nullptr : &entry->second;
}

CalibrationRegistry::Entry* CalibrationRegistry::TryAdd(
    const std::string& tenant, const std::string& model,
    const TokenCalibration& calibration) {
  if (static_cast<std::int64_t>(model.size()) > kModelBytesMax ||
      entry_count_ >= kModelsMax) {
    return nullptr;
  }
  const auto models = tenants_.find(tenant);
  if (models != tenants_.end() &&
      static_cast<std::int64_t>(models->second.size()) >= kModelsPerTenantMax) {
    return nullptr;
  }
  Entry& entry = tenants_[tenant][model];
  entry.calibration = calibration;
  ++entry_count_;
  return &entry;
}

CalibrationRegistry::Entry* CalibrationRegistry::AddSample(
    const std::string& tenant, const std::string& model,
    const CalibrationSample& sample) {
  // What cannot be takes no room.
  TokenCalibration first;
  if (!first.Add(sample)) {
    ++counts_.passed_over_count;
    return nullptr;
  }
  Entry* entry = nullptr;
  if (Find(tenant, model) != nullptr) {
    entry = &tenants_[tenant][model];
    entry->calibration.Add(sample);
  } else {
    entry = TryAdd(tenant, model, first);
  }
  if (entry == nullptr) {
    ++counts_.no_room_count;
  } else {
    ++counts_.learned_count;
  }
  return entry;
}

}  // namespace clerestory
