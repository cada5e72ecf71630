// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_FORWARDING_STORE_H_
#define CLERESTORY_TESTS_SUPPORT_FORWARDING_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/model/record.h"
#include "server/store/memory/memory_store.h"
#include "server/store/session_store.h"

namespace clerestory {

// A store in memory of which a test overrides what is of interest to it.
class ForwardingStore : public SessionStore {
 public:
  absl::Status Create(const SessionHeader& header) override {
    return store_.Create(header);
  }
  absl::StatusOr<StoredSession> Read(const SessionKey& key) const override {
    return store_.Read(key);
  }
  absl::Status Write(const SessionKey& key, std::int64_t expected_version,
                     const std::vector<Record>& records,
                     Durability durability) override {
    return store_.Write(key, expected_version, records, durability);
  }
  absl::Status Delete(const SessionKey& key) override {
    return store_.Delete(key);
  }
  absl::StatusOr<std::vector<SessionHeader>> List(
      absl::string_view tenant, absl::string_view after,
      std::int64_t limit) const override {
    return store_.List(tenant, after, limit);
  }
  absl::Status PutPolicy(const StoredPolicy& policy,
                         const ExpectedEtag& expected) override {
    return store_.PutPolicy(policy, expected);
  }
  absl::StatusOr<StoredPolicy> GetPolicy(
      absl::string_view tenant) const override {
    return store_.GetPolicy(tenant);
  }
  absl::Status DeletePolicy(absl::string_view tenant,
                            const ExpectedEtag& expected) override {
    return store_.DeletePolicy(tenant, expected);
  }
  absl::StatusOr<PolicyTenants> ListPolicyTenants() const override {
    return store_.ListPolicyTenants();
  }
  absl::Status PutCalibration(const StoredCalibration& calibration) override {
    return store_.PutCalibration(calibration);
  }
  absl::StatusOr<StoredCalibrations> ListCalibrations() const override {
    return store_.ListCalibrations();
  }
  absl::Status PutTool(const StoredTool& tool) override {
    return store_.PutTool(tool);
  }
  absl::StatusOr<StoredTools> ListTools() const override {
    return store_.ListTools();
  }
  absl::Status DeleteTool(absl::string_view tenant,
                          absl::string_view tool) override {
    return store_.DeleteTool(tenant, tool);
  }

 private:
  MemoryStore store_;
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_FORWARDING_STORE_H_
