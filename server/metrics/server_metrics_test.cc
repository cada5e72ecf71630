// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/server_metrics.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/tenant_sums.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;

using Labels = std::vector<std::string>;

std::vector<MetricSeries> SeriesOf(const ServerMetrics& metrics,
                                   Metric metric) {
  return metrics.Read().at(static_cast<std::size_t>(metric));
}

// Of the series with these labels; -1 if there is none.
std::int64_t ValueOf(const ServerMetrics& metrics, Metric metric,
                     const Labels& labels = {}) {
  for (const MetricSeries& series : SeriesOf(metrics, metric)) {
    if (series.labels == labels) return series.value;
  }
  return -1;
}

// As Prometheus counts them.
std::int64_t SeriesCount(const ServerMetrics& metrics) {
  std::int64_t count = 0;
  for (const std::vector<MetricSeries>& of_metric : metrics.Read()) {
    for (const MetricSeries& series : of_metric) {
      count += series.buckets.empty()
                   ? 1
                   : static_cast<std::int64_t>(series.buckets.size()) + 2;
    }
  }
  return count;
}

const RpcMethod kBuildView = {.service = "clerestory.v1.ViewService",
                              .method = "BuildView"};

// --- calls -------------------------------------------------------------------

TEST(ServerMetricsTest, ADeclaredMethodHasAllItsSeriesAtZero) {
  ServerMetrics metrics;
  metrics.DeclareRpc(kBuildView);
  const Labels labels = {"unary", "clerestory.v1.ViewService", "BuildView"};
  EXPECT_EQ(ValueOf(metrics, Metric::kRpcStarted, labels), 0);
  EXPECT_EQ(SeriesOf(metrics, Metric::kRpcHandled).size(), 17U);
  EXPECT_THAT(SeriesOf(metrics, Metric::kRpcHandled),
              Each(Field(&MetricSeries::value, 0)));
}

TEST(ServerMetricsTest, CallsAreCountedByMethodAndCode) {
  ServerMetrics metrics;
  metrics.DeclareRpc(kBuildView);
  metrics.DeclareRpc({.is_stream = true,
                      .service = "clerestory.v1.HistoryService",
                      .method = "ReadHistory"});
  metrics.RpcStarted("BuildView");
  metrics.RpcStarted("BuildView");
  metrics.RpcStarted("ReadHistory");
  metrics.RpcHandled("BuildView", absl::StatusCode::kOk, 150);
  metrics.RpcHandled("BuildView", absl::StatusCode::kUnauthenticated, 150);
  metrics.RpcHandled("BuildView", static_cast<absl::StatusCode>(99), 150);

  Labels labels = {"unary", "clerestory.v1.ViewService", "BuildView"};
  EXPECT_EQ(ValueOf(metrics, Metric::kRpcStarted, labels), 2);
  EXPECT_EQ(
      ValueOf(metrics, Metric::kRpcStarted,
              {"server_stream", "clerestory.v1.HistoryService", "ReadHistory"}),
      1);
  labels.emplace_back();
  for (const char* code : {"OK", "Unauthenticated", "Unknown"}) {
    labels.back() = code;
    EXPECT_EQ(ValueOf(metrics, Metric::kRpcHandled, labels), 1) << code;
  }
  labels.back() = "Internal";
  EXPECT_EQ(ValueOf(metrics, Metric::kRpcHandled, labels), 0);
}

TEST(ServerMetricsTest, TimesFallIntoTheirBuckets) {
  ServerMetrics metrics;
  metrics.DeclareRpc(kBuildView);
  for (const std::int64_t micros : {0, 200, 201, 10'000'000, 10'000'001}) {
    metrics.RpcHandled("BuildView", absl::StatusCode::kOk, micros);
  }
  const MetricSeries series =
      SeriesOf(metrics, Metric::kRpcHandlingSeconds).at(0);
  EXPECT_EQ(series.value, 20'000'402);
  EXPECT_THAT(series.buckets,
              ElementsAre(2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1));
}

