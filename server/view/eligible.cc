// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/eligible.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "server/model/money.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/view/session.h"

namespace clerestory {

Eligible::Eligible(const Session& session, const Policy& policy,
                   const std::set<std::string>* unmasked_tools)
    : session_(session),
      policy_(policy),
      exempt_(session, policy, unmasked_tools),
      old_count_(OldCount()) {
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

std::size_t Eligible::LastCount() const {
  if (!session_.last_view().has_value()) return 0;
  const auto& messages = session_.messages();
  const auto next =
      static_cast<std::size_t>(session_.last_view()->message_count);
  return next < messages.size() ? messages[next].first_observation
                                : session_.observations().size();
}

void Eligible::FindToolKeeps() {
  std::size_t lacking = 0;  // Rules of which not all is found that they kept.
  for (const ToolRule& rule : policy_.tools) {
    if (rule.keep_observations <= 0) continue;
    tool_keeps_.push_back({.rule = &rule, .observations = {}});
    ++lacking;
  }
  if (tool_keeps_.empty()) return;
  const std::size_t last_count = LastCount();
  const std::size_t first =
      session_.candidates().empty()
          ? static_cast<std::size_t>(session_.eligible_count())
          : session_.candidates().front();
  std::vector<std::int64_t> found(tool_keeps_.size());
  for (std::size_t i = session_.observations().size();
       i-- > 0 && (i >= first || lacking > 0);) {
    const ToolKeep* const keep = KeepOf(i);
    if (keep == nullptr) continue;
    const auto at = static_cast<std::size_t>(keep - tool_keeps_.data());
    tool_keeps_[at].observations.push_back(i);
    if (i < last_count && ++found[at] == keep->rule->keep_observations) {
      --lacking;
    }
  }
  for (ToolKeep& keep : tool_keeps_) std::ranges::reverse(keep.observations);
}

const Eligible::ToolKeep* Eligible::KeepOf(std::size_t index) const {
  if (tool_keeps_.empty()) return nullptr;
  const ToolRule* rule = RuleFor(policy_, session_.observations()[index].tool);
  for (const ToolKeep& keep : tool_keeps_) {
    if (keep.rule == rule) return &keep;
  }
  return nullptr;
}

bool Eligible::IsAmongNewest(const ToolKeep& keep, std::size_t index,
                             std::size_t count) {
  const auto newer = std::ranges::lower_bound(keep.observations, count) -
                     std::ranges::upper_bound(keep.observations, index);
  return newer < keep.rule->keep_observations;
}

bool Eligible::IsKeptByTool(std::size_t index, std::size_t count) const {
  const ToolKeep* const keep = KeepOf(index);
  return keep != nullptr && IsAmongNewest(*keep, index, count);
}

Eligible::EveryTurn Eligible::InEveryTurn() const {
  const auto was_old = static_cast<std::size_t>(session_.eligible_count());
  const std::size_t last_count = LastCount();
  EveryTurn every;
  for (const ToolKeep& keep : tool_keeps_) {
    for (const std::size_t i : keep.observations) {
      if (i < was_old && IsAmongNewest(keep, i, last_count) &&
          !IsAmongNewest(keep, i, session_.observations().size())) {
        every.masked_now.push_back(i);
      }
    }
  }
  std::ranges::sort(every.masked_now);
  for (std::size_t i = was_old; i < old_count_; ++i) {
    if (!IsKeptByTool(i)) every.masked_now.push_back(i);
  }
  if (every.masked_now.empty()) return every;
  for (std::size_t i = every.masked_now.front() + 1; i < was_old; ++i) {
    if (!IsKeptByTool(i, last_count)) every.masked_behind.push_back(i);
  }
  return every;
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
    if (next == kNoIndex) return false;
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
        batch.open_call_count == 0 && (is_forced || !IsKeptByTool(*at)) &&
        !exempt_.IsExempt(*at, is_forced);
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
    if (copy != kNoIndex) base = std::min(base, all[copy].come_rent_base);
  };
  if (policy_.duplicates != DuplicateRule::kOff) {
    begin_with(all[index].next_identical);
  }
  if (policy_.duplicates == DuplicateRule::kSuperseded) {
    begin_with(all[index].next_equal_call);
  }
  base = std::max(base, all[index].restore_rent_base);
  const ToolKeep* const keep = KeepOf(index);
  if (keep == nullptr) return base;
  // It was pushed out of what the rule keeps by the last of so many newer ones.
  const auto newer = std::ranges::upper_bound(keep->observations, index);
  if (keep->observations.end() - newer < keep->rule->keep_observations) {
    return session_.read_price_sum();
  }
  return std::max(base,
                  all[newer[keep->rule->keep_observations - 1]].come_rent_base);
}

std::vector<std::size_t> Eligible::Indexes(bool is_forced) const {
  std::vector<std::size_t> indexes;
  const auto add = [&](std::size_t i) {
    if ((is_forced || !IsKeptByTool(i)) && !exempt_.IsExempt(i, is_forced)) {
      indexes.push_back(i);
    }
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
