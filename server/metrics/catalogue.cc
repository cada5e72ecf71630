// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/catalogue.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

using enum MetricType;
using enum MetricUnit;
using Values = const absl::string_view[];

// --- labels ------------------------------------------------------------------

constexpr Values kRpcTypeValues = {"unary", "server_stream"};
// As gRPC's libraries for Go write them.
constexpr Values kCodeValues = {"OK",
                                "Canceled",
                                "Unknown",
                                "InvalidArgument",
                                "DeadlineExceeded",
                                "NotFound",
                                "AlreadyExists",
                                "PermissionDenied",
                                "ResourceExhausted",
                                "FailedPrecondition",
                                "Aborted",
                                "OutOfRange",
                                "Unimplemented",
                                "Internal",
                                "Unavailable",
                                "DataLoss",
                                "Unauthenticated"};
constexpr Values kReloadValues = {"accepted", "refused"};
constexpr Values kSourceValues = {"stored", "file"};
constexpr Values kSampleValues = {"learned", "passed_over", "no_room"};
constexpr Values kOverflowValues = {"tenant", "tool"};
constexpr Values kCacheValues = {"read", "write", "uncached"};
constexpr Values kUsageValues = {"input", "cache_read", "cache_write", "output",
                                 "reasoning"};
constexpr Values kPenaltyValues = {"cache_break", "refetch"};
constexpr Values kBreakValues = {
    "pays",     "cache_cold",       "model_changed", "window",
    "schedule", "preamble_changed", "cache_missed"};
static_assert(std::size(kBreakValues) == kBreakReasonCount - 1);
constexpr Values kMaskValues = {"observation", "arguments", "dropped"};
constexpr Values kOutcomeValues = {"resolved", "failed", "abandoned"};
constexpr Values kArmValues = {"masked", "control"};
constexpr Values kEventValues = {"masked",  "refetch", "recall", "duplicate",
                                 "refresh", "paging",  "poll"};
constexpr Values kBreakerValues = {"closed", "half_open", "open"};

constexpr MetricLabel kTenant = {"tenant", LabelRule::kTenant};
constexpr MetricLabel kTool = {"tool", LabelRule::kTool};
constexpr MetricLabel kRpcType = {"grpc_type", LabelRule::kClosed,
                                  kRpcTypeValues};
constexpr MetricLabel kRpcService = {"grpc_service", LabelRule::kDeclared};
constexpr MetricLabel kRpcMethod = {"grpc_method", LabelRule::kDeclared};
constexpr MetricLabel kOutcome = {"outcome", LabelRule::kClosed,
                                  kOutcomeValues};
constexpr MetricLabel kArm = {"arm", LabelRule::kClosed, kArmValues};

constexpr MetricLabel Closed(absl::string_view name,
                             std::span<const absl::string_view> values) {
  return {name, LabelRule::kClosed, values};
}

constexpr MetricLabel Declared(absl::string_view name) {
  return {name, LabelRule::kDeclared};
}

// --- the catalogue -----------------------------------------------------------

