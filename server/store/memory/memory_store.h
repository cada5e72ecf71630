// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_MEMORY_MEMORY_STORE_H_
#define CLERESTORY_SERVER_STORE_MEMORY_MEMORY_STORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"
#include "server/model/record.h"
#include "server/store/session_store.h"

namespace clerestory {

// Keeps sessions in memory, for tests and trials: nothing survives the process,
// and nothing ever fails for lack of space or a disk. Safe from any thread.
class MemoryStore final : public SessionStore {
 public:
  absl::Status Create(const SessionHeader& header) override;
  absl::StatusOr<StoredSession> Read(const SessionKey& key) const override;
  absl::Status Write(const SessionKey& key, std::int64_t expected_version,
                     const std::vector<Record>& records,
                     Durability durability) override;
  absl::Status Delete(const SessionKey& key) override;
  absl::StatusOr<std::vector<SessionHeader>> List(
      absl::string_view tenant, absl::string_view after,
      std::int64_t limit) const override;
  absl::Status PutPolicy(const StoredPolicy& policy,
                         const ExpectedEtag& expected) override;
  absl::StatusOr<StoredPolicy> GetPolicy(
      absl::string_view tenant) const override;
  absl::Status DeletePolicy(absl::string_view tenant,
                            const ExpectedEtag& expected) override;
  absl::StatusOr<PolicyTenants> ListPolicyTenants() const override;
  absl::Status PutCalibration(const StoredCalibration& calibration) override;
  absl::StatusOr<StoredCalibrations> ListCalibrations() const override;
  absl::Status PutTool(const StoredTool& tool) override;
  absl::StatusOr<StoredTools> ListTools() const override;
  absl::Status DeleteTool(absl::string_view tenant,
                          absl::string_view tool) override;

 private:
  mutable Mutex mutex_;
  std::map<SessionKey, StoredSession> sessions_ CLERESTORY_GUARDED_BY(mutex_);
  // By tenant.
  std::map<std::string, StoredPolicy> policies_ CLERESTORY_GUARDED_BY(mutex_);
  // By tenant and model.
  std::map<std::pair<std::string, std::string>, StoredCalibration> calibrations_
      CLERESTORY_GUARDED_BY(mutex_);
  // By tenant and name.
  std::map<std::pair<std::string, std::string>, StoredTool> tools_
      CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_MEMORY_MEMORY_STORE_H_
