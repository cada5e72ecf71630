// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/limits.h"
#include "server/model/labels.h"
#include "server/policy/policy.h"
#include "server/policy/presets.h"
#include "server/policy/tool_glob.h"
#include "server/tools/access.h"
#include "server/yaml/problem.h"
#include "server/yaml/reader.h"

namespace clerestory {
namespace {

constexpr YamlField kYamlFields[] = {
    {"", "mode", "mode"},
    {"adaptive", "first_break_percent", "first_break_percent"},
    {"adaptive", "later_break_percent", "later_break_percent"},
    {"adaptive", "look_ahead_calls", "look_ahead_calls"},
    {"block", "size", "block_size"},
    {"threshold", "tokens", "threshold_tokens"},
    {"threshold", "low_water_tokens", "low_water_tokens"},
    {"keep", "observations", "keep_observations"},
    {"keep", "turns", "keep_turns"},
    {"keep", "tokens", "keep_tokens"},
    {"reclaim", "min_tokens", "reclaim_tokens_min"},
    {"window", "tokens", "window_tokens"},
    {"window", "reserve_tokens", "reserve_tokens"},
    {"cache", "life", "cache_life"},
    {"tools", "include", "include"},
    {"tools", "exclude", "exclude"},
    {"", "errors", "errors"},
    {"inputs", "min_tokens", "argument_tokens_min"},
    {"", "duplicates", "duplicates"},
    {"placeholder", "success", "placeholder"},
    {"placeholder", "error", "error_placeholder"},
    {"placeholder", "argument", "argument_placeholder"},
    {"", "thinking", "thinking"},
    {"control", "share_permille", "control_permille"},
    {"refetch", "session_limit", "refetch_session_limit"},
    {"refetch", "rate_permille", "refetch_rate_permille"},
    {"refetch", "min_samples", "refetch_samples_min"},
    {"refetch", "confidence_percent", "refetch_confidence_percent"},
    {"refetch", "cool_off_minutes", "refetch_cool_off_minutes"},
    {"refetch", "probe_permille", "refetch_probe_permille"},
    {"recall", "keep_turns", "recall_keep_turns"},
};

constexpr std::size_t kNameBytesMax = 64;
// Of the arguments of tools.
constexpr std::size_t kArgumentBytesMax = 100;
// What a rule may say that a call is.
constexpr AccessClass kAccessClasses[] = {
    AccessClass::kRead, AccessClass::kSearch, AccessClass::kRun,
    AccessClass::kWrite};
constexpr absl::string_view kSuffix = ".yaml";

bool IsPlainName(absl::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::string_view("_-.").find(c) != absl::string_view::npos;
         });
}

std::string ExpectedName(absl::string_view text) {
  return absl::StrCat("expected 1 to ", kNameBytesMax,
                      " letters, digits, _, - and ., not ",
                      QuoteForError(text));
}

// The name of `file` without folders and suffix; empty if it has another.
std::string TenantOf(absl::string_view file) {
  const std::size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  return absl::ConsumeSuffix(&file, kSuffix) ? std::string(file) : "";
}

// Says what to do about a file that is no YAML, in the way that policies are.
void AddRemedy(Problem& problem) {
  if (absl::StartsWith(problem.what, "not YAML: ")) {
    absl::StrAppend(&problem.what,
                    "; write it indented with blanks, not tabs, with quotes "
                    "and brackets closed, and globs in quotes");
  } else if (problem.what == "not UTF-8") {
    absl::StrAppend(&problem.what, "; write the file in UTF-8");
  }
}

// The first `count` of `maps`, or all.
std::span<YamlMap> Few(std::vector<YamlMap>& maps, std::size_t count) {
  return std::span(maps).first(std::min(maps.size(), count));
}

class Parser {
 public:
  explicit Parser(std::vector<Problem>& problems) : problems_(problems) {}

