// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/policy/policy.h"
#include "server/policy/policy_file.h"
#include "server/policy/policy_set.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

constexpr absl::string_view kTools = "tools";

// `text` in double quotes. Templates may hold any character.
std::string Quoted(absl::string_view text) {
  constexpr absl::string_view kHex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppend(&out, "\\x", kHex.substr(byte >> 4U, 1),
                      kHex.substr(byte & 15U, 1));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

std::string List(const std::vector<std::string>& texts) {
  return absl::StrCat(
      "[",
      absl::StrJoin(texts, ", ",
                    [](std::string* out, const std::string& text) {
                      absl::StrAppend(out, Quoted(text));
                    }),
      "]");
}

// The value of `field` in YAML; empty for a list without items, which is not
// written.
std::string ValueOf(const YamlField& field, const Policy& policy) {
  if (field.field == "include" || field.field == "exclude") {
    const std::vector<std::string>& globs =
        field.field == "include" ? policy.include : policy.exclude;
    return globs.empty() ? "" : List(globs);
  }
  const std::string text = PolicyFieldText(field.field, policy);
  return field.group == "placeholder" ? Quoted(text) : text;
}

void AppendAccess(const ToolAccess& access, std::string& out) {
  constexpr absl::string_view kIndent = "          ";
  if (access.access_class.has_value()) {
    absl::StrAppend(&out, kIndent,
                    "class: ", AccessClassName(*access.access_class), "\n");
  }
  if (!access.resource_argument.empty()) {
    absl::StrAppend(&out, kIndent,
                    "resource: ", Quoted(access.resource_argument), "\n");
  }
  const std::pair<absl::string_view, absl::string_view> lines[] = {
      {"first", access.first_line_argument},
      {"last", access.last_line_argument},
      {"count", access.line_count_argument}};
  bool has_lines = false;
  for (const auto& [key, argument] : lines) {
    if (argument.empty()) continue;
    if (!has_lines) absl::StrAppend(&out, kIndent, "lines:\n");
    has_lines = true;
    absl::StrAppend(&out, kIndent, "  ", key, ": ", Quoted(argument), "\n");
  }
}

void AppendRules(const std::vector<ToolRule>& rules, std::string& out) {
  if (rules.empty()) return;
  absl::StrAppend(&out, "      rules:\n");
  for (const ToolRule& rule : rules) {
    absl::StrAppend(&out, "        - tool: ", Quoted(rule.tool), "\n");
    const bool says_access = !(rule.access == ToolAccess());
    if (rule.is_never_masked || (rule.keep_observations == 0 && !says_access)) {
      absl::StrAppend(&out, "          never_mask: ",
                      rule.is_never_masked ? "true" : "false", "\n");
    }
    if (rule.keep_observations > 0) {
      absl::StrAppend(
          &out, "          keep_observations: ", rule.keep_observations, "\n");
    }
    AppendAccess(rule.access, out);
  }
}

void AppendMatch(const TenantPolicy& policy, std::string& out) {
  if (policy.labels.empty() && policy.model.empty()) return;
  absl::StrAppend(&out, "    match:\n");
  if (!policy.labels.empty()) absl::StrAppend(&out, "      labels:\n");
  for (const auto& [name, value] : policy.labels) {
    absl::StrAppend(&out, "        ", Quoted(name), ": ", Quoted(value), "\n");
  }
  if (!policy.model.empty()) {
    absl::StrAppend(&out, "      model: ", Quoted(policy.model), "\n");
  }
}

bool HasTools(const Policy& policy) {
  return !policy.include.empty() || !policy.exclude.empty() ||
         !policy.tools.empty();
}

void AppendPolicy(const TenantPolicy& policy, std::string& out) {
  absl::StrAppend(&out, "  - name: ", Quoted(policy.name), "\n");
  AppendMatch(policy, out);
  absl::string_view last;
  for (const YamlField& field : YamlFields()) {
    const bool is_tools = field.group == kTools;
    if (is_tools && !HasTools(policy.policy)) continue;
    if (field.group != last) {
      // The rules are no field, and stand last in their group.
      if (last == kTools) AppendRules(policy.policy.tools, out);
      if (!field.group.empty()) {
        absl::StrAppend(&out, "    ", field.group, ":\n");
      }
      last = field.group;
    }
    const std::string value = ValueOf(field, policy.policy);
    if (value.empty()) continue;
    absl::StrAppend(&out, field.group.empty() ? "    " : "      ", field.key,
                    ": ", value, "\n");
  }
}

}  // namespace

std::string ToYaml(const PolicySet& set) {
  std::string out;
  if (!set.tenant().empty()) {
    absl::StrAppend(&out, "tenant: ", Quoted(set.tenant()), "\n");
  }
  absl::StrAppend(&out, "policies:\n");
  for (const TenantPolicy& policy : set.policies()) AppendPolicy(policy, out);
  return out;
}

}  // namespace clerestory
