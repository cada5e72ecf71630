// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/prices.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

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

TEST(PricesTest, AreThePublishedOnes) {
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

TEST(PricesTest, EveryRowIsFoundByItsOwnName) {
  const std::span<const ModelPrices> table = PriceTable();
  for (const ModelPrices& row : table) {
    EXPECT_EQ(&PricesOf(row.model), &row) << row.model;
    EXPECT_EQ(&PricesOf(absl::StrCat(row.model, "-20261101")), &row)
        << row.model;
    EXPECT_EQ(&PricesOf(absl::StrCat(row.model, "-preview")), &row)
        << row.model;
  }
}

TEST(PricesTest, EveryRowIsPlausible) {
  for (const ModelPrices& row : PriceTable()) {
    EXPECT_FALSE(row.model.empty());
    EXPECT_GT(row.read, 0) << row.model;
    EXPECT_LE(row.read, row.input) << row.model;
    EXPECT_LE(row.input, row.write) << row.model;
    EXPECT_LE(row.write, 2 * row.input) << row.model;
    EXPECT_GT(row.output, row.input) << row.model;
    EXPECT_GT(row.output_tokens_max, 0) << row.model;
    EXPECT_GT(row.window_tokens, row.output_tokens_max) << row.model;
    EXPECT_GE(row.cache_ttl_seconds, 300) << row.model;
    EXPECT_LE(row.cache_ttl_seconds, 86'400) << row.model;
  }
}

TEST(PricesTest, CachesLiveAsLongAsTheirProvidersSay) {
  EXPECT_EQ(PricesOf("claude-sonnet-4-6").cache_ttl_seconds, 300);
  EXPECT_EQ(PricesOf("gpt-4.1").cache_ttl_seconds, 3'600);
  EXPECT_EQ(PricesOf("gpt-5.5").cache_ttl_seconds, 86'400);
  EXPECT_EQ(PricesOf("gpt-5.6-sol").cache_ttl_seconds, 1'800);
  EXPECT_EQ(PricesOf("gpt-6.2-sol").cache_ttl_seconds, 1'800);
}

TEST(PricesTest, ReasoningIsBoundFromTheModelsThatBoundIt) {
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

TEST(PricesTest, KnowAModelByTheNamesThatGatewaysGiveIt) {
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

TEST(PricesTest, DoNotTakeTheDateOfAModelForItsVersion) {
  EXPECT_EQ(PricesOf("claude-fable-5-20260601").model, "claude-fable-5");
  EXPECT_EQ(PricesOf("claude-mythos-5-20260601").model, "claude-mythos-5");
  EXPECT_EQ(PricesOf("claude-opus-4-20250514").model, "claude-opus-4");
  EXPECT_EQ(PricesOf("gpt-5-2025-08-07").model, "gpt-5");
}

TEST(PricesTest, DoNotTakeALongerNumberForAShorterOne) {
  for (const absl::string_view model : {"gpt-50", "o35", "claude-opus-45"}) {
    EXPECT_EQ(&PricesOf(model), &UnknownModelPrices()) << model;
  }
  // A dash is no dot.
  EXPECT_EQ(&PricesOf("gpt-4-1106-preview"), &UnknownModelPrices());
}

TEST(PricesTest, OfAnUnknownModelAreThoseOfSonnet) {
  for (const absl::string_view model :
       {"", "/", ".", "...", "claude", "llama-4-maverick", "Claude-Opus-4-5",
        "claude-opus-4-5/", "my.claude", "gpt-4"}) {
    EXPECT_EQ(&PricesOf(model), &UnknownModelPrices()) << model;
  }
  const ModelPrices& sonnet = PricesOf("claude-sonnet-4-6");
  const ModelPrices& unknown = UnknownModelPrices();
  EXPECT_EQ(unknown.input, sonnet.input);
  EXPECT_EQ(unknown.write, sonnet.write);
  EXPECT_EQ(unknown.read, sonnet.read);
  EXPECT_EQ(unknown.output, sonnet.output);
  EXPECT_EQ(unknown.cache_ttl_seconds, sonnet.cache_ttl_seconds);
  EXPECT_EQ(unknown.window_tokens, 200'000);
}

TEST(PricesTest, InputCostsWhatIsReadAndWhatIsWritten) {
  const ModelPrices& sonnet = PricesOf("claude-sonnet-4-6");
  EXPECT_EQ(InputCost(sonnet, {}), 0);
  EXPECT_EQ(InputCost(sonnet, {.read = 1'000'000, .written = 0}),
            kPicoUsdPerUsd * 3 / 10);
  EXPECT_EQ(InputCost(sonnet, {.read = 0, .written = 1'000'000}),
            kPicoUsdPerUsd * 15 / 4);
  EXPECT_EQ(InputCost(sonnet, {.read = 7, .written = 3}),
            7 * 300'000 + 3 * 3'750'000);
}

TEST(PricesTest, TheDearestUsageFitsItsType) {
  PicoUsd dearest = 0;
  for (const ModelPrices& row : PriceTable()) {
    dearest = std::max({dearest, row.write, row.output});
  }
  EXPECT_LT(dearest, std::numeric_limits<PicoUsd>::max() / (4 * kTokensMax));
}

}  // namespace
}  // namespace clerestory
