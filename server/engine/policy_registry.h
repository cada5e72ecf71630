// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_POLICY_REGISTRY_H_
#define CLERESTORY_SERVER_ENGINE_POLICY_REGISTRY_H_

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
#include "server/base/time.h"
#include "server/engine/policy_document.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "server/yaml/problem.h"

namespace clerestory {

using PolicyDocumentPtr = std::shared_ptr<const PolicyDocument>;

// Which policies are in force, tenant by tenant. A tenant has one document, and
// where it has several the first of these is in force, whole:
//
//   1. the one that was stored by a client (kStored)
//   2. its file of the policy directory (kFile)
//   3. what the server was started with (kBuiltIn), which is every tenant's
//
// A document that is in force is immutable: who holds it may go on with it.
//
// Safe from any thread. What changes stored documents blocks on the store, one
// caller at a time; nothing else waits for that.
class PolicyRegistry {
 public:
  // `store` must outlive the registry. Nothing is read from it yet.
  PolicyRegistry(SessionStore& store, const Policy& built_in);
  PolicyRegistry(const PolicyRegistry&) = delete;
  PolicyRegistry& operator=(const PolicyRegistry&) = delete;

  // Reads a document, as PolicyDocument::Read, with the policy that the server
  // was started with for sessions that none of its own is for.
  PolicyDocumentPtr Read(const PolicyDocument::Text& text,
                         std::vector<Problem>& problems) const {
    return PolicyDocument::Read(text, fallback_, problems);
  }

  // The document in force. Never null.
  PolicyDocumentPtr For(absl::string_view tenant) const
      CLERESTORY_EXCLUDES(mutex_);

  // The document of that source; null if there is none.
  PolicyDocumentPtr Find(absl::string_view tenant, PolicySource source) const
      CLERESTORY_EXCLUDES(mutex_);

  // The documents in force, by tenant, but for the one that is built in.
  std::map<std::string, PolicyDocumentPtr> Documents() const
      CLERESTORY_EXCLUDES(mutex_);

  // Puts `files`, documents by tenant, in place of those that there were.
  void SetFiles(std::map<std::string, PolicyDocumentPtr> files)
      CLERESTORY_EXCLUDES(mutex_);

  // Reads the stored documents of all tenants. A document that cannot be taken
  // over, since it is damaged or a later version of this server wrote it, is
  // passed by, and `on_error` called with its tenant and why; one that was in
  // force stays. Returns how many are hidden by damage, so that not even their
  // tenants are known, as PolicyTenants counts them. Errors are those of
  // SessionStore::ListPolicyTenants.
  absl::StatusOr<std::int64_t> LoadStored(
      const std::function<void(absl::string_view tenant,
                               const absl::Status& why)>& on_error)
      CLERESTORY_EXCLUDES(mutex_, write_mutex_);

  // Stores `yaml` for `tenant` and puts it in force. kPolicyInvalid, and the
  // errors of SessionStore::PutPolicy.
  absl::StatusOr<PolicyDocumentPtr> Set(absl::string_view tenant,
                                        absl::string_view yaml,
                                        const ExpectedEtag& expected,
                                        TimeMicros now)
      CLERESTORY_EXCLUDES(mutex_, write_mutex_);

  // What Set would return, without storing anything.
  absl::StatusOr<PolicyDocumentPtr> Validate(absl::string_view tenant,
                                             absl::string_view yaml,
                                             const ExpectedEtag& expected,
                                             TimeMicros now) const;

  // Removes the stored document. Errors of SessionStore::DeletePolicy.
  absl::Status Delete(absl::string_view tenant, const ExpectedEtag& expected)
      CLERESTORY_EXCLUDES(mutex_, write_mutex_);

 private:
  using ByTenant = std::map<std::string, PolicyDocumentPtr>;

  // kPolicyInvalid.
  absl::StatusOr<PolicyDocumentPtr> ReadYaml(const std::string& tenant,
                                             absl::string_view yaml,
                                             TimeMicros update_time) const;

  // Reads the stored document of `tenant`: null if there is none.
  absl::StatusOr<PolicyDocumentPtr> ReadStored(const std::string& tenant) const;

  // Null removes.
  void SetStored(const std::string& tenant, PolicyDocumentPtr document)
      CLERESTORY_EXCLUDES(mutex_);

  // After a write that failed with `status` and may have happened all the same:
  // takes over what is stored.
  void Recover(const std::string& tenant, const absl::Status& status)
      CLERESTORY_REQUIRES(write_mutex_) CLERESTORY_EXCLUDES(mutex_);

  SessionStore& store_;
  const Policy fallback_;
  const PolicyDocumentPtr built_in_;

  // Held while a stored document is changed, so that the last one that was
  // stored is the one in force.
  Mutex write_mutex_;

  mutable Mutex mutex_;
  ByTenant files_ CLERESTORY_GUARDED_BY(mutex_);
  ByTenant stored_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_POLICY_REGISTRY_H_
