// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/policy_document.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

// What an answer has room for: gRPC's clients take 8 KiB of metadata, the
// details of an error are in them in base64, and its message is in them twice.
constexpr std::size_t kViolationBytesMax = 3000;

constexpr std::size_t kDigestDigits = 16;

std::string DigestOf(const std::vector<NamedPolicy>& policies) {
  std::string text;
  for (const NamedPolicy& each : policies) {
    absl::StrAppend(&text, each.name.size(), ";", each.name, each.match.size(),
                    ";", each.match, each.digest, ";");
  }
  return Digest::Of(text).ToHex().substr(0, kDigestDigits);
}

NamedPolicy Name(absl::string_view name, const Policy& policy) {
  return {.name = std::string(name),
          .match = "",
          .digest = PolicyDigest(policy),
          .yaml = absl::StrCat("mode: ", ModeName(policy.mode), "\n"),
          .policy = policy};
}

// One `name: value` a line.
std::optional<std::vector<NamedPolicy>> ReadPolicies(
    absl::string_view file, absl::string_view yaml,
    std::vector<Problem>& problems) {
  Policy policy;
  int line = 0;
  for (const absl::string_view text : absl::StrSplit(yaml, '\n')) {
    ++line;
    if (text.empty()) continue;
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(text, absl::MaxSplits(": ", 1));
    const absl::Status set = SetPolicyField(pair.first, pair.second, policy);
    if (set.ok()) continue;
    problems.push_back({.file = std::string(file),
                        .line = line,
                        .column = 1,
                        .path = std::string(pair.first),
                        .what = std::string(set.message())});
  }
  return std::vector<NamedPolicy>{Name("default", policy)};
}

}  // namespace

std::shared_ptr<const PolicyDocument> PolicyDocument::Read(
    PolicySource source, absl::string_view file, absl::string_view yaml,
    TimeMicros update_time, std::vector<Problem>& problems) {
  if (static_cast<std::int64_t>(yaml.size()) > kPolicyBytesMax) {
    problems.push_back(
        {.file = std::string(file),
         .path = "",
         .what = absl::StrCat("the document has ", yaml.size(),
                              " bytes; write at most ", kPolicyBytesMax)});
    return nullptr;
  }
  std::vector<Problem> found;
  std::optional<std::vector<NamedPolicy>> policies =
      ReadPolicies(file, yaml, found);
  problems.insert(problems.end(), found.begin(), found.end());
  if (!found.empty() || !policies.has_value()) return nullptr;
  return std::shared_ptr<const PolicyDocument>(
      new PolicyDocument(source, yaml, update_time, *std::move(policies)));
}

std::shared_ptr<const PolicyDocument> PolicyDocument::BuiltIn(
    const Policy& policy) {
  NamedPolicy named = Name("default", policy);
  const std::string yaml = named.yaml;
  return std::shared_ptr<const PolicyDocument>(
      new PolicyDocument(PolicySource::kBuiltIn, yaml, 0, {std::move(named)}));
}

PolicyDocument::PolicyDocument(PolicySource source, absl::string_view yaml,
                               TimeMicros update_time,
                               std::vector<NamedPolicy> policies)
    : source_(source),
      yaml_(yaml),
      etag_(PolicyEtag(yaml)),
      update_time_(update_time),
      policies_(std::move(policies)),
      digest_(DigestOf(policies_)) {}

const NamedPolicy& PolicyDocument::For(const SessionHeader& /*session*/,
                                       absl::string_view /*model*/) const {
  return policies_.front();
}

std::vector<PresetPolicy> PresetPolicies() { return {}; }

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
