// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/policy_file.h"
#include "server/policy/tool_glob.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

constexpr std::uint64_t kPermille = 1'000;

std::string DigestOf(absl::string_view tenant,
                     const std::vector<TenantPolicy>& policies) {
  // Each with its size, so that nothing passes for what follows it.
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view value) {
    absl::StrAppend(&text, name, "=", value.size(), ":", value, "\n");
  };
  add("tenant", tenant);
  for (const TenantPolicy& policy : policies) {
    add("policy", policy.name);
    for (const auto& [name, value] : policy.labels) {
      add("label", name);
      add("is", value);
    }
    add("model", policy.model);
    add("digest", policy.digest);
  }
  return Digest::Of(text).ToHex().substr(0, 16);
}

}  // namespace

bool IsFor(const TenantPolicy& policy, const Labels& labels,
           absl::string_view model) {
  for (const auto& [name, value] : policy.labels) {
    const auto at = labels.find(name);
    if (at == labels.end() || at->second != value) return false;
  }
  return policy.model.empty() || MatchesGlob(policy.model, model);
}

bool IsControl(const SessionKey& key, std::int64_t permille) {
  if (permille <= 0) return false;
  const std::string hex = Digest::Of(absl::StrCat("control:", key.tenant.size(),
                                                  ":", key.tenant, key.session))
                              .ToHex();
  std::uint64_t number = 0;
  CLERESTORY_CHECK(absl::SimpleHexAtoi(hex.substr(0, 15), &number));
  return static_cast<std::int64_t>(number % kPermille) < permille;
}

PolicySet PolicySet::Of(absl::string_view tenant, const Policy& policy) {
  return PolicySet(std::string(tenant),
                   {{.name = std::string(kDefaultPolicyName),
                     .labels = {},
                     .model = "",
                     .policy = policy,
                     .digest = PolicyDigest(policy)}});
}

PolicySet::PolicySet(std::string tenant, std::vector<TenantPolicy> policies)
    : tenant_(std::move(tenant)),
      policies_(std::move(policies)),
      digest_(DigestOf(tenant_, policies_)) {
  CLERESTORY_CHECK(!policies_.empty());
  CLERESTORY_CHECK(policies_.back().labels.empty());
  CLERESTORY_CHECK(policies_.back().model.empty());
}

AppliedPolicy PolicySet::For(const SessionKey& key, const Labels& labels,
                             absl::string_view model) const {
  // The last is for all.
  const TenantPolicy& policy = *std::find_if(
      policies_.begin(), policies_.end() - 1,
      [&](const TenantPolicy& each) { return IsFor(each, labels, model); });
  return {.policy = &policy.policy,
          .name = policy.name,
          .digest = policy.digest,
          .is_control = IsControl(key, policy.policy.control_permille)};
}

std::optional<PolicySet> LoadPolicies(absl::string_view file,
                                      absl::string_view text,
                                      const Policy& fallback,
                                      std::vector<Problem>& problems) {
  const std::optional<PolicyFile> parsed =
      ParsePolicyFile(file, text, problems);
  if (!parsed.has_value()) return std::nullopt;
  return CompilePolicies(*parsed, fallback, problems);
}

}  // namespace clerestory
