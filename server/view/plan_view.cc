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

#include "server/cost/prices.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/call_cost.h"
#include "server/view/candidate.h"
#include "server/view/eligible.h"
#include "server/view/outlook.h"
#include "server/view/record_cost.h"
#include "server/view/restoring.h"
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
        eligible_(session, policy, request.unmasked_tools),
        cost_(session, policy, prices, request),
        is_new_call_(!session.last_view().has_value() ||
                     session.last_view()->message_count !=
                         session.message_count()),
        read_price_(
            is_new_call_
                ? cost_.RatesOf(cost_.PromptTokens(session.view_tokens())).read
                : 0) {}

  ViewServed Run() {
    if (policy_.mode != Mode::kOff && policy_.mode != Mode::kDelegate) {
      Choose();
      FitWindow();
      ShowAgain();
    }
    StripReasoning();
    return Record();
  }

 private:
  // Tokens of the whole prompt, if nothing more were masked.
  std::int64_t prompt_tokens() const {
    return cost_.PromptTokens(session_.view_tokens());
  }

  std::optional<Candidate> CandidateOf(std::size_t index) const {
    std::optional<Candidate> candidate =
        CandidateFor(session_, policy_, prices_, index);
    if (!candidate.has_value()) return std::nullopt;
    candidate->rent = SaturatingMultiply(
        cost_.Scale(candidate->saving()),
        SaturatingAdd(session_.read_price_sum(), read_price_) -
            eligible_.RentBase(index));
    return candidate;
  }

  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    for (const std::size_t index : eligible_.Indexes(/*is_forced=*/false)) {
      if (std::optional<Candidate> candidate = CandidateOf(index)) {
        candidates.push_back(*std::move(candidate));
      }
    }
    return candidates;
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

  // Adds `candidate` to what a break of `size` changes.
  void Grow(const Candidate& candidate, BreakSize& size) const {
    const Observation& observation = *candidate.observation;
    size.saving += candidate.saving();
    // What is shown again would not have been read, and is not written again.
    if (!candidate.mask.is_restored && session_.last_view().has_value() &&
        observation.sequence < session_.last_view()->message_count) {
      size.cached_saving += candidate.saving();
    }
    if (candidate.mask.is_dropped || !candidate.mask.placeholder.empty()) {
      const std::int64_t images = observation.result.image_count;
      size.image_count += candidate.mask.is_restored ? -images : images;
    }
    size.tokens_before = std::min(size.tokens_before, candidate.tokens_before);
  }

  bool BindsReasoning() const { return prices_.reasoning_prefix_bound; }

  // `size` with the reasoning that a break whose first change is in the message
  // `change` leaves out, or makes useless.
  BreakSize WithReasoning(BreakSize size, std::int64_t change) const {
    if (!BindsReasoning()) return size;
    size.lost_reasoning = session_.LostReasoning(change);
    const std::optional<std::int64_t> strip_from =
        StripFor(session_, policy_, prices_, change);
    if (!strip_from.has_value()) return size;
    const std::int64_t saving = session_.StripSaving(*strip_from);
    const std::int64_t sent = session_.last_view().has_value()
                                  ? session_.last_view()->message_count
                                  : 0;
    size.saving += saving;
    size.cached_saving +=
        saving - session_.StripSaving(std::max(*strip_from, sent));
    size.tokens_before =
        std::min(size.tokens_before, session_.ViewTokens(*strip_from));
    return size;
  }

  // Of all suffixes of `candidates` whose rent has reached their price, the one
  // with the largest surplus; the longest of equals.
  std::optional<Suffix> BestSuffix(
      const std::vector<Candidate>& candidates) const {
    std::map<std::int64_t, std::size_t> begin_of_batch;
    for (std::size_t i = candidates.size(); i-- > 0;) {
      begin_of_batch[candidates[i].observation->batch] = i;
    }
    std::optional<Suffix> best;
    BreakSize size = {.tokens_before = session_.view_tokens()};
    std::int64_t change = session_.message_count();
    std::size_t begin = candidates.size();
    PicoUsd rent = 0;
    for (std::size_t i = candidates.size(); i-- > 0;) {
      const Candidate& candidate = candidates[i];
      Grow(candidate, size);
      change = std::min(change, candidate.first_sequence);
      rent = SaturatingAdd(rent, candidate.rent);
      // No batch is cut.
      begin = std::min(begin, begin_of_batch.at(candidate.observation->batch));
      if (begin != i) continue;
      const PicoUsd price = cost_.BreakPrice(WithReasoning(size, change));
      if (!HasRipened(rent, price) ||
          cost_.Scale(size.saving) < policy_.reclaim_tokens_min ||
          cost_.LosesCache(size.saving)) {
        continue;
      }
      if (!best.has_value() || rent - price >= best->rent - best->price) {
        best = Suffix{.begin = i, .price = price, .rent = rent};
      }
    }
    return best;
  }

  // What is known of the calls after this one, if `candidates`, which are
  // `suffix`, are not masked in it.
  Outlook OutlookOf(const std::vector<Candidate>& candidates,
                    const Suffix& suffix) const {
    Outlook outlook;
    outlook.rates = cost_.RatesOf(prompt_tokens());
    outlook.rent = suffix.rent;
    outlook.price = suffix.price;
    for (const Candidate& candidate : candidates) {
      outlook.saving += candidate.saving();
      const PicoUsd in_each =
          cost_.Scale(candidate.saving()) * outlook.rates.read;
      if (in_each <= 0) continue;
      outlook.call_count =
          std::max(outlook.call_count, candidate.rent / in_each);
    }
    outlook.saving = cost_.Scale(outlook.saving);
    outlook.new_tokens = prompt_tokens() - cost_.cached_view_tokens();
    const std::int64_t turns = std::max<std::int64_t>(1, session_.turn_count());
    outlook.turn_tokens = cost_.Scale(session_.raw_tokens().total() / turns);
    const auto is_left = [&](std::size_t i) {
      return !eligible_.IsKeptByTool(i) &&
             !eligible_.exempt().IsExempt(i, /*is_forced=*/false) &&
             std::ranges::find(candidates, &session_.observations()[i],
                               &Candidate::observation) == candidates.end();
    };
    // Each call is taken to make as many old enough as came in a turn.
    const std::size_t count = session_.observations().size();
    const std::size_t each =
        std::max<std::size_t>(1, count / static_cast<std::size_t>(turns));
    for (std::size_t i = eligible_.old_count();
         i + each <= count &&
         std::ssize(outlook.next_savings) < policy_.look_ahead_calls;) {
      std::int64_t saving = 0;
      for (const std::size_t end = i + each; i < end; ++i) {
        if (!is_left(i)) continue;
        saving += cost_.Scale(MaskSaving(session_, policy_, prices_, i));
      }
      outlook.next_savings.push_back(saving);
    }
    return outlook;
  }

  // Masks `candidates`, unless that removes too little.
  void Take(std::vector<Candidate> candidates, BreakReason reason) {
    std::int64_t saving = 0;
    for (const Candidate& candidate : candidates) saving += candidate.saving();
    if (saving == 0 || cost_.Scale(saving) < policy_.reclaim_tokens_min) return;
    Set(std::move(candidates), reason);
  }

  void Set(std::vector<Candidate> candidates, BreakReason reason) {
    PicoUsd rent = 0;
    for (const Candidate& candidate : candidates) {
      rent = SaturatingAdd(rent, candidate.rent);
    }
    price_ = cost_.BreakPrice(SizeOf(candidates));
    masks_ = std::move(candidates);
    reason_ = reason;
    rent_ = rent;
  }

  // What the policy's mode masks.
  void Choose() {
    // The reasoning of a turn that goes on is only given up if it must be.
    // Where the provider refuses none, it is a matter of price.
    if (BindsReasoning() && session_.IsMidTurn() &&
        StaleReasoningOf(session_.header().format) ==
            StaleReasoning::kRefused) {
      return;
    }
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
    if (cost_.cold_reason() != BreakReason::kNone) {
      std::int64_t saving = 0;
      for (const Candidate& candidate : candidates) {
        saving += candidate.saving();
      }
      if (cost_.LosesCache(saving)) return;
      Take(std::move(candidates), cost_.cold_reason());
      return;
    }
    const std::optional<Suffix> best = BestSuffix(candidates);
    if (!best.has_value()) return;
    candidates.erase(
        candidates.begin(),
        candidates.begin() + static_cast<std::ptrdiff_t>(best->begin));
    if (IsWorthWaiting(OutlookOf(candidates, *best))) return;
    Take(std::move(candidates), BreakReason::kPays);
  }

  void ChooseOldest(std::vector<Candidate> candidates) {
    if (prompt_tokens() <= policy_.threshold_tokens) return;
    std::int64_t saving = 0;
    std::map<std::int64_t, std::size_t> end_of_batch;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      end_of_batch[candidates[i].observation->batch] = i + 1;
    }
    std::size_t count = 0;
    std::size_t whole = 0;  // What no batch is cut with.
    while (
        count < candidates.size() &&
        (TokensWithout(saving) > policy_.low_water_tokens || count < whole)) {
      whole = std::max(whole,
                       end_of_batch.at(candidates[count].observation->batch));
      saving += candidates[count++].saving();
    }
    candidates.resize(count);
    Take(std::move(candidates), BreakReason::kSchedule);
  }

  // Tokens of the prompt if `saving` tokens of its messages are removed.
  std::int64_t TokensWithout(std::int64_t saving) const {
    return cost_.PromptTokens(session_.view_tokens() - saving);
  }

  // Masks more, oldest first, until the prompt fits the window or nothing but
  // the newest few observations is left.
  void FitWindow() {
    const std::int64_t most = PromptTokensMax(policy_, prices_);
    if (TokensWithout(SizeOf(masks_).saving) <= most) return;

    std::int64_t saving = 0;
    std::int64_t change = session_.message_count();
    std::map<std::size_t, Candidate> forced;
    const auto add = [&](std::size_t index) {
      if (forced.contains(index)) return;
      if (std::optional<Candidate> candidate = CandidateOf(index)) {
        saving += candidate->saving();
        change = std::min(change, candidate->first_sequence);
        forced.emplace(index, *std::move(candidate));
      }
    };
    for (const std::size_t index : eligible_.Indexes(/*is_forced=*/true)) {
      add(index);
    }
    // Down by a sixth of the window: a view that only just fits would have to
    // break again in the next turn, and in every one after it.
    const std::int64_t goal = most - most / 6;
    const auto& all = session_.observations();
    std::size_t next = eligible_.old_count();
    const auto removed = [&] {
      return WithReasoning({.saving = saving}, change).saving;
    };
    while (TokensWithout(removed()) > goal && next < all.size()) {
      const std::size_t end = eligible_.GroupEnd(next);
      if (!eligible_.IsMaskableForWindow(end, all[next].turn)) break;
      for (; next < end; ++next) {
        if (!eligible_.exempt().IsExempt(next, /*is_forced=*/true)) add(next);
      }
    }
    if (forced.size() == masks_.size()) return;
    std::vector<Candidate> candidates;
    for (auto& [index, candidate] : forced) {
      candidates.push_back(std::move(candidate));
    }
    Set(std::move(candidates), BreakReason::kWindow);
  }

  // Shows again, in a break that is made anyway or is free, what is masked and
  // should be shown, as far as there is room for it.
  void ShowAgain() {
    if (reason_ == BreakReason::kWindow) return;
    const bool is_cold = cost_.cold_reason() != BreakReason::kNone;
    std::int64_t from = FirstSequence(masks_);
    if (masks_.empty() && BindsReasoning()) {
      // No break is free, but one that leaves out reasoning has to be made.
      from = StripFor(session_, policy_, prices_, from).value_or(from);
    } else if (masks_.empty() && is_cold) {
      from = 0;
    }
    // The first picture would lose what is cached before the break, too.
    const bool may_show_images =
        is_cold || !cost_.DependsOnImages() || session_.view_image_count() > 0;
    const std::int64_t saving = SizeOf(masks_).saving;
    const std::int64_t most = ShownAgainTokensMax(policy_, prices_);
    const TokenRates rates = cost_.RatesOf(TokensWithout(saving));
    const auto fits = [&](std::int64_t more) {
      const std::int64_t tokens = TokensWithout(saving - more);
      const TokenRates then = cost_.RatesOf(tokens);
      return tokens <= most && then.input <= rates.input &&
             then.output <= rates.output;
    };
    std::vector<Candidate> changes =
        Restorings(session_, eligible_.exempt(), from, may_show_images, fits);
    if (changes.empty()) return;
    if (masks_.empty()) reason_ = ReasonAlone();
    for (Candidate& mask : masks_) changes.push_back(std::move(mask));
    std::ranges::sort(changes, {}, &Candidate::observation);
    Set(std::move(changes), reason_);
  }

  ViewServed Record() {
    ViewServed record;
    record.time = request_.now;
    record.model = request_.model;
    record.message_count = session_.message_count();
    record.is_new_call = is_new_call_;
    record.eligible_count =
        std::max(session_.eligible_count(),
                 static_cast<std::int64_t>(eligible_.old_count()));
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
    std::int64_t found = cost_.cached_view_tokens();
    if (!masks_.empty() || strip_from_.has_value()) {
      found = cost_.CachedBefore(SizeOf(masks_));
    }
    PriceRecord({.session = session_,
                 .policy = policy_,
                 .prices = prices_,
                 .request = request_,
                 .eligible = eligible_,
                 .cost = cost_,
                 .found = found},
                record);
    for (Candidate& mask : masks_) {
      record.masks.push_back(std::move(mask.mask));
    }
    return record;
  }

  BreakSize SizeOf(const std::vector<Candidate>& candidates) const {
    BreakSize size = {.tokens_before = session_.view_tokens()};
    for (const Candidate& candidate : candidates) Grow(candidate, size);
    return WithReasoning(size, FirstSequence(candidates));
  }

  std::int64_t FirstSequence(const std::vector<Candidate>& candidates) const {
    std::int64_t first = session_.message_count();
    for (const Candidate& candidate : candidates) {
      first = std::min(first, candidate.first_sequence);
    }
    return first;
  }

  // Leaves out the reasoning that the provider would refuse.
  void StripReasoning() {
    strip_from_ = StripFor(session_, policy_, prices_, FirstSequence(masks_));
    if (!strip_from_.has_value()) return;
    strip_saving_ = session_.StripSaving(*strip_from_);
    if (reason_ != BreakReason::kNone) return;
    price_ = cost_.BreakPrice(SizeOf({}));
    reason_ = ReasonAlone();
  }

  // Why a break is made in which nothing is masked.
  BreakReason ReasonAlone() const {
    return cost_.cold_reason() != BreakReason::kNone ? cost_.cold_reason()
                                                     : BreakReason::kSchedule;
  }

  const Session& session_;
  const Policy& policy_;
  const ModelPrices& prices_;
  const ViewRequest& request_;
  const Eligible eligible_;
  const CallCost cost_;
  const bool is_new_call_;
  const PicoUsd read_price_;

  std::vector<Candidate> masks_;
  std::optional<std::int64_t> strip_from_;
  std::int64_t strip_saving_ = 0;
  BreakReason reason_ = BreakReason::kNone;
  PicoUsd price_ = 0;
  PicoUsd rent_ = 0;
};

}  // namespace

ViewServed PlanView(const Session& session, const Policy& policy,
                    const ModelPrices& prices, const ViewRequest& request) {
  return Planner(session, policy, prices, request).Run();
}

}  // namespace clerestory
