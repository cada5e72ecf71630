// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/yaml/scalar.h"

namespace clerestory {
namespace {

TimeMicros Day(absl::string_view date) { return *ParseDate(date); }

// When the pages were read that the table below was copied from.
const TimeMicros kNow = Day("2026-11-29");

const ModelPrices& PricesOf(absl::string_view model) {
  return BuiltInPrices().Of(model, kNow);
}

// What a provider's page says of a model, in pico-dollars a token.
struct Published {
  absl::string_view model;
  PicoUsd input;
  PicoUsd write;
  PicoUsd read;
  PicoUsd output;
  std::int64_t window_tokens;
  std::int64_t output_tokens_max;
};

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kGptWindow = 1'050'000;
constexpr std::int64_t kGeminiWindow = 1'048'576;

// Copied from the price pages on their own, not from the table.
constexpr Published kPublished[] = {
    {"claude-fable-5-2", 8'000'000, 10'000'000, 200'000, 40'000'000, kMillion,
     128'000},
    {"claude-fable-5-1", 10'000'000, 12'500'000, 250'000, 50'000'000, kMillion,
     128'000},
    {"claude-mythos-5-1", 10'000'000, 12'500'000, 250'000, 50'000'000, kMillion,
     128'000},
    {"claude-fable-5", 10'000'000, 12'500'000, 1'000'000, 50'000'000, kMillion,
     128'000},
    {"claude-mythos-5", 10'000'000, 12'500'000, 1'000'000, 50'000'000, kMillion,
     128'000},
    {"claude-opus-5-5", 4'000'000, 5'000'000, 200'000, 20'000'000, kMillion,
     128'000},
    {"claude-opus-5", 5'000'000, 6'250'000, 500'000, 25'000'000, kMillion,
     128'000},
    {"claude-opus-4-8", 5'000'000, 6'250'000, 500'000, 25'000'000, kMillion,
     128'000},
    {"claude-opus-4-7", 5'000'000, 6'250'000, 500'000, 25'000'000, kMillion,
     128'000},
    {"claude-opus-4-6", 5'000'000, 6'250'000, 500'000, 25'000'000, kMillion,
     128'000},
    {"claude-opus-4-5-20251101", 5'000'000, 6'250'000, 500'000, 25'000'000,
     200'000, 64'000},
    {"claude-opus-4-1-20250805", 15'000'000, 18'750'000, 1'500'000, 75'000'000,
     200'000, 32'000},
    {"claude-opus-4-20250514", 15'000'000, 18'750'000, 1'500'000, 75'000'000,
     200'000, 32'000},
    {"claude-sonnet-5-5", 2'000'000, 2'500'000, 100'000, 10'000'000, kMillion,
     128'000},
    {"claude-sonnet-5", 2'000'000, 2'500'000, 200'000, 10'000'000, kMillion,
     128'000},
    {"claude-sonnet-4-6", 3'000'000, 3'750'000, 300'000, 15'000'000, kMillion,
     128'000},
    {"claude-sonnet-4-5-20250929", 3'000'000, 3'750'000, 300'000, 15'000'000,
     200'000, 64'000},
    {"claude-sonnet-4-20250514", 3'000'000, 3'750'000, 300'000, 15'000'000,
     200'000, 64'000},
    {"claude-haiku-5-5", 100'000, 125'000, 10'000, 500'000, kMillion, 128'000},
    {"claude-haiku-4-5-20251001", 1'000'000, 1'250'000, 100'000, 5'000'000,
     200'000, 64'000},
    {"claude-3-5-haiku-20241022", 800'000, 1'000'000, 80'000, 4'000'000,
     200'000, 8'192},
    {"gpt-6.2-astra", 8'000'000, 10'000'000, 400'000, 40'000'000, kGptWindow,
     128'000},
    {"gpt-6.2-sol", 2'000'000, 2'500'000, 100'000, 10'000'000, kGptWindow,
     128'000},
    {"gpt-6.1-sol", 2'000'000, 2'500'000, 100'000, 10'000'000, kGptWindow,
     128'000},
    {"gpt-6.1-terra", 1'000'000, 1'250'000, 50'000, 5'000'000, kGptWindow,
     128'000},
    {"gpt-6-astra", 10'000'000, 12'500'000, 1'000'000, 50'000'000, kGptWindow,
     128'000},
    {"gpt-6-sol", 2'000'000, 2'500'000, 200'000, 10'000'000, kGptWindow,
     128'000},
    {"gpt-6-luna", 100'000, 125'000, 10'000, 500'000, kGptWindow, 128'000},
    {"gpt-5.6-sol", 5'000'000, 6'250'000, 500'000, 30'000'000, kGptWindow,
     128'000},
    {"gpt-5.6-terra", 2'000'000, 2'500'000, 200'000, 12'000'000, kGptWindow,
     128'000},
    {"gpt-5.6-luna", 200'000, 250'000, 20'000, 1'200'000, kGptWindow, 128'000},
    // Up to here writes are charged; from here they cost what input costs.
    {"gpt-5.5", 5'000'000, 5'000'000, 500'000, 30'000'000, kGptWindow, 128'000},
    {"gpt-5.4", 2'500'000, 2'500'000, 250'000, 15'000'000, kGptWindow, 128'000},
    {"gpt-5.4-mini", 750'000, 750'000, 75'000, 4'500'000, 400'000, 128'000},
    {"gpt-5.4-nano", 200'000, 200'000, 20'000, 1'250'000, 400'000, 128'000},
    {"gpt-5.3-codex", 1'750'000, 1'750'000, 175'000, 14'000'000, 400'000,
     128'000},
    {"gpt-5.2", 1'750'000, 1'750'000, 175'000, 14'000'000, 400'000, 128'000},
    {"gpt-5.1", 1'250'000, 1'250'000, 125'000, 10'000'000, 400'000, 128'000},
    {"gpt-5", 1'250'000, 1'250'000, 125'000, 10'000'000, 400'000, 128'000},
    {"gpt-5-mini", 250'000, 250'000, 25'000, 2'000'000, 400'000, 128'000},
    {"gpt-5-nano", 50'000, 50'000, 5'000, 400'000, 400'000, 128'000},
    {"gpt-4.1", 2'000'000, 2'000'000, 500'000, 8'000'000, 1'047'576, 32'768},
    {"gpt-4.1-mini", 400'000, 400'000, 100'000, 1'600'000, 1'047'576, 32'768},
    {"gpt-4.1-nano", 100'000, 100'000, 25'000, 400'000, 1'047'576, 32'768},
    {"gpt-4o-2024-08-06", 2'500'000, 2'500'000, 1'250'000, 10'000'000, 128'000,
     16'384},
    {"gpt-4o-mini", 150'000, 150'000, 75'000, 600'000, 128'000, 16'384},
    {"o3", 2'000'000, 2'000'000, 500'000, 8'000'000, 200'000, 100'000},
    {"o4-mini", 1'100'000, 1'100'000, 275'000, 4'400'000, 200'000, 100'000},
    {"gemini-4-neon", 3'000'000, 3'000'000, 150'000, 15'000'000, kGeminiWindow,
     65'536},
    {"gemini-4-carbon", 2'000'000, 2'000'000, 100'000, 10'000'000,
     kGeminiWindow, 65'536},
    {"gemini-4-hydrogen", 1'500'000, 1'500'000, 75'000, 7'500'000,
     kGeminiWindow, 65'536},
    {"gemini-3.8-flash", 750'000, 750'000, 75'000, 3'750'000, kGeminiWindow,
     65'536},
    {"gemini-3.7-flash", 750'000, 750'000, 75'000, 3'750'000, kGeminiWindow,
     65'536},
    {"gemini-3.6-flash", 750'000, 750'000, 75'000, 3'750'000, kGeminiWindow,
     65'536},
    {"gemini-3.5-flash", 1'500'000, 1'500'000, 150'000, 9'000'000,
     kGeminiWindow, 65'536},
    {"gemini-3.5-flash-lite", 300'000, 300'000, 30'000, 2'500'000,
     kGeminiWindow, 65'536},
    {"gemini-3.1-pro", 2'000'000, 2'000'000, 200'000, 12'000'000, kGeminiWindow,
     65'536},
    {"gemini-3.1-flash-lite", 250'000, 250'000, 25'000, 1'500'000,
     kGeminiWindow, 65'536},
    {"gemini-2.5-pro", 1'250'000, 1'250'000, 125'000, 10'000'000, kGeminiWindow,
     65'536},
    {"gemini-2.5-flash", 300'000, 300'000, 30'000, 2'500'000, kGeminiWindow,
     65'536},
    {"gemini-2.5-flash-lite", 100'000, 100'000, 10'000, 400'000, kGeminiWindow,
     65'536},
};

TEST(BuiltInPricesTest, AreThePublishedOnes) {
  for (const Published& published : kPublished) {
    const ModelPrices& prices = PricesOf(published.model);
    EXPECT_EQ(prices.input, published.input) << published.model;
    EXPECT_EQ(prices.write, published.write) << published.model;
    EXPECT_EQ(prices.read, published.read) << published.model;
    EXPECT_EQ(prices.output, published.output) << published.model;
    EXPECT_EQ(prices.window_tokens, published.window_tokens) << published.model;
    EXPECT_EQ(prices.output_tokens_max, published.output_tokens_max)
        << published.model;
  }
}

TEST(BuiltInPricesTest, EveryEntryIsFoundByItsOwnName) {
  for (const PricedModel& entry : BuiltInPrices().models()) {
    for (const absl::string_view end : {"", "-20261101", "-preview"}) {
      const ModelPrices& found = PricesOf(absl::StrCat(entry.model, end));
      EXPECT_EQ(found.model, entry.model) << end;
    }
    EXPECT_TRUE(BuiltInPrices().IsKnown(entry.model));
  }
}

TEST(BuiltInPricesTest, EveryRowIsPlausible) {
  PicoUsd dearest = 0;
  for (const PricedModel& entry : BuiltInPrices().models()) {
    for (const DatedPrices& dated : entry.rows) {
      const ModelPrices& row = dated.prices;
      EXPECT_FALSE(row.model.empty());
      EXPECT_FALSE(row.source.empty()) << row.model;
      EXPECT_GE(row.as_of, Day("2026-08-21")) << row.model;
      EXPECT_GT(row.read, 0) << row.model;
      EXPECT_LE(row.read, row.input) << row.model;
      EXPECT_LE(row.input, row.write) << row.model;
      EXPECT_LE(row.write, 2 * row.input) << row.model;
      EXPECT_GT(row.output, row.input) << row.model;
      EXPECT_GT(row.window_tokens, row.output_tokens_max) << row.model;
      EXPECT_LE(row.cache_ttl_seconds, 86'400) << row.model;
      EXPECT_EQ(row.long_write > 0, row.long_ttl_seconds > 0) << row.model;
      for (const PriceTier& tier : row.tiers) {
        EXPECT_GT(tier.input, row.input) << row.model;
        // All of the input is dearer by the same.
        EXPECT_EQ(tier.input * row.read, tier.read * row.input) << row.model;
        EXPECT_EQ(tier.input * row.write, tier.write * row.input) << row.model;
        EXPECT_EQ(tier.input * row.long_write, tier.long_write * row.input)
            << row.model;
      }
      dearest = std::max({dearest, row.write, row.long_write, row.output});
    }
  }
  EXPECT_LT(dearest, std::numeric_limits<PicoUsd>::max() / (4 * kTokensMax));
}

TEST(BuiltInPricesTest, AreOfADay) {
  EXPECT_EQ(BuiltInPrices().as_of(), Day("2026-11-29"));
  EXPECT_EQ(PricesOf("claude-opus-4-5").as_of, Day("2026-08-21"));
}

// The prices that are known to change, to the day.
TEST(BuiltInPricesTest, ChangeOnTheirDays) {
  const struct {
    absl::string_view model;
    absl::string_view day;
    std::int64_t input_before, input, read_before, read;
    std::int64_t output_before, output;
  } kChanges[] = {
      {"claude-sonnet-5-5", "2026-10-07", 2'000'000, 2'000'000, 200'000,
       100'000, 10'000'000, 10'000'000},
      {"gpt-5.6-sol", "2026-11-22", 4'000'000, 5'000'000, 400'000, 500'000,
       20'000'000, 30'000'000},
      {"gemini-4-carbon", "2026-12-01", 2'000'000, 4'000'000, 100'000, 200'000,
       10'000'000, 20'000'000},
      {"gemini-4-argon", "2026-12-01", 2'000'000, 4'000'000, 100'000, 200'000,
       10'000'000, 20'000'000},
      {"gemini-3.7-flash", "2027-01-01", 750'000, 1'500'000, 75'000, 150'000,
       3'750'000, 7'500'000},
  };
  for (const auto& change : kChanges) {
    const PriceBook& book = BuiltInPrices();
    const ModelPrices& before = book.Of(change.model, Day(change.day) - 1);
    const ModelPrices& after = book.Of(change.model, Day(change.day));
    EXPECT_EQ(before.input, change.input_before) << change.model;
    EXPECT_EQ(after.input, change.input) << change.model;
    EXPECT_EQ(before.read, change.read_before) << change.model;
    EXPECT_EQ(after.read, change.read) << change.model;
    EXPECT_EQ(before.output, change.output_before) << change.model;
    EXPECT_EQ(after.output, change.output) << change.model;
    EXPECT_EQ(&book.Of(change.model, 0), &before);
  }
}

TEST(BuiltInPricesTest, LargePromptsCostMore) {
  const struct {
    absl::string_view model;
    std::int64_t above;
    PicoUsd input, write, read, output;
  } kTiers[] = {
      {"claude-haiku-5-5", 100'000, 500'000, 625'000, 50'000, 2'500'000},
      {"claude-sonnet-4-5", 200'000, 6'000'000, 7'500'000, 600'000, 22'500'000},
      {"anthropic.claude-sonnet-4-5", 200'000, 6'000'000, 7'500'000, 600'000,
       22'500'000},
      {"gpt-5.4", 272'000, 5'000'000, 5'000'000, 500'000, 22'500'000},
      {"gpt-5.5", 272'000, 10'000'000, 10'000'000, 1'000'000, 45'000'000},
      {"gpt-6.2-sol", 272'000, 4'000'000, 5'000'000, 200'000, 15'000'000},
      {"gemini-3.1-pro", 200'000, 4'000'000, 4'000'000, 400'000, 18'000'000},
      {"gemini-2.5-pro", 200'000, 2'500'000, 2'500'000, 250'000, 15'000'000},
  };
  for (const auto& tier : kTiers) {
    const ModelPrices& prices = PricesOf(tier.model);
    EXPECT_EQ(
        RatesFor(prices, tier.above, false),
        (TokenRates{prices.input, prices.write, prices.read, prices.output}))
        << tier.model;
    EXPECT_EQ(RatesFor(prices, tier.above + 1, false),
              (TokenRates{tier.input, tier.write, tier.read, tier.output}))
        << tier.model;
  }
  for (const absl::string_view model :
       {"claude-opus-5-5", "gpt-4.1", "gpt-5", "gemini-4-neon", "o3"}) {
    EXPECT_TRUE(PricesOf(model).tiers.empty()) << model;
  }
}

TEST(BuiltInPricesTest, ShortPromptsAreNotCached) {
  const struct {
    absl::string_view model;
    std::int64_t tokens;
  } kMinimums[] = {
      {"claude-opus-5", 512},
      {"claude-opus-5-5", 512},
      {"claude-fable-5", 512},
      {"claude-fable-5-2", 512},
      {"claude-sonnet-5-5", 512},
      {"claude-haiku-5-5", 512},
      {"claude-opus-4-8", 1'024},
      {"claude-sonnet-5", 1'024},
      {"claude-sonnet-4-6", 1'024},
      {"claude-sonnet-4-5", 1'024},
      {"claude-opus-4-1", 1'024},
      {"claude-opus-4-7", 2'048},
      {"claude-3-5-haiku", 2'048},
      {"claude-opus-4-6", 4'096},
      {"claude-opus-4-5", 4'096},
      {"claude-haiku-4-5", 4'096},
      {"gpt-5.4", 1'024},
      {"gpt-6.2-sol", 1'024},
      {"gemini-2.5-pro", 2'048},
      {"gemini-3.1-pro", 4'096},
      {"gemini-4-neon", 4'096},
      // Bedrock's own.
      {"us.anthropic.claude-opus-4-7-v1:0", 4'096},
      {"anthropic.claude-sonnet-4-5-20250929-v1:0", 4'096},
      {"anthropic.claude-sonnet-4-6-v1:0", 1'024},
      {"anthropic/claude-opus-4-7", 2'048},
  };
  for (const auto& minimum : kMinimums) {
    EXPECT_EQ(PricesOf(minimum.model).cache_tokens_min, minimum.tokens)
        << minimum.model;
  }
}

TEST(BuiltInPricesTest, CachesLiveAsLongAsTheirProvidersSay) {
  EXPECT_EQ(PricesOf("claude-sonnet-4-6").cache_ttl_seconds, 300);
  EXPECT_EQ(PricesOf("gpt-4.1").cache_ttl_seconds, 3'600);
  EXPECT_EQ(PricesOf("gpt-5.5").cache_ttl_seconds, 86'400);
  EXPECT_EQ(PricesOf("gpt-5.6-sol").cache_ttl_seconds, 1'800);
  EXPECT_EQ(PricesOf("gpt-6.2-sol").cache_ttl_seconds, 1'800);
}

TEST(BuiltInPricesTest, SomeProvidersOfferALongLife) {
  const ModelPrices& sonnet = PricesOf("claude-sonnet-4-6");
  EXPECT_EQ(sonnet.long_ttl_seconds, 3'600);
  EXPECT_EQ(sonnet.long_write, 6'000'000);
  const ModelPrices& terra = PricesOf("gpt-6.1-terra");
  EXPECT_EQ(terra.long_ttl_seconds, 43'200);
  EXPECT_EQ(terra.long_write, 2'500'000);
  EXPECT_EQ(PricesOf("gpt-5.5").long_ttl_seconds, 0);
  EXPECT_EQ(PricesOf("gpt-5.5").long_write, 0);
}

TEST(BuiltInPricesTest, WithoutACacheAllInputCostsTheSame) {
  const ModelPrices& nova = PricesOf("us.amazon.nova-premier-v1:0");
  EXPECT_EQ(nova.model, "nova-premier");
  EXPECT_EQ(nova.cache_ttl_seconds, 0);
  EXPECT_EQ(nova.input, 2'500'000);
  EXPECT_EQ(nova.read, nova.input);
  EXPECT_EQ(nova.write, nova.input);
  EXPECT_EQ(PricesOf("amazon.nova-micro-v1:0").read, 8'750);
}

TEST(BuiltInPricesTest, ReasoningIsBoundFromTheModelsThatBoundIt) {
  for (const absl::string_view model :
       {"claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1",
        "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
        "gpt-6.2-sol", "gpt-6.2-astra"}) {
    EXPECT_TRUE(PricesOf(model).reasoning_prefix_bound) << model;
  }
  for (const absl::string_view model :
       {"claude-fable-5", "claude-opus-5", "claude-opus-4-5",
        "claude-sonnet-4-6", "gpt-6.1-sol", "gpt-5.5", "gemini-4-neon",
        "no-such-model"}) {
    EXPECT_FALSE(PricesOf(model).reasoning_prefix_bound) << model;
  }
}

TEST(BuiltInPricesTest, KnowAModelByTheNamesThatGatewaysGiveIt) {
  const ModelPrices* opus = &PricesOf("claude-opus-4-5");
  for (const absl::string_view model :
       {"anthropic/claude-opus-4-5", "anthropic/claude-opus-4.5",
        "openrouter/anthropic/claude-opus-4.5:beta", "claude-opus-4.5",
        "anthropic.claude-opus-4-5-20251101-v1:0",
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        "bedrock/eu.anthropic.claude-opus-4-5-20251101-v1:0",
        "publishers/anthropic/models/claude-opus-4-5@20251101"}) {
    EXPECT_EQ(&PricesOf(model), opus) << model;
  }
  EXPECT_EQ(&PricesOf("anthropic/claude-3.5-haiku"),
            &PricesOf("claude-3-5-haiku"));
  EXPECT_EQ(&PricesOf("openai/gpt-5.4-mini-2026-03-01"),
            &PricesOf("gpt-5.4-mini"));
  EXPECT_EQ(&PricesOf("models/gemini-2.5-pro"), &PricesOf("gemini-2.5-pro"));
}

TEST(BuiltInPricesTest, DoNotTakeTheDateOfAModelForItsVersion) {
  EXPECT_EQ(PricesOf("claude-fable-5-20260601").model, "claude-fable-5");
  EXPECT_EQ(PricesOf("claude-mythos-5-20260601").model, "claude-mythos-5");
  EXPECT_EQ(PricesOf("claude-opus-4-20250514").model, "claude-opus-4");
  EXPECT_EQ(PricesOf("gpt-5-2025-08-07").model, "gpt-5");
}

TEST(BuiltInPricesTest, DoNotTakeALongerNumberForAShorterOne) {
  for (const absl::string_view model : {"gpt-50", "o35", "claude-opus-45"}) {
    EXPECT_EQ(&PricesOf(model), &PricesOf("")) << model;
  }
  // A dash is no dot.
  EXPECT_EQ(&PricesOf("gpt-4-1106-preview"), &PricesOf(""));
}

TEST(BuiltInPricesTest, OfAnUnknownModelAreThoseOfSonnet) {
  for (const absl::string_view model :
       {"", "/", ".", "...", "claude", "llama-4-maverick", "Claude-Opus-4-5",
        "claude-opus-4-5/", "my.claude", "gpt-4"}) {
    EXPECT_EQ(&PricesOf(model), &BuiltInPrices().unknown().At(kNow)) << model;
    EXPECT_FALSE(BuiltInPrices().IsKnown(model)) << model;
  }
  ModelPrices assumed = PricesOf("claude-sonnet-4-6");
  assumed.model = "";
  assumed.window_tokens = 200'000;
  assumed.output_tokens_max = 64'000;
  assumed.source = "assumed";
  EXPECT_EQ(PricesOf(""), assumed);
}

}  // namespace
}  // namespace clerestory
