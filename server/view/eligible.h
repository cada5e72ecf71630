// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_ELIGIBLE_H_
#define CLERESTORY_SERVER_VIEW_ELIGIBLE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/model/money.h"
#include "server/policy/policy.h"
#include "server/view/exempt.h"
#include "server/view/session.h"

namespace clerestory {

// For how many turns a batch is held together: none of its results is eligible
// before all of its calls are answered and all of its results are. After that a
// call that is never answered stops nothing, and a late result is one of its
// own.
inline constexpr std::int64_t kBatchHoldTurns = 20;

// Which observations of a session `policy` does not keep. Pure; the session and
// the policy must outlive it and stay as they are.
class Eligible {
 public:
  // `unmasked_tools` as in ViewRequest.
  Eligible(const Session& session, const Policy& policy,
           const std::set<std::string>* unmasked_tools = nullptr);

  // What stays whatever its age.
  const Exempt& exempt() const { return exempt_; }

  // How many observations, from the first, are old enough, their batches whole
  // and acted upon.
  std::size_t old_count() const { return old_count_; }

  // Of those, which are not masked and may be, with the earlier copies of what
  // the view shows later, which need not be old; in order. What a tool's rule
  // keeps is left out unless the window forces the break; and what is exempt
  // (Exempt::IsExempt).
  std::vector<std::size_t> Indexes(bool is_forced) const;

  // Whether the observation at `index` is among the newest that its tool's rule
  // keeps.
  bool IsKeptByTool(std::size_t index) const {
    return IsKeptByTool(index, session_.observations().size());
  }

  // The sum of read prices before the first call in which the observation at
  // `index` was old enough, or the view showed it later, and its tool's rule
  // did not keep it; or behind the call in which it was shown again.
  PicoUsd RentBase(std::size_t index) const;

  // What masking in every turn masks with this call, in order: what is old
  // enough and not kept by a tool's rule, and was not so in the last call.
  // `masked_behind` are those behind the first of them that it had masked
  // before. A session whose policy changed is taken to have had this one.
  struct EveryTurn {
    std::vector<std::size_t> masked_now;
    std::vector<std::size_t> masked_behind;
  };
  EveryTurn InEveryTurn() const;

  // The end of the observations that came together from `begin` on.
  std::size_t GroupEnd(std::size_t begin) const;

  // Whether nothing but the window may keep a group up to `end` from being
  // masked: kKeepObservationsMin newer ones are there, and an assistant message
  // follows.
  bool IsMaskableForWindow(std::size_t end, std::int64_t turn) const;

 private:
  bool IsOldEnough(std::size_t end, std::int64_t turn) const;
  std::size_t NextEnd(std::size_t begin) const;
  std::size_t OldCount() const;
  // Of those that are not old, in order: which have what the view shows later
  // and does not lose by this rule itself.
  std::vector<std::size_t> EarlyCopies(bool is_forced) const;
  // The observations of a tool rule that keeps some, in order: from a place on
  // that no question goes behind.
  struct ToolKeep {
    const ToolRule* rule = nullptr;
    std::vector<std::size_t> observations;
  };
  void FindToolKeeps();
  const ToolKeep* KeepOf(std::size_t index) const;
  // Of the first `count` observations of the history: whether the one at
  // `index` is among the newest that `keep`, its tool's rule, keeps.
  static bool IsAmongNewest(const ToolKeep& keep, std::size_t index,
                            std::size_t count);
  bool IsKeptByTool(std::size_t index, std::size_t count) const;
  // How many observations the last view had.
  std::size_t LastCount() const;

  const Session& session_;
  const Policy& policy_;
  const Exempt exempt_;
  const std::size_t old_count_;
  std::vector<ToolKeep> tool_keeps_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_ELIGIBLE_H_
