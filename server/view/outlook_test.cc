// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/outlook.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "server/cost/prices.h"

namespace clerestory {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// A session of observations of 1,000 tokens and ten that are kept, `calls`
// calls after its last break.
Outlook EvenOutlook(std::int64_t calls) {
  Outlook outlook;
  outlook.rates = {.input = 1'000, .write = 1'250, .read = 100};
  outlook.rent = 1'000 * 100 * calls * (calls + 1) / 2;
  outlook.price = 9'000 * (1'250 - 100);
  outlook.saving = 1'000 * calls;
  outlook.call_count = calls;
  outlook.new_tokens = 1'000;
  outlook.turn_tokens = 1'000;
  outlook.next_savings = std::vector<std::int64_t>(9, 1'000);
  return outlook;
}

TEST(OutlookTest, WithEvenObservationsItWaitsUntilTheRentIsThePrice) {
  // The rent of 14 calls is 1.01 of the price; that of 13, 0.88.
  EXPECT_TRUE(IsWorthWaiting(EvenOutlook(10)));
  EXPECT_TRUE(IsWorthWaiting(EvenOutlook(13)));
  EXPECT_FALSE(IsWorthWaiting(EvenOutlook(15)));
  EXPECT_FALSE(IsWorthWaiting(EvenOutlook(20)));
}

TEST(OutlookTest, WaitsForALargeObservationThatIsAboutToBeEligible) {
  Outlook outlook = EvenOutlook(16);
  outlook.next_savings[1] = 8'000;
  EXPECT_TRUE(IsWorthWaiting(outlook));
}

TEST(OutlookTest, DoesNotWaitForOneThatIsFarOff) {
  Outlook outlook = EvenOutlook(16);
  outlook.next_savings = {0, 0, 0, 0, 0, 0, 0, 0, 3'000};
  EXPECT_FALSE(IsWorthWaiting(outlook));
  outlook.next_savings = {3'000, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_TRUE(IsWorthWaiting(outlook));
}

TEST(OutlookTest, ARentFarAboveThePriceWaitsForNothing) {
  Outlook outlook = EvenOutlook(15);
  outlook.price = 24'000 * (1'250 - 100);
  outlook.next_savings[0] = 23'000;
  outlook.rent = outlook.price * kWaitRentPercentMax / 100;
  EXPECT_TRUE(IsWorthWaiting(outlook));
  ++outlook.rent;
  EXPECT_FALSE(IsWorthWaiting(outlook));
}

TEST(OutlookTest, ABreakThatCostsNothingWaitsForNothing) {
  Outlook outlook = EvenOutlook(3);
  outlook.price = 0;
  EXPECT_FALSE(IsWorthWaiting(outlook));
}

TEST(OutlookTest, WithNothingToComeItWaitsForNothing) {
  Outlook outlook = EvenOutlook(3);
  outlook.next_savings.clear();
  EXPECT_FALSE(IsWorthWaiting(outlook));
}

TEST(OutlookTest, StaysAtTheLargestNumbers) {
  Outlook outlook = EvenOutlook(15);
  outlook.rent = kMost;
  outlook.price = kMost;
  EXPECT_FALSE(IsWorthWaiting(outlook));
}

}  // namespace
}  // namespace clerestory
