// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/policy_registry.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/policy_document.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

// What a stored document is called in errors.
constexpr absl::string_view kStoredName = "stored";

PolicyDocumentPtr FindIn(const std::map<std::string, PolicyDocumentPtr>& in,
                         const std::string& tenant) {
  const auto found = in.find(tenant);
  return found == in.end() ? nullptr : found->second;
}

}  // namespace

PolicyRegistry::PolicyRegistry(SessionStore& store, const Policy& built_in)
    : store_(store),
      fallback_(built_in),
      built_in_(PolicyDocument::BuiltIn(built_in)) {}

PolicyDocumentPtr PolicyRegistry::For(absl::string_view tenant) const {
  const std::string name(tenant);
  const MutexLock lock(mutex_);
  if (PolicyDocumentPtr stored = FindIn(stored_, name)) return stored;
  if (PolicyDocumentPtr file = FindIn(files_, name)) return file;
  return built_in_;
}

PolicyDocumentPtr PolicyRegistry::Find(absl::string_view tenant,
                                       PolicySource source) const {
  const std::string name(tenant);
  const MutexLock lock(mutex_);
  switch (source) {
    case PolicySource::kStored:
      return FindIn(stored_, name);
    case PolicySource::kFile:
      return FindIn(files_, name);
    case PolicySource::kBuiltIn:
      return built_in_;
  }
  return nullptr;
}

std::map<std::string, PolicyDocumentPtr> PolicyRegistry::Documents() const {
  const MutexLock lock(mutex_);
  ByTenant all = stored_;
  all.insert(files_.begin(), files_.end());
  return all;
}

void PolicyRegistry::SetFiles(std::map<std::string, PolicyDocumentPtr> files) {
  const MutexLock lock(mutex_);
  // What there was is freed behind the lock, with the argument.
  files_.swap(files);
}

absl::StatusOr<std::int64_t> PolicyRegistry::LoadStored(
    const std::function<void(absl::string_view, const absl::Status&)>&
        on_error) {
  const MutexLock writing(write_mutex_);
  CLERESTORY_ASSIGN_OR_RETURN(const PolicyTenants tenants,
                              store_.ListPolicyTenants());
  ByTenant loaded;
  for (const std::string& tenant : tenants.names) {
    absl::StatusOr<PolicyDocumentPtr> document = ReadStored(tenant);
    if (!document.ok()) {
      on_error(tenant, document.status());
      document = Find(tenant, PolicySource::kStored);
    }
    if (*document != nullptr) loaded[tenant] = *std::move(document);
  }
  const MutexLock lock(mutex_);
  // What is not found for damage may be there.
  if (tenants.skipped_count > 0) loaded.insert(stored_.begin(), stored_.end());
  stored_.swap(loaded);
  return tenants.skipped_count;
}

absl::StatusOr<PolicyDocumentPtr> PolicyRegistry::Set(
    absl::string_view tenant, absl::string_view yaml,
    const ExpectedEtag& expected, TimeMicros now) {
  const std::string name(tenant);
  CLERESTORY_ASSIGN_OR_RETURN(PolicyDocumentPtr document,
                              ReadYaml(name, yaml, now));
  const MutexLock writing(write_mutex_);
  const absl::Status written = store_.PutPolicy(
      {.tenant = name, .yaml = document->yaml(), .update_time = now}, expected);
  if (!written.ok()) {
    Recover(name, written);
    return written;
  }
  SetStored(name, document);
  return document;
}

absl::StatusOr<PolicyDocumentPtr> PolicyRegistry::Validate(
    absl::string_view tenant, absl::string_view yaml,
    const ExpectedEtag& expected, TimeMicros now) const {
  CLERESTORY_ASSIGN_OR_RETURN(PolicyDocumentPtr document,
                              ReadYaml(std::string(tenant), yaml, now));
  if (expected.has_value()) {
    const absl::StatusOr<StoredPolicy> there = store_.GetPolicy(tenant);
    if (!there.ok() && !absl::IsNotFound(there.status())) {
      return there.status();
    }
    const std::string present = there.ok() ? PolicyEtag(there->yaml) : "";
    if (present != *expected) return PolicyConflictError(present);
  }
  return document;
}

absl::Status PolicyRegistry::Delete(absl::string_view tenant,
                                    const ExpectedEtag& expected) {
  const std::string name(tenant);
  const MutexLock writing(write_mutex_);
  const absl::Status deleted = store_.DeletePolicy(name, expected);
  if (!deleted.ok()) {
    Recover(name, deleted);
    return deleted;
  }
  SetStored(name, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<PolicyDocumentPtr> PolicyRegistry::ReadYaml(
    const std::string& tenant, absl::string_view yaml,
    TimeMicros update_time) const {
  std::vector<Problem> problems;
  PolicyDocumentPtr document = Read({.source = PolicySource::kStored,
                                     .tenant = tenant,
                                     .file = std::string(kStoredName),
                                     .yaml = std::string(yaml),
                                     .update_time = update_time},
                                    problems);
  if (document == nullptr) return PolicyInvalidError(problems);
  return document;
}

absl::StatusOr<PolicyDocumentPtr> PolicyRegistry::ReadStored(
    const std::string& tenant) const {
  const absl::StatusOr<StoredPolicy> stored = store_.GetPolicy(tenant);
  if (absl::IsNotFound(stored.status())) return PolicyDocumentPtr();
  if (!stored.ok()) return stored.status();
  return ReadYaml(tenant, stored->yaml, stored->update_time);
}

void PolicyRegistry::SetStored(const std::string& tenant,
                               PolicyDocumentPtr document) {
  const MutexLock lock(mutex_);
  if (document == nullptr) {
    stored_.erase(tenant);
  } else {
    stored_[tenant] = std::move(document);
  }
}

void PolicyRegistry::Recover(const std::string& tenant,
                             const absl::Status& status) {
  const bool is_unsure =
      absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  if (!is_unsure) return;
  absl::StatusOr<PolicyDocumentPtr> there = ReadStored(tenant);
  if (there.ok()) SetStored(tenant, *std::move(there));
}

}  // namespace clerestory