  PolicyFile Parse(absl::string_view file, YamlMap root) {
    const std::size_t before = problems_.size();
    PolicyFile parsed;
    parsed.file = std::string(file);
    ParseTenant(root, parsed);
    if (root.Has("policies")) {
      std::vector<YamlMap> maps = root.Maps("policies");
      if (maps.empty() && problems_.size() == before) {
        root.Add("policies", "names no policy; write at least one");
      }
      if (maps.size() > kPoliciesMax) {
        root.Add("policies",
                 absl::StrCat("has ", maps.size(), " policies; write at most ",
                              kPoliciesMax));
      }
      for (YamlMap& map : Few(maps, kPoliciesMax)) {
        parsed.policies.push_back(ParsePolicy(map));
      }
      if (globs_ > kFileGlobsMax) {
        root.Add("policies", absl::StrCat("has ", globs_,
                                          " globs and rules of tools; "
                                          "write at most ",
                                          kFileGlobsMax));
        parsed.policies.clear();
      }
    } else {
      root.Add("policies", "is missing; write a list of policies");
    }
    root.Finish();
    parsed.is_whole = problems_.size() == before;
    return parsed;
  }

 private:
  // The place of the value of `key`, or of `map` if there is none.
  Place PlaceOf(YamlMap& map, absl::string_view key) {
    map.Add(key, "");
    return TakePlace();
  }
  Place PlaceOf(YamlMap& map) {
    map.Add("");
    return TakePlace();
  }
  Place TakePlace() {
    Problem problem = std::move(problems_.back());
    problems_.pop_back();
    return {.line = problem.line,
            .column = problem.column,
            .path = std::move(problem.path)};
  }

  // What `status` says, without the field's name, which is another in the file.
  static std::string WhatOf(const absl::Status& status,
                            absl::string_view field) {
    absl::string_view what = status.message();
    absl::ConsumePrefix(&what, absl::StrCat(field, ": "));
    return std::string(what);
  }

  void ParseTenant(YamlMap& root, PolicyFile& parsed) {
    parsed.tenant = TenantOf(parsed.file);
    if (root.Has("tenant")) {
      const std::optional<std::string> tenant = root.Text("tenant");
      if (!tenant.has_value()) return;
      parsed.tenant = *tenant;
      if (!IsPlainName(*tenant)) root.Add("tenant", ExpectedName(*tenant));
    } else if (!parsed.tenant.empty() && !IsPlainName(parsed.tenant)) {
      root.Add("tenant",
               absl::StrCat("the file's name is no tenant's: ",
                            ExpectedName(parsed.tenant),
                            "; rename the file or write the tenant into it"));
    }
  }

  ParsedPolicy ParsePolicy(YamlMap& map) {
    const std::size_t before = problems_.size();
    ParsedPolicy parsed;
    parsed.place = PlaceOf(map);
    parsed.name_place = PlaceOf(map, "name");
    if (!map.Has("name")) {
      map.Add("name", "is missing; write a name for this policy");
    } else if (const auto name = map.Text("name")) {
      parsed.name = *name;
      if (!IsPlainName(*name)) map.Add("name", ExpectedName(*name));
    }
    parsed.match_place = PlaceOf(map, "match");
    if (map.Has("match")) {
      if (auto match = map.Map("match")) ParseMatch(*match, parsed);
    }
    ParsePreset(map, parsed);
    ParseSettings(map, parsed);
    map.Finish();
    parsed.is_whole = problems_.size() == before;
    return parsed;
  }

  void ParseMatch(YamlMap& match, ParsedPolicy& parsed) {
    const bool has_labels = match.Has("labels");
    const bool has_model = match.Has("model");
    if (has_labels) ParseLabels(match, parsed);
    if (has_model) {
      if (const auto model = match.Text("model")) {
        const absl::Status status = CheckGlob("model", *model);
        if (!status.ok()) match.Add("model", WhatOf(status, "model"));
        // What matches all asks for nothing.
        if (!CoversGlob(*model, "*")) parsed.model = *model;
      }
    }
    match.Finish();
    if (!has_labels && !has_model && match.Keys().empty()) {
      match.Add("asks for nothing; write labels or model, or leave it out");
    }
  }

