// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/plan_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/placeholder.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// An observation that may be masked now, and what that would save.
struct Candidate {
  const Observation* observation = nullptr;
  std::string placeholder;
  std::int64_t saving = 0;  // Tokens; > 0.
  PicoUsd rent = 0;
};

// Candidates that are masked together, from `begin` of a list to its end.
struct Suffix {
  std::size_t begin = 0;
  PicoUsd price = 0;
  PicoUsd rent = 0;
};

// No placeholder for `result` is shorter: its template without the fields. Most
// observations that are too small are told by it, and their placeholders need
// not be made.
std::size_t PlaceholderBytesMin(const ParsedResult& result,
                                const Policy& policy) {
  constexpr std::size_t kFieldsBytes = sizeof("{size}{tokens}") - 1;
  const std::size_t bytes = result.is_error ? policy.error_placeholder.size()
                                            : policy.placeholder.size();
  return bytes > kFieldsBytes ? bytes - kFieldsBytes : 0;
}

// The observation at `index` and what would stand in its place, unless masking
// it is illegal or saves nothing.
std::optional<Candidate> MaskOf(const Session& session, const Policy& policy,
                                const ModelPrices& prices, std::size_t index) {
  const Observation& observation = session.observations()[index];
  const ParsedResult& result = observation.result;
  if (!result.maskable || observation.placeholder.has_value() ||
      result.token_count < kMaskableTokensMin) {
    return std::nullopt;
  }
  if (prices.reasoning_prefix_bound &&
      session.last_thinking() > observation.sequence) {
    return std::nullopt;
  }
  if (result.content.size <= PlaceholderBytesMin(result, policy)) {
    return std::nullopt;
  }
  Candidate candidate;
  candidate.observation = &observation;
  candidate.placeholder = PlaceholderFor(result, policy);
  candidate.saving =
      result.token_count -
      session.counter().CountText(candidate.placeholder, TextForm::kPlain);
  if (candidate.saving <= 0) return std::nullopt;
  const SessionMessage& message =
      session.messages()[static_cast<std::size_t>(observation.sequence)];
  // In bytes, of all that is replaced: the content, and what stands beside it.
  std::size_t before = 0;
  std::size_t after = 0;
  for (const Replacement& replacement :
       session.adapter().Mask(*message.raw, result, candidate.placeholder)) {
    before += replacement.at.size;
    after += replacement.value.size();
  }
  if (after >= before) return std::nullopt;
  return candidate;
}

class Planner {
 public:
  Planner(const Session& session, const Policy& policy,
          const ModelPrices& prices, const ViewRequest& request)
      : session_(session),
        policy_(policy),
        prices_(prices),
        request_(request),
        last_(session.last_view()),
        is_new_call_(!last_.has_value() ||
                     last_->message_count != session.message_count()),
        read_price_(is_new_call_ ? prices.read : 0),
        old_count_(OldCount()) {}

  ViewServed Run() {
    if (policy_.mode != Mode::kOff) {
      Choose();
      FitWindow();
    }
    return Record();
  }

 private:
  // Tokens of the whole prompt, if nothing more were masked.
  std::int64_t prompt_tokens() const {
    return request_.preamble_tokens + session_.view_tokens();
  }

  bool IsCold() const {
    if (!last_.has_value()) return true;
    return request_.now - last_->time >
           prices_.cache_ttl_seconds * kMicrosPerSecond;
  }

  bool IsModelChanged() const {
    return last_.has_value() && last_->model != request_.model;
  }

  // Whether the observations up to `end` of a batch of `turn` are old enough.
  bool IsOldEnough(std::size_t end, std::int64_t turn,
                   std::int64_t keep_observations,
                   std::int64_t keep_turns) const {
    const auto newer =
        static_cast<std::int64_t>(session_.observations().size() - end);
    // An assistant message must follow: the model has acted upon them.
    return newer >= keep_observations &&
           session_.turn_count() - turn >=
               std::max<std::int64_t>(1, keep_turns);
  }

  // The end of the batch that begins at `begin`.
  std::size_t BatchEnd(std::size_t begin) const {
    const auto& all = session_.observations();
    std::size_t end = begin;
    while (end < all.size() && all[end].turn == all[begin].turn) ++end;
    return end;
  }

