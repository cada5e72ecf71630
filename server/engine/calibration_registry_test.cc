// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/calibration_registry.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/mutex.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/cost/calibration.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kTokens = TokenCalibration::kSampleWeightMax;

// As much as one sample can weigh, of that many tokens for one.
CalibrationSample SampleOf(std::int64_t ratio_ppm) {
  return {.reported_tokens = Scaled(kTokens, ratio_ppm),
          .estimated_tokens = kTokens};
}

// Watches what is stored of calibrations, and fails when it is told to.
class CalibrationStore final : public ForwardingStore {
 public:
  absl::Status PutCalibration(const StoredCalibration& calibration) override {
    if (is_failing) return StoreUnavailableError("the disk is gone");
    {
      const MutexLock lock(mutex_);
      std::int64_t& last = last_counts_[calibration.model];
      if (calibration.sample_count <= last) went_back = true;
      last = calibration.sample_count;
      ++write_count;
    }
    std::this_thread::yield();
    return ForwardingStore::PutCalibration(calibration);
  }
  absl::StatusOr<StoredCalibrations> ListCalibrations() const override {
    if (is_failing) return StoreUnavailableError("the disk is gone");
    absl::StatusOr<StoredCalibrations> all =
        ForwardingStore::ListCalibrations();
    all->skipped_count = damaged_count;
    return all;
  }

  std::atomic<bool> is_failing = false;
  std::int64_t damaged_count = 0;
  std::atomic<std::int64_t> write_count = 0;
  // Whether a model was ever written with no more samples than before.
  std::atomic<bool> went_back = false;

 private:
  Mutex mutex_;
  std::map<std::string, std::int64_t> last_counts_
      CLERESTORY_GUARDED_BY(mutex_);
};

class CalibrationRegistryTest : public ::testing::Test {
 protected:
  // What is stored.
  std::vector<StoredCalibration> Stored() const {
    const auto all = store_.ListCalibrations();
    EXPECT_THAT(all, IsOk());
    return all.ok() ? all->entries : std::vector<StoredCalibration>();
  }

  CalibrationStore store_;
  CalibrationRegistry registry_{store_};
};

// Learns so much that the scale is one of the samples.
void LearnEnough(CalibrationRegistry& registry, absl::string_view tenant,
                 absl::string_view model, std::int64_t ratio_ppm) {
  for (int i = 0; i < 3; ++i) {
    registry.Learn(tenant, model, SampleOf(ratio_ppm));
  }
}

// Within a step of the scale.
void ExpectNear(std::int64_t scale_ppm, std::int64_t ratio_ppm) {
  EXPECT_GE(scale_ppm, ratio_ppm * 98 / 100);
  EXPECT_LE(scale_ppm, ratio_ppm * 102 / 100);
}

TEST_F(CalibrationRegistryTest, TheScaleIsZeroUntilEnoughWasLearned) {
  EXPECT_EQ(registry_.ScaleOf("t", "m"), 0);
  registry_.Learn("t", "m", SampleOf(1'300'000));
  EXPECT_EQ(registry_.ScaleOf("t", "m"), 0);
  registry_.Learn("t", "m", SampleOf(1'300'000));
  ExpectNear(registry_.ScaleOf("t", "m"), 1'300'000);
}

