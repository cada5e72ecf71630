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
#include "server/policy/policy_set.h"
#include "server/yaml/problem.h"

namespace clerestory {

// Where a document of policies comes from; a later one wins. The numbers are
// those of clerestory.v1.PolicySource.
enum class PolicySource {
  kBuiltIn = 1,  // What the server was started with.
  kFile = 2,     // A file of the policy directory.
  kStored = 3,   // What a client stored.
};

// A tenant's policies: text, and what it says. Immutable, so safe from any
// thread.
class PolicyDocument {
 public:
  // What a document is made of.
  struct Text {
    PolicySource source = PolicySource::kStored;
    std::string tenant = {};
    // Its name for problems; that of a file is its path.
    std::string file = {};
    std::string yaml = {};
    TimeMicros update_time = 0;
  };

  // Reads `text`. Sessions that none of its policies is for have `fallback`.
  // Returns null, and adds to `problems` all that is wrong in the order of its
  // places, unless nothing is:
  // those of LoadPolicies, a document that says it is another tenant's, and one
  // of more than kPolicyBytesMax.
  static std::shared_ptr<const PolicyDocument> Read(
      const Text& text, const Policy& fallback, std::vector<Problem>& problems);

  // A document of one policy, for all sessions. Its text says what `policy` is.
  static std::shared_ptr<const PolicyDocument> BuiltIn(const Policy& policy);

  PolicySource source() const { return source_; }
  const std::string& yaml() const { return yaml_; }
  // As PolicyEtag.
  const std::string& etag() const { return etag_; }
  // When it was stored or read; 0 if it is built in.
  TimeMicros update_time() const { return update_time_; }
  // Has no tenant, so that documents which say the same have equal digests.
  const PolicySet& policies() const { return policies_; }

  // What is applied to a session that calls `model`. Lives as long as the
  // document.
  AppliedPolicy For(const SessionHeader& session,
                    absl::string_view model) const {
    return policies_.For(session.key, session.labels, model);
  }

 private:
  PolicyDocument(PolicySource source, absl::string_view yaml,
                 TimeMicros update_time, PolicySet policies);

  const PolicySource source_;
  const std::string yaml_;
  const std::string etag_;
  const TimeMicros update_time_;
  const PolicySet policies_;
};

// `policy` as a document that has it for all sessions.
std::string DocumentOf(const Policy& policy);

// INVALID_ARGUMENT with kPolicyInvalid and a violation for each of `problems`,
// as far as an answer has room for them. REQUIRES: there is one.
absl::Status PolicyInvalidError(std::span<const Problem> problems);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_POLICY_DOCUMENT_H_
