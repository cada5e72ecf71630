// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_COST_PRICE_BOOK_H_
#define CLERESTORY_SERVER_COST_PRICE_BOOK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/yaml/problem.h"

namespace clerestory {

// What is known of a model from some time on.
struct DatedPrices {
  TimeMicros from = 0;
  ModelPrices prices;
};

// What is known of the models whose names begin with `model`.
struct PricedModel {
  std::string model;
  // One after another in time, without gaps; at least one. What stands first
  // also holds before.
  std::vector<DatedPrices> rows;

  // Those that hold at `now`.
  const ModelPrices& At(TimeMicros now) const;
};

// What models have in common, as a file says it; absent where it does not.
struct PriceFamily {
  std::optional<std::int64_t> window_tokens;
  std::optional<std::int64_t> output_tokens_max;
  std::optional<std::int64_t> cache_ttl_seconds;
  std::optional<std::int64_t> long_ttl_seconds;
  std::optional<std::int64_t> cache_tokens_min;
  std::optional<bool> is_refreshed_by_read;
  std::optional<bool> reasoning_prefix_bound;
  std::optional<std::string> source;
  std::optional<TimeMicros> as_of;
};

// What is known of all models. A value; const methods may be called from any
// thread, and what they return lives as long as the book.
class PriceBook {
 public:
  // `models` as they stand in a file, of each name one.
  PriceBook(TimeMicros as_of, std::vector<PricedModel> models,
            PricedModel unknown, std::map<std::string, PriceFamily> families);

  // What is known of `model` at `now`: of the entries whose name begins it, the
  // one with the longest name; if there is none, what is assumed of unknown
  // models. Knows the names that gateways give: what stands before the last "/"
  // or before a "." is passed over where nothing fits with it
  // ("anthropic/claude-...", "us.anthropic.claude-..."), and a version may be
  // written with dots ("claude-opus-4.5").
  const ModelPrices& Of(absl::string_view model, TimeMicros now) const;

  // Whether Of() does not have to assume.
  bool IsKnown(absl::string_view model) const;

  // The day on which the prices were looked up; of a book that extends another
  // the earlier of both days.
  TimeMicros as_of() const { return as_of_; }

  // All entries, the longest names first, then by name.
  std::span<const PricedModel> models() const { return models_; }
  const PricedModel& unknown() const { return unknown_; }
  const std::map<std::string, PriceFamily>& families() const {
    return families_;
  }

 private:
  const PricedModel* Find(absl::string_view model) const;

  TimeMicros as_of_;
  std::vector<PricedModel> models_;
  PricedModel unknown_;
  std::map<std::string, PriceFamily> families_;
};

// Returns the book that `text` describes, a file of the form of
// deploy/prices.yaml, whose name in errors is `file`. `built_in` is what it may
// extend; null if there is nothing.
//
// INVALID_ARGUMENT with kFieldInvalid and everything that is wrong, a line each
// as `file:line:column: path: what`: besides what is no YAML and no price, gaps
// and overlaps in time, tiers that are not in order, a read that costs more
// than the input, and prices, windows and lives that nothing has.
absl::StatusOr<PriceBook> ParsePriceBook(absl::string_view file,
                                         absl::string_view text,
                                         const PriceBook* built_in);

// The same with what is wrong as problems: nothing is returned if there are
// any.
std::optional<PriceBook> ReadPriceBook(absl::string_view file,
                                       absl::string_view text,
                                       const PriceBook* built_in,
                                       std::vector<Problem>& problems);

// The book of deploy/prices.yaml, as it was when this was built. Lives for
// ever.
const PriceBook& BuiltInPrices();

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_COST_PRICE_BOOK_H_
