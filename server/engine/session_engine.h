// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_SESSION_ENGINE_H_
#define CLERESTORY_SERVER_ENGINE_SESSION_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/backtest/backtest.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/engine/calibration_registry.h"
#include "server/engine/decide.h"
#include "server/engine/policy_registry.h"
#include "server/engine/recall.h"
#include "server/engine/session_cache.h"
#include "server/engine/tenant_report.h"
#include "server/engine/tool_registry.h"
#include "server/metrics/server_metrics.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "server/tokens/token_counter.h"
#include "server/view/cache.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "server/view/view.h"

namespace clerestory {

// What came of a tool in a session.
struct ToolSummary {
  std::string tool = {};  // "" if it is all that are not told apart.
  bool is_other = false;  // Whether it is.
  ToolTally tally = {};
  // Whether its outputs stay from now on, as of Exempt::IsUnmasked.
  bool is_unmasked = false;
};

// A session at a glance.
struct SessionSummary {
  SessionHeader header;
  std::int64_t message_count = 0;
  std::int64_t history_bytes = 0;
  std::int64_t observation_count = 0;
  std::int64_t masked_count = 0;
  Ledger ledger;
  PicoUsd read_price_sum = 0;  // As of Session.
  // Of the model that was called last.
  CacheStatus cache_status = CacheStatus::kUnknown;
  // By name, and last all others, if there are any.
  std::vector<ToolSummary> tools;
  std::vector<Pin> pins;
  std::int64_t control_call_count = 0;  // As of Session.
};

// A message as it was appended.
struct HistoryEntry {
  Bytes message;
  TimeMicros time = 0;
};

// An observation, and whether a pin keeps it from being masked.
struct ListedObservation {
  Observation observation;
  bool is_pinned = false;
};

// A part of the content of an observation.
struct ObservationContent {
  Observation observation;
  bool is_pinned = false;
  std::string content;
  std::int64_t next_offset = 0;  // 0 at the end.
};

// What came of setting a pin, or of taking it away.
struct PinResult {
  bool is_changed = false;
  std::int64_t pin_count = 0;
};

// All that can be done with sessions, without the wire: loads them, has the
// heart decide, and stores what was decided before it is answered. Calls on one
// session follow one another; calls on different ones do not wait for each
// other.
//
// Errors that any method on a session may return: kFieldInvalid for an id that
// is not one, kSessionNotFound, and those of the store. After a failed write
// the session is loaded again, so what is answered next is what is stored.
//
// Safe from any thread. Calls block on the store.
class SessionEngine {
 public:
  struct Options {
    // Of tenants that have none of their own (policies()).
    Policy policy;
    // Memory for sessions that are not in use.
    std::int64_t cache_bytes_max = 1LL << 30;
    // Where it counts what is stored; null for nowhere. Must outlive the
    // engine.
    ServerMetrics* metrics = nullptr;
    // Told of what changes by itself; null for nobody. Must outlive the engine.
    Logger* logger = nullptr;
  };

  // `store` and `counter` must outlive the engine.
  SessionEngine(SessionStore& store, const TokenCounter& counter,
                Options options);

  // Creates the session `header.key`, or returns the one that is there if its
  // format, model, labels and recall tool are the same; otherwise
  // kSessionExists.
  absl::StatusOr<SessionHeader> CreateSession(const SessionHeader& header);

  absl::StatusOr<SessionSummary> GetSession(const SessionKey& key);

  // See SessionStore::List.
  absl::StatusOr<std::vector<SessionHeader>> ListSessions(
      absl::string_view tenant, absl::string_view after, std::int64_t limit);

  // The report on the closed sessions of `request.tenant`. Reads headers only.
  // Errors of MakeTenantReport.
  absl::StatusOr<TenantReport> ReportOnTenant(
      const TenantReportRequest& request,
      absl::FunctionRef<absl::Status()> check_call);

  // Ends a session; again with the same outcome is no error, with another one
  // is kSessionClosed. What the session came to is stored with it: that reads
  // its whole history. REQUIRES: `outcome` is not kOpen.
  absl::StatusOr<SessionSummary> CloseSession(const SessionKey& key,
                                              Outcome outcome, TimeMicros now);

  absl::Status DeleteSession(const SessionKey& key);

  // Appends, and returns the sequence of the message that comes next. Messages
  // that are there already at their place are not appended again.
  //
  // kSessionClosed, kAppendConflict, kSequenceGap, and those of
  // Session::CheckAppend. REQUIRES: there are messages.
  absl::StatusOr<std::int64_t> AppendMessages(const SessionKey& key,
                                              const AppendRequest& request);

  // Appends, takes the usage, decides and returns the view. All of it is one
  // write to the session. What the usage teaches of the model's tokens is
  // written after it, for the tenant; whether that succeeds changes nothing of
  // what is returned. Errors of AppendMessages, and kUsageInvalid.
  absl::StatusOr<BuiltView> BuildView(const SessionKey& key,
                                      const BuildViewRequest& request);

