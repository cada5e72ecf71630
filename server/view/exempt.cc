// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/exempt.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/formats/recall_tool.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/tools/access.h"
#include "server/view/session.h"

namespace clerestory {

Exempt::Exempt(const Session& session, const Policy& policy,
               const std::set<std::string>* unmasked_tools)
    : session_(session), policy_(policy), unmasked_tools_(unmasked_tools) {
  for (const Pin& pin : session.pins()) {
    if (!pin.resource.empty()) resources_.push_back(pin.resource);
  }
  if (policy.refetch_session_limit == 0) return;
  for (const auto& [tool, tally] : session.tools()) {
    if (tally.fetch_count() >= policy.refetch_session_limit) {
      fetched_tools_.insert(tool);
    }
  }
}

bool Exempt::IsUnmasked(const std::string& tool) const {
  return fetched_tools_.contains(tool) ||
         (unmasked_tools_ != nullptr && unmasked_tools_->contains(tool));
}

bool Exempt::IsPinned(std::size_t index) const {
  if (session_.pins().empty()) return false;
  const Observation& observation = session_.observations()[index];
  const ObservationId id = {.sequence = observation.sequence,
                            .index = observation.index};
  if (session_.pins().contains({.observation = id}) ||
      session_.pins().contains({.tool = observation.tool})) {
    return true;
  }
  if (resources_.empty()) return false;
  const ToolRule* const rule = RuleFor(policy_, observation.tool);
  const CallAccesses call =
      AccessesOf(observation.tool, session_.ArgumentsOf(observation.call), "",
                 rule == nullptr ? ToolAccess() : rule->access);
  return std::ranges::any_of(call.accesses, [&](const Access& access) {
    return std::ranges::any_of(resources_, [&](absl::string_view pin) {
      return IsPinnedResource(access.resource, pin);
    });
  });
}

bool Exempt::IsKeptForRecall(std::size_t index) const {
  const Observation& observation = session_.observations()[index];
  return session_.header().has_recall_tool &&
         observation.tool == kRecallToolName &&
         session_.turn_count() - observation.turn < policy_.recall_keep_turns;
}

bool Exempt::IsShownAgain(std::size_t index) const {
  return IsUnmasked(session_.observations()[index].tool) || IsPinned(index);
}

bool Exempt::ShowsAny() const {
  return !fetched_tools_.empty() || !session_.pins().empty() ||
         (unmasked_tools_ != nullptr && !unmasked_tools_->empty());
}

bool Exempt::IsExempt(std::size_t index, bool is_forced) const {
  if (is_forced) return IsPinned(index);
  return IsShownAgain(index) || IsKeptForRecall(index);
}

bool IsPinnedResource(absl::string_view resource, absl::string_view pin) {
  if (resource.empty() || pin.empty()) return false;
  const auto ends_with_path = [](absl::string_view path,
                                 absl::string_view end) {
    return absl::ConsumeSuffix(&path, end) &&
           (path.empty() || absl::EndsWith(path, "/"));
  };
  if (absl::EndsWith(pin, "/")) {
    return absl::StartsWith(resource, pin) ||
           (!absl::StartsWith(pin, "/") &&
            absl::StrContains(resource, absl::StrCat("/", pin)));
  }
  return (!absl::StartsWith(pin, "/") && ends_with_path(resource, pin)) ||
         (!absl::StartsWith(resource, "/") && ends_with_path(pin, resource)) ||
         resource == pin;
}

}  // namespace clerestory
