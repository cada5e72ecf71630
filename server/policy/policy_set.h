// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_POLICY_POLICY_SET_H_
#define CLERESTORY_SERVER_POLICY_POLICY_SET_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/policy_file.h"
#include "server/yaml/problem.h"

namespace clerestory {

// The name of the policy that is taken where no other matches, if the file has
// none for that.
inline constexpr absl::string_view kDefaultPolicyName = "default";

// A policy of a tenant, and the sessions it is for.
struct TenantPolicy {
  std::string name;
  // Those that a session has to have, each with the same value.
  Labels labels;
  // A glob over the model's name; empty for all.
  std::string model;
  Policy policy;
  std::string digest;  // Of `policy` alone.

  friend bool operator==(const TenantPolicy&, const TenantPolicy&) = default;
};

// Whether the policy is for a session with these labels on this model.
bool IsFor(const TenantPolicy& policy, const Labels& labels,
           absl::string_view model);

// Whether the session is one of the `permille` thousandths that are never
// masked. Follows from its key alone; a session of a share is also one of
// every larger share. Pure.
bool IsControl(const SessionKey& key, std::int64_t permille);

// What is applied to a session. Lives as long as the set it is from.
struct AppliedPolicy {
  const Policy* policy = nullptr;
  absl::string_view name;
  absl::string_view digest;
  // Whether the session is never masked, whatever the policy says.
  bool is_control = false;
};

// The policies of one tenant: the first that is for a session is applied. An
// immutable value; may be read from any thread.
class PolicySet {
 public:
  // The set of a tenant that has no file: `policy` for all sessions.
  static PolicySet Of(absl::string_view tenant, const Policy& policy);

  // REQUIRES: the last policy is for all sessions, no other is, and names
  // differ.
  PolicySet(std::string tenant, std::vector<TenantPolicy> policies);

  // What is applied to the session `key` with these labels on this model.
  AppliedPolicy For(const SessionKey& key, const Labels& labels,
                    absl::string_view model) const;

  const std::string& tenant() const { return tenant_; }
  std::span<const TenantPolicy> policies() const { return policies_; }
  // 16 hexadecimal digits that differ, as good as surely, when anything of two
  // sets does.
  const std::string& digest() const { return digest_; }

  friend bool operator==(const PolicySet&, const PolicySet&) = default;

 private:
  std::string tenant_;
  std::vector<TenantPolicy> policies_;
  std::string digest_;
};

// Makes the policies of `file`. Where none of them is for all sessions,
// `fallback` is, called kDefaultPolicyName. Adds to `problems`, beside those of
// ParsePolicyFile, what is wrong between values that are right: contradictions,
// names that stand twice, policies that are never applied since an earlier one
// always is. Absent if there is any, or the file was not read as a whole. Pure.
std::optional<PolicySet> CompilePolicies(const PolicyFile& file,
                                         const Policy& fallback,
                                         std::vector<Problem>& problems);

// Both steps. Absent if, and only if, something is added to `problems`.
std::optional<PolicySet> LoadPolicies(absl::string_view file,
                                      absl::string_view text,
                                      const Policy& fallback,
                                      std::vector<Problem>& problems);

// The set as a file, with every field of each policy; LoadPolicies makes an
// equal set of it. Equal sets give equal text.
std::string ToYaml(const PolicySet& set);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_POLICY_POLICY_SET_H_
