// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_ELIGIBLE_H_
#define CLERESTORY_SERVER_VIEW_ELIGIBLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/model/money.h"
#include "server/policy/policy.h"
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
  Eligible(const Session& session, const Policy& policy);

  // How many observations, from the first, are old enough, their batches whole
  // and acted upon.
  std::size_t old_count() const { return old_count_; }

  // Of those, which are not masked and may be, with the earlier copies of what
  // the view shows later, which need not be old; in order. What a tool's rule
  // keeps is left out unless the window forces the break.
  std::vector<std::size_t> Indexes(bool is_forced) const;

  // The sum of read prices before the first call in which the observation at
  // `index` was old enough, or the view showed it later.
  PicoUsd RentBase(std::size_t index) const;

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
  // Whether it is among the newest that its tool's rule keeps.
  bool IsKeptByTool(std::size_t index) const;
  void FindToolKeeps();

  const Session& session_;
  const Policy& policy_;
  const std::size_t old_count_;
  // By rule of the policy: the first observation that the rule keeps.
  std::vector<std::size_t> kept_from_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_ELIGIBLE_H_
