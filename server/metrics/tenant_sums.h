// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_METRICS_TENANT_SUMS_H_
#define CLERESTORY_SERVER_METRICS_TENANT_SUMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/metrics/catalogue.h"
#include "server/model/record.h"

namespace clerestory {

// What is summed over the sessions of a tenant; each is one series.
enum class TenantSum {
  kViews,
  kFullTokens,
  kViewTokens,
  kSavedTokens,
  kPromptRead,
  kPromptWrite,
  kPromptUncached,
  kReportedInput,
  kReportedCacheRead,
  kReportedCacheWrite,
  kReportedOutput,
  kReportedReasoning,
  kReportedCost,
  kFullCost,
  kViewCost,
  kEveryTurnCost,
  kOutputCost,
  kCostSaved,
  kPenaltyCacheBreak,
  kPenaltyRefetch,
  kMaskedObservations,
  kMaskedArguments,
  kDroppedObservations,
  kCopiedPlaceholders,
  kComparedCalls,
  kEstimatedInput,
  kComparedInput,
  kEstimateError,
  // Two for each reason of a break, from the one behind BreakReason::kNone on.
  kFirstBreak,
  kFirstBreakPrice = kFirstBreak + static_cast<int>(kBreakReasonCount) - 1,
  kEnd = kFirstBreakPrice + static_cast<int>(kBreakReasonCount) - 1,
};
inline constexpr std::size_t kTenantSumCount =
    static_cast<std::size_t>(TenantSum::kEnd);

// Amounts by TenantSum.
class TenantSums {
 public:
  std::int64_t& operator[](TenantSum sum) {
    return amounts_[static_cast<std::size_t>(sum)];
  }
  // Of the breaks for `reason`, which is not kNone, and of their prices.
  std::int64_t& breaks(BreakReason reason) {
    return AtReason(TenantSum::kFirstBreak, reason);
  }
  std::int64_t& break_price(BreakReason reason) {
    return AtReason(TenantSum::kFirstBreakPrice, reason);
  }
  const std::array<std::int64_t, kTenantSumCount>& amounts() const {
    return amounts_;
  }

 private:
  std::int64_t& AtReason(TenantSum first, BreakReason reason) {
    return amounts_.at(static_cast<std::size_t>(first) +
                       static_cast<std::size_t>(reason) - 1);
  }

  std::array<std::int64_t, kTenantSumCount> amounts_ = {};
};

// Where a sum is exported: with the label `tenant`, and with `value` as the
// second label, unless it is "".
struct TenantSeries {
  Metric metric;
  absl::string_view value;
};
TenantSeries SeriesOf(std::size_t tenant_sum);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_METRICS_TENANT_SUMS_H_
