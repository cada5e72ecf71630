// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/naive_session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/cost/prices.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/eligible.h"
#include "server/view/placeholder.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

std::int64_t Signed(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

}  // namespace

std::string ChainDigest(const std::vector<std::string>& messages) {
  std::string digest(64, '0');
  for (const std::string& message : messages) {
    digest = Digest::Of(absl::HexStringToBytes(digest) +
                        absl::HexStringToBytes(Digest::Of(message).ToHex()))
                 .ToHex();
  }
  return digest;
}

NaiveSession::NaiveSession(Format format, const TokenCounter& counter)
    : format_(format), counter_(counter) {}

void NaiveSession::Append(const std::string& message) {
  absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(format_).Parse(message, counter_);
  CLERESTORY_CHECK(parsed.ok());
  // A turn is a run of assistant messages.
  const bool continues =
      !parsed_.empty() && parsed_.back().role == Role::kAssistant;
  if (parsed->role == Role::kAssistant && !continues) ++turn_count_;
  for (const ParsedCall& call : parsed->calls) {
    made_calls_.push_back({.id = call.id, .turn = turn_count_});
  }
  for (std::size_t i = 0; i < parsed->results.size(); ++i) {
    observations_.push_back({.message = messages_.size(),
                             .index = i,
                             .turn = turn_count_,
                             .batch = Answer(parsed->results[i].call_id),
                             .placeholder = std::nullopt});
  }
  if (!parsed->reasoning.empty()) {
    thoughts_.push_back({.message = messages_.size(), .turn = turn_count_});
  }
  messages_.push_back(message);
  parsed_.push_back(*std::move(parsed));
}

std::int64_t NaiveSession::Answer(const std::string& id) {
  MadeCall* answered = nullptr;
  MadeCall* last = nullptr;
  for (MadeCall& call : made_calls_) {
    if (call.id != id) continue;
    last = &call;
    if (call.answer.has_value()) continue;
    if (answered == nullptr || answered->turn < call.turn) answered = &call;
  }
  CLERESTORY_CHECK(last != nullptr);
  if (answered == nullptr) return last->turn;
  answered->answer = observations_.size();
  return answered->turn;
}

void NaiveSession::Serve(const ViewServed& view) {
  for (const Mask& mask : view.masks) {
    for (Observation& observation : observations_) {
      if (Signed(observation.message) == mask.sequence &&
          Signed(observation.index) == mask.index) {
        CLERESTORY_CHECK(!observation.placeholder.has_value());
        observation.placeholder = mask.placeholder;
      }
    }
  }
  for (Thought& thought : thoughts_) {
    for (const Mask& mask : view.masks) {
      if (Signed(thought.message) >= mask.sequence) thought.is_stale = true;
    }
    if (Signed(thought.message) >= view.strip_from.value_or(INT64_MAX)) {
      thought.is_stale = true;
      thought.is_stripped = true;
    }
  }
  if (view.is_new_call) {
    calls_.push_back(
        {.eligible_count = view.eligible_count, .read_price = view.read_price});
  }
  if (view.break_reason == BreakReason::kPays) ++paid_break_count_;
  last_ = view;
}

const ParsedResult& NaiveSession::result(const Observation& observation) const {
  return parsed_[observation.message].results[observation.index];
}

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
    if (holds_batches && HoldsBatch(end)) continue;
    count = end;
  }
  return count;
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
  candidate.saving =
      found.token_count -
      counter_.CountText(candidate.placeholder, TextForm::kPlain);
  if (candidate.saving <= 0 ||
      !IsShorter(messages_[masked.message], found, candidate.placeholder)) {
    return std::nullopt;
  }
  return candidate;
}

std::vector<NaiveSession::Candidate> NaiveSession::CandidatesUpTo(
    std::size_t end, const Question& question) const {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < end; ++i) {
    std::optional<Candidate> candidate =
        MaskOf(i, question.policy, question.prices);
    if (!candidate.has_value()) continue;
    candidate->rent = candidate->saving * question.read_price;
    for (const Call& call : calls_) {
      if (call.eligible_count > Signed(i)) {
        candidate->rent += candidate->saving * call.read_price;
      }
    }
    candidates.push_back(*std::move(candidate));
  }
  return candidates;
}

std::int64_t NaiveSession::SavedIn(std::size_t message) const {
  std::int64_t saved = 0;
  for (const Observation& observation : observations_) {
    if (observation.message != message || !observation.placeholder) continue;
    saved += result(observation).token_count -
             counter_.CountText(*observation.placeholder, TextForm::kPlain);
  }
  for (const Thought& thought : thoughts_) {
    if (thought.message == message && thought.is_stripped) {
      saved += ThoughtTokens(message);
    }
  }
  return saved;
}

std::int64_t NaiveSession::ThoughtTokens(std::size_t message) const {
  std::int64_t tokens = 0;
  for (const ParsedReasoning& part : parsed_[message].reasoning) {
    tokens += part.token_count;
  }
  return tokens;
}

std::int64_t NaiveSession::SavedBefore(const Observation& observation) const {
  std::int64_t saved = 0;
  for (const Observation& other : observations_) {
    if (other.message != observation.message || !other.placeholder) continue;
    if (other.index >= observation.index) continue;
    saved += result(other).token_count -
             counter_.CountText(*other.placeholder, TextForm::kPlain);
  }
  return saved;
}

std::int64_t NaiveSession::ShownImages() const {
  std::int64_t images = 0;
  for (const ParsedMessage& message : parsed_) images += message.image_count;
  for (const Observation& observation : observations_) {
    if (!observation.placeholder) images += result(observation).image_count;
  }
  return images;
}

std::vector<std::int64_t> NaiveSession::TokensBefore() const {
  std::vector<std::int64_t> before = {0};
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    before.push_back(before.back() + parsed_[m].tokens.total() - SavedIn(m));
  }
  return before;
}

std::vector<std::string> NaiveSession::View() const {
  std::vector<std::string> view;
  std::size_t next = 0;
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    std::vector<Replacement> edits;
    for (; next < observations_.size() && observations_[next].message == m;
         ++next) {
      const Observation& observation = observations_[next];
      if (!observation.placeholder) continue;
      for (Replacement& edit : AdapterFor(format_).Mask(
               messages_[m], result(observation), *observation.placeholder)) {
        edits.push_back(std::move(edit));
      }
    }
    for (const Thought& thought : thoughts_) {
      if (thought.message != m || !thought.is_stripped) continue;
      // It comes first, and something follows it.
      const ByteSpan span = parsed_[m].reasoning.at(0).element;
      const std::size_t end = messages_[m].find('{', span.offset + span.size);
      edits.push_back({.at = {span.offset, end - span.offset}, .value = ""});
    }
    view.push_back(Splice(messages_[m], edits));
  }
  return view;
}

}  // namespace clerestory
