// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_COST_PRICES_H_
#define CLERESTORY_SERVER_COST_PRICES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {

// What a whole request costs, for one token, if its prompt has more than
// `above_tokens`.
struct PriceTier {
  std::int64_t above_tokens = 0;
  PicoUsd input = 0;
  PicoUsd write = 0;
  PicoUsd long_write = 0;
  PicoUsd read = 0;
  PicoUsd output = 0;
};

// What is known of a model. Prices are for one token.
struct ModelPrices {
  // The start of the names of the models that this is for.
  absl::string_view model;
  PicoUsd input = 0;  // Neither read from the cache nor written to it.
  PicoUsd write = 0;  // Written; equal to `input` where that is not charged.
  PicoUsd read = 0;   // Read from the cache.
  PicoUsd output = 0;
  // What other prompts cost, the smallest `above_tokens` first.
  std::vector<PriceTier> tiers = {};
  // The most tokens of a prompt and its answer together, and of an answer.
  std::int64_t window_tokens = 0;
  std::int64_t output_tokens_max = 0;
  // How long the cache outlives the last call that used it.
  std::int64_t cache_ttl_seconds = 0;
  // The same for a client that asks for the long life (CacheLife::kLong), and
  // what a token then costs to write; 0 where there is no such choice.
  std::int64_t long_ttl_seconds = 0;
  PicoUsd long_write = 0;
  // A prompt of fewer tokens is not cached.
  std::int64_t cache_tokens_min = 0;
  // Whether a read extends the life of what it reads.
  bool is_refreshed_by_read = true;
  // Whether the provider refuses or drops reasoning behind an edited prefix.
  bool reasoning_prefix_bound = false;
};

// All that is known, each row more special than the ones behind it that start
// the same.
std::span<const ModelPrices> PriceTable();

// The first row whose `model` begins `model`; UnknownModelPrices() if there is
// none. Knows the names that gateways give: what stands before the last "/" or
// before a "." is passed over ("anthropic/claude-...",
// "us.anthropic.claude-..."), and a version may be written with dots
// ("claude-opus-4.5").
const ModelPrices& PricesOf(absl::string_view model);

// What is assumed of a model that is in no row: the prices of Claude
// Sonnet 4.6, and a window of 200,000.
const ModelPrices& UnknownModelPrices();

// What the input of a call costs.
PicoUsd InputCost(const ModelPrices& prices, const CallTokens& tokens);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_COST_PRICES_H_
