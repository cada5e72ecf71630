// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/price_book.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/cost/built_in_prices.h"
#include "server/cost/prices.h"
#include "server/yaml/scalar.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

TimeMicros Day(absl::string_view date) { return *ParseDate(date); }

PriceBook BookOf(absl::string_view text) {
  absl::StatusOr<PriceBook> book =
      ParsePriceBook("f.yaml", text, &BuiltInPrices());
  EXPECT_THAT(book, IsOk());
  return book.ok() ? *std::move(book) : BuiltInPrices();
}

constexpr absl::string_view kOwn = R"(as_of: 2026-12-24
families:
  mine:
    window_tokens: 100000
    answer_tokens: 4000
    cache_ttl_seconds: 60
    is_refreshed_by_read: false
    source: a contract
unknown: {family: mine, prices: [{input: 9, read: 9, output: 9}]}
models:
  - {model: m, family: mine, prices: [{input: 1, read: 0.0125, output: 5}]}
  - model: [m-2, m-2.5]
    family: mine
    window_tokens: 500
    answer_tokens: 50
    cache_tokens_min: 64
    long_ttl_seconds: 3600
    reasoning_prefix_bound: true
    source: another
    as_of: 2026-12-01
    prices:
      - until: 2027-01-01
        input: 2
        write: 2.5
        long_write: 4
        read: 0.1
        output: 10
        tiers: [{above_tokens: 64, input: 4, write: 5, long_write: 8, read: 0.2, output: 15}]
      - {from: 2027-01-01, input: 3, long_write: 6, read: 0.3, output: 12}
)";

TEST(PriceBookTest, HasWhatTheFileSays) {
  const PriceBook book = BookOf(kOwn);
  EXPECT_EQ(book.as_of(), Day("2026-12-24"));
  EXPECT_EQ(book.models().size(), 3U);
  EXPECT_EQ(book.Of("m-20260101", 0),
            (ModelPrices{.model = "m",
                         .input = 1'000'000,
                         .write = 1'000'000,
                         .read = 12'500,
                         .output = 5'000'000,
                         .window_tokens = 100'000,
                         .output_tokens_max = 4'000,
                         .cache_ttl_seconds = 60,
                         .is_refreshed_by_read = false,
                         .source = "a contract",
                         .as_of = Day("2026-12-24")}));
  EXPECT_EQ(book.Of("x/m-2", Day("2026-12-31")),
            (ModelPrices{.model = "m-2",
                         .input = 2'000'000,
                         .write = 2'500'000,
                         .read = 100'000,
                         .output = 10'000'000,
                         .tiers = {{.above_tokens = 64,
                                    .input = 4'000'000,
                                    .write = 5'000'000,
                                    .long_write = 8'000'000,
                                    .read = 200'000,
                                    .output = 15'000'000}},
                         .window_tokens = 500,
                         .output_tokens_max = 50,
                         .cache_ttl_seconds = 60,
                         .long_ttl_seconds = 3'600,
                         .long_write = 4'000'000,
                         .cache_tokens_min = 64,
                         .is_refreshed_by_read = false,
                         .reasoning_prefix_bound = true,
                         .source = "another",
                         .as_of = Day("2026-12-01")}));
  EXPECT_EQ(book.Of("gpt-5", 0).input, 9'000'000) << "it extends nothing";
  EXPECT_FALSE(book.IsKnown("gpt-5"));
}

TEST(PriceBookTest, TheLongestNameCounts) {
  const PriceBook book = BookOf(kOwn);
  EXPECT_EQ(book.Of("m-2.5-pro", 0).model, "m-2.5");
  EXPECT_EQ(book.Of("m-2-5", 0).model, "m-2");
  EXPECT_EQ(book.Of("m-2", 0).model, "m-2");
  EXPECT_EQ(book.Of("m-3", 0).model, "m");
}

TEST(PriceBookTest, PricesChangeAtTheFirstMomentOfADay) {
  const PriceBook book = BookOf(kOwn);
  const TimeMicros change = Day("2027-01-01");
  EXPECT_EQ(book.Of("m-2", change - 1).input, 2'000'000);
  EXPECT_EQ(book.Of("m-2", change).input, 3'000'000);
  EXPECT_EQ(book.Of("m-2", change).write, 3'000'000) << "not said: as input";
  EXPECT_TRUE(book.Of("m-2", change).tiers.empty());
  // The first prices also hold before, and the last for ever.
  EXPECT_EQ(book.Of("m-2", -1).input, 2'000'000);
  EXPECT_EQ(book.Of("m-2", change * 2).input, 3'000'000);
}

TEST(PriceBookTest, ExtendsTheBuiltInOne) {
  const PriceBook book = BookOf(R"(as_of: 2026-12-24
extends: built-in
models:
  - model: claude-opus-5-5
    family: claude-5-5
    source: our contract
    prices: [{input: 3.2, write: 4, long_write: 6.4, read: 0.16, output: 16}]
  - model: claude-opus-5-5-fast
    family: claude-5-5
    prices: [{input: 8, write: 10, long_write: 16, read: 0.4, output: 40}]
)");
  const PriceBook& built_in = BuiltInPrices();
  EXPECT_EQ(book.models().size(), built_in.models().size() + 1);
  const ModelPrices& opus = book.Of("us.anthropic.claude-opus-5-5-v1:0", 0);
  EXPECT_EQ(opus.input, 3'200'000);
  EXPECT_EQ(opus.source, "our contract");
  EXPECT_TRUE(opus.reasoning_prefix_bound) << "of the family";
  EXPECT_EQ(book.Of("claude-opus-5.5-fast", 0).read, 400'000);
  EXPECT_EQ(book.Of("gpt-5", 0), built_in.Of("gpt-5", 0));
  EXPECT_EQ(book.Of("no-such-model", 0), built_in.Of("no-such-model", 0));
  // As old as the older of both.
  EXPECT_EQ(book.as_of(), built_in.as_of());
}

TEST(PriceBookTest, AnExtensionMayAssumeSomethingElse) {
  const PriceBook book = BookOf(R"(as_of: 2026-01-01
extends: built-in
unknown: {family: nova, prices: [{input: 1, read: 1, output: 1}]}
)");
  EXPECT_EQ(book.Of("no-such-model", 0).input, 1'000'000);
  EXPECT_EQ(book.as_of(), Day("2026-01-01"));
}

TEST(PriceBookTest, CopiesStandOnTheirOwn) {
  std::optional<PriceBook> book = BookOf(kOwn);
  const PriceBook copy = *book;
  book.reset();
  EXPECT_EQ(copy.Of("m", 0).model, "m");
}

// The comments of the built-in file show how to write one's own.
TEST(PriceBookTest, TheExampleInTheBuiltInFileIsRight) {
  std::string example;
  bool is_inside = false;
  for (const absl::string_view line :
       absl::StrSplit(BuiltInPricesYaml(), '\n')) {
    is_inside = absl::StartsWith(line, "#   as_of: ") ||
                (is_inside && absl::StartsWith(line, "#   "));
    if (is_inside) absl::StrAppend(&example, line.substr(4), "\n");
    if (!example.empty() && !is_inside) break;
  }
  EXPECT_EQ(BookOf(example).Of("claude-opus-5-5", 0).input, 3'200'000)
      << example;
}

}  // namespace
}  // namespace clerestory
