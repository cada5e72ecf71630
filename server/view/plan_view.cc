// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/plan_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
#include "server/view/candidate.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// Candidates that are masked together, from `begin` of a list to its end.
struct Suffix {
  std::size_t begin = 0;
  PicoUsd price = 0;
  PicoUsd rent = 0;
};

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
    if (policy_.mode != Mode::kOff && policy_.mode != Mode::kDelegate) {
      Choose();
      FitWindow();
    }
    StripReasoning();
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

  // The end of the results that came together from `begin` on.
  std::size_t GroupEnd(std::size_t begin) const {
    const auto& all = session_.observations();
    std::size_t end = begin;
    while (end < all.size() && all[end].turn == all[begin].turn) ++end;
    return end;
  }

  // The end of the observations that become eligible together with the one at
  // `begin`; `begin` itself if they do not yet. A batch is waited for, and not
  // cut, for kBatchHoldTurns.
  std::size_t NextEnd(std::size_t begin) const {
    const auto& all = session_.observations();
    std::size_t end = GroupEnd(begin);
    for (std::size_t i = begin; i < end; ++i) {
      if (session_.turn_count() - all[i].batch >= kBatchHoldTurns) continue;
      const Batch& batch =
          session_.batches()[static_cast<std::size_t>(all[i].batch)];
      if (batch.open_call_count > 0) return begin;
      if (batch.observations_end > end) {
        end = GroupEnd(batch.observations_end - 1);
      }
    }
    const bool is_old = end > begin && IsOldEnough(end, all[end - 1].turn,
                                                   policy_.keep_observations,
                                                   policy_.keep_turns);
    return is_old ? end : begin;
  }

  // How many observations, from the first, the policy does not keep.
  std::size_t OldCount() const {
    const auto& all = session_.observations();
    auto count = static_cast<std::size_t>(session_.eligible_count());
    // Fewer than in the last view if this policy keeps more.
    if (count > 0 &&
        !IsOldEnough(count, all[count - 1].turn, policy_.keep_observations,
                     policy_.keep_turns)) {
      count = 0;
    }
    while (count < all.size()) {
      const std::size_t end = NextEnd(count);
      if (end == count) break;
      count = end;
    }
    return count;
  }

  std::optional<Candidate> CandidateOf(std::size_t index) const {
    std::optional<Candidate> candidate =
        CandidateFor(session_, policy_, prices_, index);
    if (!candidate.has_value()) return std::nullopt;
    const PicoUsd base =
        index < static_cast<std::size_t>(session_.eligible_count())
            ? candidate->observation->rent_base
            : session_.read_price_sum();
    candidate->rent = SaturatingMultiply(
        candidate->saving(),
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

  // Tokens of the prompt that are still found in the cache if the first change
  // has `tokens_before` before it.
  std::int64_t CachedBefore(std::int64_t tokens_before,
                            std::int64_t removed_images) const {
    if (RemovesLastImage(removed_images)) return request_.preamble_tokens;
    return request_.preamble_tokens + tokens_before;
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
    std::map<std::int64_t, std::size_t> begin_of_batch;
    for (std::size_t i = candidates.size(); i-- > 0;) {
      begin_of_batch[candidates[i].observation->batch] = i;
    }
    std::optional<Suffix> best;
    std::int64_t saving = 0;
    std::int64_t cached_saving = 0;  // Of what the last view showed.
    std::int64_t images = 0;
    std::int64_t tokens_before = session_.view_tokens();
    std::size_t begin = candidates.size();
    PicoUsd rent = 0;
    for (std::size_t i = candidates.size(); i-- > 0;) {
      const Candidate& candidate = candidates[i];
      const Observation& observation = *candidate.observation;
      saving += candidate.saving();
      if (observation.sequence < last.message_count) {
        cached_saving += candidate.saving();
      }
      images += observation.result.image_count;
      tokens_before = std::min(tokens_before, candidate.tokens_before);
      rent = SaturatingAdd(rent, candidate.rent);
      // No batch is cut.
      begin = std::min(begin, begin_of_batch.at(observation.batch));
      if (begin != i) continue;
      const std::int64_t rewritten = std::max<std::int64_t>(
          0, cached - cached_saving - CachedBefore(tokens_before, images));
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
    for (const Candidate& candidate : candidates) {
      saving += candidate.saving();
    }
    if (saving == 0 || saving < policy_.reclaim_tokens_min) return;
    masks_ = std::move(candidates);
    reason_ = reason;
  }

  // What the policy's mode masks.
  void Choose() {
    // The reasoning of a turn that goes on is only given up if it must be.
    if (prices_.reasoning_prefix_bound && session_.IsMidTurn()) return;
    std::vector<Candidate> candidates = Candidates();
    if (candidates.empty()) return;
    switch (policy_.mode) {
      case Mode::kOff:
      case Mode::kDelegate:
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
    std::map<std::int64_t, std::size_t> end_of_batch;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      end_of_batch[candidates[i].observation->batch] = i + 1;
    }
    std::size_t count = 0;
    std::size_t whole = 0;  // What no batch is cut with.
    while (count < candidates.size() &&
           (tokens > policy_.low_water_tokens || count < whole)) {
      whole = std::max(whole,
                       end_of_batch.at(candidates[count].observation->batch));
      tokens -= candidates[count++].saving();
    }
    candidates.resize(count);
    Take(std::move(candidates), BreakReason::kSchedule);
  }

  // Masks more, oldest first, until the prompt fits the window or nothing but
  // the newest few observations is left.
  void FitWindow() {
    const std::int64_t most = PromptTokensMax(policy_, prices_);
    std::int64_t tokens = prompt_tokens();
    for (const Candidate& mask : masks_) tokens -= mask.saving();
    if (tokens <= most) return;

    tokens = prompt_tokens();
    std::vector<Candidate> forced = Candidates();
    for (const Candidate& mask : forced) tokens -= mask.saving();
    const auto& all = session_.observations();
    std::size_t next = old_count_;
    // Down by a sixth of the window: a view that only just fits would have to
    // break again in the next turn, and in every one after it.
    const std::int64_t goal = most - most / 6;
    while (tokens > goal && next < all.size()) {
      const std::size_t end = GroupEnd(next);
      if (!IsOldEnough(end, all[next].turn, kKeepObservationsMin, 0)) break;
      for (; next < end; ++next) {
        if (std::optional<Candidate> candidate = CandidateOf(next)) {
          tokens -= candidate->saving();
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

  // Leaves out the reasoning that the provider would refuse.
  void StripReasoning() {
    std::int64_t change = session_.message_count();
    for (const Candidate& mask : masks_) {
      change = std::min(change, mask.first_sequence);
    }
    strip_from_ = StripFor(session_, policy_, prices_, change);
    if (!strip_from_.has_value()) return;
    strip_saving_ = session_.StripSaving(*strip_from_);
    if (reason_ != BreakReason::kNone) return;
    reason_ =
        IsModelChanged() ? BreakReason::kModelChanged : BreakReason::kSchedule;
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
    const std::int64_t saved =
        session_.raw_tokens().total() - session_.view_tokens();
    record.view_tokens.calls -= session_.saved_call_tokens();
    record.view_tokens.assistant -= session_.stripped_tokens() + strip_saving_;
    record.view_tokens.observations -=
        saved - session_.saved_call_tokens() - session_.stripped_tokens();
    record.strip_from = strip_from_;
    for (const Candidate& mask : masks_) {
      record.view_tokens.calls -= mask.call_saving;
      record.view_tokens.observations -= mask.observation_saving;
    }
    Price(record);
    for (Candidate& mask : masks_) {
      record.masks.push_back(std::move(mask.mask));
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
      if (!masks_.empty() || strip_from_.has_value()) {
        std::int64_t images = 0;
        std::int64_t tokens_before =
            session_.ViewTokens(strip_from_.value_or(session_.message_count()));
        for (const Candidate& mask : masks_) {
          images += mask.observation->result.image_count;
          tokens_before = std::min(tokens_before, mask.tokens_before);
        }
        view_read = std::min(view_read, CachedBefore(tokens_before, images));
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
  std::optional<std::int64_t> strip_from_;
  std::int64_t strip_saving_ = 0;
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
  std::int64_t first = session.message_count();
  const auto look_at = [&](std::size_t index) {
    const std::optional<Candidate> candidate =
        CandidateFor(session, policy, prices, index);
    if (!candidate.has_value()) return;
    first = std::min(first, candidate->first_sequence);
  };
  // A call stands before its result, so one that is found later can only change
  // an earlier message if it does that.
  const bool changes_calls =
      policy.argument_tokens_min > 0 || policy.errors == ErrorRule::kDrop;
  const auto is_found = [&] {
    return first < session.message_count() && !changes_calls;
  };
  for (const std::size_t index : session.candidates()) {
    if (!is_found()) look_at(index);
  }
  for (auto i = static_cast<std::size_t>(session.eligible_count());
       i < session.observations().size() && !is_found(); ++i) {
    look_at(i);
  }
  return first;
}

std::int64_t MaskSaving(const Session& session, const Policy& policy,
                        const ModelPrices& prices, std::size_t index) {
  const std::optional<Candidate> candidate =
      CandidateFor(session, policy, prices, index);
  return candidate.has_value() ? candidate->saving() : 0;
}

ViewServed PlanView(const Session& session, const Policy& policy,
                    const ModelPrices& prices, const ViewRequest& request) {
  return Planner(session, policy, prices, request).Run();
}

}  // namespace clerestory
