// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/tool_registry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/model/breaker_record.h"
#include "server/model/tool_outcome.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t kDay = 86'400 * kMicrosPerSecond;
constexpr TimeMicros kNow = 20'000 * kDay;
// The break-even is 13 %.
const BreakerOptions kFixed = {.rate_permille = 130};

ToolOutcome Outcome(const std::string& tool, std::int64_t masked,
                    std::int64_t refetched) {
  return {.tool = tool, .masked_count = masked, .refetched_count = refetched};
}

// Watches what is stored of tools, and fails when it is told to.
class ToolStore final : public ForwardingStore {
 public:
  absl::Status PutTool(const StoredTool& tool) override {
    if (is_failing) return StoreUnavailableError("the disk is gone");
    ++write_count;
    std::this_thread::yield();
    return ForwardingStore::PutTool(tool);
  }
  absl::StatusOr<StoredTools> ListTools() const override {
    if (is_failing) return StoreUnavailableError("the disk is gone");
    absl::StatusOr<StoredTools> all = ForwardingStore::ListTools();
    all->skipped_count = damaged_count;
    return all;
  }
  absl::Status DeleteTool(absl::string_view tenant,
                          absl::string_view tool) override {
    if (is_failing) return StoreUnavailableError("the disk is gone");
    return ForwardingStore::DeleteTool(tenant, tool);
  }

  std::atomic<bool> is_failing = false;
  std::int64_t damaged_count = 0;
  std::atomic<std::int64_t> write_count = 0;
};

class LinesLogger final : public Logger {
 public:
  void Write(Severity severity, absl::string_view event,
             const std::vector<LogField>& fields) override {
    lines.push_back(FormatLogLine(0, severity, event, fields));
  }

  std::vector<std::string> lines;
};

class ToolRegistryTest : public ::testing::Test {
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

  // A session of tenant "t" that "Read" is masked in while it is probed.
  std::string ProbedSession(TimeMicros now) {
    for (int i = 0; i < 1'000; ++i) {
      const std::string id = absl::StrCat(i);
      if (registry_.UnmaskedFor("t", id, now)->count("Read") == 0) return id;
    }
    ADD_FAILURE() << "it is masked in none";
    return "";
  }

  ToolStore store_;
  LinesLogger logger_;
  ToolRegistry registry_{store_, &logger_};
};

// The state of the tenant's tool; kObserving if there is none.
BreakerState StateOf(ToolRegistry& registry, absl::string_view tenant,
                     const std::string& tool, TimeMicros now = kNow) {
  for (const ToolStatus& status : registry.List(tenant, kFixed, now)) {
    if (status.tool == tool) return status.figures.state;
  }
  return BreakerState::kObserving;
}

TEST(BreakerOptionsTest, APolicyAsItIsMadeHasTheOptionsAsTheyAreMade) {
  EXPECT_EQ(BreakerOptionsOf(Policy()), BreakerOptions());
  Policy policy;
  policy.refetch_rate_permille = 1;
  policy.refetch_samples_min = 2;
  policy.refetch_confidence_percent = 3;
  policy.refetch_cool_off_minutes = 4;
  policy.refetch_probe_permille = 5;
  EXPECT_EQ(BreakerOptionsOf(policy), (BreakerOptions{1, 2, 3, 4, 5}));
}

TEST_F(ToolRegistryTest, NothingIsUnmaskedUntilItIsLearned) {
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", kNow), IsEmpty());
  EXPECT_THAT(registry_.List("t", kFixed, kNow), IsEmpty());
  registry_.Learn("t", "s", {}, kFixed, kNow);
  EXPECT_EQ(registry_.counts(), ToolCounts());
}

