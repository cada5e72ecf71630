// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/trial_limits.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/backtest/backtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

const auto kInvalid =
    FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid);

absl::Status Ok() { return absl::OkStatus(); }

TEST(TrialLimitsTest, ATenantHasOneTrialAtATime) {
  TrialSlots slots;
  auto first = slots.Take("a");
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(slots.Take("a"), FailsWith(absl::StatusCode::kResourceExhausted,
                                         Reason::kTrialBusy));
  EXPECT_THAT(slots.Take("b"), IsOk());
  first->reset();
  EXPECT_THAT(slots.Take("a"), IsOk());
}

TEST(TrialLimitsTest, ATrialLooksAtSoManyObservationsAndNoMore) {
  const GoOn go_on = LimitTrial("session_id", Ok);
  EXPECT_THAT(go_on(kTrialObservationsMax - 1), IsOk());
  EXPECT_THAT(go_on(1), IsOk());
  const absl::Status refused = go_on(1);
  EXPECT_THAT(refused, kInvalid);
  EXPECT_EQ(MetadataOf(refused, "field"), "session_id");
  // Each is counted for itself.
  EXPECT_THAT(LimitTrial("session_id", Ok)(1), IsOk());
}

TEST(TrialLimitsTest, ATrialEndsWithItsCall) {
  bool is_over = false;
  const GoOn go_on = LimitTrial("session_id", [&] {
    return is_over ? absl::CancelledError("gone") : absl::OkStatus();
  });
  EXPECT_THAT(go_on(0), IsOk());
  is_over = true;
  EXPECT_EQ(go_on(0).code(), absl::StatusCode::kCancelled);
}

TEST(TrialLimitsTest, ASessionOfTooManyBytesIsNotPlayed) {
  EXPECT_THAT(CheckTrialBytes("session_id", kTrialBytesMax), IsOk());
  const absl::Status refused =
      CheckTrialBytes("session_id", kTrialBytesMax + 1);
  EXPECT_THAT(refused, kInvalid);
  EXPECT_EQ(MetadataOf(refused, "field"), "session_id");
}

}  // namespace
}  // namespace clerestory