constexpr MetricDefinition kCatalogue[] = {
    {Metric::kRpcStarted,
     "grpc_server_started_total",
     kCounter,
     kCount,
     "Total number of RPCs started on the server.",
     {kRpcType, kRpcService, kRpcMethod}},
    {Metric::kRpcHandled,
     "grpc_server_handled_total",
     kCounter,
     kCount,
     "Total number of RPCs completed on the server, regardless of success or "
     "failure.",
     {kRpcType, kRpcService, kRpcMethod, Closed("grpc_code", kCodeValues)}},
    {Metric::kRpcHandlingSeconds,
     "grpc_server_handling_seconds",
     kHistogram,
     kSeconds,
     "Histogram of response latency (seconds) of gRPC that had been "
     "application-level handled by the server, waiting for a thread included.",
     {kRpcType, kRpcService, kRpcMethod}},
    {Metric::kBuildInfo,
     "clerestory_build_info",
     kGauge,
     kCount,
     "Always 1; the labels name the build and its store.",
     {Declared("version"), Declared("compiler"), Declared("storage")}},
    {Metric::kFileReloads,
     "clerestory_file_reloads_total",
     kCounter,
     kCount,
     "Versions of files of policies and prices that were read, by result "
     "(accepted, refused). A refused one changes nothing.",
     {Closed("result", kReloadValues)}},
    {Metric::kFiles, "clerestory_files", kGauge, kCount,
     "Files of policies and prices that are in force."},
    {Metric::kFilesLastSuccess,
     "clerestory_files_last_success_timestamp_seconds", kGauge, kSeconds,
     "Unix time at which all files of policies and prices were last read and "
     "none was bad (0 if never)."},
    {Metric::kPolicyDocuments,
     "clerestory_policy_documents",
     kGauge,
     kCount,
     "Tenants by where the policies that are in force for them are from "
     "(stored, file). Others have those of the server's settings.",
     {Closed("source", kSourceValues)}},
    {Metric::kPriceTableTimestamp, "clerestory_price_table_timestamp_seconds",
     kGauge, kSeconds,
     "Unix time as of which the prices in force were collected."},
    {Metric::kUnknownModels, "clerestory_unknown_models_total", kCounter,
     kCount,
     "Names of models that were called and that there are no prices of, each "
     "counted once, up to 1000."},
    {Metric::kCalibrationSamples,
     "clerestory_calibration_samples_total",
     kCounter,
     kCount,
     "Reported prompts that token estimates could learn from, by result "
     "(learned; passed_over: cannot be; no_room: too many models).",
     {Closed("result", kSampleValues)}},
    {Metric::kCalibrationWriteFailures,
     "clerestory_calibration_write_failures_total", kCounter, kCount,
     "Writes of what was learned of a model's tokens that failed."},
    {Metric::kCachedSessions, "clerestory_cached_sessions", kGauge, kCount,
     "Sessions in memory."},
    {Metric::kSessionCacheBytes, "clerestory_session_cache_bytes", kGauge,
     kBytes, "Memory of the sessions in memory."},
    {Metric::kSessionCacheLimit, "clerestory_session_cache_limit_bytes", kGauge,
     kBytes, "Memory that sessions not in use may take."},
    {Metric::kLabelOverflow,
     "clerestory_metrics_label_overflow_total",
     kCounter,
     kCount,
     "Times that something was counted under \"other\" because its name had no "
     "place and none was left, by label.",
     {Closed("label", kOverflowValues)}},

    {Metric::kViews,
     "clerestory_views_total",
     kCounter,
     kCount,
     "Model calls that a view was served for; one asked for again counts once.",
     {kTenant}},
    {Metric::kFullTokens,
     "clerestory_full_tokens_total",
     kCounter,
     kTokens,
     "Tokens that the prompts of the served views would have had without "
     "masking.",
     {kTenant}},
    {Metric::kViewTokens,
     "clerestory_view_tokens_total",
     kCounter,
     kTokens,
     "Tokens of the prompts of the served views.",
     {kTenant}},
    {Metric::kSavedTokens,
     "clerestory_saved_tokens_total",
     kCounter,
     kTokens,
     "Tokens kept out of prompts by masking (full less view).",
     {kTenant}},
    {Metric::kPromptTokens,
     "clerestory_prompt_tokens_total",
     kCounter,
     kTokens,
     "Tokens of the prompts of the served views, by what the provider's cache "
     "is thought to do with them (read, write, uncached).",
     {kTenant, Closed("cache", kCacheValues)}},
    {Metric::kReportedTokens,
     "clerestory_reported_tokens_total",
     kCounter,
     kTokens,
     "Tokens that clients reported from the provider, by type (input: neither "
     "read from the cache nor written to it; cache_read, cache_write, output, "
     "reasoning: part of the output).",
     {kTenant, Closed("type", kUsageValues)}},
    {Metric::kReportedCost,
     "clerestory_reported_cost_usd_total",
     kCounter,
     kUsd,
     "Cost of the reported tokens at the prices in force, in US dollars.",
     {kTenant}},
    {Metric::kFullCost,
     "clerestory_full_cost_usd_total",
     kCounter,
     kUsd,
     "Estimated cost of the prompts as if nothing had ever been masked, in US "
     "dollars.",
     {kTenant}},
    {Metric::kViewCost,
     "clerestory_view_cost_usd_total",
     kCounter,
     kUsd,
     "Estimated cost of the prompts as served, breaks included, in US dollars.",
     {kTenant}},
    {Metric::kEveryTurnCost,
     "clerestory_every_turn_cost_usd_total",
     kCounter,
     kUsd,
     "Estimated cost of the prompts as if all that is old enough had been "
     "masked in every turn, in US dollars.",
     {kTenant}},
    {Metric::kOutputCost,
     "clerestory_output_cost_usd_total",
     kCounter,
     kUsd,
     "Estimated cost of the models' output, in US dollars.",
     {kTenant}},
    {Metric::kCostSaved,
     "clerestory_cost_saved_usd_total",
     kCounter,
     kUsd,
     "Cost that masking avoided, in US dollars: of the calls whose view was "
     "estimated to cost less than the full history, by how much. Less "
     "clerestory_cost_penalty_usd_total{reason=\"cache_break\"}, it is the "
     "full cost less the view cost.",
     {kTenant}},
    {Metric::kCostPenalty,
     "clerestory_cost_penalty_usd_total",
     kCounter,
     kUsd,
     "Cost that masking caused, in US dollars, by reason (cache_break: of the "
     "calls whose view was estimated to cost more than the full history, by "
     "how much; refetch: of fetching again what was masked).",
     {kTenant, Closed("reason", kPenaltyValues)}},
    {Metric::kCacheBreaks,
     "clerestory_cache_breaks_total",
     kCounter,
     kCount,
     "Views that changed a prefix already served, by reason (as BreakReason of "
     "the API).",
     {kTenant, Closed("reason", kBreakValues)}},
    {Metric::kBreakPrice,
     "clerestory_break_price_usd_total",
     kCounter,
     kUsd,
     "What breaks were priced at when they were decided, in US dollars, by "
     "reason.",
     {kTenant, Closed("reason", kBreakValues)}},
    {Metric::kMasks,
     "clerestory_masks_total",
     kCounter,
     kCount,
     "What was masked (observation, arguments: those of a call) or left out "
     "with its call (dropped).",
     {kTenant, Closed("what", kMaskValues)}},
    {Metric::kCopiedPlaceholders,
     "clerestory_copied_placeholders_total",
     kCounter,
     kCount,
     "Calls in whose arguments the model copied a placeholder.",
     {kTenant}},
    {Metric::kComparedCalls,
     "clerestory_compared_calls_total",
     kCounter,
     kCount,
     "Calls whose whole input was reported, so that its estimate can be "
     "judged.",
     {kTenant}},
    {Metric::kEstimatedInputTokens,
     "clerestory_estimated_input_tokens_total",
     kCounter,
     kTokens,
     "Input tokens that were estimated for the compared calls.",
     {kTenant}},
    {Metric::kComparedInputTokens,
     "clerestory_compared_input_tokens_total",
     kCounter,
     kTokens,
     "Input tokens that were reported of the compared calls.",
     {kTenant}},
    {Metric::kEstimateErrorTokens,
     "clerestory_estimate_error_tokens_total",
     kCounter,
     kTokens,
     "Sum over the compared calls of the difference between estimate and "
     "report, each taken as positive.",
     {kTenant}},
    {Metric::kSessionsClosed,
     "clerestory_sessions_closed_total",
     kCounter,
     kCount,
     "Sessions that were closed, by outcome (resolved, failed, abandoned) and "
     "arm (masked; control: those that are never masked, to compare with).",
     {kTenant, kOutcome, kArm}},
    {Metric::kClosedSessionCost,
     "clerestory_closed_session_cost_usd_total",
     kCounter,
     kUsd,
     "Estimated cost of the closed sessions, prompts and output, in US "
     "dollars.",
     {kTenant, kOutcome, kArm}},
    {Metric::kClosedSessionFullCost,
     "clerestory_closed_session_full_cost_usd_total",
     kCounter,
     kUsd,
     "The same as if nothing had ever been masked, in US dollars.",
     {kTenant, kOutcome, kArm}},

    {Metric::kToolObservations,
     "clerestory_tool_observations_total",
     kCounter,
     kCount,
     "Observations of a tool by what happened to them (masked) or by what "
     "they repeat (refetch: what was masked; recall: read back from the "
     "service; duplicate: what the view shows; refresh: what was written "
     "since; paging, poll).",
     {kTenant, kTool, Closed("event", kEventValues)}},
    {Metric::kToolTokens,
     "clerestory_tool_tokens_total",
     kCounter,
     kTokens,
     "Tokens of these observations.",
     {kTenant, kTool, Closed("event", kEventValues)}},
    {Metric::kBreakerState,
     "clerestory_breaker_state",
     kGauge,
     kCount,
     "Whether a tool's observations are masked (0: closed), masked in a share "
     "of sessions (1: half-open) or not masked (2: open). Only of tools with a "
     "label of their own.",
     {kTenant, kTool}},
    {Metric::kBreakerTransitions,
     "clerestory_breaker_transitions_total",
     kCounter,
     kCount,
     "Changes of the state of a tool's breaker.",
     {kTenant, kTool, Closed("from", kBreakerValues),
      Closed("to", kBreakerValues)}},
};
static_assert(std::size(kCatalogue) == kMetricCount);

