// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/check_policy.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// The glob of `globs` that matches all that `glob` does, or null.
const std::string* CoverOf(const std::vector<std::string>& globs,
                           absl::string_view glob) {
  const auto at = std::find_if(
      globs.begin(), globs.end(),
      [&](const std::string& each) { return CoversTool(each, glob); });
  return at == globs.end() ? nullptr : &*at;
}

class Checker {
 public:
  explicit Checker(const Policy& policy) : policy_(policy) {}

  std::vector<Contradiction> Check() && {
    if (policy_.mode == Mode::kOff && policy_.control_permille > 0) {
      Add("control_permille",
          "nothing is masked that sessions could be compared with; write "
          "another mode, or 0");
    }
    if (policy_.mode == Mode::kThreshold) CheckThreshold();
    if (policy_.window_tokens > 0) CheckWindow();
    if (policy_.mode == Mode::kDelegate) CheckDelegate();
    if (policy_.mode != Mode::kOff) CheckGlobs();
    for (std::size_t i = 0; i < policy_.tools.size(); ++i) CheckToolRule(i);
    return std::move(found_);
  }

 private:
  void Add(std::string field, std::string what) {
    found_.push_back({.field = std::move(field), .what = std::move(what)});
  }

  void CheckThreshold() {
    if (policy_.low_water_tokens > policy_.threshold_tokens) {
      Add("low_water_tokens", "above threshold_tokens; write at most that");
    }
    if (policy_.window_tokens > 0 &&
        policy_.threshold_tokens > policy_.window_tokens) {
      Add("threshold_tokens",
          "above window_tokens, which always comes first; write at most that");
    }
  }

  void CheckWindow() {
    if (policy_.reserve_tokens >= policy_.window_tokens) {
      Add("reserve_tokens",
          "leaves nothing of window_tokens; write less than that");
    }
    if (policy_.keep_tokens >= policy_.window_tokens) {
      Add("keep_tokens", "fills window_tokens; write less than that");
    }
    if (policy_.reclaim_tokens_min >= policy_.window_tokens) {
      Add("reclaim_tokens_min",
          "no view has so many tokens; write less than window_tokens");
    }
  }

  // What the provider's own clearing has no setting for.
  void CheckDelegate() {
    const auto refuse = [this](std::string field, absl::string_view remedy) {
      Add(std::move(field),
          absl::StrCat("the provider, which masks in mode delegate, cannot be "
                       "told it; ",
                       remedy));
    };
    if (policy_.keep_turns > 0) {
      refuse("keep_turns", "write keep_observations");
    }
    if (policy_.keep_tokens > 0) {
      refuse("keep_tokens", "write keep_observations");
    }
    if (policy_.errors != ErrorRule::kMask) refuse("errors", "write mask");
    if (policy_.duplicates != DuplicateRule::kOff) {
      refuse("duplicates", "write off");
    }
    for (std::size_t i = 0; i < policy_.tools.size(); ++i) {
      if (policy_.tools[i].keep_observations == 0) continue;
      refuse(absl::StrCat("tools[", i, "].keep_observations"), "leave it out");
    }
  }

  void CheckGlobs() {
    if (CoverOf(policy_.exclude, "*") != nullptr) {
      return Add("exclude", "leaves no tool that is masked; write mode off");
    }
    const auto is_excluded = [this](const std::string& glob) {
      return CoverOf(policy_.exclude, glob) != nullptr;
    };
    if (!policy_.include.empty() &&
        std::all_of(policy_.include.begin(), policy_.include.end(),
                    is_excluded)) {
      Add("exclude",
          "leaves nothing of include; leave one of them out, or write mode "
          "off");
    }
  }

  void CheckToolRule(std::size_t index) {
    const ToolRule& rule = policy_.tools[index];
    const std::string field = absl::StrCat("tools[", index, "]");
    if (rule.is_never_masked && rule.keep_observations > 0) {
      Add(absl::StrCat(field, ".keep_observations"),
          "what is never masked is all kept; leave it out");
    }
    CheckAccess(absl::StrCat(field, ".lines"), rule.access);
    // What an excluded tool does to files still counts.
    const bool says_access = !(rule.access == ToolAccess());
    if (const std::string* cover = CoverOf(policy_.exclude, rule.tool);
        cover != nullptr && !says_access) {
      return Add(field,
                 absl::StrCat("never applies, since exclude has \"", *cover,
                              "\", which matches whatever \"", rule.tool,
                              "\" does; leave one of them out"));
    }
    for (std::size_t i = 0; i < index; ++i) {
      const std::string& earlier = policy_.tools[i].tool;
      if (!CoversTool(earlier, rule.tool)) continue;
      return Add(field,
                 absl::StrCat("never applies, since tools[", i, "] with \"",
                              earlier, "\" matches whatever \"", rule.tool,
                              "\" does; write it in front of that"));
    }
  }

  void CheckAccess(const std::string& field, const ToolAccess& access) {
    const bool has_last = !access.last_line_argument.empty();
    const bool has_count = !access.line_count_argument.empty();
    if (access.first_line_argument.empty() && !has_last && !has_count) return;
    if (access.access_class != AccessClass::kRead) {
      Add(field, "only reads have lines; write class read, or leave them out");
    }
    if (has_last && has_count) {
      Add(field, "the last line and the count say the same; leave one out");
    }
  }

  const Policy& policy_;
  std::vector<Contradiction> found_;
};

}  // namespace

std::vector<Contradiction> FindContradictions(const Policy& policy) {
  return Checker(policy).Check();
}

absl::Status CheckPolicy(const Policy& policy) {
  const std::vector<Contradiction> found = FindContradictions(policy);
  if (found.empty()) return absl::OkStatus();
  return FieldError(found.front().field, found.front().what);
}

}  // namespace clerestory
