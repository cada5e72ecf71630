// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a naive session decides.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/outlook.h"
#include "server/view/plan_view.h"
#include "tests/support/naive_session.h"

namespace clerestory {
namespace {

std::int64_t Signed(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

}  // namespace

std::int64_t NaiveSession::SavingOf(const std::vector<Candidate>& masks) {
  std::int64_t saving = 0;
  for (const Candidate& mask : masks) saving += mask.saving;
  return saving;
}

NaiveSession::Choice NaiveSession::Choose(BreakReason reason,
                                          std::vector<Candidate> masks,
                                          const Question& question) const {
  Choice choice;
  choice.reason = reason;
  choice.price = BreakPrice(SizeOf(masks, question), question);
  for (const Candidate& mask : masks) choice.rent += mask.rent;
  choice.masks = std::move(masks);
  return choice;
}

NaiveSession::Choice NaiveSession::BestSuffix(
    const std::vector<Candidate>& candidates, const Question& question) const {
  const std::int64_t percent = paid_break_count_ == 0
                                   ? question.policy.first_break_percent
                                   : question.policy.later_break_percent;
  Choice best;
  for (std::size_t begin = 0; begin < candidates.size(); ++begin) {
    if (CutsBatch(candidates, begin)) continue;
    Choice choice =
        Choose(BreakReason::kPays,
               {candidates.begin() + static_cast<std::ptrdiff_t>(begin),
                candidates.end()},
               question);
    const std::int64_t saving = SavingOf(choice.masks);
    if (choice.rent * 100 < choice.price * percent) continue;
    if (Scale(saving, question) < question.policy.reclaim_tokens_min) continue;
    if (LosesCache(saving, question)) continue;
    if (best.masks.empty() ||
        choice.rent - choice.price > best.rent - best.price) {
      best = std::move(choice);
    }
  }
  return best;
}

bool NaiveSession::IsBetterLater(const Choice& choice,
                                 const Question& question) const {
  if (choice.masks.empty() ||
      choice.rent * 100 > choice.price * kWaitRentPercentMax) {
    return false;
  }
  const TokenRates rates = RatesOf(PromptTokens(question), question);
  std::int64_t calls = 1;  // Of the cycle that the break would end.
  std::vector<bool> goes_now(observations_.size());
  for (const Candidate& mask : choice.masks) {
    goes_now[mask.observation] = true;
    const PicoUsd in_each = Scale(mask.saving, question) * rates.read;
    if (in_each > 0) calls = std::max(calls, mask.rent / in_each);
  }
  std::int64_t history = 0;
  for (const ParsedMessage& message : parsed_)
    history += message.tokens.total();
  const std::int64_t turns = std::max<std::int64_t>(1, turn_count_);
  const std::size_t each = std::max<std::size_t>(
      1, observations_.size() / static_cast<std::size_t>(turns));
  const std::int64_t cached =
      question.cold == BreakReason::kNone ? question.held.view : 0;
  for (std::int64_t wait = 1; wait <= question.policy.look_ahead_calls;
       ++wait) {
    // What the break would mask in that call, beside what it masks now; and
    // what it would save until then, and write.
    const std::size_t begin = OldCount(question.policy);
    const std::size_t end = begin + static_cast<std::size_t>(wait) * each;
    if (end > observations_.size()) break;
    PicoUsd rent = choice.rent +
                   Scale(SavingOf(choice.masks), question) * rates.read * wait;
    std::int64_t written = PromptTokens(question) - cached +
                           (wait - 1) * Scale(history / turns, question);
    for (std::size_t i = begin; i < end; ++i) {
      const auto mask = MaskOf(i, question.policy, question.prices);
      if (!mask.has_value() || goes_now[i] ||
          IsKeptByTool(i, question.policy, observations_.size()) ||
          IsExempt(i, false, question)) {
        continue;
      }
      const auto call = static_cast<std::int64_t>((i - begin) / each) + 1;
      const std::int64_t saving = Scale(mask->saving, question);
      rent += saving * rates.read * (wait - call);
      written -= saving;
    }
    const PicoUsd price = std::max<PicoUsd>(
        0, choice.price + written * (rates.write - rates.read));
    if ((rent + price) * calls <
        (choice.rent + choice.price) * (calls + wait)) {
      return true;
    }
  }
  return false;
}

NaiveSession::Choice NaiveSession::ByMode(const Question& question) const {
  const Policy& policy = question.policy;
  if (question.prices.reasoning_prefix_bound && IsMidTurn()) return {};
  std::vector<Candidate> masks =
      CandidatesUpTo(OldCount(policy), false, question);
  BreakReason reason = BreakReason::kSchedule;
  if (policy.mode == Mode::kAdaptive) {
    if (question.cold == BreakReason::kNone) {
      Choice best = BestSuffix(masks, question);
      if (IsBetterLater(best, question)) return {};
      return best;
    }
    reason = question.cold;
    if (LosesCache(SavingOf(masks), question)) return {};
  }
  if (policy.mode == Mode::kBlock && Signed(masks.size()) < policy.block_size) {
    return {};
  }
  if (policy.mode == Mode::kThreshold) {
    if (PromptTokens(question) <= policy.threshold_tokens) return {};
    std::int64_t removed = 0;
    std::size_t count = 0;
    while (count < masks.size() &&
           (PromptTokens(question, removed) > policy.low_water_tokens ||
            CutsBatch(masks, count))) {
      removed += masks[count++].saving;
    }
    masks.resize(count);
  }
  const std::int64_t saving = SavingOf(masks);
  if (saving == 0 || Scale(saving, question) < policy.reclaim_tokens_min) {
    return {};
  }
  return Choose(reason, std::move(masks), question);
}

void NaiveSession::FitWindow(const Question& question, Choice& choice) const {
  const std::int64_t most = PromptTokensMax(question.policy, question.prices);
  const auto tokens = [&](const std::vector<Candidate>& masks) {
    return PromptTokens(question, SizeOf(masks, question).saving);
  };
  if (tokens(choice.masks) <= most) return;
  std::size_t end = OldCount(question.policy);
  const std::size_t floor = OldCount(kKeepObservationsMin, 0, 0, false);
  std::vector<Candidate> forced = CandidatesUpTo(end, true, question);
  while (tokens(forced) > most - most / 6 && end < floor) {
    ++end;
    while (end < floor && CameTogether(end - 1, end)) ++end;
    forced = CandidatesUpTo(end, true, question);
  }
  if (forced.size() == choice.masks.size()) return;
  choice = Choose(BreakReason::kWindow, std::move(forced), question);
}

bool NaiveSession::IsMidTurn() const {
  bool has_calls = false;
  bool thinks = false;
  for (const MadeCall& call : made_calls_) {
    has_calls |= call.turn == turn_count_;
  }
  for (const Thought& thought : thoughts_) {
    thinks |= thought.turn == turn_count_ && !thought.is_stale;
  }
  return has_calls && thinks;
}

std::optional<std::size_t> NaiveSession::StripFrom(
    const std::vector<Candidate>& masks, const Question& question) const {
  if (!question.prices.reasoning_prefix_bound ||
      question.policy.thinking == ThinkingRule::kDropBlock) {
    return std::nullopt;
  }
  for (const Thought& thought : thoughts_) {
    if (thought.is_stripped) continue;
    bool is_refused = thought.is_stale;
    for (const Candidate& mask : masks) {
      is_refused |= observations_[mask.observation].message < thought.message;
    }
    if (is_refused) return thought.message;
  }
  return std::nullopt;
}

ViewServed NaiveSession::Plan(const Policy& policy, const ModelPrices& prices,
                              const ViewRequest& request) const {
  Question question = {.policy = policy,
                       .prices = prices,
                       .request = request,
                       .tokens_before = TokensBefore(),
                       .held = HeldFor(request.model)};
  question.cold = ColdReason(question.held, policy, prices, request);
  question.is_alive = question.cold == BreakReason::kNone;
  if (question.is_alive && question.held.view == 0) {
    question.cold = question.held.is_missed ? BreakReason::kCacheMissed
                                            : BreakReason::kCacheCold;
  }
  question.unmasked_tools = UnmaskedTools(policy, request);
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    if (IsPinned(i)) question.pinned.insert(i);
  }
  const std::int64_t before = PromptTokens(question);

