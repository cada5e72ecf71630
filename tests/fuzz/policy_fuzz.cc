// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// A file of policies out of any bytes. Whatever comes, something is wrong with
// it or there is a set; each problem has a place in the file; and a set that is
// written is read as the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/policy/tool_glob.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

constexpr absl::string_view kFile = "acme.yaml";

void CheckProblems(absl::string_view text,
                   const std::vector<Problem>& problems) {
  const auto line_count = 1 + std::count(text.begin(), text.end(), '\n') +
                          std::count(text.begin(), text.end(), '\r');
  for (const Problem& problem : problems) {
    CLERESTORY_CHECK(problem.file == kFile);
    CLERESTORY_CHECK(problem.line >= 1 && problem.line <= line_count);
    CLERESTORY_CHECK(problem.column >= 1);
    CLERESTORY_CHECK(!problem.what.empty());
  }
}

void CheckSet(const PolicySet& set) {
  for (const TenantPolicy& policy : set.policies()) {
    CLERESTORY_CHECK(CheckPolicy(policy.policy).ok());
    CLERESTORY_CHECK(PolicyDigest(policy.policy) == policy.digest);
    for (const ToolRule& rule : policy.policy.tools) {
      CLERESTORY_CHECK(MatchesTool(rule.tool, rule.tool));
    }
    // One that has its labels and its model's glob for a name gets it, or one
    // in front of it.
    const AppliedPolicy applied =
        set.For({set.tenant(), "s"}, policy.labels, policy.model);
    CLERESTORY_CHECK(applied.policy <= &policy.policy);
  }
}

}  // namespace
}  // namespace clerestory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace clerestory;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Problem> problems;
  const std::optional<PolicySet> set =
      LoadPolicies(kFile, text, Policy(), problems);
  CLERESTORY_CHECK(set.has_value() == problems.empty());
  CheckProblems(text, problems);
  if (!set.has_value()) return 0;
  CheckSet(*set);
  const std::string yaml = ToYaml(*set);
  const std::optional<PolicySet> again =
      LoadPolicies("other.yaml", yaml, Policy(), problems);
  CLERESTORY_CHECK(problems.empty());
  CLERESTORY_CHECK(again == set);
  CLERESTORY_CHECK(ToYaml(*again) == yaml);
  return 0;
}
