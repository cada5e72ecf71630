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
#include "server/view/plan_view.h"
#include "tests/support/naive_session.h"

namespace clerestory {
namespace {

std::int64_t Signed(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

}  // namespace

bool NaiveSession::IsWarm(const Question& question) const {
  return last_.has_value() && last_->model == question.request.model &&
         question.request.now - last_->time <=
             question.prices.cache_ttl_seconds * kMicrosPerSecond;
}

std::int64_t NaiveSession::PromptTokens(const Question& question) const {
  return question.request.preamble_tokens + question.tokens_before.back();
}

std::int64_t NaiveSession::Found(const std::vector<Candidate>& masks,
                                 const Question& question) const {
  if (!IsWarm(question)) return 0;
  const std::int64_t last = last_->view_call.total();
  if (masks.empty()) return std::min(last, PromptTokens(question));
  std::int64_t images = 0;
  for (const Candidate& mask : masks) {
    images += result(observations_[mask.observation]).image_count;
  }
  std::int64_t found = question.request.preamble_tokens;
  if (format_ != Format::kAnthropicMessages || images == 0 ||
      images != ShownImages()) {
    const Observation& first = observations_[masks.front().observation];
    found += question.tokens_before[first.message] +
             result(first).tokens_before - SavedBefore(first);
  }
  return std::min(last, found);
}

NaiveSession::Choice NaiveSession::BestSuffix(
    const std::vector<Candidate>& candidates, const Question& question) const {
  Choice best;
  for (std::size_t begin = 0; begin < candidates.size(); ++begin) {
    if (CutsBatch(candidates, begin)) continue;
    Choice choice;
    choice.reason = BreakReason::kPays;
    choice.masks.assign(candidates.begin() + static_cast<std::ptrdiff_t>(begin),
                        candidates.end());
    std::int64_t saving = 0;
    std::int64_t saving_in_last = 0;
    for (const Candidate& mask : choice.masks) {
      saving += mask.saving;
      choice.rent += mask.rent;
      if (Signed(observations_[mask.observation].message) <
          last_->message_count) {
        saving_in_last += mask.saving;
      }
    }
    choice.price =
        std::max<std::int64_t>(0, Found({}, question) - saving_in_last -
                                      Found(choice.masks, question)) *
        (question.prices.write - question.prices.read);
    const std::int64_t percent = paid_break_count_ == 0
                                     ? question.policy.first_break_percent
                                     : question.policy.later_break_percent;
    if (choice.rent * 100 < choice.price * percent) continue;
    if (saving < question.policy.reclaim_tokens_min) continue;
    if (best.masks.empty() ||
        choice.rent - choice.price > best.rent - best.price) {
      best = std::move(choice);
    }
  }
  return best;
}

NaiveSession::Choice NaiveSession::ByMode(const Question& question) const {
  const Policy& policy = question.policy;
  Choice choice;
  if (question.prices.reasoning_prefix_bound && IsMidTurn()) return choice;
  choice.masks = CandidatesUpTo(
      OldCount(policy.keep_observations, policy.keep_turns, true), question);
  choice.reason = BreakReason::kSchedule;
  if (policy.mode == Mode::kAdaptive) {
    if (!last_.has_value()) {
      choice.reason = BreakReason::kCacheCold;
    } else if (last_->model != question.request.model) {
      choice.reason = BreakReason::kModelChanged;
    } else if (!IsWarm(question)) {
      choice.reason = BreakReason::kCacheCold;
    } else {
      return BestSuffix(choice.masks, question);
    }
  }
  if (policy.mode == Mode::kBlock &&
      Signed(choice.masks.size()) < policy.block_size) {
    return {};
  }
  if (policy.mode == Mode::kThreshold) {
    std::int64_t tokens = PromptTokens(question);
    if (tokens <= policy.threshold_tokens) return {};
    std::size_t count = 0;
    while (count < choice.masks.size() && (tokens > policy.low_water_tokens ||
                                           CutsBatch(choice.masks, count))) {
      tokens -= choice.masks[count++].saving;
    }
    choice.masks.resize(count);
  }
  std::int64_t saving = 0;
  for (const Candidate& mask : choice.masks) saving += mask.saving;
  if (saving == 0 || saving < policy.reclaim_tokens_min) return {};
  return choice;
}

void NaiveSession::FitWindow(const Question& question, Choice& choice) const {
  const Policy& policy = question.policy;
  const std::int64_t most = PromptTokensMax(policy, question.prices);
  const auto tokens = [&](const std::vector<Candidate>& masks) {
    std::int64_t left = PromptTokens(question);
    for (const Candidate& mask : masks) left -= mask.saving;
    return left;
  };
  if (tokens(choice.masks) <= most) return;
  std::size_t end = OldCount(policy.keep_observations, policy.keep_turns, true);
  const std::size_t floor = OldCount(kKeepObservationsMin, 0, false);
  std::vector<Candidate> forced = CandidatesUpTo(end, question);
  while (tokens(forced) > most - most / 6 && end < floor) {
    ++end;
    while (end < floor && CameTogether(end - 1, end)) ++end;
    forced = CandidatesUpTo(end, question);
  }
  if (forced.size() == choice.masks.size()) return;
  choice = {.reason = BreakReason::kWindow,
            .masks = std::move(forced),
            .price = 0,
            .rent = 0};
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

void NaiveSession::Strip(const Question& question, Choice& choice) const {
  if (!question.prices.reasoning_prefix_bound ||
      question.policy.thinking == ThinkingRule::kDropBlock) {
    return;
  }
  for (const Thought& thought : thoughts_) {
    if (thought.is_stripped || choice.strip_from.has_value()) continue;
    bool is_refused = thought.is_stale;
    for (const Candidate& mask : choice.masks) {
      is_refused |= observations_[mask.observation].message < thought.message;
    }
    if (is_refused) choice.strip_from = thought.message;
  }
  if (!choice.strip_from || choice.reason != BreakReason::kNone) return;
  choice.reason = last_->model != question.request.model
                      ? BreakReason::kModelChanged
                      : BreakReason::kSchedule;
}

ViewServed NaiveSession::Plan(const Policy& policy, const ModelPrices& prices,
                              const ViewRequest& request) const {
  ViewServed view;
  view.time = request.now;
  view.model = request.model;
  view.message_count = Signed(messages_.size());
  view.is_new_call =
      !last_.has_value() || last_->message_count != view.message_count;
  view.read_price = view.is_new_call ? prices.read : 0;
  view.preamble_tokens = request.preamble_tokens;
  const Question question = {.policy = policy,
                             .prices = prices,
                             .request = request,
                             .read_price = view.read_price,
                             .tokens_before = TokensBefore()};
  view.eligible_count =
      Signed(OldCount(policy.keep_observations, policy.keep_turns, true));
  for (const Call& call : calls_) {
    view.eligible_count = std::max(view.eligible_count, call.eligible_count);
  }

  Choice choice;
  if (policy.mode != Mode::kOff) {
    choice = ByMode(question);
    FitWindow(question, choice);
  }
  Strip(question, choice);
  view.break_reason = choice.reason;
  view.break_price = choice.price;
  view.break_rent = choice.rent;
  std::int64_t saving = 0;
  for (Candidate& mask : choice.masks) {
    const Observation& observation = observations_[mask.observation];
    saving += mask.saving;
    view.masks.push_back({.sequence = Signed(observation.message),
                          .index = Signed(observation.index),
                          .placeholder = mask.placeholder});
  }

  for (const ParsedMessage& message : parsed_) {
    view.raw_tokens += message.tokens;
  }
  view.view_tokens = view.raw_tokens;
  std::int64_t stripped = 0;
  std::int64_t stripped_before = 0;
  for (const Thought& thought : thoughts_) {
    const std::int64_t tokens = ThoughtTokens(thought.message);
    if (thought.is_stripped) stripped_before += tokens;
    if (thought.is_stripped ||
        (choice.strip_from && thought.message >= *choice.strip_from)) {
      stripped += tokens;
    }
  }
  if (choice.strip_from) view.strip_from = Signed(*choice.strip_from);
  view.view_tokens.assistant -= stripped;
  view.view_tokens.observations -= view.raw_tokens.total() -
                                   question.tokens_before.back() -
                                   stripped_before + saving;
  const std::int64_t raw = request.preamble_tokens + view.raw_tokens.total();
  const std::int64_t shown = request.preamble_tokens + view.view_tokens.total();
  if (IsWarm(question)) {
    view.raw_call.read = std::min(raw, last_->raw_call.total());
    view.view_call.read = std::min(shown, Found(choice.masks, question));
    if (choice.strip_from) {
      view.view_call.read = std::min(
          view.view_call.read,
          request.preamble_tokens + question.tokens_before[*choice.strip_from]);
    }
  }
  view.raw_call.written = raw - view.raw_call.read;
  view.view_call.written = shown - view.view_call.read;
  view.raw_cost =
      view.raw_call.read * prices.read + view.raw_call.written * prices.write;
  view.view_cost =
      view.view_call.read * prices.read + view.view_call.written * prices.write;
  if (last_.has_value()) {
    for (std::size_t m = static_cast<std::size_t>(last_->message_count);
         m < parsed_.size(); ++m) {
      if (parsed_[m].role != Role::kAssistant) continue;
      view.output_tokens += parsed_[m].tokens.total();
    }
    view.output_cost = view.output_tokens * prices.output;
  }
  return view;
}

std::int64_t NaiveSession::Frontier(const Policy& policy,
                                    const ModelPrices& prices) const {
  if (policy.mode != Mode::kOff) {
    for (std::size_t i = 0; i < observations_.size(); ++i) {
      if (MaskOf(i, policy, prices).has_value()) {
        return Signed(observations_[i].message);
      }
    }
  }
  return Signed(messages_.size());
}

}  // namespace clerestory
