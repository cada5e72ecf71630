// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_CALIBRATION_REGISTRY_H_
#define CLERESTORY_SERVER_ENGINE_CALIBRATION_REGISTRY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"
#include "server/cost/calibration.h"
#include "server/store/session_store.h"

namespace clerestory {

// What became of the samples that a CalibrationRegistry was given.
struct CalibrationCounts {
  // Samples that were learned from.
  std::int64_t learned_count = 0;
  // Those that TokenCalibration::Add passed over: they cannot be.
  std::int64_t passed_over_count = 0;
  // Those of models that there is no room for.
  std::int64_t no_room_count = 0;
  // Writes to the store that failed.
  std::int64_t failed_write_count = 0;

  friend bool operator==(const CalibrationCounts&,
                         const CalibrationCounts&) = default;
};

// How many tokens the provider counts for one that is estimated, by tenant and
// model, learned from all their sessions and stored.
//
// Names of models come from clients and may be anything. So there is room for
// kModelsPerTenantMax models of a tenant and kModelsMax in all, with names of
// up to kModelBytesMax; the first that something can be learned of are those,
// and the others stay at a scale of one. No tenant's samples, however wrong,
// change the scale of another.
//
// Safe from any thread.
class CalibrationRegistry {
 public:
  static constexpr std::int64_t kModelsPerTenantMax = 64;
  static constexpr std::int64_t kModelsMax = 16'384;

  // `store` must outlive the registry. Nothing is read from it yet.
  explicit CalibrationRegistry(SessionStore& store) : store_(store) {}
  CalibrationRegistry(const CalibrationRegistry&) = delete;
  CalibrationRegistry& operator=(const CalibrationRegistry&) = delete;

  // Takes over what is stored, except of models of which something was learned
  // before. Returns how many entries were passed by: what SessionStore skipped,
  // and those that there is no room for. Errors are those of
  // SessionStore::ListCalibrations; the registry then learns anew, over what is
  // stored. Blocks on the store.
  absl::StatusOr<std::int64_t> Load() CLERESTORY_EXCLUDES(mutex_);

  // The scale in millionths, from kScaleMin to kScaleMax; 0 if nothing was
  // learned, or nothing else than kScaleOne. Does not wait for the store.
  std::int64_t ScaleOf(absl::string_view tenant, absl::string_view model) const
      CLERESTORY_EXCLUDES(mutex_);

  // Learns from `sample` and stores what is known now, unless the sample is
  // passed over or there is no room. When it returns, the write was done, or
  // failed, which counts() tells: then what was learned is in force, and is
  // stored with the next sample of the model.
  //
  // Blocks on the store; those who learn of one model at a time share a write.
  void Learn(absl::string_view tenant, absl::string_view model,
             const CalibrationSample& sample) CLERESTORY_EXCLUDES(mutex_);

  // Since the registry was made.
  CalibrationCounts counts() const CLERESTORY_EXCLUDES(mutex_);

 private:
  struct Entry {
    TokenCalibration calibration;
    // How many samples were added, and how many of them a write was done or
    // failed with.
    std::int64_t added_count = 0;
    std::int64_t written_count = 0;
    bool is_writing = false;
  };

  // Null if there is none.
  const Entry* Find(const std::string& tenant, const std::string& model) const
      CLERESTORY_REQUIRES(mutex_);

  // Adds an entry that there is none of. Null if there is no room.
  Entry* TryAdd(const std::string& tenant, const std::string& model,
                const TokenCalibration& calibration)
      CLERESTORY_REQUIRES(mutex_);

  // Returns the entry that learned from `sample`; null if none did.
  Entry* AddSample(const std::string& tenant, const std::string& model,
                   const CalibrationSample& sample) CLERESTORY_REQUIRES(mutex_);

  SessionStore& store_;

  mutable Mutex mutex_;
  // Signalled when a write is done or failed.
  CondVar written_;
  // By tenant and model. An entry is never removed, and stays where it is.
  std::map<std::string, std::map<std::string, Entry>> tenants_
      CLERESTORY_GUARDED_BY(mutex_);
  std::int64_t entry_count_ CLERESTORY_GUARDED_BY(mutex_) = 0;
  CalibrationCounts counts_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_CALIBRATION_REGISTRY_H_
