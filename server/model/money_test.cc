// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/model/money.h"

#include <limits>

#include "gtest/gtest.h"

namespace clerestory {
namespace {

TEST(MoneyTest, APriceOfOneDollarAMillionTokensIsAMillionPicoDollarsAToken) {
  EXPECT_EQ(PerToken(1'000'000) * 1'000'000, kPicoUsdPerUsd);
  EXPECT_EQ(PerToken(300'000) * 1'000'000, kPicoUsdPerUsd * 3 / 10);
}

TEST(MoneyTest, FormatsDollarsWithTheDigitsAskedFor) {
  const PicoUsd amount = 1'234'567'890'123;
  EXPECT_EQ(FormatUsd(amount, 0), "1");
  EXPECT_EQ(FormatUsd(amount, 1), "1.2");
  EXPECT_EQ(FormatUsd(amount, 3), "1.235");
  EXPECT_EQ(FormatUsd(amount, 6), "1.234568");
  EXPECT_EQ(FormatUsd(amount, 12), "1.234567890123");
  EXPECT_EQ(FormatUsd(1, 12), "0.000000000001");
  EXPECT_EQ(FormatUsd(kPicoUsdPerUsd, 3), "1.000");
  EXPECT_EQ(FormatUsd(0, 0), "0");
  EXPECT_EQ(FormatUsd(0, 2), "0.00");
}

TEST(MoneyTest, RoundsHalfAwayFromZero) {
  const PicoUsd cent = kPicoUsdPerUsd / 100;
  EXPECT_EQ(FormatUsd(cent / 2, 2), "0.01");
  EXPECT_EQ(FormatUsd(cent / 2 - 1, 2), "0.00");
  EXPECT_EQ(FormatUsd(-cent / 2, 2), "-0.01");
  EXPECT_EQ(FormatUsd(cent * 3 / 2, 2), "0.02");
  EXPECT_EQ(FormatUsd(-cent * 3 / 2, 2), "-0.02");
  EXPECT_EQ(FormatUsd(kPicoUsdPerUsd / 2, 0), "1");
  EXPECT_EQ(FormatUsd(kPicoUsdPerUsd / 2 - 1, 0), "0");
  // Into the digit before.
  EXPECT_EQ(FormatUsd(999'999'999'999, 3), "1.000");
  EXPECT_EQ(FormatUsd(9'995'000'000'000, 2), "10.00");
}

TEST(MoneyTest, ZeroHasNoSign) {
  EXPECT_EQ(FormatUsd(-1, 2), "0.00");
  EXPECT_EQ(FormatUsd(-1, 12), "-0.000000000001");
}

TEST(MoneyTest, FormatsTheLargestAmounts) {
  EXPECT_EQ(FormatUsd(std::numeric_limits<PicoUsd>::max(), 12),
            "9223372.036854775807");
  EXPECT_EQ(FormatUsd(std::numeric_limits<PicoUsd>::min(), 12),
            "-9223372.036854775808");
  EXPECT_EQ(FormatUsd(std::numeric_limits<PicoUsd>::max(), 0), "9223372");
}

TEST(MoneyDeathTest, MoreDigitsThanThereAreBreakAnInvariant) {
  EXPECT_DEATH(FormatUsd(0, 13), "decimals");
  EXPECT_DEATH(FormatUsd(0, -1), "decimals");
}

TEST(MoneyTest, SumsAndProductsStayAtTheLargestValue) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(SaturatingAdd(1, 2), 3);
  EXPECT_EQ(SaturatingAdd(kMax, 1), kMax);
  EXPECT_EQ(SaturatingAdd(kMin, -1), kMin);
  EXPECT_EQ(SaturatingMultiply(-3, 4), -12);
  EXPECT_EQ(SaturatingMultiply(kMax, 2), kMax);
  EXPECT_EQ(SaturatingMultiply(kMax, -2), kMin);
  EXPECT_EQ(SaturatingMultiply(kMin, -1), kMax);
}

}  // namespace
}  // namespace clerestory
