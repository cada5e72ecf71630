// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_POLICY_POLICY_FILE_H_
#define CLERESTORY_SERVER_POLICY_POLICY_FILE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/policy/policy.h"
#include "server/yaml/problem.h"

namespace clerestory {

// The labels of a session, and those that a policy asks for.
using Labels = std::map<std::string, std::string>;

// The most policies of a file, globs of a list and rules of a policy.
inline constexpr std::size_t kPoliciesMax = 100;
inline constexpr std::size_t kGlobsMax = 100;

// The most globs of a file, rules included: each is compared with the others of
// its policy.
inline constexpr std::size_t kFileGlobsMax = 1000;

// Where something stands in a file.
struct Place {
  int line = 1;
  int column = 1;
  std::string path;
};

// A field of a policy, as SetPolicyField takes it and has been seen to.
struct PolicySetting {
  absl::string_view field;
  std::string value;
  Place place;
};

// A policy as it was written: each value is right for itself.
struct ParsedPolicy {
  Place place;
  std::string name;
  Place name_place;
  Labels labels;
  std::string model;  // A glob; empty for all.
  Place match_place;
  std::string preset;  // Empty if there is none.
  std::vector<PolicySetting> settings;
  std::vector<ToolRule> tools;
  std::vector<Place> tool_places;
  // Whether all of it could be read.
  bool is_whole = true;
};

// A tenant's file, or as much of it as could be read.
struct PolicyFile {
  std::string file;
  // As the file says; else its name without folders and `.yaml`; empty if it
  // has no such name.
  std::string tenant;
  std::vector<ParsedPolicy> policies;
  bool is_whole = true;
};

// Where a field of a policy stands in YAML: `keep.turns` is the key `turns` of
// the group `keep`; the group is empty for what stands in the policy itself.
struct YamlField {
  absl::string_view group;
  absl::string_view key;
  absl::string_view field;

  std::string Path() const;
};

// All but `tools.rules`, groups together.
std::span<const YamlField> YamlFields();

// Reads `text`, the YAML file called `file`. Strict: unknown names are
// problems. All that is wrong is added to `problems`, with its place and what
// to write instead; what is then returned is what CompilePolicies needs to find
// the rest of what is wrong. Absent if there is nothing to go on with. Pure.
std::optional<PolicyFile> ParsePolicyFile(absl::string_view file,
                                          absl::string_view text,
                                          std::vector<Problem>& problems);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_POLICY_POLICY_FILE_H_
