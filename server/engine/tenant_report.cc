// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/tenant_report.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/status.h"
#include "server/engine/intervals.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"

namespace clerestory {
namespace {

// Headers that are read at a time.
constexpr std::int64_t kPageSize = 500;

constexpr PicoUsd kPicoUsdPerMicroUsd = 1'000'000;
constexpr std::int64_t kThousandths = 1'000;

constexpr auto kMasked = static_cast<std::size_t>(SessionArm::kMasked);
constexpr auto kControl = static_cast<std::size_t>(SessionArm::kControl);
constexpr auto kResolved = static_cast<std::size_t>(Outcome::kResolved);

void Add(std::int64_t part, std::int64_t& sum) {
  sum = SaturatingAdd(sum, part);
}

void Add(const ToolTotals& part, ToolTotals& sum) {
  Add(part.observation_count, sum.observation_count);
  Add(part.token_count, sum.token_count);
  Add(part.masked_count, sum.masked_count);
  Add(part.refetched_count, sum.refetched_count);
  Add(part.judged_count, sum.judged_count);
  Add(part.unreferenced_count, sum.unreferenced_count);
  Add(part.unreferenced_tokens, sum.unreferenced_tokens);
  Add(part.identical_call_count, sum.identical_call_count);
}

void Add(const SessionTotals& part, ArmReport& sum) {
  Add(part.turn_count, sum.turn_count);
  Add(part.call_count, sum.call_count);
  Add(part.raw_tokens, sum.raw_tokens);
  Add(part.view_tokens, sum.view_tokens);
  Add(part.raw_cost, sum.raw_cost);
  Add(part.view_cost, sum.view_cost);
  Add(part.output_cost, sum.output_cost);
  Add(part.usage_cost, sum.usage_cost);
  Add(part.lost, sum.lost);
  Add(part.observation_count, sum.observation_count);
  Add(part.masked_count, sum.masked_count);
  Add(part.refetched_count, sum.refetched_count);
  for (std::size_t kind = 0; kind < kRepeatKindCount; ++kind) {
    Add(part.repeats[kind], sum.repeats[kind]);
  }
  Add(part.recall_count, sum.recall_count);
}

// Observations for which the agent asked although it had had the same.
std::int64_t RepeatedCount(const SessionTotals& totals) {
  return totals.repeats[static_cast<std::size_t>(RepeatKind::kRefetch)] +
         totals.repeats[static_cast<std::size_t>(RepeatKind::kDuplicate)];
}

// The sessions of an arm, one by one.
class Arm {
 public:
  void Add(const SessionHeader& header) {
    const SessionTotals& totals = header.totals;
    ++report_.session_count;
    ++report_.outcomes[static_cast<std::size_t>(header.outcome)];
    clerestory::Add(totals, report_);
    const PicoUsd cost = SaturatingAdd(totals.view_cost, totals.output_cost);
    const std::int64_t micro_usd = cost / kPicoUsdPerMicroUsd;
    const std::int64_t resolved = header.outcome == Outcome::kResolved ? 1 : 0;
    cost_per_resolved_.Add(micro_usd, resolved);
    cost_per_session_.Add(micro_usd, 1);
    turns_.Add(totals.turn_count, 1);
    resolved_.Add(resolved, 1);
    refetched_.Add(totals.refetched_count, totals.masked_count);
    repeated_.Add(RepeatedCount(totals), totals.observation_count);
  }

  ArmReport Report() const {
    ArmReport report = report_;
    report.cost_per_resolved_micro_usd = cost_per_resolved_.Interval(1);
    report.cost_per_session_micro_usd = cost_per_session_.Interval(1);
    report.milliturns_per_session = turns_.Interval(kThousandths);
    report.resolved_ppm = resolved_.Proportion();
    report.refetched_ppm = refetched_.Proportion();
    report.repeated_ppm = repeated_.Proportion();
    return report;
  }

  // Whether it says enough to be compared.
  bool IsLarge() const {
    return report_.session_count >= kComparedSessionsMin &&
           report_.outcomes[kResolved] >= kComparedResolvedMin;
  }

  const QuotientSums& cost_per_resolved() const { return cost_per_resolved_; }

 private:
  ArmReport report_;
  QuotientSums cost_per_resolved_;
  QuotientSums cost_per_session_;
  QuotientSums turns_;
  QuotientSums resolved_;
  QuotientSums refetched_;
  QuotientSums repeated_;
};

// The tools of all sessions.
class Tools {
 public:
  void Add(const SessionTotals& totals) {
    for (const ToolTotals& tool : totals.tools) {
      const auto found = tools_.find(tool.tool);
      if (found != tools_.end()) {
        clerestory::Add(tool, found->second);
      } else if (tool.tool.empty() || tools_.size() == kReportToolNamesMax) {
        clerestory::Add(tool, rest_);
      } else {
        clerestory::Add(tool, tools_[tool.tool]);
      }
    }
  }

