// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_TENANT_REPORT_H_
#define CLERESTORY_SERVER_ENGINE_TENANT_REPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/engine/intervals.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"

namespace clerestory {

// Whether masking helps a tenant's agents: what its closed sessions came to, by
// how they were treated. Made of headers alone.

// Which sessions.
struct TenantReportRequest {
  std::string tenant = {};
  // Closed from the first of these on, and before the second; nothing is no
  // bound.
  std::optional<TimeMicros> close_from = {};
  std::optional<TimeMicros> close_before = {};
  // That have all of these.
  Labels labels = {};
  // Whose ids come after this one in byte order.
  std::string after = {};
};

// The sessions of one arm.
struct ArmReport {
  std::int64_t session_count = 0;
  std::array<std::int64_t, 4> outcomes = {};  // Sessions, by Outcome.
  // Sums of SessionTotals.
  std::int64_t turn_count = 0;
  std::int64_t call_count = 0;
  std::int64_t raw_tokens = 0;
  std::int64_t view_tokens = 0;
  PicoUsd raw_cost = 0;
  PicoUsd view_cost = 0;
  PicoUsd output_cost = 0;
  PicoUsd usage_cost = 0;
  PicoUsd lost = 0;
  std::int64_t observation_count = 0;
  std::int64_t masked_count = 0;
  std::int64_t refetched_count = 0;
  std::array<std::int64_t, kRepeatKindCount> repeats = {};
  std::int64_t recall_count = 0;

  // What the prompts, as they were sent, and the output of all sessions cost,
  // by estimate, for each that was resolved: in micro-dollars, with the delta
  // method's interval of a quotient of sums (QuotientSums).
  std::optional<Estimate> cost_per_resolved_micro_usd;
  // The same for each session, by the mean's standard error.
  std::optional<Estimate> cost_per_session_micro_usd;
  // The mean of their turns, in thousandths, by its standard error.
  std::optional<Estimate> milliturns_per_session;
  // In millionths, with Wilson's intervals (QuotientSums::Proportion): sessions
  // that were resolved; masked observations that were fetched again; and
  // observations for which the agent asked although it had had the same, masked
  // or not (re-fetches and duplicates), which is the rate to compare with the
  // control group's.
  std::optional<Estimate> resolved_ppm;
  std::optional<Estimate> refetched_ppm;
  std::optional<Estimate> repeated_ppm;
};

// What the arms masked and control say of each other.
enum class MaskingVerdict {
  // Fewer than kComparedSessionsMin sessions, or kComparedResolvedMin that were
  // resolved, in one of them.
  kTooFewSessions,
  // The interval of the difference of cost per resolved session has 0 in it.
  kNoDifference,
  // All of it lies below 0, or above.
  kMaskedCheaper,
  kControlCheaper,
};
inline constexpr std::int64_t kComparedSessionsMin = 30;
inline constexpr std::int64_t kComparedResolvedMin = 10;

// What an agent, or what it runs on, would do well to look at.
struct ToolAdvice {
  ToolTotals totals;
  // At least kAdvisedObservationsMin observations were judged, and at least
  // half of them are unreferenced: it reads more than it uses.
  bool reads_too_much = false;
  // At least kAdvisedObservationsMin calls, and a tenth of all, have the
  // arguments of an earlier one.
  bool repeats_calls = false;
};
inline constexpr std::int64_t kAdvisedObservationsMin = 20;

struct TenantReport {
  std::array<ArmReport, kSessionArmCount> arms;  // By SessionArm.
  MaskingVerdict verdict = MaskingVerdict::kTooFewSessions;
  // Cost per resolved session in micro-dollars, of the arm masked less that of
  // control; nothing unless both are known.
  std::optional<Estimate> cost_difference_micro_usd;
  // Of all arms: the one with most tokens that are unreferenced first, equal
  // ones in the order of their names, and "" last. At most kReportToolsMax and
  // that.
  std::vector<ToolAdvice> tools;
  // Sessions that were looked at, and those of them that are still open.
  std::int64_t scanned_count = 0;
  std::int64_t open_count = 0;
  // Where to go on; "" if all were looked at.
  std::string next_after;
};

// The most sessions that are looked at for one report, and the most tools that
// it names; tools beyond the first kReportToolNamesMax, in the order of session
// ids, count as those without a name.
inline constexpr std::int64_t kReportSessionsMax = 50'000;
inline constexpr std::size_t kReportToolsMax = 100;
inline constexpr std::size_t kReportToolNamesMax = 1'000;

// Up to `limit` headers behind `after`, as SessionStore::List has them.
using ListHeaders =
    absl::FunctionRef<absl::StatusOr<std::vector<SessionHeader>>(
        absl::string_view after, std::int64_t limit)>;

// Returns the report on up to `sessions_max` sessions. Asks `check_call` before
// every few hundred whether to go on.
//
// Errors of `list` and of `check_call`. REQUIRES: `sessions_max` > 0.
absl::StatusOr<TenantReport> MakeTenantReport(
    const TenantReportRequest& request, ListHeaders list,
    absl::FunctionRef<absl::Status()> check_call,
    std::int64_t sessions_max = kReportSessionsMax);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_TENANT_REPORT_H_