  // How many observations, from the first, the policy does not keep.
  std::size_t OldCount() const {
    const auto& all = session_.observations();
    const auto is_old = [&](std::size_t end) {
      return IsOldEnough(end, all[end - 1].turn, policy_.keep_observations,
                         policy_.keep_turns);
    };
    auto count = static_cast<std::size_t>(session_.eligible_count());
    // Fewer than in the last view if this policy keeps more.
    while (count > 0 && !is_old(count)) {
      const std::int64_t turn = all[count - 1].turn;
      while (count > 0 && all[count - 1].turn == turn) --count;
    }
    while (count < all.size() && is_old(BatchEnd(count))) {
      count = BatchEnd(count);
    }
    return count;
  }

  std::optional<Candidate> CandidateOf(std::size_t index) const {
    std::optional<Candidate> candidate =
        MaskOf(session_, policy_, prices_, index);
    if (!candidate.has_value()) return std::nullopt;
    const PicoUsd base =
        index < static_cast<std::size_t>(session_.eligible_count())
            ? candidate->observation->rent_base
            : session_.read_price_sum();
    candidate->rent = SaturatingMultiply(
        candidate->saving,
        SaturatingAdd(session_.read_price_sum(), read_price_) - base);
    return candidate;
  }

  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    const auto add = [&](std::size_t index) {
      if (std::optional<Candidate> candidate = CandidateOf(index)) {
        candidates.push_back(*std::move(candidate));
      }
    };
    for (const std::size_t index : session_.candidates()) {
      if (index < old_count_) add(index);
    }
    for (auto i = static_cast<std::size_t>(session_.eligible_count());
         i < old_count_; ++i) {
      add(i);
    }
    return candidates;
  }

  // Whether masking results with `removed` pictures leaves a prompt without
  // one, where there was one. Anthropic's cache of the messages depends on
  // whether there is any (platform.claude.com, prompt caching, "What
  // invalidates the cache").
  bool RemovesLastImage(std::int64_t removed) const {
    return session_.header().format == Format::kAnthropicMessages &&
           removed > 0 && removed == session_.view_image_count();
  }

  // Tokens of the prompt that are still found in the cache if `first` is the
  // first observation to be masked.
  std::int64_t CachedBefore(const Observation& first,
                            std::int64_t removed_images) const {
    if (RemovesLastImage(removed_images)) return request_.preamble_tokens;
    return request_.preamble_tokens + first.view_tokens_before;
  }

  // Whether `rent` is enough for a break of `price`. Many sessions are short,
  // so the first break waits; one that was long enough for a break is likely to
  // go on (decisions/2026-11-30-rent-or-buy.md).
  bool HasRipened(PicoUsd rent, PicoUsd price) const {
    const bool is_first =
        session_.ledger()
            .breaks[static_cast<std::size_t>(BreakReason::kPays)] == 0;
    const std::int64_t percent =
        is_first ? policy_.first_break_percent : policy_.later_break_percent;
    return SaturatingMultiply(rent, 100) >= SaturatingMultiply(price, percent);
  }

  // Of all suffixes of `candidates` whose rent has reached their price, the one
  // with the largest surplus; the longest of equals.
  std::optional<Suffix> BestSuffix(const std::vector<Candidate>& candidates,
                                   const ViewServed& last) const {
    // What is read if nothing is masked.
    const std::int64_t cached =
        std::min(prompt_tokens(), last.view_call.total());
    std::optional<Suffix> best;
    std::int64_t saving = 0;
    std::int64_t cached_saving = 0;  // Of what the last view showed.
    std::int64_t images = 0;
    PicoUsd rent = 0;
    for (std::size_t i = candidates.size(); i-- > 0;) {
      const Observation& observation = *candidates[i].observation;
      saving += candidates[i].saving;
      if (observation.sequence < last.message_count) {
        cached_saving += candidates[i].saving;
      }
      images += observation.result.image_count;
      rent = SaturatingAdd(rent, candidates[i].rent);
      const bool starts_batch =
          i == 0 || candidates[i - 1].observation->turn != observation.turn;
      if (!starts_batch) continue;
      const std::int64_t rewritten = std::max<std::int64_t>(
          0, cached - cached_saving - CachedBefore(observation, images));
      const PicoUsd price =
          SaturatingMultiply(rewritten, prices_.write - prices_.read);
      if (!HasRipened(rent, price) || saving < policy_.reclaim_tokens_min) {
        continue;
      }
      if (!best.has_value() || rent - price >= best->rent - best->price) {
        best = Suffix{.begin = i, .price = price, .rent = rent};
      }
    }
    return best;
  }

  void Take(std::vector<Candidate> candidates, BreakReason reason) {
    std::int64_t saving = 0;
    for (const Candidate& candidate : candidates) saving += candidate.saving;
    if (saving == 0 || saving < policy_.reclaim_tokens_min) return;
    masks_ = std::move(candidates);
    reason_ = reason;
  }

  // What the policy's mode masks.
  void Choose() {
    std::vector<Candidate> candidates = Candidates();
    if (candidates.empty()) return;
    switch (policy_.mode) {
      case Mode::kOff:
        return;
      case Mode::kAdaptive:
        ChooseAdaptive(std::move(candidates));
        return;
      case Mode::kBlock:
        if (static_cast<std::int64_t>(candidates.size()) >=
            policy_.block_size) {
          Take(std::move(candidates), BreakReason::kSchedule);
        }
        return;
      case Mode::kThreshold:
        ChooseOldest(std::move(candidates));
        return;
      case Mode::kEveryTurn:
        Take(std::move(candidates), BreakReason::kSchedule);
        return;
    }
  }

  void ChooseAdaptive(std::vector<Candidate> candidates) {
    if (IsModelChanged()) {
      Take(std::move(candidates), BreakReason::kModelChanged);
      return;
    }
    if (!last_.has_value() || IsCold()) {
      Take(std::move(candidates), BreakReason::kCacheCold);
      return;
    }
    const std::optional<Suffix> best = BestSuffix(candidates, *last_);
    if (!best.has_value()) return;
    candidates.erase(
        candidates.begin(),
        candidates.begin() + static_cast<std::ptrdiff_t>(best->begin));
    price_ = best->price;
    rent_ = best->rent;
    Take(std::move(candidates), BreakReason::kPays);
  }

  void ChooseOldest(std::vector<Candidate> candidates) {
    if (prompt_tokens() <= policy_.threshold_tokens) return;
    std::int64_t tokens = prompt_tokens();
    std::size_t count = 0;
    const auto in_batch = [&] {
      return count > 0 && candidates[count].observation->turn ==
                              candidates[count - 1].observation->turn;
    };
    while (count < candidates.size() &&
           (tokens > policy_.low_water_tokens || in_batch())) {
      tokens -= candidates[count++].saving;
    }
    candidates.resize(count);
    Take(std::move(candidates), BreakReason::kSchedule);
  }

  // Masks more, oldest first, until the prompt fits the window or nothing but
  // the newest few observations is left.
  void FitWindow() {
    const std::int64_t most = PromptTokensMax(policy_, prices_);
    std::int64_t tokens = prompt_tokens();
    for (const Candidate& mask : masks_) tokens -= mask.saving;
    if (tokens <= most) return;

    tokens = prompt_tokens();
    std::vector<Candidate> forced = Candidates();
    for (const Candidate& mask : forced) tokens -= mask.saving;
    const auto& all = session_.observations();
    std::size_t next = old_count_;
    // Down by a sixth of the window: a view that only just fits would have to
    // break again in the next turn, and in every one after it.
    const std::int64_t goal = most - most / 6;
    while (tokens > goal && next < all.size()) {
      const std::size_t end = BatchEnd(next);
      if (!IsOldEnough(end, all[next].turn, kKeepObservationsMin, 0)) break;
      for (; next < end; ++next) {
        if (std::optional<Candidate> candidate = CandidateOf(next)) {
          tokens -= candidate->saving;
          forced.push_back(*std::move(candidate));
        }
      }
    }
    if (forced.size() == masks_.size()) return;
    masks_ = std::move(forced);
    reason_ = BreakReason::kWindow;
    price_ = 0;
    rent_ = 0;
  }

  ViewServed Record() {
    ViewServed record;
    record.time = request_.now;
    record.model = request_.model;
    record.message_count = session_.message_count();
    record.is_new_call = is_new_call_;
    record.eligible_count = std::max(session_.eligible_count(),
                                     static_cast<std::int64_t>(old_count_));
    record.read_price = read_price_;
    record.break_reason = reason_;
    record.break_price = price_;
    record.break_rent = rent_;
    record.preamble_tokens = request_.preamble_tokens;
    record.raw_tokens = session_.raw_tokens();
    record.view_tokens = record.raw_tokens;
    std::int64_t saved = session_.raw_tokens().total() - session_.view_tokens();
    for (const Candidate& mask : masks_) saved += mask.saving;
    record.view_tokens.observations -= saved;
    Price(record);
    for (Candidate& mask : masks_) {
      record.masks.push_back({.sequence = mask.observation->sequence,
                              .index = mask.observation->index,
                              .placeholder = std::move(mask.placeholder)});
    }
    return record;
  }

  // What the provider's cache does with the call, and what that costs.
  void Price(ViewServed& record) const {
    const std::int64_t raw = record.preamble_tokens + record.raw_tokens.total();
    const std::int64_t view =
        record.preamble_tokens + record.view_tokens.total();
    std::int64_t raw_read = 0;
    std::int64_t view_read = 0;
    if (last_.has_value() && !IsCold() && !IsModelChanged()) {
      raw_read = std::min(raw, last_->raw_call.total());
      view_read = std::min(view, last_->view_call.total());
      if (!masks_.empty()) {
        std::int64_t images = 0;
        for (const Candidate& mask : masks_) {
          images += mask.observation->result.image_count;
        }
        view_read = std::min(view_read,
                             CachedBefore(*masks_.front().observation, images));
      }
    }
    record.raw_call = {.read = raw_read, .written = raw - raw_read};
    record.view_call = {.read = view_read, .written = view - view_read};
    record.raw_cost = InputCost(prices_, record.raw_call);
    record.view_cost = InputCost(prices_, record.view_call);
    if (!last_.has_value()) return;
    for (std::int64_t m = last_->message_count; m < session_.message_count();
         ++m) {
      const SessionMessage& message =
          session_.messages()[static_cast<std::size_t>(m)];
      if (message.role != Role::kAssistant) continue;
      record.output_tokens += message.tokens.total();
    }
    record.output_cost =
        SaturatingMultiply(record.output_tokens, prices_.output);
  }

  const Session& session_;
  const Policy& policy_;
  const ModelPrices& prices_;
  const ViewRequest& request_;
  const std::optional<ViewServed>& last_;
  const bool is_new_call_;
  const PicoUsd read_price_;
  const std::size_t old_count_;

  std::vector<Candidate> masks_;
  BreakReason reason_ = BreakReason::kNone;
  PicoUsd price_ = 0;
  PicoUsd rent_ = 0;
};

}  // namespace

