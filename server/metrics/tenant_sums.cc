// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/tenant_sums.h"

#include <cstddef>
#include <iterator>

#include "server/metrics/catalogue.h"

namespace clerestory {
namespace {

// By TenantSum, up to its breaks.
constexpr TenantSeries kTenantSeries[] = {
    {Metric::kViews, ""},
    {Metric::kFullTokens, ""},
    {Metric::kViewTokens, ""},
    {Metric::kSavedTokens, ""},
    {Metric::kPromptTokens, "read"},
    {Metric::kPromptTokens, "write"},
    {Metric::kPromptTokens, "uncached"},
    {Metric::kReportedTokens, "input"},
    {Metric::kReportedTokens, "cache_read"},
    {Metric::kReportedTokens, "cache_write"},
    {Metric::kReportedTokens, "output"},
    {Metric::kReportedTokens, "reasoning"},
    {Metric::kReportedCost, ""},
    {Metric::kFullCost, ""},
    {Metric::kViewCost, ""},
    {Metric::kEveryTurnCost, ""},
    {Metric::kOutputCost, ""},
    {Metric::kCostSaved, ""},
    {Metric::kCostPenalty, "cache_break"},
    {Metric::kCostPenalty, "refetch"},
    {Metric::kMasks, "observation"},
    {Metric::kMasks, "arguments"},
    {Metric::kMasks, "dropped"},
    {Metric::kCopiedPlaceholders, ""},
    {Metric::kComparedCalls, ""},
    {Metric::kEstimatedInputTokens, ""},
    {Metric::kComparedInputTokens, ""},
    {Metric::kEstimateErrorTokens, ""},
};
static_assert(std::size(kTenantSeries) ==
              static_cast<std::size_t>(TenantSum::kFirstBreak));

}  // namespace

TenantSeries SeriesOf(std::size_t tenant_sum) {
  if (tenant_sum < std::size(kTenantSeries)) return kTenantSeries[tenant_sum];
  // Breaks by reason, and then their prices.
  const auto& reasons = DefinitionOf(Metric::kCacheBreaks).labels[1].values;
  const std::size_t index = tenant_sum - std::size(kTenantSeries);
  return {index < reasons.size() ? Metric::kCacheBreaks : Metric::kBreakPrice,
          reasons[index % reasons.size()]};
}

}  // namespace clerestory
