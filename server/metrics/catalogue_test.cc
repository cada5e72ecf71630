// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/catalogue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/metrics/describe_metrics.h"
#include "server/metrics/tenant_sums.h"

namespace clerestory {
namespace {

TEST(CatalogueTest, TheDocumentSaysWhatTheCatalogueSays) {
  std::ifstream file(CLERESTORY_SOURCE_DIR "/server/metrics/METRICS.md");
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  EXPECT_EQ(text, DescribeMetrics())
      << "write it again: clerestory-server --describe-metrics "
         "> server/metrics/METRICS.md";
}

// What `promtool check metrics` and the practices of Prometheus ask for.
TEST(CatalogueTest, NamesFollowTheRulesOfPrometheus) {
  std::set<absl::string_view> names;
  for (const MetricDefinition& metric : Catalogue()) {
    const absl::string_view name = metric.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(absl::StartsWith(name, "clerestory_") ||
                absl::StartsWith(name, "grpc_server_"))
        << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"),
              absl::string_view::npos)
        << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"),
              metric.type == MetricType::kCounter)
        << name;
    const std::pair<MetricUnit, absl::string_view> units[] = {
        {MetricUnit::kTokens, "_tokens"},
        {MetricUnit::kBytes, "_bytes"},
        {MetricUnit::kSeconds, "_seconds"},
        {MetricUnit::kUsd, "_usd"}};
    for (const auto& [unit, suffix] : units) {
      EXPECT_EQ(absl::StrContains(name, suffix), metric.unit == unit) << name;
    }
    EXPECT_TRUE(absl::EndsWith(metric.help, ".")) << name;
    EXPECT_TRUE(
        absl::ascii_isupper(static_cast<unsigned char>(metric.help.front())))
        << name;
  }
}

TEST(CatalogueTest, LabelsOfOneMetricDifferAndClosedListsHaveNoTwins) {
  for (const MetricDefinition& metric : Catalogue()) {
    std::set<absl::string_view> names;
    for (std::size_t i = 0; i < metric.label_count(); ++i) {
      const MetricLabel& label = metric.labels.at(i);
      EXPECT_TRUE(names.insert(label.name).second) << metric.name;
      EXPECT_EQ(label.values.empty(), label.rule != LabelRule::kClosed)
          << metric.name;
      const std::set<absl::string_view> values(label.values.begin(),
                                               label.values.end());
      EXPECT_EQ(values.size(), label.values.size()) << metric.name;
    }
  }
}

TEST(CatalogueTest, NoLabelHoldsWhatSessionsSent) {
  for (const MetricDefinition& metric : Catalogue()) {
    for (std::size_t i = 0; i < metric.label_count(); ++i) {
      for (const char* word : {"session", "user", "model", "key", "message"}) {
        EXPECT_FALSE(absl::StrContains(metric.labels.at(i).name, word))
            << metric.name;
      }
    }
  }
}

TEST(CatalogueTest, EverySumOfATenantIsASeriesOfItsOwnInTheCatalogue) {
  std::set<std::pair<Metric, absl::string_view>> seen;
  for (std::size_t i = 0; i < kTenantSumCount; ++i) {
    const TenantSeries series = SeriesOf(i);
    EXPECT_TRUE(seen.emplace(series.metric, series.value).second) << i;
    const MetricDefinition& metric = DefinitionOf(series.metric);
    EXPECT_EQ(metric.labels[0].name, "tenant");
    const auto& values = metric.labels[1].values;
    EXPECT_EQ(metric.label_count(), series.value.empty() ? 1U : 2U);
    if (series.value.empty()) continue;
    EXPECT_NE(std::find(values.begin(), values.end(), series.value),
              values.end())
        << metric.name;
  }
}

TEST(CatalogueTest, AllSeriesTogetherStayWithinTheBound) {
  std::int64_t sum = 0;
  for (const MetricDefinition& metric : Catalogue()) sum += SeriesMax(metric);
  EXPECT_LE(sum, kSeriesMax);
  // The places of tools and `other` of every tenant, seven events each.
  EXPECT_EQ(SeriesMax(DefinitionOf(Metric::kToolTokens)),
            (kToolPlaces + kTenantPlaces + 1) * 7);
  EXPECT_EQ(SeriesMax(DefinitionOf(Metric::kRpcHandlingSeconds)),
            kRpcMethodsMax * 18);
  EXPECT_EQ(SeriesMax(DefinitionOf(Metric::kRpcHandled)), kRpcMethodsMax * 17);
}

}  // namespace
}  // namespace clerestory
