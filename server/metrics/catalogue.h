// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_METRICS_CATALOGUE_H_
#define CLERESTORY_SERVER_METRICS_CATALOGUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

namespace clerestory {

// Everything that is exported, in the order of the catalogue.
enum class Metric {
  // Calls.
  kRpcStarted,
  kRpcHandled,
  kRpcHandlingSeconds,
  // The process, and what it was given.
  kBuildInfo,
  kFileReloads,
  kFiles,
  kFilesLastSuccess,
  kPolicyDocuments,
  kPriceTableTimestamp,
  kUnknownModels,
  kCalibrationSamples,
  kCalibrationWriteFailures,
  kCachedSessions,
  kSessionCacheBytes,
  kSessionCacheLimit,
  kLabelOverflow,
  // What tenants' sessions used.
  kViews,
  kFullTokens,
  kViewTokens,
  kSavedTokens,
  kPromptTokens,
  kReportedTokens,
  kReportedCost,
  kFullCost,
  kViewCost,
  kEveryTurnCost,
  kOutputCost,
  kCostSaved,
  kCostPenalty,
  kCacheBreaks,
  kBreakPrice,
  kMasks,
  kCopiedPlaceholders,
  kComparedCalls,
  kEstimatedInputTokens,
  kComparedInputTokens,
  kEstimateErrorTokens,
  kSessionsClosed,
  kClosedSessionCost,
  kClosedSessionFullCost,
  // What came of masking a tool's observations.
  kToolObservations,
  kToolTokens,
  kBreakerState,
  kBreakerTransitions,
};
inline constexpr std::size_t kMetricCount =
    static_cast<std::size_t>(Metric::kBreakerTransitions) + 1;

enum class MetricType { kCounter, kGauge, kHistogram };

// What a metric counts. Values are kept as whole numbers and exported as
// doubles: seconds are kept in microseconds and dollars in pico-dollars, and
// divided then.
enum class MetricUnit { kCount, kTokens, kBytes, kSeconds, kUsd };

// What a label's value may be.
enum class LabelRule {
  // One of `values`.
  kClosed,
  // What was declared before the first call: methods of services, the build.
  kDeclared,
  // A tenant or a tool: kOther, unless the name has a place of its own.
  kTenant,
  kTool,
};

struct MetricLabel {
  absl::string_view name;
  LabelRule rule = LabelRule::kClosed;
  std::span<const absl::string_view> values = {};
};
inline constexpr std::size_t kLabelsMax = 4;

struct MetricDefinition {
  Metric id;
  absl::string_view name;
  MetricType type;
  MetricUnit unit;
  absl::string_view help;
  // Those without a name are not there.
  std::array<MetricLabel, kLabelsMax> labels = {};

  constexpr std::size_t label_count() const {
    std::size_t count = 0;
    while (count < kLabelsMax && !labels[count].name.empty()) ++count;
    return count;
  }
};

// By Metric.
std::span<const MetricDefinition> Catalogue();
const MetricDefinition& DefinitionOf(Metric metric);

// What a value of `unit` is divided by when it is exported.
std::int64_t DivisorOf(MetricUnit unit);

// What every label that comes from outside is, beyond its bound.
inline constexpr absl::string_view kOther = "other";

// How many tenants have a label of their own; how many tools of one tenant do,
// and of all tenants together; and how many methods of services there may be.
inline constexpr std::int64_t kTenantPlaces = 63;
inline constexpr std::int64_t kToolPlacesPerTenant = 32;
inline constexpr std::int64_t kToolPlaces = 192;
inline constexpr std::int64_t kRpcMethodsMax = 24;
// A name of more bytes than this has none, nor has one that is no UTF-8.
inline constexpr std::int64_t kLabelBytesMax = 128;

// The most series that `definition` can have, a histogram's buckets, sum and
// count each being one; and the most that there are in all, whatever callers
// send.
std::int64_t SeriesMax(const MetricDefinition& definition);
inline constexpr std::int64_t kSeriesMax = 12'000;

// Upper bounds of the buckets of every histogram, in microseconds; a last one
// holds the rest. 5, 20 and 50 ms, which objectives are set at, are among them.
inline constexpr std::array<std::int64_t, 15> kLatencyBounds = {
    200,     500,       1'000,     2'000,     5'000,
    10'000,  20'000,    50'000,    100'000,   200'000,
    500'000, 1'000'000, 2'000'000, 5'000'000, 10'000'000};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_METRICS_CATALOGUE_H_
