// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/eligible.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "server/model/money.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/view/session.h"

namespace clerestory {

Eligible::Eligible(const Session& session, const Policy& policy)
    : session_(session), policy_(policy), old_count_(OldCount()) {
  FindToolKeeps();
}

// Whether the observations up to `end` of a batch of `turn` are old enough.
bool Eligible::IsOldEnough(std::size_t end, std::int64_t turn) const {
  const auto& all = session_.observations();
  const auto newer = static_cast<std::int64_t>(all.size() - end);
  if (newer < policy_.keep_observations ||
      session_.turn_count() - turn <
          std::max<std::int64_t>(1, policy_.keep_turns)) {
    return false;
  }
  // Of together at most keep_tokens: with the last of these it must be more.
  return policy_.keep_tokens == 0 ||
         session_.raw_tokens().observations -
                 all[end - 1].observation_tokens_before >
             policy_.keep_tokens;
}

bool Eligible::IsMaskableForWindow(std::size_t end, std::int64_t turn) const {
  return static_cast<std::int64_t>(session_.observations().size() - end) >=
             kKeepObservationsMin &&
         session_.turn_count() - turn >= 1;
}

std::size_t Eligible::GroupEnd(std::size_t begin) const {
  const auto& all = session_.observations();
  std::size_t end = begin;
  while (end < all.size() && all[end].turn == all[begin].turn) ++end;
  return end;
}

// The end of the observations that become eligible together with the one at
// `begin`; `begin` itself if they do not yet. A batch is waited for, and not
// cut, for kBatchHoldTurns.
std::size_t Eligible::NextEnd(std::size_t begin) const {
  const auto& all = session_.observations();
  std::size_t end = GroupEnd(begin);
  for (std::size_t i = begin; i < end; ++i) {
    if (session_.turn_count() - all[i].batch >= kBatchHoldTurns) continue;
    const Batch& batch =
        session_.batches()[static_cast<std::size_t>(all[i].batch)];
    if (batch.open_call_count > 0) return begin;
    if (batch.observations_end > end) {
      end = GroupEnd(batch.observations_end - 1);
    }
  }
  const bool is_old = end > begin && IsOldEnough(end, all[end - 1].turn);
  return is_old ? end : begin;
}

std::size_t Eligible::OldCount() const {
  const auto& all = session_.observations();
  auto count = static_cast<std::size_t>(session_.eligible_count());
  // Fewer than in the last view if this policy keeps more.
  if (count > 0 && !IsOldEnough(count, all[count - 1].turn)) count = 0;
  while (count < all.size()) {
    const std::size_t end = NextEnd(count);
    if (end == count) break;
    count = end;
  }
  return count;
}

void Eligible::FindToolKeeps() {
  const auto& all = session_.observations();
  for (const ToolRule& rule : policy_.tools) {
    std::int64_t left = rule.keep_observations;
    std::size_t first = all.size();
    while (left > 0 && first > 0) {
      --first;
      if (RuleFor(policy_, all[first].tool) == &rule) --left;
    }
    kept_from_.push_back(first);
  }
}

bool Eligible::IsKeptByTool(std::size_t index) const {
  if (policy_.tools.empty()) return false;
  const ToolRule* rule = RuleFor(policy_, session_.observations()[index].tool);
  if (rule == nullptr) return false;
  return index >=
         kept_from_[static_cast<std::size_t>(rule - policy_.tools.data())];
}

std::vector<std::size_t> Eligible::EarlyCopies(bool is_forced) const {
  const auto& all = session_.observations();
  // Of those that are not old: whether it goes, and whether what the view shows
  // behind it, and keeps, has the same content or answers an equal call.
  struct Copied {
    bool goes = false;
    bool by_content = false;
    bool by_call = false;
  };
  std::vector<Copied> copied(all.size() - old_count_);
  const auto is_kept = [&](std::size_t next, bool Copied::* by) {
    if (next == kNone) return false;
    const Copied& there = copied[next - old_count_];
    const bool is_shown =
        !all[next].placeholder.has_value() && !all[next].is_dropped;
    return (is_shown && !there.goes) || there.*by;
  };
  std::vector<std::size_t> indexes;
  const std::set<std::size_t>& candidates = session_.copied();
  for (auto at = candidates.rbegin(); at != candidates.rend(); ++at) {
    if (*at < old_count_) break;
    const Observation& observation = all[*at];
    Copied& here = copied[*at - old_count_];
    here.by_content = is_kept(observation.next_identical, &Copied::by_content);
    here.by_call = is_kept(observation.next_equal_call, &Copied::by_call);
    const Batch& batch =
        session_.batches()[static_cast<std::size_t>(observation.batch)];
    here.goes =
        (here.by_content ||
         (policy_.duplicates == DuplicateRule::kSuperseded && here.by_call)) &&
        !observation.placeholder.has_value() && !observation.is_dropped &&
        session_.turn_count() - observation.turn >= 1 &&
        batch.open_call_count == 0 && (is_forced || !IsKeptByTool(*at));
    if (here.goes) indexes.push_back(*at);
  }
  std::ranges::reverse(indexes);
  return indexes;
}

PicoUsd Eligible::RentBase(std::size_t index) const {
  const auto& all = session_.observations();
  PicoUsd base = index < static_cast<std::size_t>(session_.eligible_count())
                     ? all[index].rent_base
                     : session_.read_price_sum();
  const auto begin_with = [&](std::size_t copy) {
    if (copy != kNone) base = std::min(base, all[copy].come_rent_base);
  };
  if (policy_.duplicates != DuplicateRule::kOff) {
    begin_with(all[index].next_identical);
  }
  if (policy_.duplicates == DuplicateRule::kSuperseded) {
    begin_with(all[index].next_equal_call);
  }
  return base;
}

std::vector<std::size_t> Eligible::Indexes(bool is_forced) const {
  std::vector<std::size_t> indexes;
  const auto add = [&](std::size_t i) {
    if (is_forced || !IsKeptByTool(i)) indexes.push_back(i);
  };
  for (const std::size_t i : session_.candidates()) {
    if (i < old_count_) add(i);
  }
  for (auto i = static_cast<std::size_t>(session_.eligible_count());
       i < old_count_; ++i) {
    add(i);
  }
  if (policy_.duplicates == DuplicateRule::kOff) return indexes;
  const std::vector<std::size_t> copies = EarlyCopies(is_forced);
  indexes.insert(indexes.end(), copies.begin(), copies.end());
  return indexes;
}

}  // namespace clerestory
