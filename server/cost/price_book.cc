// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/price_book.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/time.h"
#include "server/cost/built_in_prices.h"
#include "server/cost/prices.h"

namespace clerestory {
namespace {

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

}  // namespace

const ModelPrices& PricedModel::At(TimeMicros now) const {
  std::size_t at = 0;
  while (at + 1 < rows.size() && rows[at + 1].from <= now) ++at;
  return rows[at].prices;
}

PriceBook::PriceBook(TimeMicros as_of, std::vector<PricedModel> models,
                     PricedModel unknown,
                     std::map<std::string, PriceFamily> families)
    : as_of_(as_of),
      models_(std::move(models)),
      unknown_(std::move(unknown)),
      families_(std::move(families)) {
  std::sort(models_.begin(), models_.end(),
            [](const PricedModel& a, const PricedModel& b) {
              return std::pair(b.model.size(), absl::string_view(a.model)) <
                     std::pair(a.model.size(), absl::string_view(b.model));
            });
}

const PricedModel* PriceBook::Find(absl::string_view model) const {
  const std::size_t slash = model.rfind('/');
  if (slash != absl::string_view::npos) model.remove_prefix(slash + 1);
  while (true) {
    for (const PricedModel& entry : models_) {
      if (Begins(entry.model, model)) return &entry;
    }
    const std::size_t dot = model.find('.');
    if (dot == absl::string_view::npos) return nullptr;
    model.remove_prefix(dot + 1);
  }
}

const ModelPrices& PriceBook::Of(absl::string_view model,
                                 TimeMicros now) const {
  const PricedModel* entry = Find(model);
  return (entry == nullptr ? unknown_ : *entry).At(now);
}

bool PriceBook::IsKnown(absl::string_view model) const {
  return Find(model) != nullptr;
}

const PriceBook& BuiltInPrices() {
  static const PriceBook* const book = [] {
    absl::StatusOr<PriceBook> parsed =
        ParsePriceBook("prices.yaml", BuiltInPricesYaml(), nullptr);
    CLERESTORY_CHECK(parsed.ok());
    return new PriceBook(*std::move(parsed));
  }();
  return *book;
}

}  // namespace clerestory
