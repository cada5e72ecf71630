// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/yaml/problem.h"
#include "server/yaml/reader.h"
#include "server/yaml/scalar.h"

namespace clerestory {
namespace {

// Dollars for a million tokens, with so many digits behind the point, are
// pico-dollars a token.
constexpr int kPlaces = 6;
// A thousand dollars: no usage that is within kTokensMax costs more than its
// type holds.
constexpr std::int64_t kPriceMax = 1'000'000'000;
constexpr std::int64_t kTtlSecondsMax = 30 * 86'400;

// The most rows and tiers of a book, each name's counted.
constexpr std::size_t kRowsMax = 10'000;

constexpr absl::string_view kBuiltIn = "built-in";

// Reads a file of prices, and goes on behind what is wrong.
class BookReader {
 public:
  BookReader(const PriceBook* built_in, std::vector<Problem>& problems)
      : built_in_(built_in), problems_(problems) {}

  // The book that the file describes; only to be used if there is no problem.
  PriceBook Read(YamlMap& root) {
    ReadExtends(root);
    if (!root.Has("as_of")) {
      root.Add("as_of",
               "missing; write the day on which the prices were "
               "looked up, as 2026-11-30");
    }
    as_of_ = root.Date("as_of").value_or(0);
    ReadFamilies(root);
    PricedModel unknown;
    if (std::optional<YamlMap> map = root.Map("unknown"); map.has_value()) {
      unknown = ReadEntry(*map);
      map->Finish();
    } else if (base_ != nullptr) {
      unknown = base_->unknown();
    } else if (!root.Has("unknown")) {
      root.Add("unknown",
               "missing; write what is assumed of other models, or "
               "`extends: built-in` above");
    }
    std::vector<PricedModel> models = ReadModels(root);
    root.Finish();
    TimeMicros as_of = as_of_;
    if (base_ != nullptr) {
      as_of = std::min(as_of, base_->as_of());
      for (const PricedModel& model : base_->models()) {
        if (names_.count(model.model) == 0) models.push_back(model);
      }
    }
    return PriceBook(as_of, std::move(models), std::move(unknown),
                     std::move(families_));
  }

 private:
  void ReadExtends(YamlMap& root) {
    constexpr absl::string_view kNames[] = {kBuiltIn};
    if (!root.Choice("extends", kNames).has_value()) return;
    base_ = built_in_;
    if (base_ == nullptr) {
      root.Add("extends", "there is nothing here to extend; leave it out");
    } else {
      families_ = base_->families();
    }
  }

  void ReadFamilies(YamlMap& root) {
    std::optional<YamlMap> map = root.Map("families");
    if (!map.has_value()) return;
    for (const std::string& name : map->Keys()) {
      std::optional<YamlMap> family = map->Map(name);
      if (!family.has_value()) continue;
      families_[name] = ReadFacts(*family);
      family->Finish();
    }
  }

  static PriceFamily ReadFacts(YamlMap& map) {
    PriceFamily facts;
    facts.window_tokens = map.Integer("window_tokens", 1, kTokensMax);
    facts.output_tokens_max = map.Integer("answer_tokens", 1, kTokensMax);
    facts.cache_ttl_seconds =
        map.Integer("cache_ttl_seconds", 0, kTtlSecondsMax);
    facts.long_ttl_seconds = map.Integer("long_ttl_seconds", 1, kTtlSecondsMax);
    facts.cache_tokens_min = map.Integer("cache_tokens_min", 0, kTokensMax);
    facts.is_refreshed_by_read = map.Boolean("is_refreshed_by_read");
    facts.reasoning_prefix_bound = map.Boolean("reasoning_prefix_bound");
    facts.source = map.Text("source");
    if (facts.source.has_value() &&
        absl::StripAsciiWhitespace(*facts.source).empty()) {
      map.Add("source", "blank; write where the prices are said");
    }
    facts.as_of = map.Date("as_of");
    return facts;
  }

