// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_TOOL_REGISTRY_H_
#define CLERESTORY_SERVER_ENGINE_TOOL_REGISTRY_H_

#include <array>
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
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/metrics/server_metrics.h"
#include "server/model/tool_outcome.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"

namespace clerestory {

// What `policy` says of breakers.
BreakerOptions BreakerOptionsOf(const Policy& policy);

// What became of the outcomes that a ToolRegistry was given.
struct ToolCounts {
  // Outcomes that were learned from, and of these, those of tools that have no
  // place of their own.
  std::int64_t learned_count = 0;
  std::int64_t other_count = 0;
  // Outcomes of tenants that there is no room for.
  std::int64_t no_room_count = 0;
  // Tools that gave up their place.
  std::int64_t evicted_count = 0;
  // Writes to the store that failed.
  std::int64_t failed_write_count = 0;
  // Transitions, by the state that they led to.
  std::array<std::int64_t, 4> entered_counts = {};

  friend bool operator==(const ToolCounts&, const ToolCounts&) = default;
};

// A tool of a tenant.
struct ToolStatus {
  // "" stands for all tools that have no place of their own.
  std::string tool;
  BreakerFigures figures;

  friend bool operator==(const ToolStatus&, const ToolStatus&) = default;
};

// The breakers of tenants' tools: which tools' outputs are masked, learned from
// all sessions of the tenant and stored.
//
// Names of tools come from clients and may be anything. So there is room for
// kToolsPerTenantMax tools of a tenant and kToolsMax in all, with names of 1 to
// kNameBytesMax bytes. What a tenant has beyond that is counted together, under
// the name "", and always masked. A tool of which hardly anything is remembered
// gives its place to a new one. No tenant's outcomes change what is masked of
// another.
//
// A tenant's time does not go back (LatestTime): who gives an older one, as of
// an old session that is looked at, is taken to speak now.
//
// Safe from any thread.
class ToolRegistry {
 public:
  static constexpr std::int64_t kToolsPerTenantMax = 256;
  static constexpr std::int64_t kToolsMax = 65'536;
  static constexpr std::int64_t kNameBytesMax = 256;

  // `store`, and what of the others is not null, must outlive the registry.
  // Changes of state are logged and counted there. Nothing
  // is read from the store yet.
  ToolRegistry(SessionStore& store, Logger* logger,
               ServerMetrics* metrics = nullptr)
      : store_(store), logger_(logger), metrics_(metrics) {}
  ToolRegistry(const ToolRegistry&) = delete;
  ToolRegistry& operator=(const ToolRegistry&) = delete;

  // Takes over what is stored, except of tools of which something was learned
  // before. Returns how many entries were passed by: what SessionStore skipped,
  // and those that there is no room for. Errors are those of
  // SessionStore::ListTools; the registry then learns anew, over what is
  // stored. Blocks on the store.
  absl::StatusOr<std::int64_t> Load() CLERESTORY_EXCLUDES(mutex_);

  // Learns from what came of the session, each outcome of which is to be told
  // once, and stores what is known now. Of tools that are not masked in it,
  // only what they cost and saved counts. When it returns, the writes were
  // done, or failed, which counts() tells: then what was learned is in force,
  // and is stored with the next outcome of the tool. So is what is told of
  // money alone: it comes with every call, and little is lost with it. Each
  // transition is a line of the log, `tool_state_changed`, with its figures.
  //
  // Blocks on the store; those who learn of one tool at a time share a write.
  void Learn(absl::string_view tenant, absl::string_view session,
             const std::vector<ToolOutcome>& outcomes,
             const BreakerOptions& options, TimeMicros now)
      CLERESTORY_EXCLUDES(mutex_);

  // The tools whose outputs are not masked in the session by now: those that
  // are unmasked, and those that are probed in other sessions. Never null. Does
  // not wait for the store.
  std::shared_ptr<const std::set<std::string>> UnmaskedFor(
      absl::string_view tenant, absl::string_view session, TimeMicros now)
      CLERESTORY_EXCLUDES(mutex_);