  ViewServed view;
  view.time = request.now;
  view.model = request.model;
  view.message_count = Signed(messages_.size());
  view.is_new_call =
      !last_.has_value() || last_->message_count != view.message_count;
  if (view.is_new_call) view.read_price = RatesOf(before, question).read;
  question.read_price = view.read_price;
  view.preamble_tokens = request.preamble_tokens;
  view.preamble_digest = request.preamble_digest;
  view.token_scale_ppm = request.token_scale_ppm;
  const bool is_found = question.cold == BreakReason::kNone;
  view.cache_time = is_found && !prices.is_refreshed_by_read
                        ? question.held.time
                        : request.now;
  view.eligible_count = Signed(OldCount(policy));
  for (const Call& call : calls_) {
    view.eligible_count = std::max(view.eligible_count, call.eligible_count);
  }

  Choice choice;
  if (policy.mode != Mode::kOff && policy.mode != Mode::kDelegate) {
    choice = ByMode(question);
    FitWindow(question, choice);
    ShowAgain(question, choice);
  }
  choice.strip_from = StripFrom(choice.masks, question);
  if (choice.strip_from && choice.reason == BreakReason::kNone) {
    choice.price = BreakPrice(SizeOf({}, question), question);
    choice.reason = is_found ? BreakReason::kSchedule : question.cold;
  }
  view.break_reason = choice.reason;
  view.break_price = choice.price;
  view.break_rent = choice.rent;
  for (const Candidate& mask : choice.masks) {
    const Observation& observation = observations_[mask.observation];
    view.masks.push_back({.sequence = Signed(observation.message),
                          .index = Signed(observation.index),
                          .placeholder = mask.placeholder,
                          .is_restored = mask.is_restored});
  }

