// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_EXEMPT_H_
#define CLERESTORY_SERVER_VIEW_EXEMPT_H_

#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "server/policy/policy.h"
#include "server/view/session.h"

namespace clerestory {

// Which observations of a session stay, although they are old and of tools that
// the policy masks: what is pinned, what was recalled a short while ago, and
// what agents fetch again. Pure; what it is made of must outlive it and stay as
// it is.
class Exempt {
 public:
  // `unmasked_tools` are those that the tenant's breaker does not mask; null
  // for none.
  Exempt(const Session& session, const Policy& policy,
         const std::set<std::string>* unmasked_tools);

  // Whether the observation at `index` is not masked. If the window forces the
  // break, only what is pinned is not.
  bool IsExempt(std::size_t index, bool is_forced) const;

  // Whether it is shown again, if it is masked, at a break that is due: it is
  // pinned, or its tool is not masked any more.
  bool IsShownAgain(std::size_t index) const;

  // Whether anything may be shown again.
  bool ShowsAny() const;

  // Whether the outputs of `tool` stay from now on: it was fetched again as
  // often as the policy lets it be in a session, or the tenant's breaker says
  // so.
  bool IsUnmasked(const std::string& tool) const;

  // Whether a pin keeps the observation at `index`, by its id, its tool or its
  // resource (Session::IsResourcePinned, by the policy's rule of the tool).
  bool IsPinned(std::size_t index) const;

 private:
  bool IsKeptForRecall(std::size_t index) const;

  const Session& session_;
  const Policy& policy_;
  const std::set<std::string>* const unmasked_tools_;
  // Tools that were fetched again as often as they may be.
  std::set<absl::string_view> fetched_tools_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_EXEMPT_H_
