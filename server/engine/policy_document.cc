// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/policy_document.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/policy/policy.h"
#include "server/policy/policy_file.h"
#include "server/policy/policy_set.h"
#include "server/store/session_store.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

// What an answer has room for: gRPC's clients take 8 KiB of metadata, the
// details of an error are in them in base64, and its message is in them twice.
constexpr std::size_t kViolationBytesMax = 3000;

// Whether the parsed `file` is `tenant`'s as far as it says; if it is
// another's, that is a problem. A name of the file itself has been compared
// already.
void CheckTenant(const PolicyFile& file, absl::string_view tenant,
                 std::vector<Problem>& problems) {
  if (file.tenant.empty() || file.tenant == tenant) return;
  problems.push_back({.file = file.file,
                      .path = "tenant",
                      .what = absl::StrCat("is ", QuoteForError(file.tenant),
                                           ", but this is the document of ",
                                           QuoteForError(tenant),
                                           "; write that, or leave it out")});
}

}  // namespace

std::shared_ptr<const PolicyDocument> PolicyDocument::Read(
    const Text& text, const Policy& fallback, std::vector<Problem>& problems) {
  if (static_cast<std::int64_t>(text.yaml.size()) > kPolicyBytesMax) {
    problems.push_back(
        {.file = text.file,
         .path = "",
         .what = absl::StrCat("the document has more than ", kPolicyBytesMax,
                              " bytes; write fewer")});
    return nullptr;
  }
  std::vector<Problem> found;
  std::optional<PolicyFile> file = ParsePolicyFile(text.file, text.yaml, found);
  std::optional<PolicySet> policies;
  if (file.has_value()) {
    CheckTenant(*file, text.tenant, found);
    file->tenant.clear();
    policies = CompilePolicies(*file, fallback, found);
  }
  std::sort(found.begin(), found.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column, a.path, a.what) <
           std::tie(b.line, b.column, b.path, b.what);
  });
  problems.insert(problems.end(), found.begin(), found.end());
  if (!found.empty() || !policies.has_value()) return nullptr;
  return std::shared_ptr<const PolicyDocument>(new PolicyDocument(
      text.source, text.yaml, text.update_time, *std::move(policies)));
}

std::shared_ptr<const PolicyDocument> PolicyDocument::BuiltIn(
    const Policy& policy) {
  return std::shared_ptr<const PolicyDocument>(
      new PolicyDocument(PolicySource::kBuiltIn, DocumentOf(policy), 0,
                         PolicySet::Of("", policy)));
}

PolicyDocument::PolicyDocument(PolicySource source, absl::string_view yaml,
                               TimeMicros update_time, PolicySet policies)
    : source_(source),
      yaml_(yaml),
      etag_(PolicyEtag(yaml)),
      update_time_(update_time),
      policies_(std::move(policies)) {}

std::string DocumentOf(const Policy& policy) {
  return ToYaml(PolicySet::Of("", policy));
}

absl::Status PolicyInvalidError(std::span<const Problem> problems) {
  CLERESTORY_CHECK(!problems.empty());
  std::vector<Violation> violations;
  std::size_t bytes = 0;
  for (const Problem& problem : problems) {
    Violation violation = {
        .field = problem.path.empty() ? "yaml" : problem.path,
        .description = absl::StrCat(problem.line, ":", problem.column, ": ",
                                    problem.what)};
    bytes += violation.field.size() + violation.description.size();
    if (bytes > kViolationBytesMax && !violations.empty()) {
      violations.push_back({.field = "yaml",
                            .description = absl::StrCat(
                                "and ", problems.size() - violations.size(),
                                " more; correct these first")});
      break;
    }
    violations.push_back(std::move(violation));
  }
  const std::string first = absl::StrCat(
      violations.front().description.substr(0, kViolationBytesMax / 6));
  return ViolationsError(
      Reason::kPolicyInvalid,
      absl::StrCat(
          "the document of policies has ", problems.size(),
          problems.size() == 1 ? " problem: " : " problems; the first: ",
          first),
      violations);
}

}  // namespace clerestory
