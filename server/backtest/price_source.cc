// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/price_source.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/money.h"

namespace clerestory {
namespace {

class List : public PriceSource {
 public:
  const ModelPrices& Of(absl::string_view model,
                        TimeMicros time) const override {
    return BuiltInPrices().Of(model, time);
  }
};

constexpr std::array<absl::string_view, 6> kNames = {
    "1.25/0.1", "1.25/0.05", "1.25/0.025", "1.0/0.1", "1.0/0.5", "no-cache"};

constexpr PicoUsd kInput = PerToken(3'000'000);
constexpr PicoUsd kOutput = PerToken(15'000'000);

// `write` and `read` are in thousandths of the price of input.
ModelPrices Structure(absl::string_view name, std::int64_t write,
                      std::int64_t read) {
  return {.model = std::string(name),
          .input = kInput,
          .write = kInput * write / 1'000,
          .read = kInput * read / 1'000,
          .output = kOutput,
          .window_tokens = 1'000'000,
          .output_tokens_max = 64'000,
          .cache_ttl_seconds = 300};
}

}  // namespace

const PriceSource& ListPrices() {
  static const auto* const list = new List();
  return *list;
}

std::span<const absl::string_view> PriceStructureNames() { return kNames; }

const PriceSource* FindPriceStructure(absl::string_view name) {
  static const auto* const structures = new std::array<FixedPrices, 6>{
      FixedPrices(Structure(kNames[0], 1'250, 100)),
      FixedPrices(Structure(kNames[1], 1'250, 50)),
      FixedPrices(Structure(kNames[2], 1'250, 25)),
      FixedPrices(Structure(kNames[3], 1'000, 100)),
      FixedPrices(Structure(kNames[4], 1'000, 500)),
      FixedPrices(Structure(kNames[5], 1'000, 1'000))};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return &(*structures)[i];
  }
  return nullptr;
}

}  // namespace clerestory