TEST_F(ToolRegistryTest, AToolThatDoesNotPayIsUnmaskedInAllSessions) {
  registry_.Learn("t", "s", {Outcome("Read", 30, 20), Outcome("Bash", 100, 0)},
                  kFixed, kNow);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "a", kNow), ElementsAre("Read"));
  EXPECT_EQ(registry_.UnmaskedFor("t", "a", kNow),
            registry_.UnmaskedFor("t", "b", kNow));
  const std::vector<ToolStatus> tools = registry_.List("t", kFixed, kNow);
  ASSERT_THAT(tools, SizeIs(2));
  EXPECT_EQ(tools[0].tool, "Bash");
  EXPECT_EQ(tools[0].figures.state, BreakerState::kMasked);
  EXPECT_EQ(tools[1].figures.state, BreakerState::kUnmasked);
  EXPECT_EQ(tools[1].figures.masked_count, 30);
  EXPECT_EQ(tools[1].figures.since, kNow);
  EXPECT_EQ(tools[1].figures.next_probe, kNow + kDay);
}

TEST_F(ToolRegistryTest, EachTransitionIsALineWithItsFiguresAndIsCounted) {
  Open("t", "Read");
  ASSERT_THAT(logger_.lines, SizeIs(1));
  for (const char* const part :
       {"\"event\":\"tool_state_changed\"", "\"tenant\":\"t\"",
        "\"tool\":\"Read\"", "\"from\":\"masked\"", "\"to\":\"unmasked\"",
        "\"masked_count\":30", "\"refetched_count\":20", "\"rate_ppm\":666666",
        "\"rate_low_ppm\":", "\"rate_high_ppm\":",
        "\"break_even_ppm\":130000"}) {
    EXPECT_THAT(logger_.lines[0], HasSubstr(part));
  }
  registry_.UnmaskedFor("t", "s", kNow + kDay);
  EXPECT_THAT(logger_.lines, SizeIs(2));
  ASSERT_THAT(registry_.Reset("t", "Read", kNow + kDay), IsOk());
  EXPECT_THAT(logger_.lines, SizeIs(3));
  const std::array<std::int64_t, 4> expected = {1, 0, 1, 1};
  EXPECT_EQ(registry_.counts().entered_counts, expected);
}

TEST_F(ToolRegistryTest, AProbedToolIsMaskedInSomeSessionsOnly) {
  Open("t", "Read");
  Open("t", "Bash");
  const TimeMicros later = kNow + kDay;
  int masked_count = 0;
  int both_count = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto unmasked = registry_.UnmaskedFor("t", absl::StrCat(i), later);
    if (unmasked->count("Read") == 0) ++masked_count;
    if (unmasked->empty()) ++both_count;
    EXPECT_EQ(*registry_.UnmaskedFor("t", absl::StrCat(i), later), *unmasked);
  }
  EXPECT_NEAR(masked_count, 100, 30);
  EXPECT_NEAR(both_count, 10, 10);
  EXPECT_EQ(StateOf(registry_, "t", "Read", later), BreakerState::kProbing);
  const std::string probed = ProbedSession(later);
  registry_.Learn("t", probed, {Outcome("Read", 100, 0)}, kFixed, later);
  registry_.Learn("t", probed, {Outcome("Read", 0, 0)}, kFixed,
                  later + 2 * ToolBreaker::kRipening);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", later), Not(Contains("Read")));
}

TEST_F(ToolRegistryTest, OnlyWhatComesOfProbingIsJudged) {
  Open("t", "Read");
  const TimeMicros later = kNow + kDay;
  std::string other = "0";
  while (registry_.UnmaskedFor("t", other, later)->count("Read") == 0) {
    other += "0";
  }
  const ToolOutcome outcome = {.tool = "Read",
                               .masked_count = 100,
                               .refetched_count = 90,
                               .saved = 100,
                               .lost = 90};
  registry_.Learn("t", other, {outcome}, kFixed, later);
  EXPECT_EQ(StateOf(registry_, "t", "Read", later), BreakerState::kProbing);
  ASSERT_THAT(Stored(), SizeIs(1));
  EXPECT_EQ(Stored()[0].record.masked, 0);
  EXPECT_EQ(Stored()[0].record.refetched, 0);
  // What money tells is true of all sessions.
  EXPECT_GE(Stored()[0].record.saved, 100);
  registry_.Learn("t", ProbedSession(later), {outcome}, kFixed, later);
  EXPECT_EQ(StateOf(registry_, "t", "Read", later), BreakerState::kUnmasked);
}

