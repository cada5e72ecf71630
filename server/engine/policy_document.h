// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_POLICY_DOCUMENT_H_
#define CLERESTORY_SERVER_ENGINE_POLICY_DOCUMENT_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/yaml/problem.h"

namespace clerestory {

// Where a document of policies comes from; a later one wins. The numbers are
// those of clerestory.v1.PolicySource.
enum class PolicySource {
  kBuiltIn = 1,  // What the server was started with.
  kFile = 2,     // A file of the policy directory.
  kStored = 3,   // What a client stored.
};

// One policy of a document.
struct NamedPolicy {
  std::string name = {};
  // Which sessions it is for, as text; "" if for all.
  std::string match = {};
  // As PolicyDigest of `policy`.
  std::string digest = {};
  // What `policy` is, in YAML.
  std::string yaml = {};
  Policy policy = {};
};

// A tenant's policies: text, and what it says. Immutable, so safe from any
// thread.
class PolicyDocument {
 public:
  // Reads `yaml`. Returns null, and adds to `problems` all that is wrong,
  // unless nothing is. `file` is its name there.
  static std::shared_ptr<const PolicyDocument> Read(
      PolicySource source, absl::string_view file, absl::string_view yaml,
      TimeMicros update_time, std::vector<Problem>& problems);

  // A document of one policy, for all sessions. Its text says what `policy` is.
  static std::shared_ptr<const PolicyDocument> BuiltIn(const Policy& policy);

  PolicySource source() const { return source_; }
  const std::string& yaml() const { return yaml_; }
  // As PolicyEtag.
  const std::string& etag() const { return etag_; }
  // When it was stored or read; 0 if it is built in.
  TimeMicros update_time() const { return update_time_; }
  // In the order in which they are asked whether they match.
  const std::vector<NamedPolicy>& policies() const { return policies_; }
  // Equal for documents that say the same.
  const std::string& digest() const { return digest_; }

  // The policy of a session that calls `model`. Lives as long as the document.
  const NamedPolicy& For(const SessionHeader& session,
                         absl::string_view model) const;

 private:
  PolicyDocument(PolicySource source, absl::string_view yaml,
                 TimeMicros update_time, std::vector<NamedPolicy> policies);

  const PolicySource source_;
  const std::string yaml_;
  const std::string etag_;
  const TimeMicros update_time_;
  const std::vector<NamedPolicy> policies_;
  const std::string digest_;
};

// A policy for documents to start from.
struct PresetPolicy {
  std::string name;
  std::string help;
  std::string digest;
  std::string yaml;
};
std::vector<PresetPolicy> PresetPolicies();

// INVALID_ARGUMENT with kPolicyInvalid and a violation for each of `problems`,
// as far as an answer has room for them. REQUIRES: there is one.
absl::Status PolicyInvalidError(std::span<const Problem> problems);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_POLICY_DOCUMENT_H_
