// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/check.h"
#include "server/policy/check_policy.h"
#include "server/policy/policy.h"
#include "server/policy/policy_file.h"
#include "server/policy/policy_set.h"
#include "server/policy/presets.h"
#include "server/policy/tool_glob.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

constexpr absl::string_view kRulePrefix = "tools[";

// `text` with the fields of Policy by their names in the file. What is in
// quotes is someone else's.
std::string InYaml(absl::string_view text) {
  std::vector<std::pair<absl::string_view, std::string>> names;
  for (const YamlField& field : YamlFields()) {
    names.emplace_back(field.field, field.Path());
  }
  names.emplace_back(kRulePrefix, "tools.rules[");
  std::vector<std::string> parts = absl::StrSplit(text, '"');
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    parts[i] = absl::StrReplaceAll(parts[i], names);
  }
  return absl::StrJoin(parts, "\"");
}

// The index in `tools[0]` and `tools[0].keep_observations`.
std::optional<std::size_t> RuleIndex(absl::string_view field) {
  if (!absl::ConsumePrefix(&field, kRulePrefix)) return std::nullopt;
  std::size_t index = 0;
  CLERESTORY_CHECK(absl::SimpleAtoi(field.substr(0, field.find(']')), &index));
  return index;
}

// Whether whatever session `special` is for, `general` is too.
bool IsForAllOf(const ParsedPolicy& general, const ParsedPolicy& special) {
  return std::includes(special.labels.begin(), special.labels.end(),
                       general.labels.begin(), general.labels.end()) &&
         (general.model.empty() ||
          (!special.model.empty() && CoversGlob(general.model, special.model)));
}

bool IsForAll(const ParsedPolicy& policy) {
  return policy.labels.empty() && policy.model.empty();
}

class Compiler {
 public:
  Compiler(const PolicyFile& file, std::vector<Problem>& problems)
      : file_(file), problems_(problems) {}

  std::optional<PolicySet> Compile(const Policy& fallback) {
    const std::size_t before = problems_.size();
    std::vector<TenantPolicy> policies;
    for (std::size_t i = 0; i < file_.policies.size(); ++i) {
      const ParsedPolicy& parsed = file_.policies[i];
      CheckName(i);
      if (!parsed.is_whole) continue;
      CheckReach(i);
      Policy policy = PolicyOf(parsed);
      std::string digest = PolicyDigest(policy);
      policies.push_back({.name = parsed.name,
                          .labels = parsed.labels,
                          .model = parsed.model,
                          .policy = std::move(policy),
                          .digest = std::move(digest)});
    }
    if (problems_.size() > before || !file_.is_whole) return std::nullopt;
    if (!IsForAll(file_.policies.back())) {
      policies.push_back({.name = std::string(kDefaultPolicyName),
                          .labels = {},
                          .model = "",
                          .policy = fallback,
                          .digest = PolicyDigest(fallback)});
    }
    return PolicySet(file_.tenant, std::move(policies));
  }

 private:
  void Add(const Place& place, std::string what) {
    problems_.push_back({.file = file_.file,
                         .line = place.line,
                         .column = place.column,
                         .path = place.path,
                         .what = std::move(what)});
  }

  void CheckName(std::size_t index) {
    const ParsedPolicy& policy = file_.policies[index];
    if (policy.name.empty()) return;
    for (std::size_t i = 0; i < index; ++i) {
      if (file_.policies[i].name != policy.name) continue;
      Add(policy.name_place,
          absl::StrCat("policies[", i, "] is called ",
                       QuoteForError(policy.name),
                       " too; give one of them another name"));
      break;
    }
    if (policy.is_whole && policy.name == kDefaultPolicyName &&
        !IsForAll(policy)) {
      Add(policy.name_place,
          "is the name of the policy for what no other matches; give this "
          "one another name, or leave out match");
    }
  }

  void CheckReach(std::size_t index) {
    const ParsedPolicy& policy = file_.policies[index];
    for (std::size_t i = 0; i < index; ++i) {
      const ParsedPolicy& earlier = file_.policies[i];
      if (!earlier.is_whole || !IsForAllOf(earlier, policy)) continue;
      Add(policy.match_place,
          absl::StrCat("never applies, since policies[", i, "], ",
                       QuoteForError(earlier.name), ", matches whatever ",
                       QuoteForError(policy.name), " does; ",
                       IsForAllOf(policy, earlier)
                           ? "leave one of them out"
                           : "write it in front of that"));
      return;
    }
  }

  Policy PolicyOf(const ParsedPolicy& parsed) {
    Policy policy;
    if (!parsed.preset.empty()) policy = FindPreset(parsed.preset)->policy;
    for (const PolicySetting& setting : parsed.settings) {
      CLERESTORY_CHECK(
          SetPolicyField(setting.field, setting.value, policy).ok());
    }
    if (!parsed.tools.empty()) policy.tools = parsed.tools;
    for (const Contradiction& found : FindContradictions(policy)) {
      Add(PlaceOf(parsed, found.field), InYaml(found.what));
    }
    return policy;
  }

  // The place of the field, or, if it is the preset's or a default, that of
  // the policy.
  static Place PlaceOf(const ParsedPolicy& parsed, absl::string_view field) {
    if (const auto index = RuleIndex(field)) {
      Place place = parsed.tool_places[*index];
      const std::size_t dot = field.find('.');
      if (dot != absl::string_view::npos) {
        absl::StrAppend(&place.path, field.substr(dot));
      }
      return place;
    }
    for (const PolicySetting& setting : parsed.settings) {
      if (setting.field == field) return setting.place;
    }
    Place place = parsed.place;
    absl::StrAppend(&place.path, ".", InYaml(field));
    return place;
  }

  const PolicyFile& file_;
  std::vector<Problem>& problems_;
};

}  // namespace

std::optional<PolicySet> CompilePolicies(const PolicyFile& file,
                                         const Policy& fallback,
                                         std::vector<Problem>& problems) {
  return Compiler(file, problems).Compile(fallback);
}

}  // namespace clerestory