TEST_F(ToolRegistryTest, AClockThatGoesBackDoesNotKeepAToolUnmasked) {
  registry_.Learn("t", "s", {Outcome("Read", 30, 20)}, kFixed,
                  kNow + 1'000'000 * kDay);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", kNow), ElementsAre("Read"));
  registry_.UnmaskedFor("t", "s", kNow + kDay);
  EXPECT_EQ(StateOf(registry_, "t", "Read", kNow + kDay),
            BreakerState::kProbing);
}

TEST_F(ToolRegistryTest, TenantsAreApart) {
  Open("a", "Read");
  registry_.Learn("b", "s", {Outcome("Read", 100, 0)}, kFixed, kNow);
  EXPECT_THAT(*registry_.UnmaskedFor("a", "s", kNow), ElementsAre("Read"));
  EXPECT_THAT(*registry_.UnmaskedFor("b", "s", kNow), IsEmpty());
  ASSERT_THAT(registry_.Reset("b", "Read", kNow), IsOk());
  EXPECT_THAT(*registry_.UnmaskedFor("a", "s", kNow), ElementsAre("Read"));
  EXPECT_THAT(Stored(), SizeIs(1));
}

TEST_F(ToolRegistryTest, NamesMayHaveAnyBytes) {
  const std::string odd("R\0\xff\n\"", 5);
  Open("t", odd);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", kNow), ElementsAre(odd));
  ToolRegistry restarted(store_, nullptr);
  ASSERT_THAT(restarted.Load(), IsOk());
  EXPECT_THAT(*restarted.UnmaskedFor("t", "s", kNow), ElementsAre(odd));
}

TEST_F(ToolRegistryTest, ARestartForgetsNothing) {
  Open("t", "Read");
  registry_.Learn("t", "s", {Outcome("Bash", 100, 3)}, kFixed, kNow);
  ToolRegistry restarted(store_, nullptr);
  const auto skipped = restarted.Load();
  ASSERT_THAT(skipped, IsOk());
  EXPECT_EQ(*skipped, 0);
  EXPECT_EQ(restarted.List("t", kFixed, kNow),
            registry_.List("t", kFixed, kNow));
  // The same sessions are probed then.
  const TimeMicros later = kNow + kDay;
  for (int i = 0; i < 200; ++i) {
    const std::string session = absl::StrCat(i);
    EXPECT_EQ(*restarted.UnmaskedFor("t", session, later),
              *registry_.UnmaskedFor("t", session, later));
  }
  // What is known stays known.
  ASSERT_THAT(registry_.Load(), IsOk());
  EXPECT_EQ(StateOf(registry_, "t", "Read", later), BreakerState::kProbing);
}

TEST_F(ToolRegistryTest, AResetMasksAgainAndIsIdempotent) {
  Open("t", "Read");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(registry_.Reset("t", "Read", kNow), IsOk());
    EXPECT_THAT(*registry_.UnmaskedFor("t", "s", kNow), IsEmpty());
    EXPECT_THAT(Stored(), IsEmpty());
  }
  EXPECT_THAT(registry_.Reset("t", "never seen", kNow), IsOk());
  EXPECT_THAT(registry_.Reset("nobody", "Read", kNow), IsOk());
  EXPECT_EQ(StateOf(registry_, "t", "Read"), BreakerState::kObserving);
  // It is learned anew.
  Open("t", "Read");
  EXPECT_THAT(Stored(), SizeIs(1));
  EXPECT_EQ(StateOf(registry_, "t", "Read"), BreakerState::kUnmasked);
}