  // The tools of the tenant by now, in the order of their bytes, as they are
  // judged by `options`. Does not wait for the store.
  std::vector<ToolStatus> List(absl::string_view tenant,
                               const BreakerOptions& options, TimeMicros now)
      CLERESTORY_EXCLUDES(mutex_);

  // Forgets what was learned of the tool, so that it is masked again; OK if
  // nothing was. Errors are those of SessionStore::DeleteTool: it is forgotten
  // then, too, but may be back after a restart. Blocks on the store.
  absl::Status Reset(absl::string_view tenant, absl::string_view tool,
                     TimeMicros now) CLERESTORY_EXCLUDES(mutex_);

  // Since the registry was made.
  ToolCounts counts() const CLERESTORY_EXCLUDES(mutex_);

 private:
  struct Entry {
    ToolBreaker breaker;
    // What it was judged by last.
    BreakerOptions options;
    // How many changes there were, and how many of them a write was done or
    // failed with.
    std::int64_t changed_count = 0;
    std::int64_t written_count = 0;
    bool is_writing = false;
  };
  using EntryPtr = std::shared_ptr<Entry>;

  struct Tenant {
    // By name. Who holds an entry that was removed changes nothing.
    std::map<std::string, EntryPtr> tools;
    // The latest time there was.
    TimeMicros time = 0;
    // What is not masked in any session, and what is probed, up to
    // `valid_until`; null if it has to be found out.
    std::shared_ptr<const std::set<std::string>> unmasked;
    std::vector<std::string> probing;
    TimeMicros valid_until = 0;
  };

  // Whether anything can be learned of the tenant.
  bool HasRoom(const std::string& tenant) const CLERESTORY_REQUIRES(mutex_);

  // The tenant's time, which is the later of `now` and what it was.
  TimeMicros Tick(Tenant& tenant, TimeMicros now) CLERESTORY_REQUIRES(mutex_);

  // Null if there is none.
  EntryPtr Find(const std::string& tenant, const std::string& tool) const
      CLERESTORY_REQUIRES(mutex_);

  // Ends what an entry in `removing_` began.
  void Removed(const std::string& tenant, const std::string& tool,
               const absl::Status& removed) CLERESTORY_REQUIRES(mutex_);

  // The entry that outcomes of the tool count for; null if there is no room.
  // Adds the name of who had its place to `evicted`.
  EntryPtr EntryFor(Tenant& tenant, const std::string& tool, TimeMicros now,
                    std::vector<std::string>& evicted)
      CLERESTORY_REQUIRES(mutex_);

  // Adds an entry that there is none of. Null if there is no room.
  EntryPtr TryAdd(Tenant& tenant, const std::string& tool)
      CLERESTORY_REQUIRES(mutex_);

  // Lets time pass for all of the tenant's tools.
  void Advance(Tenant& tenant, TimeMicros now,
               std::vector<BreakerTransition>& transitions)
      CLERESTORY_REQUIRES(mutex_);

  // Stores the entry unless that was done since its change number `count`.
  void Write(const std::string& tenant, const std::string& tool, Entry& entry,
             std::int64_t count) CLERESTORY_EXCLUDES(mutex_);

  // Under the lock, so that they are counted in the order that they came in.
  void Count(const std::string& tenant,
             const std::vector<BreakerTransition>& transitions)
      CLERESTORY_REQUIRES(mutex_);
  void Log(const std::string& tenant,
           const std::vector<BreakerTransition>& transitions) const;

  SessionStore& store_;
  Logger* const logger_;
  ServerMetrics* const metrics_;

  mutable Mutex mutex_;
  // Signalled when a write or a removal is done or failed.
  CondVar written_;
  // Tenants and tools that are being removed from the store, once for each who
  // does. What is learned of them meanwhile is written afterwards.
  std::multiset<std::pair<std::string, std::string>> removing_
      CLERESTORY_GUARDED_BY(mutex_);
  std::map<std::string, Tenant> tenants_ CLERESTORY_GUARDED_BY(mutex_);
  std::int64_t entry_count_ CLERESTORY_GUARDED_BY(mutex_) = 0;
  ToolCounts counts_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_TOOL_REGISTRY_H_
