// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/random_session.h"

#include <cstdint>

#include "server/cost/prices.h"
#include "server/policy/policy.h"

namespace clerestory {

std::uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::int64_t Random::Between(std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>(Next() % count);
}

std::int64_t Random::Size(std::int64_t high) {
  std::int64_t bits = 0;
  while ((std::int64_t{1} << bits) <= high) ++bits;
  return Between(0, high) >> Between(0, bits);
}

Policy RandomPolicy(Random& random) {
  Policy policy;
  switch (random.Between(0, 9)) {
    case 0:
      policy.mode = Mode::kOff;
      break;
    case 1:
      policy.mode = Mode::kBlock;
      policy.block_size = random.Between(1, 8);
      break;
    case 2:
      policy.mode = Mode::kThreshold;
      policy.threshold_tokens = random.Between(1, 8'000);
      policy.low_water_tokens = random.Between(0, policy.threshold_tokens);
      break;
    case 3:
      policy.mode = Mode::kEveryTurn;
      break;
    default:
      break;
  }
  if (random.OneIn(2)) {
    policy.first_break_percent = random.Between(1, 300);
    policy.later_break_percent = random.Between(1, 300);
  }
  policy.keep_observations = random.Between(kKeepObservationsMin, 10);
  if (random.OneIn(3)) policy.keep_turns = random.Between(1, 8);
  if (random.OneIn(4)) policy.reclaim_tokens_min = random.Size(2'000);
  if (random.OneIn(3)) {
    policy.window_tokens = random.Between(100, 20'000);
    policy.reserve_tokens = random.Between(0, policy.window_tokens - 1);
  }
  if (random.OneIn(3)) policy.placeholder = "~";
  if (random.OneIn(6)) policy.placeholder = R"("""""""""" {size})";
  return policy;
}

ModelPrices RandomPrices(Random& random) {
  ModelPrices prices;
  prices.model = "m";
  prices.read = random.Between(1, 10);
  prices.write = prices.read + random.Size(200);
  prices.input = prices.write;
  prices.output = random.Between(0, 100);
  prices.window_tokens = 1'000'000'000;
  prices.output_tokens_max = 8'000;
  prices.cache_ttl_seconds = 300;
  prices.reasoning_prefix_bound = random.OneIn(4);
  return prices;
}

}  // namespace clerestory