  // The family that `map` names, or one that says nothing; absent if it cannot
  // be known which one is meant.
  std::optional<PriceFamily> FamilyOf(YamlMap& map) {
    const std::optional<std::string> name = map.Text("family");
    if (!name.has_value()) {
      if (map.Has("family")) return std::nullopt;
      return PriceFamily();
    }
    const auto found = families_.find(*name);
    if (found != families_.end()) return found->second;
    std::vector<absl::string_view> names;
    for (const auto& [known, facts] : families_) names.push_back(known);
    map.Add("family", absl::StrCat("unknown family ", QuoteForError(*name),
                                   DidYouMean(*name, names), "; use ",
                                   names.empty() ? "none, for there are none"
                                                 : absl::StrJoin(names, ", ")));
    return std::nullopt;
  }

  // What `map`, or else `family`, says of `member`, which `map` calls `key`.
  template <typename T>
  T Pick(YamlMap& map, absl::string_view key, const PriceFamily& facts,
         const PriceFamily& family, std::optional<T> PriceFamily::* member,
         absl::string_view missing) {
    if ((facts.*member).has_value()) return *(facts.*member);
    if ((family.*member).has_value()) return *(family.*member);
    if (!missing.empty() && is_family_known_ && !map.Has(key)) {
      map.Add(key, absl::StrCat("missing; write ", missing,
                                ", here or in the family"));
    }
    return T();
  }

  // The facts of a model, without prices.
  ModelPrices ReadModelFacts(YamlMap& map) {
    const std::optional<PriceFamily> named = FamilyOf(map);
    const PriceFamily family = named.value_or(PriceFamily());
    is_family_known_ = named.has_value();
    const PriceFamily facts = ReadFacts(map);
    ModelPrices model;
    model.window_tokens =
        Pick(map, "window_tokens", facts, family, &PriceFamily::window_tokens,
             "the most tokens of a prompt and its answer");
    model.output_tokens_max =
        Pick(map, "answer_tokens", facts, family,
             &PriceFamily::output_tokens_max, "the most tokens of an answer");
    model.cache_ttl_seconds = Pick(
        map, "cache_ttl_seconds", facts, family,
        &PriceFamily::cache_ttl_seconds,
        "how long a prefix stays cached after its last use, 0 for no cache");
    model.long_ttl_seconds = Pick(map, "long_ttl_seconds", facts, family,
                                  &PriceFamily::long_ttl_seconds, "");
    model.cache_tokens_min = Pick(map, "cache_tokens_min", facts, family,
                                  &PriceFamily::cache_tokens_min, "");
    model.is_refreshed_by_read = facts.is_refreshed_by_read.value_or(
        family.is_refreshed_by_read.value_or(true));
    model.reasoning_prefix_bound =
        Pick(map, "reasoning_prefix_bound", facts, family,
             &PriceFamily::reasoning_prefix_bound, "");
    model.source = Pick(map, "source", facts, family, &PriceFamily::source,
                        "where the prices are said");
    model.as_of = facts.as_of.value_or(family.as_of.value_or(as_of_));
    if (model.window_tokens > 0 &&
        model.output_tokens_max >= model.window_tokens) {
      map.Add("answer_tokens",
              absl::StrCat("an answer of ", model.output_tokens_max,
                           " leaves no room for a prompt in a window of ",
                           model.window_tokens, "; make it smaller"));
    }
    is_cache_known_ = facts.cache_ttl_seconds.has_value() ||
                      family.cache_ttl_seconds.has_value();
    if (is_cache_known_ && model.cache_ttl_seconds == 0) {
      // A model without a cache has nothing of its family's.
      if (facts.long_ttl_seconds.has_value()) {
        map.Add("long_ttl_seconds", "there is no cache; leave it out");
      }
      model.long_ttl_seconds = 0;
      model.cache_tokens_min = 0;
    } else if (model.long_ttl_seconds > 0 &&
               model.long_ttl_seconds <= model.cache_ttl_seconds) {
      map.Add("long_ttl_seconds",
              absl::StrCat("not longer than the short life of ",
                           model.cache_ttl_seconds, "; leave it out"));
    }
    return model;
  }

  // The price `key` of `map`, which must be there.
  PicoUsd Price(YamlMap& map, absl::string_view key) {
    if (!map.Has(key)) {
      map.Add(key, "missing; write the dollars for a million tokens");
    }
    return map.Decimal(key, kPlaces, 0, kPriceMax).value_or(0);
  }

