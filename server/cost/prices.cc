// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/prices.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

// List prices in dollars per million tokens as of 2026-11-29, on Anthropic's
// first-party API with the 5-minute cache, on OpenAI's up to 272k of input.
// Sources: platform.claude.com and developers.openai.com pricing and prompt
// caching pages, ai.google.dev pricing, pydantic/genai-prices @47df840a.
//
// In the table, 300 is 0.30 dollars per million tokens.
constexpr PicoUsd Milli(std::int64_t milli_usd_per_million) {
  return PerToken(milli_usd_per_million * 1'000);
}

// Anthropic: writes are 1.25 of the input, 5 minutes, refreshed when used.
constexpr ModelPrices Claude(absl::string_view model, std::int64_t input,
                             std::int64_t read, std::int64_t output,
                             std::int64_t window, std::int64_t answer,
                             bool bound = false) {
  return {.model = model,
          .input = Milli(input),
          .write = Milli(input) * 5 / 4,
          .read = Milli(read),
          .output = Milli(output),
          .window_tokens = window,
          .output_tokens_max = answer,
          .cache_ttl_seconds = 300,
          .reasoning_prefix_bound = bound};
}

// OpenAI to GPT-5.5: writes cost the input; kept for a day since GPT-5, an hour
// at most before. From GPT-5.6: writes are 1.25 of the input, half an hour.
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kHour = 3'600;
constexpr std::int64_t kHalfHour = 1'800;

constexpr ModelPrices Gpt(absl::string_view model, std::int64_t input,
                          std::int64_t read, std::int64_t output,
                          std::int64_t window, std::int64_t answer,
                          std::int64_t ttl_seconds, bool bound = false) {
  return {
      .model = model,
      .input = Milli(input),
      .write = ttl_seconds == kHalfHour ? Milli(input) * 5 / 4 : Milli(input),
      .read = Milli(read),
      .output = Milli(output),
      .window_tokens = window,
      .output_tokens_max = answer,
      .cache_ttl_seconds = ttl_seconds,
      .reasoning_prefix_bound = bound};
}

// Google: implicit caching, without a promise of how long; writes cost the
// input.
constexpr ModelPrices Gemini(absl::string_view model, std::int64_t input,
                             std::int64_t read, std::int64_t output) {
  return {.model = model,
          .input = Milli(input),
          .write = Milli(input),
          .read = Milli(read),
          .output = Milli(output),
          .window_tokens = 1'048'576,
          .output_tokens_max = 65'536,
          .cache_ttl_seconds = kHour};
}

constexpr bool kBound = true;

constexpr ModelPrices kTable[] = {
    Claude("claude-fable-5-2", 8'000, 200, 40'000, 1'000'000, 128'000, kBound),
    Claude("claude-fable-5-1", 10'000, 250, 50'000, 1'000'000, 128'000, kBound),
    Claude("claude-fable-5", 10'000, 1'000, 50'000, 1'000'000, 128'000),
    Claude("claude-mythos-5-2", 10'000, 250, 50'000, 1'000'000, 128'000,
           kBound),
    Claude("claude-mythos-5-1", 10'000, 250, 50'000, 1'000'000, 128'000,
           kBound),
    Claude("claude-mythos-5", 10'000, 1'000, 50'000, 1'000'000, 128'000),
    Claude("claude-opus-5-5", 4'000, 200, 20'000, 1'000'000, 128'000, kBound),
    Claude("claude-opus-5", 5'000, 500, 25'000, 1'000'000, 128'000),
    Claude("claude-opus-4-8", 5'000, 500, 25'000, 1'000'000, 128'000),
    Claude("claude-opus-4-7", 5'000, 500, 25'000, 1'000'000, 128'000),
    Claude("claude-opus-4-6", 5'000, 500, 25'000, 1'000'000, 128'000),
    Claude("claude-opus-4-5", 5'000, 500, 25'000, 200'000, 64'000),
    Claude("claude-opus-4", 15'000, 1'500, 75'000, 200'000, 32'000),
    Claude("claude-sonnet-5-5", 2'000, 100, 10'000, 1'000'000, 128'000, kBound),
    Claude("claude-sonnet-5", 2'000, 200, 10'000, 1'000'000, 128'000),
    Claude("claude-sonnet-4-6", 3'000, 300, 15'000, 1'000'000, 128'000),
    Claude("claude-sonnet-4", 3'000, 300, 15'000, 200'000, 64'000),
    Claude("claude-haiku-5-5", 100, 10, 500, 1'000'000, 128'000, kBound),
    Claude("claude-haiku-4-5", 1'000, 100, 5'000, 200'000, 64'000),
    Claude("claude-3-5-haiku", 800, 80, 4'000, 200'000, 8'192),
    Gpt("gpt-6.2-astra", 8'000, 400, 40'000, 1'050'000, 128'000, kHalfHour,
        kBound),
    Gpt("gpt-6.2", 2'000, 100, 10'000, 1'050'000, 128'000, kHalfHour, kBound),
    Gpt("gpt-6.1-terra", 1'000, 50, 5'000, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-6.1", 2'000, 100, 10'000, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-6-astra", 10'000, 1'000, 50'000, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-6-luna", 100, 10, 500, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-6", 2'000, 200, 10'000, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-5.6-terra", 2'000, 200, 12'000, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-5.6-luna", 200, 20, 1'200, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-5.6", 5'000, 500, 30'000, 1'050'000, 128'000, kHalfHour),
    Gpt("gpt-5.5", 5'000, 500, 30'000, 1'050'000, 128'000, kDay),
    Gpt("gpt-5.4-mini", 750, 75, 4'500, 400'000, 128'000, kDay),
    Gpt("gpt-5.4-nano", 200, 20, 1'250, 400'000, 128'000, kDay),
    Gpt("gpt-5.4", 2'500, 250, 15'000, 1'050'000, 128'000, kDay),
    Gpt("gpt-5.3", 1'750, 175, 14'000, 400'000, 128'000, kDay),
    Gpt("gpt-5.2", 1'750, 175, 14'000, 400'000, 128'000, kDay),
    Gpt("gpt-5.1", 1'250, 125, 10'000, 400'000, 128'000, kDay),
    Gpt("gpt-5-mini", 250, 25, 2'000, 400'000, 128'000, kDay),
    Gpt("gpt-5-nano", 50, 5, 400, 400'000, 128'000, kDay),
    Gpt("gpt-5", 1'250, 125, 10'000, 400'000, 128'000, kDay),
    Gpt("gpt-4.1-mini", 400, 100, 1'600, 1'047'576, 32'768, kHour),
    Gpt("gpt-4.1-nano", 100, 25, 400, 1'047'576, 32'768, kHour),
    Gpt("gpt-4.1", 2'000, 500, 8'000, 1'047'576, 32'768, kHour),
    Gpt("gpt-4o-mini", 150, 75, 600, 128'000, 16'384, kHour),
    Gpt("gpt-4o", 2'500, 1'250, 10'000, 128'000, 16'384, kHour),
    Gpt("o3", 2'000, 500, 8'000, 200'000, 100'000, kHour),
    Gpt("o4-mini", 1'100, 275, 4'400, 200'000, 100'000, kHour),
    Gemini("gemini-4-neon", 3'000, 150, 15'000),
    Gemini("gemini-4-hydrogen", 1'500, 75, 7'500),
    Gemini("gemini-4", 2'000, 100, 10'000),
    Gemini("gemini-3.8-flash", 750, 75, 3'750),
    Gemini("gemini-3.7-flash", 750, 75, 3'750),
    Gemini("gemini-3.6-flash", 750, 75, 3'750),
    Gemini("gemini-3.5-flash-lite", 300, 30, 2'500),
    Gemini("gemini-3.5-flash", 1'500, 150, 9'000),
    Gemini("gemini-3.1-flash-lite", 250, 25, 1'500),
    Gemini("gemini-3", 2'000, 200, 12'000),
    Gemini("gemini-2.5-pro", 1'250, 125, 10'000),
    Gemini("gemini-2.5-flash-lite", 100, 10, 400),
    Gemini("gemini-2.5-flash", 300, 30, 2'500),
};

constexpr ModelPrices kUnknown =
    Claude("", 3'000, 300, 15'000, 200'000, 64'000);

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether `model` begins with `row`, as "claude-opus-4.5" does with
// "claude-opus-4-5". A number goes on to its end: "-5-20260801" is a date
// behind a 5, and no 5.2.
bool Begins(absl::string_view row, absl::string_view model) {
  if (model.size() < row.size()) return false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (model[i] != row[i] && !(model[i] == '.' && row[i] == '-')) return false;
  }
  return model.size() == row.size() || !IsDigit(row.back()) ||
         !IsDigit(model[row.size()]);
}

const ModelPrices* FindRow(absl::string_view model) {
  for (const ModelPrices& row : kTable) {
    if (Begins(row.model, model)) return &row;
  }
  return nullptr;
}

}  // namespace

std::span<const ModelPrices> PriceTable() { return kTable; }

const ModelPrices& PricesOf(absl::string_view model) {
  const std::size_t slash = model.rfind('/');
  if (slash != absl::string_view::npos) model.remove_prefix(slash + 1);
  while (true) {
    if (const ModelPrices* row = FindRow(model); row != nullptr) return *row;
    const std::size_t dot = model.find('.');
    if (dot == absl::string_view::npos) return kUnknown;
    model.remove_prefix(dot + 1);
  }
}

const ModelPrices& UnknownModelPrices() { return kUnknown; }

PicoUsd InputCost(const ModelPrices& prices, const CallTokens& tokens) {
  return SaturatingAdd(SaturatingMultiply(tokens.read, prices.read),
                       SaturatingMultiply(tokens.written, prices.write));
}

}  // namespace clerestory