  void ParseLabels(YamlMap& match, ParsedPolicy& parsed) {
    auto map = match.Map("labels");
    if (!map.has_value()) return;
    const std::vector<std::string> keys = map->Keys();
    if (keys.empty() || std::ssize(keys) > kSessionLabelsMax) {
      return match.Add("labels",
                       absl::StrCat("has ", keys.size(), " labels; write 1 to ",
                                    kSessionLabelsMax, " as name: value"));
    }
    for (const std::string& key : keys) {
      const auto value = map->Text(key);
      if (!value.has_value()) continue;
      const std::string of_key = LabelKeyProblem(key);
      const std::string of_value = LabelValueProblem(*value);
      if (!of_key.empty()) {
        map->Add(key, of_key);
      } else if (absl::StrContains(*value, '*') ||
                 absl::StrContains(*value, '?')) {
        map->Add(key,
                 "labels are compared as they stand, * and ? mean "
                 "nothing; write one policy for each value");
      } else if (!of_value.empty()) {
        map->Add(key, absl::StrCat(of_value, ", not ", QuoteForError(*value)));
      } else {
        parsed.labels.emplace(key, *value);
      }
    }
  }

  void ParsePreset(YamlMap& map, ParsedPolicy& parsed) {
    if (!map.Has("preset")) return;
    std::vector<absl::string_view> names;
    for (const Preset& preset : Presets()) names.push_back(preset.name);
    const auto choice = map.Choice("preset", names);
    if (choice.has_value()) parsed.preset = std::string(names[*choice]);
  }

  void ParseSettings(YamlMap& map, ParsedPolicy& parsed) {
    absl::string_view last;
    for (const YamlField& field : kYamlFields) {
      if (field.group.empty()) {
        ParseSetting(map, field, parsed);
      } else if (field.group != last && map.Has(field.group)) {
        auto group = map.Map(field.group);
        if (group.has_value()) ParseGroup(*group, field.group, parsed);
      }
      last = field.group;
    }
  }

  void ParseGroup(YamlMap& group, absl::string_view name,
                  ParsedPolicy& parsed) {
    for (const YamlField& field : kYamlFields) {
      if (field.group == name) ParseSetting(group, field, parsed);
    }
    if (name == "tools" && group.Has("rules")) ParseRules(group, parsed);
    group.Finish();
  }

  void ParseSetting(YamlMap& map, const YamlField& field,
                    ParsedPolicy& parsed) {
    if (!map.Has(field.key)) return;
    const std::optional<std::string> value = ValueOf(map, field);
    if (!value.has_value()) return;
    parsed.settings.push_back({.field = field.field,
                               .value = *value,
                               .place = PlaceOf(map, field.key)});
  }

  std::optional<std::string> ValueOf(YamlMap& map, const YamlField& field) {
    const std::span<const PolicyField> numbers = PolicyFields();
    const auto number = std::find_if(
        numbers.begin(), numbers.end(),
        [&](const PolicyField& each) { return each.name == field.field; });
    if (number != numbers.end()) {
      const auto value = map.Integer(field.key, number->min, number->max);
      if (!value.has_value()) return std::nullopt;
      return absl::StrCat(*value);
    }
    const std::vector<absl::string_view> words = PolicyFieldWords(field.field);
    if (!words.empty()) {
      const auto choice = map.Choice(field.key, words);
      if (!choice.has_value()) return std::nullopt;
      return std::string(words[*choice]);
    }
    if (field.group == "tools") return GlobsOf(map, field.key);
    const auto text = map.Text(field.key);
    if (!text.has_value()) return std::nullopt;
    Policy policy;
    const absl::Status status = SetPolicyField(field.field, *text, policy);
    if (status.ok()) return text;
    map.Add(field.key, WhatOf(status, field.field));
    return std::nullopt;
  }

  std::optional<std::string> GlobsOf(YamlMap& tools, absl::string_view key) {
    const auto globs = tools.Texts(key);
    if (!globs.has_value()) return std::nullopt;
    const std::size_t before = problems_.size();
    if (globs->empty() || globs->size() > kGlobsMax) {
      tools.Add(key, absl::StrCat("has ", globs->size(), " globs; write 1 to ",
                                  kGlobsMax, ", or leave it out"));
      return std::nullopt;
    }
    globs_ += globs->size();
    std::set<absl::string_view> earlier;
    for (std::size_t i = 0; i < globs->size(); ++i) {
      const absl::Status status = CheckGlob(key, globs->at(i));
      if (!status.ok()) {
        tools.AddItem(key, i, WhatOf(status, key));
      } else if (!earlier.insert(globs->at(i)).second) {
        tools.AddItem(key, i, "stands twice; leave one of them out");
      }
    }
    if (problems_.size() > before) return std::nullopt;
    return absl::StrJoin(*globs, "|");
  }

