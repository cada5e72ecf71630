// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/refresh_metrics.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/app/config.h"
#include "server/app/policy_files.h"
#include "server/base/log.h"
#include "server/base/time.h"
#include "server/engine/session_engine.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"
#include "server/store/memory/memory_store.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

class RefreshMetricsTest : public ::testing::Test {
 protected:
  void Refresh() { RefreshMetrics(config_, engine_, files_, metrics_); }

  std::vector<MetricSeries> Read(Metric metric) const {
    return metrics_.Read().at(static_cast<std::size_t>(metric));
  }

  std::int64_t Value(Metric metric, const std::vector<std::string>& labels) {
    for (const MetricSeries& series : Read(metric)) {
      if (series.labels == labels) return series.value;
    }
    return -1;
  }

  // Whether the tool has a label of its own at first sight.
  bool IsNamed(const std::string& tenant, const std::string& tool) {
    metrics_.CountTool(tenant, tool, ToolEvent::kPoll, 1, 1);
    return Value(Metric::kToolObservations, {tenant, tool, "poll"}) == 1;
  }

  Config config_;
  MemoryStore store_;
  SessionEngine engine_{store_, CharacterCounter(), SessionEngine::Options()};
  PolicyFiles files_{{}, engine_.policies(), Clock::Real(), Logger::Stderr()};
  ServerMetrics metrics_;
};

TEST_F(RefreshMetricsTest, TakesOverWhatIsCountedElsewhere) {
  config_.cache_bytes = 5;
  Refresh();
  EXPECT_EQ(Value(Metric::kSessionCacheLimit, {}), 5);
  EXPECT_EQ(Value(Metric::kPriceTableTimestamp, {}), engine_.prices()->as_of());
  EXPECT_GT(Value(Metric::kPriceTableTimestamp, {}), 0);
  EXPECT_EQ(Value(Metric::kPolicyDocuments, {"stored"}), 0);
  ASSERT_THAT(engine_.policies().Set("t", "policies: [{name: a}]", "", 1),
              IsOk());
  Refresh();
  EXPECT_EQ(Value(Metric::kPolicyDocuments, {"stored"}), 1);
  EXPECT_EQ(Value(Metric::kPolicyDocuments, {"file"}), 0);
}

TEST_F(RefreshMetricsTest, TenantsOfPoliciesAndToolsThatTheyNameHaveLabels) {
  config_.tenant = "main";
  config_.policy.exclude = {"memory", "mcp__*"};
  ASSERT_THAT(engine_.policies().Set("t",
                                     "policies:\n"
                                     "  - name: a\n"
                                     "    tools: {include: [\"read_?ile\", "
                                     "bash]}\n",
                                     "", 1),
              IsOk());
  Refresh();
  EXPECT_EQ(Value(Metric::kViews, {"main"}), 0);
  EXPECT_EQ(Value(Metric::kViews, {"t"}), 0);
  EXPECT_TRUE(IsNamed("main", "memory"));
  EXPECT_TRUE(IsNamed("t", "bash"));
  EXPECT_FALSE(IsNamed("main", "mcp__*"));
  EXPECT_FALSE(IsNamed("main", "bash"));
  EXPECT_FALSE(IsNamed("t", "read_?ile"));
}

}  // namespace
}  // namespace clerestory
