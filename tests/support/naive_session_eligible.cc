// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Which observations a naive session may mask, and what they have paid.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cost/prices.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/tokens/token_counter.h"
#include "server/view/eligible.h"
#include "server/view/placeholder.h"
#include "server/view/session.h"
#include "tests/support/naive_session.h"

namespace clerestory {
namespace {

std::int64_t Signed(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

}  // namespace

bool NaiveSession::CameTogether(std::size_t a, std::size_t b) const {
  return observations_[a].turn == observations_[b].turn;
}

bool NaiveSession::CutsBatch(const std::vector<Candidate>& candidates,
                             std::size_t at) const {
  for (std::size_t a = 0; a < at; ++a) {
    for (std::size_t b = at; b < candidates.size(); ++b) {
      if (observations_[candidates[a].observation].batch ==
          observations_[candidates[b].observation].batch) {
        return true;
      }
    }
  }
  return false;
}

bool NaiveSession::HoldsBatch(std::size_t end) const {
  for (std::size_t i = 0; i < end; ++i) {
    const std::int64_t batch = observations_[i].batch;
    if (turn_count_ - batch >= kBatchHoldTurns) continue;
    for (const MadeCall& call : made_calls_) {
      if (call.turn != batch) continue;
      if (!call.answer.has_value() || *call.answer >= end) return true;
    }
  }
  return false;
}

std::size_t NaiveSession::OldCount(std::int64_t keep_observations,
                                   std::int64_t keep_turns,
                                   std::int64_t keep_tokens,
                                   bool holds_batches) const {
  const std::size_t size = observations_.size();
  std::size_t count = 0;
  for (std::size_t end = 1; end <= size; ++end) {
    if (end < size && CameTogether(end - 1, end)) continue;
    if (Signed(size - end) < keep_observations) break;
    if (turn_count_ - observations_[end - 1].turn <
        std::max<std::int64_t>(1, keep_turns)) {
      break;
    }
    std::int64_t tokens = 0;
    for (std::size_t i = end - 1; i < size; ++i) {
      tokens += result(observations_[i]).token_count;
    }
    if (keep_tokens > 0 && tokens <= keep_tokens) break;
    if (holds_batches && HoldsBatch(end)) continue;
    count = end;
  }
  return count;
}

std::size_t NaiveSession::OldCount(const Policy& policy) const {
  return OldCount(policy.keep_observations, policy.keep_turns,
                  policy.keep_tokens, true);
}

bool NaiveSession::IsKeptByTool(std::size_t observation, const Policy& policy,
                                std::size_t count) const {
  const ToolRule* rule = RuleFor(policy, CallOf(observation).tool);
  if (rule == nullptr) return false;
  std::int64_t newer = 0;
  for (std::size_t i = observation + 1; i < count; ++i) {
    if (RuleFor(policy, CallOf(i).tool) == rule) ++newer;
  }
  return newer < rule->keep_observations;
}

bool NaiveSession::IsCopyOf(std::size_t later, std::size_t earlier,
                            DuplicateRule duplicates) const {
  const auto part = [&](std::size_t i, ByteSpan span) {
    return messages_[observations_[i].message].substr(span.offset, span.size);
  };
  const ParsedResult& a = result(observations_[earlier]);
  const ParsedResult& b = result(observations_[later]);
  if (later <= earlier || CallOf(later).tool != CallOf(earlier).tool) {
    return false;
  }
  if (a.token_count >= kMaskableTokensMin &&
      part(earlier, a.content) == part(later, b.content) &&
      part(earlier, a.attachments) == part(later, b.attachments)) {
    return true;
  }
  return duplicates == DuplicateRule::kSuperseded && !a.is_error &&
         !b.is_error && CallOf(earlier).arguments == CallOf(later).arguments;
}

bool NaiveSession::IsCopied(std::size_t observation,
                            DuplicateRule duplicates) const {
  if (duplicates == DuplicateRule::kOff) return false;
  for (std::size_t i = observation + 1; i < observations_.size(); ++i) {
    if (!observations_[i].placeholder.has_value() &&
        IsCopyOf(i, observation, duplicates)) {
      return true;
    }
  }
  return false;
}

std::vector<bool> NaiveSession::EarlyCopies(const Question& question,
                                            bool is_forced) const {
  const Policy& policy = question.policy;
  std::vector<bool> goes(observations_.size());
  for (std::size_t i = observations_.size(); i-- > OldCount(policy);) {
    const Observation& earlier = observations_[i];
    if (earlier.placeholder.has_value() || turn_count_ <= earlier.turn) {
      continue;
    }
    if (!is_forced && IsKeptByTool(i, policy, observations_.size())) continue;
    if (IsExempt(i, is_forced, question)) continue;
    bool is_answered = true;
    for (const MadeCall& call : made_calls_) {
      is_answered &= call.turn != earlier.batch || call.answer.has_value();
    }
    for (std::size_t later = i + 1; later < observations_.size(); ++later) {
      // One that stays.
      if (is_answered && !observations_[later].placeholder.has_value() &&
          !goes[later] && policy.duplicates != DuplicateRule::kOff &&
          IsCopyOf(later, i, policy.duplicates)) {
        goes[i] = true;
      }
    }
  }
  return goes;
}

bool NaiveSession::IsShorter(const std::string& message,
                             const ParsedResult& found,
                             const std::string& placeholder) const {
  return Splice(message, AdapterFor(format_).Mask(message, found, placeholder))
             .size() < message.size();
}

std::optional<NaiveSession::Candidate> NaiveSession::MaskOf(
    std::size_t observation, const Policy& policy,
    const ModelPrices& prices) const {
  const Observation& masked = observations_[observation];
  const ParsedResult& found = result(masked);
  if (!IsMaskable(policy, CallOf(observation).tool)) return std::nullopt;
  if (!found.maskable || masked.placeholder.has_value()) return std::nullopt;
  if (found.token_count < kMaskableTokensMin) return std::nullopt;
  if (prices.reasoning_prefix_bound &&
      policy.thinking == ThinkingRule::kAvoid) {
    for (const Thought& thought : thoughts_) {
      if (thought.message > masked.message && !thought.is_stripped) {
        return std::nullopt;
      }
    }
  }
  Candidate candidate;
  candidate.observation = observation;
  candidate.placeholder = PlaceholderFor(found, policy);
  if (has_recall_tool_) {
    candidate.placeholder += " (recall id " + std::to_string(masked.message) +
                             "." + std::to_string(masked.index) + ")";
  }
  candidate.saving =
      found.token_count -
      counter_.CountText(candidate.placeholder, TextForm::kPlain);
  if (candidate.saving <= 0 ||
      !IsShorter(messages_[masked.message], found, candidate.placeholder)) {
    return std::nullopt;
  }
  return candidate;
}

PicoUsd NaiveSession::RentOf(std::size_t observation,
                             const Question& question) const {
  // From the first call on in which it was old enough, or had a copy, and its
  // tool's rule did not keep it. What was masked paid nothing then, and all
  // that it had paid before was settled when it was masked.
  PicoUsd rent = question.read_price;
  bool is_begun = false;
  for (std::size_t c = 0; c < calls_.size(); ++c) {
    const Call& call = calls_[c];
    is_begun |= call.eligible_count > Signed(observation);
    if (question.policy.duplicates != DuplicateRule::kOff) {
      for (std::size_t i = observation + 1; i < call.observation_count; ++i) {
        is_begun |= IsCopyOf(i, observation, question.policy.duplicates);
      }
    }
    if (is_begun && c >= observations_[observation].shown_again &&
        !IsKeptByTool(observation, question.policy, call.observation_count)) {
      rent += call.read_price;
    }
  }
  return rent;
}

std::vector<NaiveSession::Candidate> NaiveSession::CandidatesUpTo(
    std::size_t end, bool is_forced, const Question& question) const {
  const std::vector<bool> copies = EarlyCopies(question, is_forced);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    if (i >= end && !copies[i]) continue;
    if (!is_forced && IsKeptByTool(i, question.policy, observations_.size()))
      continue;
    if (IsExempt(i, is_forced, question)) continue;
    std::optional<Candidate> candidate =
        MaskOf(i, question.policy, question.prices);
    if (!candidate.has_value()) continue;
    candidate->rent = Scale(candidate->saving, question) * RentOf(i, question);
    candidates.push_back(*std::move(candidate));
  }
  return candidates;
}

}  // namespace clerestory
