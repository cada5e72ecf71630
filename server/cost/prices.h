// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_COST_PRICES_H_
#define CLERESTORY_SERVER_COST_PRICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/base/time.h"
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

  friend bool operator==(const PriceTier&, const PriceTier&) = default;
};

// What is known of a model at some time. Prices are for one token.
struct ModelPrices {
  // The start of the names of the models that this is for.
  std::string model = {};
  PicoUsd input = 0;  // Neither read from the cache nor written to it.
  PicoUsd write = 0;  // Written; equal to `input` where that is not charged.
  PicoUsd read = 0;   // Read from the cache; `input` where there is none.
  PicoUsd output = 0;
  // What other prompts cost, the smallest `above_tokens` first.
  std::vector<PriceTier> tiers = {};
  // The most tokens of a prompt and its answer together, and of an answer.
  std::int64_t window_tokens = 0;
  std::int64_t output_tokens_max = 0;
  // How long the cache outlives the last call that used it; 0 is no cache.
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
  // Where it is said, and the day on which it was read there.
  std::string source = {};
  TimeMicros as_of = 0;

  friend bool operator==(const ModelPrices&, const ModelPrices&) = default;
};

// What a token of one request costs.
struct TokenRates {
  PicoUsd input = 0;
  PicoUsd write = 0;
  PicoUsd read = 0;
  PicoUsd output = 0;

  friend bool operator==(const TokenRates&, const TokenRates&) = default;
};

// What a token of a request costs whose prompt, cached tokens included, has
// `prompt_tokens`: those of the last tier that it is above. `write` is that of
// the long life if the client asks for it and the provider has one. A prompt
// that is too short to be cached pays `input` for everything in it. Pure.
TokenRates RatesFor(const ModelPrices& prices, std::int64_t prompt_tokens,
                    bool is_long_life);

// What the input of a call costs, by the rates for all of it. Pure.
PicoUsd InputCost(const ModelPrices& prices, const CallTokens& tokens,
                  bool is_long_life = false);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_COST_PRICES_H_
