// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/call_cost.h"

#include <algorithm>
#include <cstdint>

#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/cache.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

bool IsLongLife(const Policy& policy, const ModelPrices& prices) {
  return policy.cache_life == CacheLife::kLong && prices.long_ttl_seconds > 0;
}

// Why what the model's cache held is no longer there; kNone if it is.
BreakReason ColdReason(const Session& session, const ViewRequest& request,
                       std::int64_t ttl_micros) {
  if (!session.last_view().has_value()) return BreakReason::kCacheCold;
  const CachedPrompt* prompt = session.cache().Find(request.model);
  if (prompt == nullptr) return BreakReason::kModelChanged;
  if (!prompt->preamble_digest.empty() && !request.preamble_digest.empty() &&
      prompt->preamble_digest != request.preamble_digest) {
    return BreakReason::kPreambleChanged;
  }
  if (request.now - prompt->time > ttl_micros) return BreakReason::kCacheCold;
  return BreakReason::kNone;
}

}  // namespace

CallCost::CallCost(const Session& session, const Policy& policy,
                   const ModelPrices& prices, const ViewRequest& request)
    : session_(session),
      prices_(prices),
      request_(request),
      is_long_life_(IsLongLife(policy, prices)),
      ttl_micros_(
          (is_long_life_ ? prices.long_ttl_seconds : prices.cache_ttl_seconds) *
          kMicrosPerSecond),
      cold_reason_(ColdReason(session, request, ttl_micros_)) {
  if (cold_reason_ != BreakReason::kNone) return;
  // Of the view it may hold nothing, and yet all that it would have had.
  cached_ = *session.cache().Find(request.model);
  if (cached_.view_tokens > 0) return;
  cold_reason_ =
      cached_.is_missed ? BreakReason::kCacheMissed : BreakReason::kCacheCold;
}

TimeMicros CallCost::cache_time() const {
  const bool is_read = cached_.view_tokens > 0;
  return is_read && !prices_.is_refreshed_by_read ? cached_.time : request_.now;
}

std::int64_t CallCost::PromptTokens(std::int64_t message_tokens) const {
  return session_.PromptTokens(message_tokens, request_.preamble_tokens,
                               request_.token_scale_ppm);
}

std::int64_t CallCost::Scale(std::int64_t message_tokens) const {
  return Scaled(message_tokens, request_.token_scale_ppm == 0
                                    ? kScaleOne
                                    : request_.token_scale_ppm);
}

TokenRates CallCost::RatesOf(std::int64_t prompt_tokens) const {
  TokenRates rates = RatesFor(prices_, prompt_tokens, is_long_life_);
  if (session_.cache().StatusOf(request_.model) == CacheStatus::kAbsent) {
    rates.read = rates.input;
    rates.write = rates.input;
  }
  return rates;
}

CallTokens CallCost::Split(std::int64_t message_tokens,
                           std::int64_t cached) const {
  const std::int64_t prompt = PromptTokens(message_tokens);
  const TokenRates rates = RatesOf(prompt);
  if (rates.read == rates.input && rates.write == rates.input) {
    return {.uncached = prompt};
  }
  const std::int64_t read =
      std::clamp<std::int64_t>(cached, 0, std::max<std::int64_t>(prompt, 0));
  return {.read = read, .written = prompt - read};
}

PicoUsd CallCost::Cost(const CallTokens& tokens) const {
  const TokenRates rates = RatesOf(tokens.total());
  return SaturatingAdd(
      SaturatingAdd(SaturatingMultiply(tokens.read, rates.read),
                    SaturatingMultiply(tokens.written, rates.write)),
      SaturatingMultiply(tokens.uncached, rates.input));
}

bool CallCost::DependsOnImages() const {
  // Anthropic's cache of the messages depends on whether there is any picture
  // in them (platform.claude.com, prompt caching, "What invalidates the
  // cache").
  return session_.header().format == Format::kAnthropicMessages;
}

std::int64_t CallCost::CachedBefore(const BreakSize& size) const {
  const std::int64_t images = session_.view_image_count();
  const bool is_lost =
      DependsOnImages() && (images > 0) != (images - size.image_count > 0);
  return std::min(cached_.view_tokens,
                  PromptTokens(is_lost ? 0 : size.tokens_before));
}

bool CallCost::LosesCache(std::int64_t saving) const {
  const auto is_cached = [&](std::int64_t message_tokens) {
    const TokenRates rates = RatesOf(PromptTokens(message_tokens));
    return rates.read < rates.input;
  };
  return is_cached(session_.view_tokens()) &&
         !is_cached(session_.view_tokens() - saving);
}

PicoUsd CallCost::BreakPrice(const BreakSize& size) const {
  const std::int64_t before = session_.view_tokens();
  const std::int64_t after = before - size.saving;
  const TokenRates rates = RatesOf(PromptTokens(after));
  const std::int64_t found = CachedBefore(size);
  const std::int64_t rewritten = std::max<std::int64_t>(
      0, std::min(PromptTokens(before), cached_.view_tokens) -
             Scale(size.cached_saving) - found);
  PicoUsd price = SaturatingMultiply(rewritten, rates.write - rates.read);

  // The same tokens at the prices of the tier that the call leaves.
  const TokenRates left = RatesOf(PromptTokens(before));
  const CallTokens call = Split(after, found);
  price = SaturatingAdd(price,
                        SaturatingMultiply(call.read, rates.read - left.read));
  price = SaturatingAdd(
      price, SaturatingMultiply(call.written, rates.write - left.write));
  price = SaturatingAdd(
      price, SaturatingMultiply(call.uncached, rates.input - left.input));
  price = SaturatingAdd(
      price, SaturatingMultiply(Scale(size.lost_reasoning), rates.output));
  return std::max<PicoUsd>(price, 0);
}

}  // namespace clerestory
