// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/tool_registry.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/model/breaker_record.h"
#include "server/model/tool_outcome.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"

namespace clerestory {
namespace {

using Names = std::set<std::string>;

// What is counted together.
constexpr absl::string_view kOtherTools = "";

// Who is remembered by less than half an observation gives up its place.
constexpr std::int64_t kForgotten = kCountUnit / 2;

BreakerLabel LabelOf(BreakerState state) {
  switch (state) {
    case BreakerState::kObserving:
    case BreakerState::kMasked:
      return BreakerLabel::kClosed;
    case BreakerState::kUnmasked:
      return BreakerLabel::kOpen;
    case BreakerState::kProbing:
      return BreakerLabel::kHalfOpen;
  }
  return BreakerLabel::kClosed;
}

}  // namespace

BreakerOptions BreakerOptionsOf(const Policy& policy) {
  return {.rate_permille = policy.refetch_rate_permille,
          .samples_min = policy.refetch_samples_min,
          .confidence_percent = policy.refetch_confidence_percent,
          .cool_off_minutes = policy.refetch_cool_off_minutes,
          .probe_permille = policy.refetch_probe_permille};
}

absl::StatusOr<std::int64_t> ToolRegistry::Load() {
  CLERESTORY_ASSIGN_OR_RETURN(const StoredTools stored, store_.ListTools());
  std::int64_t skipped_count = stored.skipped_count;
  const MutexLock lock(mutex_);
  for (const StoredTool& tool : stored.entries) {
    if (!HasRoom(tool.tenant)) {
      ++skipped_count;
      continue;
    }
    Tenant& tenant = tenants_[tool.tenant];
    if (tenant.tools.find(tool.tool) != tenant.tools.end()) continue;
    const EntryPtr entry = TryAdd(tenant, tool.tool);
    if (entry == nullptr) {
      ++skipped_count;
    } else {
      entry->breaker = ToolBreaker(tool.record);
      tenant.time = std::max(tenant.time, entry->breaker.record().time);
      const BreakerLabel label = LabelOf(tool.record.state);
      if (metrics_ != nullptr && label != BreakerLabel::kClosed) {
        metrics_->SetBreaker(tool.tenant, tool.tool, label);
      }
      tenant.unmasked = nullptr;
    }
  }
  return skipped_count;
}

void ToolRegistry::Learn(absl::string_view tenant, absl::string_view session,
                         const std::vector<ToolOutcome>& outcomes,
                         const BreakerOptions& options, TimeMicros now) {
  if (outcomes.empty()) return;
  const std::string tenant_name(tenant);
  std::vector<BreakerTransition> transitions;
  std::vector<std::string> evicted;
  // What is to be written, each once.
  struct Change {
    EntryPtr entry;
    std::int64_t count = 0;
  };
  std::map<std::string, Change> changes;
  {
    const MutexLock lock(mutex_);
    if (!HasRoom(tenant_name)) {
      counts_.no_room_count += static_cast<std::int64_t>(outcomes.size());
      return;
    }
    Tenant& all = tenants_[tenant_name];
    now = Tick(all, now);
    for (const ToolOutcome& outcome : outcomes) {
      const EntryPtr entry = EntryFor(all, outcome.tool, now, evicted);
      if (entry == nullptr) {
        ++counts_.no_room_count;
        continue;
      }
      const bool is_other = all.tools.find(outcome.tool) == all.tools.end() ||
                            outcome.tool == kOtherTools;
      entry->options = options;
      const std::size_t transition_count = transitions.size();
      if (is_other) {
        ++counts_.other_count;
        entry->breaker.Add(outcome, options, now);
      } else {
        entry->breaker.Advance(outcome.tool, options, now, transitions);
        if (entry->breaker.IsMaskedIn(tenant, outcome.tool, session)) {
          entry->breaker.Learn(outcome, options, now, transitions);
        } else {
          entry->breaker.AddPriced(outcome, options, now);
        }
      }
      ++counts_.learned_count;
      if (outcome.masked_count > 0 || outcome.refetched_count > 0 ||
          transitions.size() > transition_count) {
        changes[is_other ? std::string(kOtherTools) : outcome.tool] = {
            .entry = entry, .count = ++entry->changed_count};
      }
    }
    if (!transitions.empty() || !evicted.empty()) all.unmasked = nullptr;
    for (const std::string& tool : evicted) {
      removing_.emplace(tenant_name, tool);
    }
    Count(tenant_name, transitions);
  }
  Log(tenant_name, transitions);
  for (const std::string& tool : evicted) {
    const absl::Status removed = store_.DeleteTool(tenant_name, tool);
    const MutexLock lock(mutex_);
    Removed(tenant_name, tool, removed);
  }
  for (const auto& [tool, change] : changes) {
    Write(tenant_name, tool, *change.entry, change.count);
  }
}

std::shared_ptr<const Names> ToolRegistry::UnmaskedFor(
    absl::string_view tenant, absl::string_view session, TimeMicros now) {
  static const auto& none =
      *new std::shared_ptr<const Names>(std::make_shared<const Names>());
  const std::string tenant_name(tenant);
  std::vector<BreakerTransition> transitions;
  std::shared_ptr<const Names> unmasked;
  {
    const MutexLock lock(mutex_);
    const auto found = tenants_.find(tenant_name);
    if (found == tenants_.end()) return none;
    Tenant& all = found->second;
    now = Tick(all, now);
    if (all.unmasked == nullptr || now >= all.valid_until) {
      Advance(all, now, transitions);
      Count(tenant_name, transitions);
    }
    unmasked = all.unmasked;
    if (!all.probing.empty()) {
      auto with_probing = std::make_shared<Names>(*unmasked);
      for (const std::string& tool : all.probing) {
        const ToolBreaker& breaker = all.tools.at(tool)->breaker;
        if (!breaker.IsMaskedIn(tenant, tool, session)) {
          with_probing->insert(tool);
        }
      }
      unmasked = std::move(with_probing);
    }
  }
  Log(tenant_name, transitions);
  return unmasked;
}

std::vector<ToolStatus> ToolRegistry::List(absl::string_view tenant,
                                           const BreakerOptions& options,
                                           TimeMicros now) {
  const std::string tenant_name(tenant);
  std::vector<BreakerTransition> transitions;
  std::vector<ToolStatus> tools;
  {
    const MutexLock lock(mutex_);
    const auto found = tenants_.find(tenant_name);
    if (found == tenants_.end()) return tools;
    now = Tick(found->second, now);
    Advance(found->second, now, transitions);
    Count(tenant_name, transitions);
    for (const auto& [tool, entry] : found->second.tools) {
      tools.push_back(
          {.tool = tool, .figures = entry->breaker.Figures(options)});
    }
  }
  Log(tenant_name, transitions);
  return tools;
}

absl::Status ToolRegistry::Reset(absl::string_view tenant,
                                 absl::string_view tool, TimeMicros now) {
  const std::string tenant_name(tenant);
  const std::string tool_name(tool);
  std::vector<BreakerTransition> transitions;
  EntryPtr entry;
  std::int64_t count = 0;
  {
    const MutexLock lock(mutex_);
    entry = Find(tenant_name, tool_name);
    // While it waits, the entry may give up its place, and another take it.
    while (entry != nullptr && entry->is_writing) {
      written_.Wait(mutex_);
      entry = Find(tenant_name, tool_name);
    }
    removing_.emplace(tenant_name, tool_name);
    if (entry != nullptr) {
      Tenant& all = tenants_.at(tenant_name);
      entry->is_writing = true;
      entry->breaker.Reset(tool, entry->options, Tick(all, now), transitions);
      count = ++entry->changed_count;
      all.unmasked = nullptr;
      Count(tenant_name, transitions);
    }
  }
  Log(tenant_name, transitions);
  const absl::Status removed = store_.DeleteTool(tenant, tool);
  const MutexLock lock(mutex_);
  if (entry != nullptr) {
    entry->is_writing = false;
    entry->written_count = count;
  }
  Removed(tenant_name, tool_name, removed);
  return removed;
}

ToolCounts ToolRegistry::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

bool ToolRegistry::HasRoom(const std::string& tenant) const {
  return entry_count_ < kToolsMax || tenants_.find(tenant) != tenants_.end();
}

TimeMicros ToolRegistry::Tick(Tenant& tenant, TimeMicros now) {
  const TimeMicros before = tenant.time;
  tenant.time = LatestTime(before, now);
  // What is not masked was found out as of a time that never was.
  if (tenant.time < before) tenant.unmasked = nullptr;
  return tenant.time;
}

ToolRegistry::EntryPtr ToolRegistry::Find(const std::string& tenant,
                                          const std::string& tool) const {
  const auto all = tenants_.find(tenant);
  if (all == tenants_.end()) return nullptr;
  const auto found = all->second.tools.find(tool);
  return found == all->second.tools.end() ? nullptr : found->second;
}

void ToolRegistry::Removed(const std::string& tenant, const std::string& tool,
                           const absl::Status& removed) {
  if (!removed.ok()) ++counts_.failed_write_count;
  // Another may be removing it, too.
  removing_.erase(removing_.find({tenant, tool}));
  written_.SignalAll();
}

ToolRegistry::EntryPtr ToolRegistry::EntryFor(
    Tenant& tenant, const std::string& tool, TimeMicros now,
    std::vector<std::string>& evicted) {
  const auto found = tenant.tools.find(tool);
  if (found != tenant.tools.end()) return found->second;
  if (static_cast<std::int64_t>(tool.size()) <= kNameBytesMax) {
    EntryPtr entry = TryAdd(tenant, tool);
    if (entry != nullptr) return entry;
    // The first that is forgotten makes room.
    for (auto it = tenant.tools.begin(); it != tenant.tools.end(); ++it) {
      Entry& candidate = *it->second;
      if (it->first == kOtherTools || candidate.is_writing ||
          candidate.written_count != candidate.changed_count ||
          candidate.breaker.record().state != BreakerState::kMasked) {
        continue;
      }
      // A masked tool has no transition but by an outcome.
      std::vector<BreakerTransition> none;
      candidate.breaker.Advance(it->first, candidate.options, now, none);
      if (candidate.breaker.record().masked > kForgotten) continue;
      evicted.push_back(it->first);
      tenant.tools.erase(it);
      --entry_count_;
      ++counts_.evicted_count;
      return TryAdd(tenant, tool);
    }
  }
  const std::string other(kOtherTools);
  const auto rest = tenant.tools.find(other);
  return rest != tenant.tools.end() ? rest->second : TryAdd(tenant, other);
}

ToolRegistry::EntryPtr ToolRegistry::TryAdd(Tenant& tenant,
                                            const std::string& tool) {
  const bool has_other =
      tenant.tools.find(std::string(kOtherTools)) != tenant.tools.end();
  const std::int64_t named_count =
      static_cast<std::int64_t>(tenant.tools.size()) - (has_other ? 1 : 0);
  if (static_cast<std::int64_t>(tool.size()) > kNameBytesMax ||
      entry_count_ >= kToolsMax ||
      (tool != kOtherTools && named_count >= kToolsPerTenantMax)) {
    return nullptr;
  }
  ++entry_count_;
  EntryPtr& entry = tenant.tools[tool];
  entry = std::make_shared<Entry>();
  return entry;
}

void ToolRegistry::Advance(Tenant& tenant, TimeMicros now,
                           std::vector<BreakerTransition>& transitions) {
  auto unmasked = std::make_shared<Names>();
  tenant.probing.clear();
  tenant.valid_until = ToolBreaker::kNever;
  for (const auto& [tool, entry] : tenant.tools) {
    ToolBreaker& breaker = entry->breaker;
    breaker.Advance(tool, entry->options, now, transitions);
    if (breaker.record().state == BreakerState::kUnmasked) {
      unmasked->insert(tool);
      tenant.valid_until = std::min(tenant.valid_until, breaker.next_change());
    } else if (breaker.record().state == BreakerState::kProbing) {
      tenant.probing.push_back(tool);
    }
  }
  tenant.unmasked = std::move(unmasked);
}

void ToolRegistry::Write(const std::string& tenant, const std::string& tool,
                         Entry& entry, std::int64_t count) {
  StoredTool stored = {.tenant = tenant, .tool = tool};
  {
    const MutexLock lock(mutex_);
    // Who writes now may have begun before this change. Of those who wait for
    // that, one writes for all. Who removes what was stored under that name
    // began before it, too.
    while (entry.written_count < count &&
           (entry.is_writing || removing_.contains({tenant, tool}))) {
      written_.Wait(mutex_);
    }
    if (entry.written_count >= count) return;
    entry.is_writing = true;
    count = entry.changed_count;
    stored.record = entry.breaker.record();
  }
  const absl::Status written = store_.PutTool(stored);
  const MutexLock lock(mutex_);
  if (!written.ok()) ++counts_.failed_write_count;
  entry.is_writing = false;
  entry.written_count = count;
  written_.SignalAll();
}

void ToolRegistry::Count(const std::string& tenant,
                         const std::vector<BreakerTransition>& transitions) {
  for (const BreakerTransition& transition : transitions) {
    ++counts_.entered_counts[static_cast<std::size_t>(transition.to)];
    if (metrics_ != nullptr) {
      metrics_->BreakerChanged(tenant, transition.tool,
                               LabelOf(transition.from),
                               LabelOf(transition.to));
    }
  }
}

void ToolRegistry::Log(
    const std::string& tenant,
    const std::vector<BreakerTransition>& transitions) const {
  if (logger_ == nullptr) return;
  for (const BreakerTransition& transition : transitions) {
    const BreakerFigures& figures = transition.figures;
    logger_->Write(Severity::kInfo, "tool_state_changed",
                   {{"tenant", tenant},
                    {"tool", transition.tool},
                    {"from", std::string(BreakerStateName(transition.from))},
                    {"to", std::string(BreakerStateName(transition.to))},
                    {"masked_count", figures.masked_count},
                    {"refetched_count", figures.refetched_count},
                    {"rate_ppm", figures.rate},
                    {"rate_low_ppm", figures.interval.low},
                    {"rate_high_ppm", figures.interval.high},
                    {"break_even_ppm", figures.break_even}});
  }
}

}  // namespace clerestory