TEST(ServerMetricsTest, AMethodThatWasNotDeclaredIsNotCounted) {
  ServerMetrics metrics;
  metrics.RpcStarted("Nonsense");
  metrics.RpcHandled("Nonsense", absl::StatusCode::kOk, 1);
  EXPECT_TRUE(SeriesOf(metrics, Metric::kRpcStarted).empty());
}

// --- values with at most one label -------------------------------------------

TEST(ServerMetricsTest, WhatHasAClosedLabelIsThereAtZero) {
  ServerMetrics metrics;
  EXPECT_EQ(ValueOf(metrics, Metric::kUnknownModels), 0);
  EXPECT_EQ(ValueOf(metrics, Metric::kFileReloads, {"refused"}), 0);
  metrics.Add(Metric::kUnknownModels, "", 2);
  metrics.Add(Metric::kUnknownModels, "", 3);
  metrics.Set(Metric::kFileReloads, "refused", 7);
  EXPECT_EQ(ValueOf(metrics, Metric::kUnknownModels), 5);
  EXPECT_EQ(ValueOf(metrics, Metric::kFileReloads, {"refused"}), 7);
  EXPECT_EQ(ValueOf(metrics, Metric::kFileReloads, {"accepted"}), 0);
}

TEST(ServerMetricsTest, TheBuildIsOneSeries) {
  ServerMetrics metrics;
  metrics.SetBuildInfo("1.2.3", "12", "memory");
  EXPECT_EQ(ValueOf(metrics, Metric::kBuildInfo, {"1.2.3", "12", "memory"}), 1);
}

TEST(ServerMetricsDeathTest, AValueThatIsNotInTheCatalogueIsAMistakeOfOurs) {
  ServerMetrics metrics;
  EXPECT_DEATH(metrics.Add(Metric::kFileReloads, "maybe", 1), "");
  EXPECT_DEATH(metrics.Add(Metric::kFileReloads, "", 1), "");
}

// --- tenants -----------------------------------------------------------------

TEST(ServerMetricsTest, WhatATenantUsedIsSummed) {
  ServerMetrics metrics;
  TenantSums sums;
  sums[TenantSum::kViews] = 1;
  sums[TenantSum::kPromptUncached] = 40;
  sums.breaks(BreakReason::kPays) = 1;
  sums.break_price(BreakReason::kCacheMissed) = 5;
  metrics.AddToTenant("t", sums);
  metrics.AddToTenant("t", sums);
  metrics.AddToTenant("u", sums);
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"t"}), 2);
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"u"}), 1);
  EXPECT_EQ(ValueOf(metrics, Metric::kPromptTokens, {"t", "uncached"}), 80);
  EXPECT_EQ(ValueOf(metrics, Metric::kPromptTokens, {"t", "read"}), 0);
  EXPECT_EQ(ValueOf(metrics, Metric::kCacheBreaks, {"t", "pays"}), 2);
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakPrice, {"t", "cache_missed"}), 10);
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakPrice, {"t", "pays"}), 0);
}

TEST(ServerMetricsTest, SumsAreExactAndStayAtTheLargestNumber) {
  ServerMetrics metrics;
  TenantSums sums;
  sums[TenantSum::kViewCost] = (std::int64_t{1} << 53) + 1;
  metrics.AddToTenant("t", sums);
  sums[TenantSum::kViewCost] = 1;
  metrics.AddToTenant("t", sums);
  EXPECT_EQ(ValueOf(metrics, Metric::kViewCost, {"t"}),
            (std::int64_t{1} << 53) + 2);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  sums[TenantSum::kViewCost] = kMax;
  metrics.AddToTenant("t", sums);
  EXPECT_EQ(ValueOf(metrics, Metric::kViewCost, {"t"}), kMax);
}