  void ParseRules(YamlMap& tools, ParsedPolicy& parsed) {
    std::vector<YamlMap> maps = tools.Maps("rules");
    if (maps.size() > kGlobsMax) {
      tools.Add("rules", absl::StrCat("has ", maps.size(),
                                      " rules; write at most ", kGlobsMax));
    }
    for (YamlMap& map : Few(maps, kGlobsMax)) {
      ++globs_;
      ToolRule rule;
      if (!map.Has("tool")) {
        map.Add("tool", "is missing; write the glob of the tools meant");
      } else if (const auto tool = map.Text("tool")) {
        rule.tool = *tool;
        const absl::Status status = CheckGlob("tool", *tool);
        if (!status.ok()) map.Add("tool", WhatOf(status, "tool"));
      }
      if (map.Has("never_mask")) {
        rule.is_never_masked = map.Boolean("never_mask").value_or(false);
      }
      if (map.Has("keep_observations")) {
        rule.keep_observations =
            map.Integer("keep_observations", 1, kSessionMessagesMax)
                .value_or(0);
      }
      const std::size_t before_access = problems_.size();
      const bool has_access = ParseAccess(map, rule.access);
      const bool is_empty = !map.Has("never_mask") &&
                            !map.Has("keep_observations") && !has_access;
      map.Finish();
      if (is_empty && problems_.size() == before_access) {
        map.Add(
            "says nothing; write never_mask, keep_observations, class or "
            "resource");
      }
      parsed.tool_places.push_back(PlaceOf(map));
      parsed.tools.push_back(std::move(rule));
    }
  }

  // What the rule says of calls; false if nothing.
  static bool ParseAccess(YamlMap& map, ToolAccess& access) {
    bool says = map.Has("class");
    if (says) {
      std::vector<absl::string_view> names;
      for (const AccessClass known : kAccessClasses) {
        names.push_back(AccessClassName(known));
      }
      const auto choice = map.Choice("class", names);
      if (choice.has_value()) access.access_class = kAccessClasses[*choice];
    }
    says = ParseArgument(map, "resource", access.resource_argument) || says;
    if (!map.Has("lines")) return says;
    auto lines = map.Map("lines");
    if (!lines.has_value()) return true;
    bool has_line = ParseArgument(*lines, "first", access.first_line_argument);
    has_line =
        ParseArgument(*lines, "last", access.last_line_argument) || has_line;
    has_line =
        ParseArgument(*lines, "count", access.line_count_argument) || has_line;
    lines->Finish();
    if (!has_line) lines->Add("says nothing; write first, last or count");
    return true;
  }

  // Reads the name of an argument, if there is one.
  static bool ParseArgument(YamlMap& map, absl::string_view key,
                            std::string& argument) {
    if (!map.Has(key)) return false;
    const auto name = map.Text(key);
    if (!name.has_value()) return true;
    if (name->empty() || name->size() > kArgumentBytesMax) {
      map.Add(key, absl::StrCat("expected the name of an argument of 1 to ",
                                kArgumentBytesMax, " bytes, not ",
                                QuoteForError(*name)));
      return true;
    }
    argument = *name;
    return true;
  }

  std::vector<Problem>& problems_;
  std::size_t globs_ = 0;  // Of all policies, rules included.
};

}  // namespace

std::string YamlField::Path() const {
  return absl::StrCat(group, group.empty() ? "" : ".", key);
}

std::span<const YamlField> YamlFields() { return kYamlFields; }

std::optional<PolicyFile> ParsePolicyFile(absl::string_view file,
                                          absl::string_view text,
                                          std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  std::optional<YamlMap> root = YamlMap::Load(file, text, problems);
  for (std::size_t i = before; i < problems.size(); ++i) {
    AddRemedy(problems[i]);
  }
  if (!root.has_value()) return std::nullopt;
  const bool is_whole = problems.size() == before;
  PolicyFile parsed = Parser(problems).Parse(file, *std::move(root));
  parsed.is_whole = parsed.is_whole && is_whole;
  return parsed;
}

}  // namespace clerestory
