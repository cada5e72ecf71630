// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/random_session.h"

#include <cstdint>
#include <cstdlib>
#include <optional>

#include "absl/strings/numbers.h"
#include "server/cost/prices.h"
#include "server/model/record.h"
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
  if (random.OneIn(2)) policy.look_ahead_calls = random.Between(1, 20);
  if (random.OneIn(3)) policy.keep_turns = random.Between(1, 8);
  if (random.OneIn(4)) policy.reclaim_tokens_min = random.Size(2'000);
  if (random.OneIn(3)) {
    policy.window_tokens = random.Between(100, 20'000);
    policy.reserve_tokens = random.Between(0, policy.window_tokens - 1);
  }
  if (!random.OneIn(4)) {
    policy.refetch_session_limit = random.OneIn(2) ? 0 : random.Between(1, 6);
    policy.recall_keep_turns = random.Size(20);
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

Policy RandomPolicyWithRules(Random& random) {
  Policy policy = RandomPolicy(random);
  if (random.OneIn(15)) policy.mode = Mode::kDelegate;
  if (random.OneIn(4)) policy.keep_tokens = random.Size(4'000);
  policy.duplicates = static_cast<DuplicateRule>(random.Between(0, 2));
  if (random.OneIn(3)) policy.cache_life = CacheLife::kLong;
  if (random.OneIn(8)) policy.include = {"r*", "mcp__*"};
  if (random.OneIn(8)) policy.exclude = {random.OneIn(2) ? "bas?" : "read"};
  constexpr const char* kGlobs[] = {"read", "b*", "*", "server/*", "?ash"};
  while (random.OneIn(2)) {
    ToolRule rule = {.tool = kGlobs[random.Between(0, 4)]};
    rule.is_never_masked = random.OneIn(4);
    if (!rule.is_never_masked) rule.keep_observations = random.Between(0, 12);
    policy.tools.push_back(rule);
  }
  return policy;
}

ModelPrices RandomPricesWithTiers(Random& random) {
  ModelPrices prices = RandomPrices(random);
  prices.input = random.Between(prices.read, prices.write + 20);
  prices.is_refreshed_by_read = !random.OneIn(4);
  if (random.OneIn(3)) prices.cache_tokens_min = random.Size(6'000);
  if (random.OneIn(3)) {
    prices.long_ttl_seconds = 3'600;
    prices.long_write = prices.write + random.Size(200);
  }
  std::int64_t above = 0;
  while (random.OneIn(3)) {
    above += 1 + random.Size(6'000);
    const std::int64_t factor = random.Between(1, 3);
    prices.tiers.push_back({.above_tokens = above,
                            .input = prices.input * factor,
                            .write = prices.write * factor,
                            .long_write = prices.long_write * factor,
                            .read = prices.read * factor,
                            .output = prices.output * factor});
  }
  if (random.OneIn(12)) {
    prices.read = prices.input;
    prices.write = prices.input;
    prices.cache_ttl_seconds = 0;
  }
  return prices;
}

Usage RandomUsage(const CallTokens& expected, Random& random) {
  Usage usage = {.input_uncached = expected.uncached,
                 .cache_read = expected.read,
                 .cache_write = expected.written,
                 .output = random.Size(500),
                 .reasoning = std::nullopt};
  switch (random.Between(0, 6)) {
    case 0:  // A provider that does not tell what it writes.
      usage.cache_write.reset();
      break;
    case 1:  // Nothing was found, and all is written again.
      usage.cache_read = 0;
      usage.cache_write = expected.total();
      break;
    case 2:
      usage.cache_read = random.OneIn(2) ? 0 : random.Size(expected.read);
      usage.cache_write.reset();
      break;
    case 3:
      usage.cache_read = random.OneIn(2) ? 0 : random.Size(expected.read);
      usage.cache_write = 0;
      break;
    case 4:
      usage.cache_read = random.Between(0, 2 * expected.total());
      break;
    case 5:
      usage.cache_read.reset();
      break;
    default:
      break;
  }
  return usage;
}

std::uint64_t NumberFromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  std::uint64_t number = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &number)) return otherwise;
  return number;
}

}  // namespace clerestory