  // What must hold if both prices are there and right.
  static void CheckOrder(YamlMap& map, absl::string_view low_key,
                         absl::string_view high_key, PicoUsd low, PicoUsd high,
                         std::size_t problems_before,
                         const std::vector<Problem>& problems) {
    if (low <= high || problems.size() > problems_before) return;
    map.Add(low_key,
            absl::StrCat(FormatDecimal(low, kPlaces), " is more than the ",
                         high_key, " price of ", FormatDecimal(high, kPlaces),
                         "; are they mixed up?"));
  }

  // The prices that `map`, a row or a tier, says of `model`.
  PriceTier ReadRates(YamlMap& map, const ModelPrices& model) {
    const std::size_t before = problems_.size();
    PriceTier rates;
    rates.input = Price(map, "input");
    rates.output = Price(map, "output");
    if (!is_cache_known_) {
      // Which of them must be there cannot be said.
      for (const absl::string_view key : {"read", "write", "long_write"}) {
        map.Decimal(key, kPlaces, 0, kPriceMax);
      }
      return rates;
    }
    if (model.cache_ttl_seconds == 0) {
      rates.read = rates.input;
      rates.write = rates.input;
      for (const absl::string_view key : {"read", "write", "long_write"}) {
        if (map.Has(key)) {
          map.Add(key,
                  "there is no cache: leave it out, or write "
                  "`cache_ttl_seconds`");
        }
      }
      return rates;
    }
    rates.read = Price(map, "read");
    rates.write =
        map.Decimal("write", kPlaces, 0, kPriceMax).value_or(rates.input);
    if (model.long_ttl_seconds > 0) {
      rates.long_write = Price(map, "long_write");
    } else if (map.Has("long_write")) {
      map.Add("long_write",
              "there is no long life: leave it out, or write "
              "`long_ttl_seconds`");
    }
    CheckOrder(map, "read", "input", rates.read, rates.input, before,
               problems_);
    CheckOrder(map, "input", "write", rates.input, rates.write, before,
               problems_);
    if (model.long_ttl_seconds > 0) {
      CheckOrder(map, "write", "long_write", rates.write, rates.long_write,
                 before, problems_);
    }
    return rates;
  }

  std::vector<PriceTier> ReadTiers(YamlMap& row, const ModelPrices& model) {
    std::vector<PriceTier> tiers;
    for (YamlMap& map : row.Maps("tiers")) {
      if (!map.Has("above_tokens")) {
        map.Add("above_tokens",
                "missing; write the prompt's tokens above "
                "which the tier holds");
      }
      const std::optional<std::int64_t> above =
          map.Integer("above_tokens", 1, kTokensMax);
      PriceTier tier = ReadRates(map, model);
      map.Finish();
      if (!above.has_value()) continue;
      tier.above_tokens = *above;
      if (!tiers.empty() && tiers.back().above_tokens >= *above) {
        map.Add("above_tokens", absl::StrCat(*above, " does not come after ",
                                             tiers.back().above_tokens,
                                             "; put the smallest tier first"));
      }
      if (*above < model.cache_tokens_min) {
        map.Add("above_tokens", absl::StrCat(*above, " is less than the ",
                                             model.cache_tokens_min,
                                             " tokens of `cache_tokens_min`"));
      }
      tiers.push_back(tier);
    }
    return tiers;
  }

  // The times of a row, given that of the row before it.
  struct Span {
    TimeMicros from = 0;
    std::optional<TimeMicros> until;
    bool is_known = true;  // Whether `from` is right.
  };
  static Span ReadSpan(YamlMap& map, const std::optional<Span>& previous) {
    Span span;
    const std::optional<TimeMicros> from = map.Date("from");
    span.until = map.Date("until");
    span.from = from.value_or(0);
    span.is_known = from.has_value() || !previous.has_value();
    if (from.has_value() && span.until.has_value() && *span.until <= *from) {
      map.Add("until", absl::StrCat("not after ", FormatDate(*from),
                                    ", when it begins"));
    }
    if (!previous.has_value()) return span;
    if (!map.Has("from")) {
      map.Add("from",
              "missing; write the day from which it takes the place of "
              "the one before");
    }
    if (!from.has_value()) return span;
    if (previous->is_known && *from <= previous->from) {
      map.Add("from", absl::StrCat("not after ", FormatDate(previous->from),
                                   ", when the one before begins; put the "
                                   "oldest first"));
    } else if (previous->until.has_value() && *previous->until < *from) {
      map.Add("from", absl::StrCat("a gap: the one before ends on ",
                                   FormatDate(*previous->until),
                                   "; begin on that day"));
    } else if (previous->until.has_value() && *previous->until > *from) {
      map.Add("from", absl::StrCat("an overlap: the one before ends on ",
                                   FormatDate(*previous->until),
                                   "; begin on that day"));
    }
    return span;
  }

