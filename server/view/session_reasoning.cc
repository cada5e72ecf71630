// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Reasoning that its provider binds to what stands before it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "server/formats/format.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {

std::size_t Session::ReasoningFrom(std::int64_t sequence) const {
  const auto first =
      std::ranges::lower_bound(reasoning_, sequence, {}, &Reasoning::sequence);
  return static_cast<std::size_t>(first - reasoning_.begin());
}

bool Session::CanStripFrom(std::int64_t sequence) const {
  return StaleReasoningOf(header_.format) != StaleReasoning::kRefused ||
         last_fixed_reasoning_ < sequence;
}

std::optional<std::int64_t> Session::StripFrom(std::int64_t sequence) const {
  for (std::size_t i = ReasoningFrom(sequence); i < reasoning_.size(); ++i) {
    if (reasoning_[i].IsStrippable()) return reasoning_[i].sequence;
  }
  return std::nullopt;
}

std::int64_t Session::StripSaving(std::int64_t sequence) const {
  const std::size_t i = ReasoningFrom(sequence);
  if (i == reasoning_.size()) return 0;
  return shown_reasoning_tokens_ - reasoning_[i].shown_tokens_before;
}

std::int64_t Session::LostReasoning(std::int64_t sequence) const {
  const std::size_t i = ReasoningFrom(sequence);
  if (i == reasoning_.size()) return 0;
  return valid_reasoning_tokens_ - reasoning_[i].valid_tokens_before;
}

bool Session::ShowsStaleReasoning() const {
  return std::ranges::any_of(reasoning_, [](const Reasoning& reasoning) {
    return reasoning.is_stale && !reasoning.is_stripped;
  });
}

bool Session::IsMidTurn() const {
  return !reasoning_.empty() && !reasoning_.back().is_stale &&
         reasoning_.back().turn == turn_count_ && !calls_.empty() &&
         calls_.back().turn == turn_count_;
}

void Session::Strip(const ViewServed& view, std::int64_t change) {
  const std::size_t begin = ReasoningFrom(change);
  if (begin == reasoning_.size()) return;
  valid_reasoning_tokens_ = reasoning_[begin].valid_tokens_before;
  shown_reasoning_tokens_ = reasoning_[begin].shown_tokens_before;
  std::optional<std::int64_t> stale_from;
  for (std::size_t i = begin; i < reasoning_.size(); ++i) {
    Reasoning& reasoning = reasoning_[i];
    reasoning.is_stale = true;
    if (view.strip_from.has_value() && reasoning.sequence >= *view.strip_from &&
        reasoning.IsStrippable()) {
      reasoning.is_stripped = true;
    }
    reasoning.valid_tokens_before = valid_reasoning_tokens_;
    reasoning.shown_tokens_before = shown_reasoning_tokens_;
    if (!reasoning.IsStrippable()) continue;
    shown_reasoning_tokens_ += reasoning.reasoning.token_count;
    if (!stale_from.has_value()) stale_from = reasoning.sequence;
  }
  // What was stale before the change has stayed so.
  if (!stale_from_.has_value() || *stale_from_ >= change) {
    stale_from_ = stale_from;
  }
  if (!view.strip_from.has_value()) return;
  last_thinking_ = -1;
  for (std::size_t i = reasoning_.size(); i-- > 0 && last_thinking_ < 0;) {
    if (!reasoning_[i].is_stripped) last_thinking_ = reasoning_[i].sequence;
  }
}

}  // namespace clerestory
