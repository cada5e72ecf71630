// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What becomes of calls that overtake one another, and of times that do.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/log.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/engine/tool_registry.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"
#include "server/model/breaker_record.h"
#include "server/model/tool_outcome.h"
#include "server/store/session_store.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kDay = 86'400 * kMicrosPerSecond;
constexpr TimeMicros kNow = 20'000 * kDay;
// The break-even is 13 %.
const BreakerOptions kFixed = {.rate_permille = 130};

ToolOutcome Outcome(const std::string& tool, std::int64_t masked,
                    std::int64_t refetched) {
  return {.tool = tool, .masked_count = masked, .refetched_count = refetched};
}

class ToolStore final : public ForwardingStore {
 public:
  absl::Status DeleteTool(absl::string_view tenant,
                          absl::string_view tool) override {
    if (before_delete) before_delete(tool);
    return ForwardingStore::DeleteTool(tenant, tool);
  }

  std::function<void(absl::string_view)> before_delete;
};

// Counts lines, and does something at the first.
class CountingLogger final : public Logger {
 public:
  void Write(Severity, absl::string_view,
             const std::vector<LogField>&) override {
    ++line_count;
    if (on_first) std::exchange(on_first, nullptr)();
  }

  std::function<void()> on_first;
  std::int64_t line_count = 0;
};

class ToolRegistryOrderTest : public ::testing::Test {
 protected:
  std::vector<StoredTool> Stored() const {
    const auto all = store_.ListTools();
    EXPECT_THAT(all, IsOk());
    return all.ok() ? all->entries : std::vector<StoredTool>();
  }

  // So often re-fetched that it is unmasked.
  void Open(absl::string_view tenant, const std::string& tool) {
    registry_.Learn(tenant, "s", {Outcome(tool, 30, 20)}, kFixed, kNow);
  }

  ToolStore store_;
  CountingLogger logger_;
  ToolRegistry registry_{store_, &logger_};
};

// The state of the tenant's tool; kObserving if there is none.
BreakerState StateOf(ToolRegistry& registry, absl::string_view tenant,
                     const std::string& tool) {
  for (const ToolStatus& status : registry.List(tenant, kFixed, kNow)) {
    if (status.tool == tool) return status.figures.state;
  }
  return BreakerState::kObserving;
}

TEST_F(ToolRegistryOrderTest, AnOldSessionThatIsReadChangesNothing) {
  registry_.Learn("t", "s", {Outcome("Bash", 400, 4)}, kFixed, kNow);
  Open("t", "Read");
  const std::vector<ToolStatus> tools = registry_.List("t", kFixed, kNow);
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(*registry_.UnmaskedFor("t", "old", kNow - 8 * kDay),
                ElementsAre("Read"));
    EXPECT_EQ(registry_.List("t", kFixed, kNow - 8 * kDay), tools);
    EXPECT_THAT(*registry_.UnmaskedFor("t", "new", kNow), ElementsAre("Read"));
    EXPECT_EQ(registry_.List("t", kFixed, kNow), tools);
  }
  EXPECT_EQ(logger_.line_count, 1);
}

TEST_F(ToolRegistryOrderTest, ATenantsTimeGoesForAllOfItsTools) {
  registry_.Learn("t", "s", {Outcome("Bash", 1, 0)}, kFixed, kNow + kDay / 2);
  registry_.Learn("t", "s", {Outcome("Read", 30, 20)}, kFixed, kNow - kDay);
  EXPECT_EQ(registry_.List("t", kFixed, kNow)[1].figures.since,
            kNow + kDay / 2);
  // So it does after a restart.
  ToolRegistry restarted(store_, nullptr);
  ASSERT_THAT(restarted.Load(), IsOk());
  restarted.Learn("t", "s", {Outcome("Grep", 30, 20)}, kFixed, kNow);
  EXPECT_EQ(restarted.List("t", kFixed, kNow)[1].figures.since,
            kNow + kDay / 2);
  // Another tenant's clock is its own.
  Open("u", "Read");
  EXPECT_EQ(registry_.List("u", kFixed, kNow)[0].figures.since, kNow);
}

TEST_F(ToolRegistryOrderTest, TransitionsAreCountedInTheOrderThatTheyCameIn) {
  ServerMetrics metrics;
  ToolRegistry registry(store_, &logger_, &metrics);
  // While the first of two is logged, the second tool is set back.
  logger_.on_first = [&] {
    EXPECT_THAT(registry.Reset("t", "b", kNow), IsOk());
  };
  registry.Learn("t", "s", {Outcome("a", 30, 20), Outcome("b", 30, 20)}, kFixed,
                 kNow);
  ASSERT_EQ(StateOf(registry, "t", "b"), BreakerState::kObserving);
  std::vector<std::int64_t> states;
  const auto read = metrics.Read();
  for (const MetricSeries& series :
       read[static_cast<std::size_t>(Metric::kBreakerState)]) {
    states.push_back(series.value);
  }
  EXPECT_THAT(states,
              ElementsAre(static_cast<std::int64_t>(BreakerLabel::kOpen),
                          static_cast<std::int64_t>(BreakerLabel::kClosed)));
}

// Has "0" learned of by another thread while it is removed from the store, and
// gives that the time to overtake.
class Overtaking {
 public:
  Overtaking(ToolRegistry& registry, ToolStore& store) {
    store.before_delete = [this, &registry](absl::string_view tool) {
      EXPECT_EQ(tool, "0");
      learned_ = std::async(std::launch::async, [&registry] {
        registry.Learn("t", "s", {Outcome("0", 30, 20)}, kFixed,
                       kNow + ToolBreaker::kHalfLife);
      });
      learned_.wait_for(std::chrono::milliseconds(100));
    };
  }
  void Join() { learned_.get(); }

 private:
  std::future<void> learned_;
};

bool IsStored(const std::vector<StoredTool>& stored, absl::string_view tool) {
  return std::any_of(stored.begin(), stored.end(),
                     [&](const StoredTool& t) { return t.tool == tool; });
}

TEST_F(ToolRegistryOrderTest, WhatGaveUpItsPlaceAndCameBackStaysStored) {
  std::vector<ToolOutcome> outcomes;
  for (std::int64_t i = 0; i < ToolRegistry::kToolsPerTenantMax; ++i) {
    outcomes.push_back(Outcome(absl::StrCat(i), 1, 0));
  }
  registry_.Learn("t", "s", outcomes, kFixed, kNow);
  Overtaking overtaking(registry_, store_);
  // "0" gives up its place to "new", and takes that of "1" at once.
  const auto once = std::exchange(store_.before_delete, nullptr);
  store_.before_delete = [&](absl::string_view tool) {
    if (tool == "0") once(tool);
  };
  registry_.Learn("t", "s", {Outcome("new", 30, 20)}, kFixed,
                  kNow + ToolBreaker::kHalfLife);
  overtaking.Join();
  EXPECT_TRUE(IsStored(Stored(), "0"));
  EXPECT_TRUE(IsStored(Stored(), "new"));
  EXPECT_FALSE(IsStored(Stored(), "1"));
}

TEST_F(ToolRegistryOrderTest, WhatIsLearnedOfAToolWhileItIsResetIsStored) {
  // Nothing is known of it before.
  Overtaking overtaking(registry_, store_);
  ASSERT_THAT(registry_.Reset("t", "0", kNow), IsOk());
  overtaking.Join();
  EXPECT_TRUE(IsStored(Stored(), "0"));
  EXPECT_EQ(StateOf(registry_, "t", "0"), BreakerState::kUnmasked);
}

}  // namespace
}  // namespace clerestory
