// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/exempt.h"

#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
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
  return session_.IsResourcePinned(
      observation.call, [&](absl::string_view tool) {
        const ToolRule* const rule = RuleFor(policy_, tool);
        return rule == nullptr ? ToolAccess() : rule->access;
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

}  // namespace clerestory
