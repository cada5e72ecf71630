// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_CALL_COST_H_
#define CLERESTORY_SERVER_VIEW_CALL_COST_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/cache.h"
#include "server/view/session.h"

namespace clerestory {

// What a view is planned for.
struct ViewRequest {
  TimeMicros now = 0;
  std::string model;
  // Tokens of the system prompt and the tool definitions, which the client
  // sends before the view, and what tells whether they are the same as before;
  // "" if the client does not say.
  std::int64_t preamble_tokens = 0;
  std::string preamble_digest = {};
  // What has been learned of the tenant and the model
  // (TokenCalibration::scale_ppm); 0 if nothing has.
  std::int64_t token_scale_ppm = 0;
  // The tools that the tenant's breaker does not mask in this session; null for
  // none.
  const std::set<std::string>* unmasked_tools = nullptr;
};

// A break, as far as its price depends on it.
struct BreakSize {
  // Tokens that it removes, and those of them that the last view showed.
  std::int64_t saving = 0;
  std::int64_t cached_saving = 0;
  // Tokens of the messages before its first change, and how many pictures fewer
  // there are behind it.
  std::int64_t tokens_before = 0;
  std::int64_t image_count = 0;
  // Tokens of reasoning that the model cannot use any more.
  std::int64_t lost_reasoning = 0;
};

// What the next call of `session` would cost, with a break or without one.
// Tokens of messages are those of the session's estimates, without the
// preamble; tokens of a prompt have it, and are those of the provider as far as
// its reports let them be foreseen.
//
// Pure; what it is made of must outlive it and stay as it is.
class CallCost {
 public:
  CallCost(const Session& session, const Policy& policy,
           const ModelPrices& prices, const ViewRequest& request);

  // Why nothing of the last view is in the cache, so that a break is free;
  // kNone if something is, or may be. Also kCacheCold if nothing ever was: the
  // last prompt was too short, or the provider caches nothing.
  BreakReason cold_reason() const { return cold_reason_; }

  // When the life of what the call leaves in the cache begins.
  TimeMicros cache_time() const;

  // Tokens of a prompt with messages of so many.
  std::int64_t PromptTokens(std::int64_t message_tokens) const;

  // What the provider counts for so many tokens of messages, which are added or
  // removed.
  std::int64_t Scale(std::int64_t message_tokens) const;

  // The prices of a prompt of so many tokens. Where nothing is cached, all that
  // is read or written costs the input.
  TokenRates RatesOf(std::int64_t prompt_tokens) const;

  // What the cache does with a call of `message_tokens` of which, with the
  // preamble, `cached` were sent before.
  CallTokens Split(std::int64_t message_tokens, std::int64_t cached) const;
  PicoUsd Cost(const CallTokens& tokens) const;

  // Tokens of the last prompt that are found again as long as nothing changes:
  // of the view, as if nothing had been masked, and as if all had been at once.
  std::int64_t cached_view_tokens() const { return cached_.view_tokens; }
  std::int64_t cached_raw_tokens() const { return cached_.raw_tokens; }
  std::int64_t cached_every_turn_tokens() const {
    return cached_.every_turn_tokens;
  }

  // Whether nothing is found again if the view gets its first picture, or loses
  // its last.
  bool DependsOnImages() const;

  // Those that are found again if `size` changes.
  std::int64_t CachedBefore(const BreakSize& size) const;

  // Whether a break that removes so many tokens leaves a prompt that is too
  // short to be cached, where it was not: then every later call costs more.
  bool LosesCache(std::int64_t saving) const;

  // What the break costs, once: what is written again instead of being read,
  // and the reasoning that is lost, which the model may have to do again, less
  // what the whole call saves by getting into a cheaper tier. At least 0.
  PicoUsd BreakPrice(const BreakSize& size) const;

 private:
  const Session& session_;
  const ModelPrices& prices_;
  const ViewRequest& request_;
  const bool is_long_life_;
  const std::int64_t ttl_micros_;
  BreakReason cold_reason_ = BreakReason::kNone;
  CachedPrompt cached_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_CALL_COST_H_