  // All that `map` says of a model, but its name.
  PricedModel ReadEntry(YamlMap& map) {
    PricedModel entry;
    const ModelPrices model = ReadModelFacts(map);
    const std::size_t before = problems_.size();
    std::vector<YamlMap> rows = map.Maps("prices");
    if (rows.empty() && problems_.size() == before) {
      map.Add("prices",
              "missing; write `prices: [{input: ..., read: ..., "
              "output: ...}]`");
    }
    std::optional<Span> previous;
    for (YamlMap& row : rows) {
      const Span span = ReadSpan(row, previous);
      const PriceTier rates = ReadRates(row, model);
      DatedPrices dated{.from = span.from, .prices = model};
      dated.prices.input = rates.input;
      dated.prices.write = rates.write;
      dated.prices.long_write = rates.long_write;
      dated.prices.read = rates.read;
      dated.prices.output = rates.output;
      dated.prices.tiers = ReadTiers(row, model);
      if (&row == &rows.back() && span.until.has_value()) {
        row.Add("until",
                "nothing follows; leave it out, or add what holds "
                "from then on");
      }
      row.Finish();
      entry.rows.push_back(std::move(dated));
      previous = span;
    }
    return entry;
  }

  std::vector<PricedModel> ReadModels(YamlMap& root) {
    std::vector<PricedModel> models;
    for (YamlMap& map : root.Maps("models")) {
      const std::vector<std::string> names =
          map.Texts("model").value_or(std::vector<std::string>());
      if (!map.Has("model")) {
        map.Add("model", "missing; write the start of the models' names");
      }
      PricedModel entry = ReadEntry(map);
      map.Finish();
      for (const DatedPrices& row : entry.rows) {
        rows_ += names.size() * (1 + row.prices.tiers.size());
      }
      if (rows_ > kRowsMax) {
        map.Add(absl::StrCat("more than ", kRowsMax,
                             " prices; leave out what you do not use"));
        break;
      }
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i].empty() || names[i].find('/') != std::string::npos) {
          map.AddItem("model", i,
                      "not the start of a name; write one without "
                      "a slash, as claude-opus-5-5");
        } else if (!names_.insert(names[i]).second) {
          map.AddItem("model", i,
                      absl::StrCat(QuoteForError(names[i]),
                                   " stands twice; put its prices under one"));
        }
        entry.model = names[i];
        for (DatedPrices& row : entry.rows) row.prices.model = names[i];
        models.push_back(entry);
      }
    }
    return models;
  }

  const PriceBook* const built_in_;
  std::vector<Problem>& problems_;
  const PriceBook* base_ = nullptr;  // What is extended.
  TimeMicros as_of_ = 0;
  std::map<std::string, PriceFamily> families_;
  std::set<std::string> names_;
  // Of the model that is being read: whether its family, and whether its cache,
  // can be known.
  bool is_family_known_ = true;
  bool is_cache_known_ = true;
  std::size_t rows_ = 0;
};

}  // namespace

std::optional<PriceBook> ReadPriceBook(absl::string_view file,
                                       absl::string_view text,
                                       const PriceBook* built_in,
                                       std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  std::optional<YamlMap> root = YamlMap::Load(file, text, problems);
  if (!root.has_value()) return std::nullopt;
  PriceBook book = BookReader(built_in, problems).Read(*root);
  if (problems.size() > before) return std::nullopt;
  return book;
}

absl::StatusOr<PriceBook> ParsePriceBook(absl::string_view file,
                                         absl::string_view text,
                                         const PriceBook* built_in) {
  std::vector<Problem> problems;
  std::optional<PriceBook> book = ReadPriceBook(file, text, built_in, problems);
  if (book.has_value()) return *std::move(book);
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid,
                   Describe(problems), {{"field", "prices"}});
}

}  // namespace clerestory