constexpr std::int64_t BoundOf(const MetricLabel& label) {
  switch (label.rule) {
    case LabelRule::kClosed:
      return static_cast<std::int64_t>(label.values.size());
    case LabelRule::kTenant:
      return kTenantPlaces + 1;
    // Counted together with the labels that they come with.
    case LabelRule::kDeclared:
    case LabelRule::kTool:
      return 1;
  }
  return 1;
}

constexpr std::int64_t SeriesBound(const MetricDefinition& definition) {
  std::int64_t bound = 1;
  bool has_tool = false;
  for (const MetricLabel& label : definition.labels) {
    if (label.name.empty()) break;
    if (label.name == kRpcMethod.name) bound *= kRpcMethodsMax;
    if (label.name == kRpcType.name) continue;
    has_tool = has_tool || label.rule == LabelRule::kTool;
    bound *= BoundOf(label);
  }
  // Every tenant has `other`, and the places of all of them are counted.
  if (has_tool) {
    bound = bound / (kTenantPlaces + 1) * (kToolPlaces + kTenantPlaces + 1);
  }
  const std::int64_t buckets =
      static_cast<std::int64_t>(kLatencyBounds.size()) + 1;
  return definition.type == kHistogram ? bound * (buckets + 2) : bound;
}

// That the catalogue is in the order of Metric, names no series twice, and
// stays within its bound.
constexpr bool IsSound() {
  std::int64_t series = 0;
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    const MetricDefinition& definition = kCatalogue[i];
    if (definition.id != static_cast<Metric>(i)) return false;
    if (definition.help.empty() || definition.name.empty()) return false;
    series += SeriesBound(definition);
  }
  return series <= kSeriesMax;
}
static_assert(IsSound());

}  // namespace

std::span<const MetricDefinition> Catalogue() { return kCatalogue; }

const MetricDefinition& DefinitionOf(Metric metric) {
  return kCatalogue[static_cast<std::size_t>(metric)];
}

std::int64_t DivisorOf(MetricUnit unit) {
  if (unit == kSeconds) return kMicrosPerSecond;
  if (unit == kUsd) return kPicoUsdPerUsd;
  return 1;
}

std::int64_t SeriesMax(const MetricDefinition& definition) {
  return SeriesBound(definition);
}

}  // namespace clerestory
