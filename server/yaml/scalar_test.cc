// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/yaml/scalar.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/time.h"

namespace clerestory {
namespace {

TEST(ScalarTest, IntegersAreDigits) {
  EXPECT_EQ(ParseInteger("0"), 0);
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseInteger("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  for (const absl::string_view text :
       {"", "-", "+1", " 1", "1 ", "010", "00", "1_000", "0x10", "1e3", "1.0",
        "9223372036854775808", "one", "--1"}) {
    EXPECT_EQ(ParseInteger(text), std::nullopt) << text;
  }
}

TEST(ScalarTest, DecimalsAreExact) {
  EXPECT_EQ(ParseDecimal("0.0125", 6), 12'500);
  EXPECT_EQ(ParseDecimal("0.00875", 6), 8'750);
  EXPECT_EQ(ParseDecimal("3", 6), 3'000'000);
  EXPECT_EQ(ParseDecimal("3.75", 6), 3'750'000);
  EXPECT_EQ(ParseDecimal("-0.5", 1), -5);
  EXPECT_EQ(ParseDecimal("0.1", 1), 1);
  EXPECT_EQ(ParseDecimal("1.000000", 6), 1'000'000);
  EXPECT_EQ(ParseDecimal("7", 0), 7);
  EXPECT_EQ(ParseDecimal("9223372036854.775807", 6),
            std::numeric_limits<std::int64_t>::max());
  for (const absl::string_view text :
       {"", ".5", "5.", "1.2345678", "1,5", "1e-3", ".", "-.5", "1.-5", "1.+5",
        "01.5", "9223372036854.775808", "9223372036855", "nan", ".inf"}) {
    EXPECT_EQ(ParseDecimal(text, 6), std::nullopt) << text;
  }
}

TEST(ScalarTest, DecimalsAreWrittenWithoutZerosAtTheEnd) {
  EXPECT_EQ(FormatDecimal(12'500, 6), "0.0125");
  EXPECT_EQ(FormatDecimal(3'000'000, 6), "3");
  EXPECT_EQ(FormatDecimal(-1, 6), "-0.000001");
  EXPECT_EQ(FormatDecimal(7, 0), "7");
}

TEST(ScalarTest, DatesAreDaysThatExist) {
  EXPECT_EQ(ParseDate("1970-01-01"), 0);
  EXPECT_EQ(ParseDate("2026-11-30"), 1'795'996'800 * kMicrosPerSecond);
  EXPECT_EQ(ParseDate("2024-02-29"), 1'709'164'800 * kMicrosPerSecond);
  for (const absl::string_view text :
       {"", "2026-11-31", "2026-02-29", "2026-13-01", "2026-00-01",
        "2026-01-00", "2026-1-01", "26-01-01", "2026/01/01", "1969-12-31",
        "2026-11-30T00:00:00Z", "2026-11-3a", "2026--1-01"}) {
    EXPECT_EQ(ParseDate(text), std::nullopt) << text;
  }
}

TEST(ScalarTest, DatesAreTheDaysThatTimesAreIn) {
  EXPECT_EQ(FormatDate(0), "1970-01-01");
  EXPECT_EQ(FormatDate(-1), "1969-12-31");
  EXPECT_EQ(FormatDate(*ParseDate("2026-11-30") + 5), "2026-11-30");
  EXPECT_EQ(FormatDate(*ParseDate("2026-11-30") - 1), "2026-11-29");
}

}  // namespace
}  // namespace clerestory