TEST(ServerMetricsTest, EndedSessionsAreCountedByOutcomeAndArm) {
  ServerMetrics metrics;
  metrics.SessionEnded("t", Outcome::kResolved, false, 10, 30);
  metrics.SessionEnded("t", Outcome::kResolved, true, 20, 20);
  const Labels masked = {"t", "resolved", "masked"};
  EXPECT_EQ(ValueOf(metrics, Metric::kSessionsClosed, masked), 1);
  EXPECT_EQ(ValueOf(metrics, Metric::kClosedSessionCost, masked), 10);
  EXPECT_EQ(ValueOf(metrics, Metric::kClosedSessionFullCost, masked), 30);
  EXPECT_EQ(ValueOf(metrics, Metric::kClosedSessionCost,
                    {"t", "resolved", "control"}),
            20);
  EXPECT_EQ(
      ValueOf(metrics, Metric::kSessionsClosed, {"t", "abandoned", "control"}),
      0);
}

TEST(ServerMetricsTest, TenantsBeyondTheBoundAreOtherAndCounted) {
  ServerMetrics metrics;
  metrics.NameTenant("named", {});
  TenantSums sums;
  sums[TenantSum::kViews] = 1;
  for (int i = 0; i < 100; ++i) {
    metrics.AddToTenant(absl::StrCat("t", i), sums);
  }
  metrics.AddToTenant("named", sums);
  EXPECT_EQ(SeriesOf(metrics, Metric::kViews).size(), 64U);
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"named"}), 1);
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"t61"}), 1);
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"t62"}), -1);
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"other"}), 38);
  EXPECT_EQ(ValueOf(metrics, Metric::kLabelOverflow, {"tenant"}), 38);
  EXPECT_EQ(ValueOf(metrics, Metric::kLabelOverflow, {"tool"}), 0);
}

// --- tools -------------------------------------------------------------------

TEST(ServerMetricsTest, ToolsThatPoliciesNameHaveALabelAndBusyOnesGetOne) {
  ServerMetrics metrics;
  metrics.NameTenant("t", {"read_file"});
  metrics.CountTool("t", "read_file", ToolEvent::kMasked, 1, 900);
  metrics.CountTool("t", "bash", ToolEvent::kMasked, 15, 300);
  metrics.CountTool("t", "bash", ToolEvent::kRefetch, 2, 50);
  EXPECT_EQ(
      ValueOf(metrics, Metric::kToolObservations, {"t", "read_file", "masked"}),
      1);
  EXPECT_EQ(ValueOf(metrics, Metric::kToolTokens, {"t", "read_file", "masked"}),
            900);
  // Until it was seen 16 times, it is one of the others; what is counted there
  // stays there.
  EXPECT_EQ(
      ValueOf(metrics, Metric::kToolObservations, {"t", "other", "masked"}),
      15);
  EXPECT_EQ(
      ValueOf(metrics, Metric::kToolObservations, {"t", "bash", "refetch"}), 2);
  EXPECT_EQ(ValueOf(metrics, Metric::kLabelOverflow, {"tool"}), 0);
}

TEST(ServerMetricsTest, ToolsOfOneTenantAreNotThoseOfAnother) {
  ServerMetrics metrics;
  metrics.NameTenant("t", {"bash"});
  metrics.CountTool("t", "bash", ToolEvent::kRecall, 1, 1);
  metrics.CountTool("u", "bash", ToolEvent::kRecall, 1, 1);
  EXPECT_EQ(ValueOf(metrics, Metric::kToolTokens, {"t", "bash", "recall"}), 1);
  EXPECT_EQ(ValueOf(metrics, Metric::kToolTokens, {"u", "other", "recall"}), 1);
}

TEST(ServerMetricsTest, ABreakersStateAndItsChangesAreCounted) {
  ServerMetrics metrics;
  metrics.SetBreaker("t", "bash", BreakerLabel::kHalfOpen);
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakerState, {"t", "bash"}), 1);
  metrics.BreakerChanged("t", "bash", BreakerLabel::kHalfOpen,
                         BreakerLabel::kOpen);
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakerState, {"t", "bash"}), 2);
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakerTransitions,
                    {"t", "bash", "half_open", "open"}),
            1);
}