TEST_F(CalibrationRegistryTest, TheScaleIsWhatTheCalibrationSays) {
  TokenCalibration calibration;
  for (const std::int64_t ratio : {1'100'000, 1'250'000, 1'250'000, 800'000}) {
    registry_.Learn("t", "m", SampleOf(ratio));
    calibration.Add(SampleOf(ratio));
  }
  EXPECT_EQ(registry_.ScaleOf("t", "m"), calibration.scale_ppm());
  const CalibrationState state = calibration.state();
  EXPECT_THAT(Stored(), ElementsAre(StoredCalibration{"t", "m", state.weights,
                                                      state.sample_count}));
}

TEST_F(CalibrationRegistryTest, TenantsAndModelsAreApart) {
  const std::string odd("m\0\xff", 3);
  LearnEnough(registry_, "a", "m", 1'200'000);
  LearnEnough(registry_, "b", "m", 800'000);
  LearnEnough(registry_, "a", odd, 1'500'000);
  LearnEnough(registry_, "a", "", 700'000);
  ExpectNear(registry_.ScaleOf("a", "m"), 1'200'000);
  ExpectNear(registry_.ScaleOf("b", "m"), 800'000);
  ExpectNear(registry_.ScaleOf("a", odd), 1'500'000);
  ExpectNear(registry_.ScaleOf("a", ""), 700'000);
  EXPECT_EQ(registry_.ScaleOf("b", odd), 0);
  EXPECT_EQ(registry_.ScaleOf("c", "m"), 0);
}

TEST_F(CalibrationRegistryTest, ARestartForgetsNothing) {
  LearnEnough(registry_, "a", "m", 1'200'000);
  LearnEnough(registry_, "b", "n", 800'000);
  registry_.Learn("b", "few", SampleOf(600'000));

  CalibrationRegistry restarted(store_);
  EXPECT_EQ(restarted.ScaleOf("a", "m"), 0);
  const auto skipped = restarted.Load();
  ASSERT_THAT(skipped, IsOk());
  EXPECT_EQ(*skipped, 0);
  EXPECT_EQ(restarted.ScaleOf("a", "m"), registry_.ScaleOf("a", "m"));
  EXPECT_EQ(restarted.ScaleOf("b", "n"), registry_.ScaleOf("b", "n"));
  EXPECT_EQ(restarted.counts(), CalibrationCounts());

  // It goes on from there.
  restarted.Learn("b", "few", SampleOf(600'000));
  ExpectNear(restarted.ScaleOf("b", "few"), 600'000);
}

TEST_F(CalibrationRegistryTest, LoadingKeepsWhatWasLearnedBefore) {
  LearnEnough(registry_, "t", "m", 1'200'000);
  CalibrationRegistry restarted(store_);
  LearnEnough(restarted, "t", "n", 800'000);
  ASSERT_THAT(registry_.Load(), IsOk());
  ASSERT_THAT(restarted.Load(), IsOk());
  for (const CalibrationRegistry* registry : {&registry_, &restarted}) {
    ExpectNear(registry->ScaleOf("t", "m"), 1'200'000);
    ExpectNear(registry->ScaleOf("t", "n"), 800'000);
  }
}

TEST_F(CalibrationRegistryTest, WhatIsDamagedOrHasNoRoomIsPassedByAndCounted) {
  for (std::int64_t i = 0; i < CalibrationRegistry::kModelsPerTenantMax + 5;
       ++i) {
    ASSERT_THAT(store_.PutCalibration({"t", absl::StrCat(i), {kTokens}, 1}),
                IsOk());
  }
  ASSERT_THAT(store_.PutCalibration(
                  {"u", std::string(kModelBytesMax + 1, 'm'), {kTokens}, 1}),
              IsOk());
  store_.damaged_count = 2;
  const auto skipped = registry_.Load();
  ASSERT_THAT(skipped, IsOk());
  EXPECT_EQ(*skipped, 5 + 1 + 2);
}

TEST_F(CalibrationRegistryTest, WhatCannotHaveBeenStoredIsLeftOut) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> weights = {-1, kMax, -kMax - 1, kMax};
  ASSERT_THAT(store_.PutCalibration({"t", "m", weights, 3}), IsOk());
  ASSERT_THAT(registry_.Load(), IsOk());
  EXPECT_EQ(registry_.ScaleOf("t", "m"), 0);
  LearnEnough(registry_, "t", "m", 1'200'000);
  ExpectNear(registry_.ScaleOf("t", "m"), 1'200'000);
}

TEST_F(CalibrationRegistryTest, AStoreThatCannotBeReadFailsOnlyTheLoading) {
  store_.is_failing = true;
  EXPECT_THAT(registry_.Load(), FailsWith(absl::StatusCode::kUnavailable,
                                          Reason::kStoreUnavailable));
  store_.is_failing = false;
  LearnEnough(registry_, "t", "m", 1'200'000);
  ExpectNear(registry_.ScaleOf("t", "m"), 1'200'000);
}

TEST_F(CalibrationRegistryTest, AFailedWriteIsCountedAndMadeUpForByTheNext) {
  store_.is_failing = true;
  LearnEnough(registry_, "t", "m", 1'200'000);
  ExpectNear(registry_.ScaleOf("t", "m"), 1'200'000);
  EXPECT_EQ(registry_.counts().learned_count, 3);
  EXPECT_EQ(registry_.counts().failed_write_count, 3);

  store_.is_failing = false;
  EXPECT_THAT(Stored(), IsEmpty());
  registry_.Learn("t", "m", SampleOf(1'200'000));
  ASSERT_THAT(Stored(), SizeIs(1));
  EXPECT_EQ(Stored().front().sample_count, 4);
  EXPECT_EQ(registry_.counts().failed_write_count, 3);
}

TEST_F(CalibrationRegistryTest, SamplesThatCannotBeAreCountedAndTakeNoRoom) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  std::int64_t count = 0;
  for (const std::int64_t reported : {kMin, std::int64_t{-1}, std::int64_t{0},
                                      std::int64_t{1}, kTokensMax + 1, kMax}) {
    for (const std::int64_t estimated :
         {kMin, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, kTokens,
          kTokensMax, kTokensMax + 1, kMax}) {
      registry_.Learn(
          "t", absl::StrCat(++count),
          {.reported_tokens = reported, .estimated_tokens = estimated});
    }
  }
  EXPECT_EQ(registry_.counts(), CalibrationCounts{.passed_over_count = count});
  EXPECT_THAT(Stored(), IsEmpty());
  LearnEnough(registry_, "t", "m", 1'200'000);
  registry_.Learn("t", "m", {.reported_tokens = kMax, .estimated_tokens = 1});
  ExpectNear(registry_.ScaleOf("t", "m"), 1'200'000);
  EXPECT_EQ(Stored().front().sample_count, 3);
}

TEST_F(CalibrationRegistryTest, ATenantHasRoomForSoManyModels) {
  for (std::int64_t i = 0; i < CalibrationRegistry::kModelsPerTenantMax; ++i) {
    LearnEnough(registry_, "t", absl::StrCat(i), 1'200'000);
  }
  LearnEnough(registry_, "t", "one more", 1'200'000);
  EXPECT_EQ(registry_.ScaleOf("t", "one more"), 0);
  EXPECT_EQ(registry_.counts().no_room_count, 3);
  EXPECT_THAT(Stored(), SizeIs(CalibrationRegistry::kModelsPerTenantMax));
  // Those that are there, and others' models, are learned of.
  for (int i = 0; i < 9; ++i) registry_.Learn("t", "0", SampleOf(700'000));
  ExpectNear(registry_.ScaleOf("t", "0"), 700'000);
  LearnEnough(registry_, "u", "one more", 1'300'000);
  ExpectNear(registry_.ScaleOf("u", "one more"), 1'300'000);
  EXPECT_EQ(registry_.counts().no_room_count, 3);
}

TEST_F(CalibrationRegistryTest, AllTenantsHaveRoomForSoManyModels) {
  std::int64_t tenant = 0;
  for (std::int64_t i = 0; i < CalibrationRegistry::kModelsMax; ++i) {
    if (i % CalibrationRegistry::kModelsPerTenantMax == 0) ++tenant;
    registry_.Learn(absl::StrCat(tenant), absl::StrCat(i), SampleOf(kScaleOne));
  }
  EXPECT_EQ(registry_.counts().no_room_count, 0);
  registry_.Learn("one more", "m", SampleOf(kScaleOne));
  EXPECT_EQ(registry_.counts().no_room_count, 1);
  EXPECT_THAT(Stored(), SizeIs(CalibrationRegistry::kModelsMax));
}

TEST_F(CalibrationRegistryTest, AModelOfTooLongANameIsNotLearned) {
  const std::string longest(kModelBytesMax, 'm');
  LearnEnough(registry_, "t", longest, 1'200'000);
  ExpectNear(registry_.ScaleOf("t", longest), 1'200'000);
  LearnEnough(registry_, "t", longest + "m", 1'200'000);
  EXPECT_EQ(registry_.ScaleOf("t", longest + "m"), 0);
  EXPECT_EQ(registry_.counts().no_room_count, 3);
}

// All samples are learned and stored once, whatever the order; nobody writes
// less than was written before.
TEST_F(CalibrationRegistryTest, WhatThreadsLearnTogetherIsAllStored) {
  constexpr int kThreads = 4;
  constexpr std::int64_t kEach = 300;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (std::int64_t i = 0; i < kEach; ++i) {
        const CalibrationSample sample = {.reported_tokens = 600 + thread,
                                          .estimated_tokens = 500};
        registry_.Learn("t", "shared", sample);
        registry_.Learn("t", absl::StrCat("of ", thread), sample);
        EXPECT_LE(registry_.ScaleOf("t", "shared"), 1'250'000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registry_.counts(),
            CalibrationCounts{.learned_count = 2 * kThreads * kEach});
  EXPECT_FALSE(store_.went_back);
  EXPECT_LE(store_.write_count, 2 * kThreads * kEach);

  TokenCalibration shared;
  for (int thread = 0; thread < kThreads; ++thread) {
    for (std::int64_t i = 0; i < kEach; ++i) {
      shared.Add({.reported_tokens = 600 + thread, .estimated_tokens = 500});
    }
  }
  const std::vector<StoredCalibration> stored = Stored();
  ASSERT_THAT(stored, SizeIs(1 + kThreads));
  EXPECT_EQ(stored.back().model, "shared");
  EXPECT_EQ(stored.back().weights, shared.state().weights);
  EXPECT_EQ(stored.back().sample_count, kThreads * kEach);
  EXPECT_EQ(registry_.ScaleOf("t", "shared"), shared.scale_ppm());
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(stored[static_cast<std::size_t>(thread)].sample_count, kEach);
  }
}

}  // namespace
}  // namespace clerestory