TEST_F(ToolRegistryTest, ThousandsOfToolsTakeTheRoomOf256) {
  std::vector<ToolOutcome> outcomes;
  for (int i = 0; i < 5'000; ++i) {
    outcomes.push_back(Outcome(absl::StrCat("tool ", i), 30, 20));
  }
  registry_.Learn("t", "s", outcomes, kFixed, kNow);
  const std::vector<ToolStatus> tools = registry_.List("t", kFixed, kNow);
  ASSERT_THAT(tools, SizeIs(ToolRegistry::kToolsPerTenantMax + 1));
  EXPECT_EQ(tools[0].tool, "");
  // What is counted together is never unmasked.
  EXPECT_EQ(tools[0].figures.state, BreakerState::kMasked);
  EXPECT_GT(tools[0].figures.rate, 600'000);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", kNow),
              SizeIs(ToolRegistry::kToolsPerTenantMax));
  EXPECT_EQ(registry_.counts().other_count,
            5'000 - ToolRegistry::kToolsPerTenantMax);
  EXPECT_EQ(registry_.counts().no_room_count, 0);
  EXPECT_THAT(Stored(), SizeIs(ToolRegistry::kToolsPerTenantMax + 1));
  EXPECT_EQ(store_.write_count, ToolRegistry::kToolsPerTenantMax + 1);
}

TEST_F(ToolRegistryTest, NamesThatAreTooLongOrEmptyAreCountedTogether) {
  const std::string longest(ToolRegistry::kNameBytesMax, 'x');
  registry_.Learn("t", "s",
                  {Outcome(longest, 30, 20), Outcome(longest + "x", 30, 20),
                   Outcome("", 30, 20)},
                  kFixed, kNow);
  const std::vector<ToolStatus> tools = registry_.List("t", kFixed, kNow);
  ASSERT_THAT(tools, SizeIs(2));
  EXPECT_EQ(tools[0].tool, "");
  EXPECT_EQ(tools[0].figures.masked_count, 60);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", kNow), ElementsAre(longest));
}

TEST_F(ToolRegistryTest, AToolThatIsForgottenGivesItsPlaceToANewOne) {
  std::vector<ToolOutcome> outcomes;
  for (std::int64_t i = 0; i < ToolRegistry::kToolsPerTenantMax; ++i) {
    outcomes.push_back(Outcome(absl::StrCat(i), 1, 0));
  }
  registry_.Learn("t", "s", outcomes, kFixed, kNow);
  registry_.Learn("t", "s", {Outcome("new", 1, 0)}, kFixed, kNow);
  EXPECT_EQ(registry_.counts().evicted_count, 0);
  const TimeMicros later = kNow + ToolBreaker::kHalfLife;
  registry_.Learn("t", "s", {Outcome("new", 30, 20)}, kFixed, later);
  EXPECT_EQ(registry_.counts().evicted_count, 1);
  EXPECT_THAT(*registry_.UnmaskedFor("t", "s", later), ElementsAre("new"));
  const std::vector<StoredTool> stored = Stored();
  EXPECT_THAT(stored, SizeIs(ToolRegistry::kToolsPerTenantMax + 1));
  EXPECT_TRUE(std::none_of(stored.begin(), stored.end(),
                           [](const StoredTool& t) { return t.tool == "0"; }));
}

TEST_F(ToolRegistryTest, AllTenantsHaveRoomForSoManyTools) {
  std::vector<ToolOutcome> outcomes;
  for (std::int64_t i = 0; i < ToolRegistry::kToolsPerTenantMax; ++i) {
    outcomes.push_back(Outcome(absl::StrCat(i), 1, 0));
  }
  const std::int64_t tenants =
      ToolRegistry::kToolsMax / ToolRegistry::kToolsPerTenantMax;
  for (std::int64_t i = 0; i < tenants; ++i) {
    registry_.Learn(absl::StrCat(i), "s", outcomes, kFixed, kNow);
  }
  EXPECT_EQ(registry_.counts().no_room_count, 0);
  registry_.Learn("one more", "s", outcomes, kFixed, kNow);
  EXPECT_EQ(registry_.counts().no_room_count, ToolRegistry::kToolsPerTenantMax);
  registry_.Learn("0", "s", {Outcome("no place", 1, 0)}, kFixed, kNow);
  EXPECT_EQ(registry_.counts().no_room_count,
            ToolRegistry::kToolsPerTenantMax + 1);
  Open("0", "0");
  EXPECT_THAT(*registry_.UnmaskedFor("0", "s", kNow), ElementsAre("0"));
}

TEST_F(ToolRegistryTest, WhatIsDamagedOrHasNoRoomIsPassedByAndCounted) {
  for (std::int64_t i = 0; i < ToolRegistry::kToolsPerTenantMax + 5; ++i) {
    ASSERT_THAT(store_.PutTool({.tenant = "t", .tool = absl::StrCat(i)}),
                IsOk());
  }
  ASSERT_THAT(store_.PutTool(
                  {.tenant = "u",
                   .tool = std::string(ToolRegistry::kNameBytesMax + 1, 'x')}),
              IsOk());
  store_.damaged_count = 2;
  const auto skipped = registry_.Load();
  ASSERT_THAT(skipped, IsOk());
  EXPECT_EQ(*skipped, 5 + 1 + 2);
}

TEST_F(ToolRegistryTest, WhatIsToldOfMoneyAloneIsStoredWithTheNextCount) {
  registry_.Learn("t", "s", {Outcome("Read", 1, 0)}, kFixed, kNow);
  for (int i = 0; i < 9; ++i) {
    registry_.Learn("t", "s", {{.tool = "Read", .saved = 5}}, kFixed, kNow);
  }
  EXPECT_EQ(store_.write_count, 1);
  EXPECT_EQ(Stored().front().record.saved, 0);
  registry_.Learn("t", "s", {Outcome("Read", 0, 1)}, kFixed, kNow);
  EXPECT_EQ(store_.write_count, 2);
  EXPECT_EQ(Stored().front().record.saved, 45);
}

TEST_F(ToolRegistryTest, AFailedWriteIsCountedAndMadeUpForByTheNext) {
  store_.is_failing = true;
  EXPECT_THAT(registry_.Load(), FailsWith(absl::StatusCode::kUnavailable,
                                          Reason::kStoreUnavailable));
  Open("t", "Read");
  EXPECT_EQ(StateOf(registry_, "t", "Read"), BreakerState::kUnmasked);
  EXPECT_THAT(
      registry_.Reset("t", "Read", kNow),
      FailsWith(absl::StatusCode::kUnavailable, Reason::kStoreUnavailable));
  EXPECT_EQ(StateOf(registry_, "t", "Read"), BreakerState::kObserving);
  EXPECT_EQ(registry_.counts().failed_write_count, 2);
  store_.is_failing = false;
  EXPECT_THAT(Stored(), IsEmpty());
  Open("t", "Read");
  ASSERT_THAT(Stored(), SizeIs(1));
  EXPECT_EQ(Stored()[0].record.state, BreakerState::kUnmasked);
}

TEST_F(ToolRegistryTest, WhatThreadsLearnTogetherIsAllStored) {
  constexpr int kThreads = 4;
  constexpr std::int64_t kEach = 200;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      const std::string own = absl::StrCat("of ", thread);
      for (std::int64_t i = 0; i < kEach; ++i) {
        registry_.Learn("t", "s", {Outcome("shared", 1, 0), Outcome(own, 1, 0)},
                        kFixed, kNow);
        EXPECT_THAT(*registry_.UnmaskedFor("t", own, kNow), IsEmpty());
        if (i % 50 == 0) {
          EXPECT_THAT(registry_.Reset("t", "reset", kNow), IsOk());
          registry_.Learn("t", "s", {Outcome("reset", 1, 0)}, kFixed, kNow);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(registry_.Reset("t", "reset", kNow), IsOk());
  const std::vector<StoredTool> stored = Stored();
  ASSERT_THAT(stored, SizeIs(1 + kThreads));
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(stored[static_cast<std::size_t>(thread)].record.masked,
              kEach * kCountUnit);
  }
  EXPECT_EQ(stored.back().tool, "shared");
  EXPECT_EQ(stored.back().record.masked, kThreads * kEach * kCountUnit);
}

}  // namespace
}  // namespace clerestory