TEST(ServerMetricsTest, BreakersOfToolsWithoutAPlaceHaveNoState) {
  ServerMetrics metrics;
  for (int i = 0; i < 100; ++i) {
    metrics.BreakerChanged("t", absl::StrCat("tool", i), BreakerLabel::kClosed,
                           BreakerLabel::kOpen);
    metrics.SetBreaker("t", absl::StrCat("tool", i), BreakerLabel::kClosed);
  }
  EXPECT_EQ(SeriesOf(metrics, Metric::kBreakerState).size(),
            static_cast<std::size_t>(kToolPlacesPerTenant));
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakerState, {"t", "other"}), -1);
  EXPECT_EQ(ValueOf(metrics, Metric::kBreakerTransitions,
                    {"t", "other", "closed", "open"}),
            100 - kToolPlacesPerTenant);
  EXPECT_EQ(ValueOf(metrics, Metric::kLabelOverflow, {"tool"}),
            2 * (100 - kToolPlacesPerTenant));
}

// --- bounds and threads ------------------------------------------------------

TEST(ServerMetricsTest, NothingThatIsSentDrivesSeriesBeyondTheBound) {
  ServerMetrics metrics;
  for (std::int64_t i = 0; i < kRpcMethodsMax; ++i) {
    metrics.DeclareRpc({.service = "s", .method = absl::StrCat("m", i)});
  }
  metrics.SetBuildInfo("v", "c", "s");
  for (int t = 0; t < 200; ++t) {
    const std::string tenant = absl::StrCat("tenant", t);
    metrics.AddToTenant(tenant, TenantSums());
    for (int i = 0; i < 40; ++i) {
      const std::string tool = absl::StrCat("tool", i % 35, "\n\"\\", i);
      for (int event = 0; event < 7; ++event) {
        metrics.CountTool(tenant, tool, static_cast<ToolEvent>(event), 20, 1);
      }
      for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
          metrics.BreakerChanged(tenant, tool, static_cast<BreakerLabel>(from),
                                 static_cast<BreakerLabel>(to));
        }
      }
    }
    for (const Outcome outcome :
         {Outcome::kResolved, Outcome::kFailed, Outcome::kAbandoned}) {
      metrics.SessionEnded(tenant, outcome, true, 1, 1);
      metrics.SessionEnded(tenant, outcome, false, 1, 1);
    }
    metrics.RpcStarted(absl::StrCat("method", t));
  }
  std::set<Labels> tools;
  for (const MetricSeries& series : SeriesOf(metrics, Metric::kBreakerState)) {
    tools.insert(series.labels);
  }
  EXPECT_EQ(tools.size(), static_cast<std::size_t>(kToolPlaces));
  EXPECT_LE(SeriesCount(metrics), kSeriesMax);
  for (const MetricDefinition& definition : Catalogue()) {
    const auto width = definition.type == MetricType::kHistogram ? 18 : 1;
    EXPECT_LE(
        static_cast<std::int64_t>(SeriesOf(metrics, definition.id).size()) *
            width,
        SeriesMax(definition))
        << definition.name;
  }
  RecordProperty("series_at_bound", static_cast<int>(SeriesCount(metrics)));
}

TEST(ServerMetricsTest, ThreadsLoseNothing) {
  ServerMetrics metrics;
  metrics.DeclareRpc(kBuildView);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&metrics] {
      TenantSums sums;
      sums[TenantSum::kViews] = 1;
      for (int i = 0; i < 1'000; ++i) {
        metrics.RpcStarted("BuildView");
        metrics.AddToTenant("t", sums);
        metrics.CountTool("t", "bash", ToolEvent::kPoll, 1, 1);
        if (i % 100 == 0) metrics.Read();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ValueOf(metrics, Metric::kViews, {"t"}), 4'000);
  EXPECT_EQ(SeriesOf(metrics, Metric::kRpcStarted).at(0).value, 4'000);
  EXPECT_EQ(ValueOf(metrics, Metric::kToolTokens, {"t", "bash", "poll"}) +
                ValueOf(metrics, Metric::kToolTokens, {"t", "other", "poll"}),
            4'000);
}

}  // namespace
}  // namespace clerestory
