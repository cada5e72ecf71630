// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What providers' caches are taken to hold, by what was served and reported.

#include "server/view/cache.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

constexpr std::int64_t kNoChange = std::numeric_limits<std::int64_t>::max();

ViewServed ViewOf(const std::string& model, const CallTokens& call,
                  std::int64_t time = 0) {
  ViewServed view;
  view.model = model;
  view.cache_time = time;
  view.preamble_digest = "p";
  view.view_call = call;
  view.raw_call = {.read = 50'000, .written = 1'000};
  view.every_turn_call = {.read = 9'000, .written = 1'000};
  return view;
}

class CacheTest : public ::testing::Test {
 protected:
  // Serves a view of which `read` tokens should be found, and 1000 are new.
  void Serve(std::int64_t read, const std::string& model = "m") {
    last_ = ViewOf(model, {.read = read, .written = 1'000});
    cache_.Serve(last_, kNoChange, kNoChange);
  }
  void Report(std::optional<std::int64_t> read,
              std::optional<std::int64_t> written,
              const std::string& model = "m") {
    UsageReported report;
    report.model = model;
    report.usage.cache_read = read;
    report.usage.cache_write = written;
    cache_.Report(report, last_);
  }
  std::int64_t Held(const std::string& model = "m") const {
    return cache_.Find(model)->view_tokens;
  }

  Cache cache_;
  ViewServed last_;
};

TEST_F(CacheTest, OfAModelThatWasNeverCalledItHoldsNothing) {
  EXPECT_EQ(cache_.Find("m"), nullptr);
  Serve(0, "other");
  EXPECT_EQ(cache_.Find("m"), nullptr);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kUnknown);
}

TEST_F(CacheTest, HoldsWhatTheLastCallReadAndWrote) {
  last_ = ViewOf("m", {.read = 7, .written = 5, .uncached = 100}, 42);
  cache_.Serve(last_, kNoChange, kNoChange);
  const CachedPrompt& held = *cache_.Find("m");
  EXPECT_EQ(held.view_tokens, 12);
  EXPECT_EQ(held.raw_tokens, 51'000);
  EXPECT_EQ(held.every_turn_tokens, 10'000);
  EXPECT_EQ(held.time, 42);
  EXPECT_EQ(held.preamble_digest, "p");
  EXPECT_FALSE(held.is_missed);
}

TEST_F(CacheTest, AHitShowsThatItWorks) {
  Serve(10'000);
  Report(10'000, 1'000);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kWorks);
  EXPECT_EQ(Held(), 11'000);
}

TEST_F(CacheTest, AHitMayLackWhatEstimatesErrBy) {
  Serve(20'000);
  Report(10'001, std::nullopt);  // Less than half is lacking.
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kWorks);
  Report(10'000, std::nullopt);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kMisses);
}

TEST_F(CacheTest, ALittleThatIsNotFoundIsNoMiss) {
  Serve(kCacheMissTokensMin);
  Report(1, std::nullopt);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kWorks);
  Report(0, std::nullopt);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kMisses);
}

TEST_F(CacheTest, ACallWithLittleToBeFoundTellsNothing) {
  Serve(kCacheMissTokensMin - 1);
  Report(0, std::nullopt);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kUnknown);
  EXPECT_EQ(Held(), kCacheMissTokensMin + 999);
}

TEST_F(CacheTest, AReportThatDoesNotSayWhatWasReadTellsNothing) {
  Serve(10'000);
  Report(std::nullopt, 0);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kUnknown);
  EXPECT_EQ(Held(), 11'000);
}

TEST_F(CacheTest, WhatIsMissedAndWrittenAgainIsThere) {
  for (int i = 0; i < 2; ++i) {
    Serve(10'000);
    Report(0, 11'000);
    EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kMisses);
    EXPECT_EQ(Held(), 11'000);
    EXPECT_FALSE(cache_.Find("m")->is_missed);
  }
}

TEST_F(CacheTest, WhatIsMissedAndNotWrittenIsNotThere) {
  Serve(10'000);
  Report(300, 0);
  EXPECT_EQ(Held(), 300);
  EXPECT_TRUE(cache_.Find("m")->is_missed);
  Serve(0);
  EXPECT_FALSE(cache_.Find("m")->is_missed) << "it may have been written now";
}

TEST_F(CacheTest, WhatIsMissedWouldHaveBeenMissedOfAnyPrompt) {
  Serve(10'000);
  Report(300, 0);
  EXPECT_EQ(cache_.Find("m")->raw_tokens, 300);
  EXPECT_EQ(cache_.Find("m")->every_turn_tokens, 300);
}

TEST_F(CacheTest, IsAbsentAfterThreePromptsOfWhichNothingIsReadOrWritten) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(cache_.StatusOf("m"), CacheStatus::kAbsent) << i;
    last_ = ViewOf("m", {.written = 10'000});  // As after the last report.
    cache_.Serve(last_, kNoChange, kNoChange);
    Report(0, 0);
  }
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kAbsent);
}

TEST_F(CacheTest, AFirstPromptThatIsNotWrittenIsNotThere) {
  last_ = ViewOf("m", {.written = 10'000});
  cache_.Serve(last_, kNoChange, kNoChange);
  Report(0, 0);
  EXPECT_EQ(Held(), 0);
  EXPECT_TRUE(cache_.Find("m")->is_missed);
}

TEST_F(CacheTest, AProviderThatDoesNotTellWhatItWritesIsBelievedOnce) {
  Serve(10'000);
  Report(0, std::nullopt);
  EXPECT_EQ(Held(), 11'000);
  Serve(11'000);
  Report(0, std::nullopt);
  EXPECT_EQ(Held(), 0);
  EXPECT_TRUE(cache_.Find("m")->is_missed);
}

TEST_F(CacheTest, IsAbsentAfterThreeMissesInARow) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(cache_.StatusOf("m"), CacheStatus::kAbsent) << i;
    Serve(10'000);
    Report(0, std::nullopt);
  }
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kAbsent);
}

TEST_F(CacheTest, AHitBetweenMissesBeginsTheCountAnew) {
  for (const std::int64_t read : {0, 0, 10'000, 0, 0}) {
    Serve(10'000);
    Report(read, std::nullopt);
  }
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kMisses);
}

TEST_F(CacheTest, WhatIsAbsentComesBackWhenHalfOfAPromptIsFound) {
  for (int i = 0; i < 3; ++i) {
    Serve(10'000);
    Report(0, std::nullopt);
  }
  last_ = ViewOf("m", {.uncached = 20'000});
  cache_.Serve(last_, kNoChange, kNoChange);
  Report(9'999, std::nullopt);  // As much as a preamble may have.
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kAbsent);
  Report(10'000, std::nullopt);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kWorks);
  Serve(10'000);
  Report(0, std::nullopt);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kMisses)
      << "the count is from 0";
}

TEST_F(CacheTest, AReportAboutAnotherModelIsIgnored) {
  Serve(10'000);
  Report(0, 0, "other");
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kUnknown);
  EXPECT_EQ(Held(), 11'000);
  EXPECT_EQ(cache_.Find("other"), nullptr);
}

TEST_F(CacheTest, ModelsThatAlternateKeepTheirCaches) {
  Serve(10'000, "a");
  Serve(20'000, "b");
  EXPECT_EQ(Held("a"), 11'000);
  EXPECT_EQ(Held("b"), 21'000);
}

TEST_F(CacheTest, AMissOfOneModelLeavesWhatAnotherHolds) {
  Serve(10'000, "a");
  Serve(20'000, "b");
  Report(0, 0, "b");
  EXPECT_EQ(Held("a"), 11'000);
  EXPECT_EQ(Held("b"), 0);
}

TEST_F(CacheTest, ABreakLowersWhatOtherModelsHold) {
  Serve(10'000, "a");
  cache_.Serve(ViewOf("b", {.written = 8'000}), 2'500, 1'500);
  const CachedPrompt& a = *cache_.Find("a");
  EXPECT_EQ(a.view_tokens, 2'500);
  EXPECT_EQ(a.every_turn_tokens, 1'500);
  EXPECT_EQ(a.raw_tokens, 51'000) << "nothing changes in what is never masked";
  EXPECT_FALSE(a.is_missed);
  EXPECT_EQ(Held("b"), 8'000) << "what it wrote itself is changed already";
  cache_.Serve(ViewOf("b", {.written = 8'000}), 9'000, 9'000);
  EXPECT_EQ(a.view_tokens, 2'500) << "a later break changes what is not held";
}

TEST_F(CacheTest, AMissNeverAddsToWhatIsHeld) {
  Serve(10'000);
  Report(0, 0);
  Report(5'000, 0);
  EXPECT_EQ(Held(), 0);
}

TEST_F(CacheTest, OfManyModelsTheOldestIsForgotten) {
  for (int i = 0; i < 9; ++i) {
    cache_.Serve(ViewOf(absl::StrCat("m", i), {.written = 1}, 100 + i),
                 kNoChange, kNoChange);
  }
  EXPECT_EQ(cache_.Find("m0"), nullptr);
  for (int i = 1; i < 9; ++i) {
    EXPECT_NE(cache_.Find(absl::StrCat("m", i)), nullptr) << i;
  }
}

TEST_F(CacheTest, AModelThatCachesNothingSaysNothingOfAnother) {
  for (int i = 0; i < 3; ++i) {
    Serve(10'000, "side");
    Report(0, 9'000, "side");
    Serve(10'000);
    Report(10'000, 1'000);
  }
  EXPECT_EQ(cache_.StatusOf("side"), CacheStatus::kAbsent);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kWorks);
}

TEST_F(CacheTest, WhatWasReadAgainAfterAllIsHeld) {
  for (int i = 0; i < 3; ++i) {
    Serve(10'000);
    Report(0, 9'000);
  }
  last_ = ViewOf("m", {.uncached = 11'000});
  cache_.Serve(last_, kNoChange, kNoChange);
  EXPECT_EQ(Held(), 0);
  Report(10'000, 1'000);
  EXPECT_EQ(cache_.StatusOf("m"), CacheStatus::kWorks);
  EXPECT_EQ(Held(), 10'000);
}

}  // namespace
}  // namespace clerestory