std::int64_t PromptTokensMax(const Policy& policy, const ModelPrices& prices) {
  const std::int64_t window =
      policy.window_tokens > 0 ? policy.window_tokens : prices.window_tokens;
  const std::int64_t reserve =
      policy.reserve_tokens > 0
          ? policy.reserve_tokens
          : std::min(prices.output_tokens_max, window / 5);
  return window - reserve;
}

std::int64_t FrontierOf(const Session& session, const Policy& policy,
                        const ModelPrices& prices) {
  if (policy.mode == Mode::kOff) return session.message_count();
  for (const std::size_t index : session.candidates()) {
    const std::optional<Candidate> mask =
        MaskOf(session, policy, prices, index);
    if (mask.has_value()) return mask->observation->sequence;
  }
  for (auto i = static_cast<std::size_t>(session.eligible_count());
       i < session.observations().size(); ++i) {
    const std::optional<Candidate> mask = MaskOf(session, policy, prices, i);
    if (mask.has_value()) return mask->observation->sequence;
  }
  return session.message_count();
}

std::int64_t MaskSaving(const Session& session, const Policy& policy,
                        const ModelPrices& prices, std::size_t index) {
  const std::optional<Candidate> mask = MaskOf(session, policy, prices, index);
  return mask.has_value() ? mask->saving : 0;
}

ViewServed PlanView(const Session& session, const Policy& policy,
                    const ModelPrices& prices, const ViewRequest& request) {
  return Planner(session, policy, prices, request).Run();
}

}  // namespace clerestory
