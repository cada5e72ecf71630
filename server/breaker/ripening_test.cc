// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What is masked so lately that it could not be fetched again yet.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/breaker/rate_test.h"
#include "server/breaker/tool_breaker.h"
#include "server/model/breaker_record.h"
#include "server/model/tool_outcome.h"

namespace clerestory {
namespace {

constexpr TimeMicros kStart = 20'000 * 86'400 * kMicrosPerSecond;

// The break-even is 13 %.
const BreakerOptions kFixed = {.rate_permille = 130};

class RipeningTest : public testing::Test {
 protected:
  void Learn(std::int64_t masked, std::int64_t refetched,
             const BreakerOptions& options = kFixed) {
    breaker_.Learn(
        {.tool = "Read", .masked_count = masked, .refetched_count = refetched},
        options, now_, transitions_);
  }

  void Advance() { breaker_.Advance("Read", kFixed, now_, transitions_); }

  BreakerState State() const { return breaker_.Figures(kFixed).state; }

  // Lets so much time pass that all that was masked is ripe.
  void Ripen() { now_ += 2 * ToolBreaker::kRipening; }

  void OpenAndProbe() {
    Learn(30, 20);
    ASSERT_EQ(State(), BreakerState::kUnmasked);
    now_ = breaker_.next_change();
    Advance();
    ASSERT_EQ(State(), BreakerState::kProbing);
  }

  ToolBreaker breaker_;
  TimeMicros now_ = kStart;
  std::vector<BreakerTransition> transitions_;
};

TEST_F(RipeningTest, ABurstOfMasksHasATimeToBeFetchedAgain) {
  OpenAndProbe();
  Learn(200, 0);
  EXPECT_EQ(State(), BreakerState::kProbing);
  now_ += ToolBreaker::kRipening - 1;
  Learn(200, 0);
  EXPECT_EQ(State(), BreakerState::kProbing);
  EXPECT_EQ(breaker_.Figures(kFixed).interval.high, kRateOne);
  // They are fetched again, then, before anything is concluded.
  Learn(0, 150);
  EXPECT_EQ(State(), BreakerState::kUnmasked);
}

TEST_F(RipeningTest, EveryMaskedObservationRipensForAsLongAtLeast) {
  OpenAndProbe();
  // One each second, for longer than it takes.
  for (std::int64_t i = 0; i < 3 * ToolBreaker::kRipening / kMicrosPerSecond;
       ++i) {
    Learn(1, 0, {.rate_permille = 1});
    const std::int64_t old_enough = std::max(
        i + 1 - ToolBreaker::kRipening / kMicrosPerSecond, std::int64_t{0});
    const BreakerRecord& record = breaker_.record();
    ASSERT_LE(record.masked - record.ripening - record.fresh,
              old_enough * kCountUnit);
    now_ += kMicrosPerSecond;
  }
  Ripen();
  Advance();
  EXPECT_EQ(breaker_.record().ripening + breaker_.record().fresh, 0);
}

TEST_F(RipeningTest, WhatIsFetchedAgainIsRipeAtOnce) {
  Learn(40, 0);
  EXPECT_EQ(breaker_.record().ripening + breaker_.record().fresh,
            40 * kCountUnit);
  Learn(0, 3);
  EXPECT_EQ(breaker_.record().ripening + breaker_.record().fresh,
            37 * kCountUnit);
}

TEST_F(RipeningTest, ABurstOfMasksOpensNothingByTheFewThatWereFetched) {
  Learn(100, 10);
  Ripen();
  // 13 % of these, but the others may not be taken as not there.
  Learn(100, 13);
  EXPECT_EQ(State(), BreakerState::kMasked);
  EXPECT_EQ(breaker_.Figures(kFixed).masked_count, 200);
}

}  // namespace
}  // namespace clerestory
