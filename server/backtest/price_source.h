// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BACKTEST_PRICE_SOURCE_H_
#define CLERESTORY_SERVER_BACKTEST_PRICE_SOURCE_H_

#include <memory>
#include <span>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"

namespace clerestory {

// Says what the calls of a back-test cost. Const methods may be called from any
// thread.
class PriceSource {
 public:
  PriceSource() = default;
  PriceSource(const PriceSource&) = delete;
  PriceSource& operator=(const PriceSource&) = delete;
  virtual ~PriceSource() = default;

  // What `model` costs at `time`. Valid as long as the source.
  virtual const ModelPrices& Of(absl::string_view model,
                                TimeMicros time) const = 0;
};

// Each model's own prices, as they are built in. Lives for ever.
const PriceSource& ListPrices();

// Those of a book.
class BookPrices : public PriceSource {
 public:
  explicit BookPrices(std::shared_ptr<const PriceBook> book)
      : book_(std::move(book)) {}

  const ModelPrices& Of(absl::string_view model,
                        TimeMicros time) const override {
    return book_->Of(model, time);
  }

 private:
  const std::shared_ptr<const PriceBook> book_;
};

// The same prices for every model at every time.
class FixedPrices : public PriceSource {
 public:
  explicit FixedPrices(const ModelPrices& prices) : prices_(prices) {}

  const ModelPrices& Of(absl::string_view /*model*/,
                        TimeMicros /*time*/) const override {
    return prices_;
  }

 private:
  const ModelPrices prices_;
};

// The ways in which providers charge for their caches, as what a written and a
// read token cost in parts of an input token: "1.25/0.1" and so on, and
// "no-cache", where all cost the same. In each a million tokens of input cost 3
// dollars and of output 15, so that sessions can be compared; the window is one
// million tokens and the cache lives for five minutes.
std::span<const absl::string_view> PriceStructureNames();

// The structure called `name`, for every model; nullptr if there is none. Lives
// for ever.
const PriceSource* FindPriceStructure(absl::string_view name);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BACKTEST_PRICE_SOURCE_H_
