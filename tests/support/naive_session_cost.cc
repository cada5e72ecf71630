// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a naive session takes its providers' caches to hold, and what calls and
// breaks cost with that.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/cache.h"
#include "tests/support/naive_session.h"

namespace clerestory {
namespace {

std::int64_t Signed(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

bool IsLongLife(const Policy& policy, const ModelPrices& prices) {
  return policy.cache_life == CacheLife::kLong && prices.long_ttl_seconds > 0;
}

std::int64_t SentToCache(const CallTokens& call) {
  return call.read + call.written;
}

}  // namespace

NaiveSession::Held NaiveSession::HeldFor(const std::string& model) const {
  Held held;
  const ViewServed* last = nullptr;
  std::int64_t misses = 0;  // In a row.
  for (const Event& event : events_) {
    if (const auto* served = std::get_if<Served>(&event)) {
      const ViewServed& view = served->view;
      last = &view;
      // The session has one view: what another model's call changed of it is
      // not found by this one either.
      held.view = std::min(held.view, served->change);
      held.every_turn = std::min(held.every_turn, served->every_turn_change);
      if (view.model != model) continue;
      held.is_known = true;
      held.is_missed = false;
      held.time = view.cache_time;
      held.preamble_digest = view.preamble_digest;
      held.view = SentToCache(view.view_call);
      held.raw = SentToCache(view.raw_call);
      held.every_turn = SentToCache(view.every_turn_call);
      continue;
    }
    if (const auto* recounted = std::get_if<Recounted>(&event)) {
      if (recounted->model != model) continue;
      if (held.view > 0) held.view = recounted->view;
      if (held.raw > 0) held.raw = recounted->raw;
      if (held.every_turn > 0) held.every_turn = recounted->every_turn;
      continue;
    }
    if (!std::holds_alternative<UsageReported>(event)) continue;
    const auto& report = std::get<UsageReported>(event);
    const std::optional<std::int64_t> read = report.usage.cache_read;
    if (last == nullptr || report.model != last->model || !read) continue;
    if (report.model != model) continue;
    const bool is_unwritten = report.usage.cache_write == 0;
    const std::int64_t sent = SentToCache(last->view_call);
    bool is_lost = is_unwritten && sent >= kCacheMissTokensMin;
    std::int64_t expected = last->view_call.read;
    if (is_unwritten && *read < kCacheMissTokensMin) expected = sent;
    if (held.is_absent) {
      if (*read >= last->view_call.total() / 2) {
        held.is_absent = false;
        misses = 0;
        held.view = held.raw = held.every_turn = *read;
      }
    } else if (expected >= kCacheMissTokensMin) {
      const std::int64_t lacking = expected - *read;
      const bool is_miss =
          lacking >= kCacheMissTokensMin && lacking >= expected / 2;
      misses = is_miss ? misses + 1 : 0;
      held.is_absent = misses >= kCacheMissesMax;
      is_lost |= misses > 1 && report.usage.cache_write.value_or(0) <= 0;
    }
    if (is_lost && *read < held.view) {
      held.view = *read;
      held.raw = std::min(held.raw, *read);
      held.every_turn = std::min(held.every_turn, *read);
      held.is_missed = true;
    }
  }
  return held;
}

BreakReason NaiveSession::ColdReason(const Held& held, const Policy& policy,
                                     const ModelPrices& prices,
                                     const ViewRequest& request) const {
  if (!last_.has_value()) return BreakReason::kCacheCold;
  if (!held.is_known) return BreakReason::kModelChanged;
  if (!held.preamble_digest.empty() && !request.preamble_digest.empty() &&
      held.preamble_digest != request.preamble_digest) {
    return BreakReason::kPreambleChanged;
  }
  const std::int64_t ttl = IsLongLife(policy, prices)
                               ? prices.long_ttl_seconds
                               : prices.cache_ttl_seconds;
  if (request.now - held.time > ttl * kMicrosPerSecond) {
    return BreakReason::kCacheCold;
  }
  return BreakReason::kNone;
}

TokenRates NaiveSession::RatesOf(std::int64_t prompt,
                                 const Question& question) const {
  const ModelPrices& prices = question.prices;
  const bool is_long = IsLongLife(question.policy, prices);
  TokenRates rates = {.input = prices.input,
                      .write = is_long ? prices.long_write : prices.write,
                      .read = prices.read,
                      .output = prices.output};
  for (const PriceTier& tier : prices.tiers) {
    if (prompt <= tier.above_tokens) continue;
    rates = {.input = tier.input,
             .write = is_long ? tier.long_write : tier.write,
             .read = tier.read,
             .output = tier.output};
  }
  if (question.held.is_absent || prompt < prices.cache_tokens_min) {
    rates.read = rates.input;
    rates.write = rates.input;
  }
  return rates;
}

CallTokens NaiveSession::Split(std::int64_t prompt, std::int64_t cached,
                               const Question& question) const {
  const TokenRates rates = RatesOf(prompt, question);
  if (rates.read == rates.input && rates.write == rates.input) {
    return {.uncached = prompt};
  }
  const std::int64_t read = std::min(prompt, cached);
  return {.read = read, .written = prompt - read};
}

PicoUsd NaiveSession::CostOf(const CallTokens& call,
                             const Question& question) const {
  const TokenRates rates = RatesOf(call.total(), question);
  return call.read * rates.read + call.written * rates.write +
         call.uncached * rates.input;
}

bool NaiveSession::LosesCache(std::int64_t saving,
                              const Question& question) const {
  const TokenRates before = RatesOf(PromptTokens(question), question);
  const TokenRates after = RatesOf(PromptTokens(question, saving), question);
  return before.read < before.input && after.read >= after.input;
}

std::int64_t NaiveSession::Scale(std::int64_t tokens,
                                 const Question& question) {
  const std::int64_t scale = question.request.token_scale_ppm;
  return Scaled(tokens, scale == 0 ? kScaleOne : scale);
}

std::int64_t NaiveSession::PromptTokens(const Question& question,
                                        std::int64_t saving) const {
  return Foreseen(question.tokens_before.back() - saving, question.request);
}

NaiveSession::Size NaiveSession::SizeOf(const std::vector<Candidate>& masks,
                                        const Question& question) const {
  const std::int64_t last_count = last_.has_value() ? last_->message_count : 0;
  Size size = {.tokens_before = question.tokens_before.back()};
  std::int64_t change = Signed(messages_.size());
  for (const Candidate& mask : masks) {
    const Observation& masked = observations_[mask.observation];
    const std::int64_t message = Signed(masked.message);
    size.saving += mask.saving;
    // What is shown again was in no cache.
    if (message < last_count && !mask.is_restored) {
      size.saving_in_last += mask.saving;
    }
    size.images += (mask.is_restored ? -1 : 1) * result(masked).image_count;
    size.tokens_before =
        std::min(size.tokens_before, question.tokens_before[masked.message] +
                                         result(masked).tokens_before -
                                         SavedBefore(masked));
    change = std::min(change, message);
  }
  if (!question.prices.reasoning_prefix_bound) return size;
  const std::optional<std::size_t> strip_from = StripFrom(masks, question);
  for (const Thought& thought : thoughts_) {
    const std::int64_t tokens = ThoughtTokens(thought.message);
    if (Signed(thought.message) >= change && !thought.is_stale) {
      size.lost_reasoning += tokens;
    }
    if (!strip_from || thought.message < *strip_from || thought.is_stripped) {
      continue;
    }
    size.saving += tokens;
    if (Signed(thought.message) < last_count) size.saving_in_last += tokens;
    size.tokens_before =
        std::min(size.tokens_before, question.tokens_before[thought.message]);
  }
  return size;
}

std::int64_t NaiveSession::Found(const Size& size,
                                 const Question& question) const {
  if (question.cold != BreakReason::kNone) return 0;
  // Its entries are not found by a prompt that has pictures if theirs had none,
  // and the other way round.
  const std::int64_t before = ShownImages();
  const bool is_lost = format_ == Format::kAnthropicMessages &&
                       (before > 0) != (before - size.images > 0);
  return std::min(question.held.view,
                  Foreseen(is_lost ? 0 : size.tokens_before, question.request));
}

PicoUsd NaiveSession::BreakPrice(const Size& size,
                                 const Question& question) const {
  const std::int64_t before = PromptTokens(question);
  const std::int64_t after = PromptTokens(question, size.saving);
  const TokenRates old_rates = RatesOf(before, question);
  const TokenRates rates = RatesOf(after, question);
  const std::int64_t found = Found(size, question);
  const std::int64_t found_without = question.cold == BreakReason::kNone
                                         ? std::min(before, question.held.view)
                                         : 0;
  PicoUsd price =
      std::max<std::int64_t>(
          0, found_without - Scale(size.saving_in_last, question) - found) *
      (rates.write - rates.read);
  price += Scale(size.lost_reasoning, question) * rates.output;
  // The call that is made, at the rates of the tier that it leaves.
  const CallTokens call = Split(after, found, question);
  price -= call.read * (old_rates.read - rates.read);
  price -= call.written * (old_rates.write - rates.write);
  price -= call.uncached * (old_rates.input - rates.input);
  return std::max<PicoUsd>(price, 0);
}

void NaiveSession::PriceEveryTurn(const Question& question,
                                  ViewServed& view) const {
  const std::size_t old_before =
      calls_.empty() ? 0
                     : static_cast<std::size_t>(calls_.back().eligible_count);
  const std::size_t old_now = std::max(old_before, OldCount(question.policy));
  std::size_t count_before = 0;
  for (const Observation& observation : observations_) {
    if (last_ && Signed(observation.message) < last_->message_count) {
      ++count_before;
    }
  }
  const auto was_masked = [&](std::size_t i) {
    return i < old_before && !IsKeptByTool(i, question.policy, count_before);
  };
  const auto is_masked = [&](std::size_t i) {
    return i < old_now &&
           !IsKeptByTool(i, question.policy, observations_.size());
  };
  const auto saving_of = [&](std::size_t i) -> std::int64_t {
    if (observations_[i].placeholder.has_value()) return PlaceholderSaving(i);
    const auto mask = MaskOf(i, question.policy, question.prices);
    return mask.has_value() ? mask->saving : 0;
  };
  view.every_turn_saving = every_turn_saving_;
  std::int64_t found = question.is_alive ? question.held.every_turn : 0;
  bool is_changed = false;
  for (std::size_t i = 0; i < old_now; ++i) {
    if (was_masked(i) || !is_masked(i) || saving_of(i) == 0) continue;
    if (!is_changed) {
      std::int64_t before = RawTokensBefore(i) - every_turn_saving_;
      for (std::size_t behind = i + 1; behind < old_before; ++behind) {
        if (was_masked(behind)) before += saving_of(behind);
      }
      found = std::min(found, Foreseen(before, view));
    }
    is_changed = true;
    view.every_turn_saving += saving_of(i);
  }
  view.every_turn_call =
      Split(Foreseen(view.raw_tokens.total() - view.every_turn_saving, view),
            found, question);
  view.every_turn_cost = CostOf(view.every_turn_call, question);
}

void NaiveSession::PriceOutput(const Question& question,
                               ViewServed& view) const {
  if (!last_.has_value()) return;
  for (auto m = static_cast<std::size_t>(last_->message_count);
       m < parsed_.size(); ++m) {
    if (parsed_[m].role != Role::kAssistant) continue;
    view.output_tokens += parsed_[m].tokens.total();
  }
  view.output_cost =
      view.output_tokens * RatesOf(last_->view_call.total(), question).output;
}

}  // namespace clerestory