  std::vector<ToolAdvice> Report() const {
    std::vector<std::tuple<std::int64_t, std::int64_t, absl::string_view>>
        order;
    order.reserve(tools_.size());
    for (const auto& [name, tool] : tools_) {
      order.emplace_back(-tool.unreferenced_tokens, -tool.observation_count,
                         name);
    }
    std::ranges::sort(order);
    std::vector<ToolAdvice> all;
    ToolTotals rest = rest_;
    for (const auto& [tokens, count, name] : order) {
      const ToolTotals& tool = tools_.at(std::string(name));
      if (all.size() == kReportToolsMax) {
        clerestory::Add(tool, rest);
        continue;
      }
      all.push_back(Advise(tool));
      all.back().totals.tool = std::string(name);
    }
    if (rest != ToolTotals()) all.push_back(Advise(rest));
    return all;
  }

 private:
  static ToolAdvice Advise(const ToolTotals& totals) {
    ToolAdvice advice = {.totals = totals};
    advice.reads_too_much =
        totals.judged_count >= kAdvisedObservationsMin &&
        totals.unreferenced_count >=
            totals.judged_count / 2 + totals.judged_count % 2;
    advice.repeats_calls =
        totals.identical_call_count >= kAdvisedObservationsMin &&
        totals.identical_call_count >= totals.observation_count / 10;
    return advice;
  }

  std::map<std::string, ToolTotals> tools_;
  ToolTotals rest_;
};

bool Matches(const TenantReportRequest& request, const SessionHeader& header) {
  if (request.close_from.has_value() &&
      header.close_time < *request.close_from) {
    return false;
  }
  if (request.close_before.has_value() &&
      header.close_time >= *request.close_before) {
    return false;
  }
  return std::ranges::all_of(request.labels, [&](const auto& label) {
    const auto found = header.labels.find(label.first);
    return found != header.labels.end() && found->second == label.second;
  });
}

void Compare(const Arm& masked, const Arm& control, TenantReport& report) {
  const auto masked_error = masked.cost_per_resolved().StandardError(1);
  const auto control_error = control.cost_per_resolved().StandardError(1);
  if (!masked_error.has_value() || !control_error.has_value()) return;
  const Estimate difference =
      Difference(*masked.cost_per_resolved().Quotient(1), *masked_error,
                 *control.cost_per_resolved().Quotient(1), *control_error);
  report.cost_difference_micro_usd = difference;
  if (!masked.IsLarge() || !control.IsLarge()) return;
  report.verdict = difference.high < 0  ? MaskingVerdict::kMaskedCheaper
                   : difference.low > 0 ? MaskingVerdict::kControlCheaper
                                        : MaskingVerdict::kNoDifference;
}

}  // namespace

absl::StatusOr<TenantReport> MakeTenantReport(
    const TenantReportRequest& request, ListHeaders list,
    absl::FunctionRef<absl::Status()> check_call, std::int64_t sessions_max) {
  CLERESTORY_CHECK(sessions_max > 0);
  TenantReport report;
  std::array<Arm, kSessionArmCount> arms;
  Tools tools;
  std::string after = request.after;
  while (true) {
    CLERESTORY_RETURN_IF_ERROR(check_call());
    const std::int64_t left = sessions_max - report.scanned_count;
    // One more than is left tells whether there is any.
    const std::int64_t limit = std::min(kPageSize, left + 1);
    CLERESTORY_ASSIGN_OR_RETURN(const std::vector<SessionHeader> headers,
                                list(after, limit));
    for (const SessionHeader& header : headers) {
      if (report.scanned_count == sessions_max) {
        report.next_after = after;
        break;
      }
      ++report.scanned_count;
      after = header.key.session;
      if (header.outcome == Outcome::kOpen) {
        ++report.open_count;
      } else if (Matches(request, header)) {
        arms[static_cast<std::size_t>(header.totals.arm)].Add(header);
        tools.Add(header.totals);
      }
    }
    if (static_cast<std::int64_t>(headers.size()) < limit ||
        !report.next_after.empty()) {
      break;
    }
  }
  for (std::size_t i = 0; i < arms.size(); ++i) {
    report.arms[i] = arms[i].Report();
  }
  Compare(arms[kMasked], arms[kControl], report);
  report.tools = tools.Report();
  return report;
}

}  // namespace clerestory
