// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/memory/memory_store.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/mutex.h"
#include "server/model/record.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"

namespace clerestory {

absl::Status MemoryStore::Create(const SessionHeader& header) {
  MutexLock lock(mutex_);
  const auto [session, added] = sessions_.try_emplace(header.key);
  if (!added) return SessionExistsError(header.key);
  session->second.header = header;
  return absl::OkStatus();
}

absl::StatusOr<StoredSession> MemoryStore::Read(const SessionKey& key) const {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return SessionNotFoundError(key);
  return found->second;
}

absl::Status MemoryStore::Write(const SessionKey& key,
                                std::int64_t expected_version,
                                const std::vector<Record>& records,
                                Durability /*durability*/) {
  CLERESTORY_CHECK(!records.empty());
  MutexLock lock(mutex_);
  const auto found = sessions_.find(key);
  if (found == sessions_.end()) return SessionNotFoundError(key);
  StoredSession& session = found->second;
  if (static_cast<std::int64_t>(session.records.size()) != expected_version) {
    return AppendConflictError(key);
  }
  session.records.insert(session.records.end(), records.begin(), records.end());
  if (const auto* closed = std::get_if<SessionClosed>(&records.back())) {
    session.header.outcome = closed->outcome;
    session.header.close_time = closed->time;
    session.header.totals = closed->totals;
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::Delete(const SessionKey& key) {
  MutexLock lock(mutex_);
  return sessions_.erase(key) == 1 ? absl::OkStatus()
                                   : SessionNotFoundError(key);
}

absl::StatusOr<std::vector<SessionHeader>> MemoryStore::List(
    absl::string_view tenant, absl::string_view after,
    std::int64_t limit) const {
  CLERESTORY_CHECK(limit > 0);
  const SessionKey from = {.tenant = std::string(tenant),
                           .session = std::string(after)};
  std::vector<SessionHeader> headers;
  MutexLock lock(mutex_);
  for (auto it = sessions_.upper_bound(from);
       it != sessions_.end() && it->first.tenant == from.tenant &&
       static_cast<std::int64_t>(headers.size()) < limit;
       ++it) {
    headers.push_back(it->second.header);
  }
  return headers;
}

absl::Status MemoryStore::PutPolicy(const StoredPolicy& policy,
                                    const ExpectedEtag& expected) {
  MutexLock lock(mutex_);
  const auto found = policies_.find(policy.tenant);
  const std::string present =
      found == policies_.end() ? "" : PolicyEtag(found->second.yaml);
  if (expected.has_value() && *expected != present) {
    return PolicyConflictError(present);
  }
  policies_[policy.tenant] = policy;
  return absl::OkStatus();
}

absl::StatusOr<StoredPolicy> MemoryStore::GetPolicy(
    absl::string_view tenant) const {
  MutexLock lock(mutex_);
  const auto found = policies_.find(std::string(tenant));
  if (found == policies_.end()) return PolicyNotFoundError();
  return found->second;
}

absl::Status MemoryStore::DeletePolicy(absl::string_view tenant,
                                       const ExpectedEtag& expected) {
  MutexLock lock(mutex_);
  const auto found = policies_.find(std::string(tenant));
  if (found == policies_.end()) return PolicyNotFoundError();
  const std::string present = PolicyEtag(found->second.yaml);
  if (expected.has_value() && *expected != present) {
    return PolicyConflictError(present);
  }
  policies_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<PolicyTenants> MemoryStore::ListPolicyTenants() const {
  PolicyTenants tenants;
  MutexLock lock(mutex_);
  for (const auto& [name, policy] : policies_) tenants.names.push_back(name);
  return tenants;
}

absl::Status MemoryStore::PutCalibration(const StoredCalibration& calibration) {
  MutexLock lock(mutex_);
  calibrations_[{calibration.tenant, calibration.model}] = calibration;
  return absl::OkStatus();
}

absl::StatusOr<StoredCalibrations> MemoryStore::ListCalibrations() const {
  StoredCalibrations all;
  MutexLock lock(mutex_);
  for (const auto& [key, calibration] : calibrations_) {
    all.entries.push_back(calibration);
  }
  return all;
}

absl::Status MemoryStore::PutTool(const StoredTool& tool) {
  MutexLock lock(mutex_);
  tools_[{tool.tenant, tool.tool}] = tool;
  return absl::OkStatus();
}

absl::StatusOr<StoredTools> MemoryStore::ListTools() const {
  StoredTools all;
  MutexLock lock(mutex_);
  for (const auto& [key, tool] : tools_) all.entries.push_back(tool);
  return all;
}

absl::Status MemoryStore::DeleteTool(absl::string_view tenant,
                                     absl::string_view tool) {
  MutexLock lock(mutex_);
  tools_.erase({std::string(tenant), std::string(tool)});
  return absl::OkStatus();
}

}  // namespace clerestory