  // Stores usage of a call of `model`, "" being that of the last view, and
  // returns what was understood of it. What was reported
  // last, with no message appended since, is the same report again and counts
  // once. kUsageInvalid, kSessionClosed.
  absl::StatusOr<Usage> ReportUsage(const SessionKey& key,
                                    const UsageInput& usage,
                                    absl::string_view model, TimeMicros now);

  // The messages from `start` on, in order. kFieldInvalid if `start` lies
  // behind the end or is negative.
  absl::StatusOr<std::vector<HistoryEntry>> ReadHistory(const SessionKey& key,
                                                        std::int64_t start);

  // Up to `limit` observations from the one numbered `start` on.
  absl::StatusOr<std::vector<ListedObservation>> ListObservations(
      const SessionKey& key, std::size_t start, std::int64_t limit);

  // Up to `limit` bytes of the content of the observation at `sequence` and
  // `index`, from `offset` on. kObservationNotFound; kFieldInvalid if `offset`
  // lies behind its end.
  absl::StatusOr<ObservationContent> ReadObservation(const SessionKey& key,
                                                     std::int64_t sequence,
                                                     std::int64_t index,
                                                     std::int64_t offset,
                                                     std::int64_t limit);

  // See RecallObservation.
  absl::StatusOr<RecalledPage> Recall(const SessionKey& key,
                                      const RecallRequest& request);

  // Returns whether anything changed, and how many pins the session has now.
  // See ChangePin.
  absl::StatusOr<PinResult> SetPin(const SessionKey& key, const Pin& pin,
                                   bool is_pinned, TimeMicros now);

  // The session as it can be played again under another policy: its messages
  // with their times, and the models and the preamble that its views were asked
  // for with.
  absl::StatusOr<BacktestInput> ReadForTrial(const SessionKey& key);

  const SessionCache& cache() const { return cache_; }
  const TokenCounter& counter() const { return counter_; }
  // The policies of tenants, which every view is built by.
  PolicyRegistry& policies() { return policies_; }
  const PolicyRegistry& policies() const { return policies_; }

  // What is learned of how tenants' models count tokens.
  CalibrationRegistry& calibrations() { return calibrations_; }

  // What is learned of which tools' outputs are worth masking.
  ToolRegistry& tools() { return tools_; }

  // The prices that calls go by: those that are built in until others are set.
  std::shared_ptr<const PriceBook> prices() const CLERESTORY_EXCLUDES(mutex_);
  void SetPrices(std::shared_ptr<const PriceBook> prices)
      CLERESTORY_EXCLUDES(mutex_);

 private:
  // Loads the session of `entry` unless it is there.
  absl::Status Load(SessionCache::Entry& entry)
      CLERESTORY_REQUIRES(entry.mutex);

  // Writes `records`, which were applied to the session of `entry`. If that
  // fails, the session is forgotten.
  absl::Status Commit(SessionCache::Entry& entry,
                      const std::vector<Record>& records)
      CLERESTORY_REQUIRES(entry.mutex);

  // After it was stored that there is something to be learned, outside of the
  // session's lock: it writes to the store.
  void Learn(const std::string& tenant,
             const std::optional<LearnedSample>& learned);

  // Of the observations of `session` from `begin` to `end`, which its pins
  // keep, by what its tenant's policy says of tools.
  std::vector<bool> ByPins(const Session& session, std::size_t begin,
                           std::size_t end);

  // What there is to say of `session` under the rules of its tenant.
  SessionSummary Summarize(const Session& session);

  // What came of masking tools, and how the policy has it judged.
  struct LearnedTools {
    std::vector<ToolOutcome> outcomes;
    BreakerOptions options;
  };
  void TakeLearned(Session& session, LearnedTools& learned) const;

  // Runs `work(rules)` with what calls on the session of `key` go by at `now`.
  template <typename Work>
  auto WithRules(const SessionKey& key, TimeMicros now, Work work);

  // Runs `work(session, records)` with the session of `key` loaded and locked.
  // What it did to the session it adds to `records`, and these are written
  // before its result is returned. Then `learned`, unless it is null, becomes
  // what its tools taught; to be learned from outside of the session's lock,
  // since that writes to the store.
  template <typename Result, typename Work>
  Result WithSession(const SessionKey& key, Work work,
                     LearnedTools* learned = nullptr);

  SessionStore& store_;
  const TokenCounter& counter_;
  const Options options_;
  PolicyRegistry policies_;
  CalibrationRegistry calibrations_;
  ToolRegistry tools_;
  SessionCache cache_;

  mutable Mutex mutex_;
  std::shared_ptr<const PriceBook> prices_ CLERESTORY_GUARDED_BY(mutex_);
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_SESSION_ENGINE_H_