  for (const ParsedMessage& message : parsed_) {
    view.raw_tokens += message.tokens;
  }
  view.view_tokens = view.raw_tokens;
  for (const Thought& thought : thoughts_) {
    if (thought.is_stripped ||
        (choice.strip_from && thought.message >= *choice.strip_from)) {
      view.view_tokens.assistant -= ThoughtTokens(thought.message);
    }
  }
  if (choice.strip_from) view.strip_from = Signed(*choice.strip_from);
  view.view_tokens.observations -= SavingOf(choice.masks);
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    if (observations_[i].placeholder.has_value()) {
      view.view_tokens.observations -= PlaceholderSaving(i);
    }
  }
  const bool is_changed = !choice.masks.empty() || choice.strip_from;
  std::int64_t found = is_found ? question.held.view : 0;
  if (is_changed) found = Found(SizeOf(choice.masks, question), question);
  view.view_call =
      Split(Foreseen(view.view_tokens.total(), view), found, question);
  view.view_cost = CostOf(view.view_call, question);
  view.raw_call = Split(Foreseen(view.raw_tokens.total(), view),
                        question.is_alive ? question.held.raw : 0, question);
  view.raw_cost = CostOf(view.raw_call, question);
  PriceEveryTurn(question, view);
  PriceOutput(question, view);
  return view;
}

std::int64_t NaiveSession::Frontier(const Policy& policy,
                                    const ModelPrices& prices) const {
  if (policy.mode != Mode::kOff && policy.mode != Mode::kDelegate) {
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      if (MaskOf(i, policy, prices).has_value()) {
        return Signed(observations_[i].message);
      }
    }
  }
  return Signed(messages_.size());
}

}  // namespace clerestory
