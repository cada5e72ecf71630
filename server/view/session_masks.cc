// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How what a view masks, drops and shows again is applied to a session.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/formats/edit.h"
#include "server/model/record.h"
#include "server/tokens/token_counter.h"
#include "server/view/session.h"

namespace clerestory {

std::int64_t ArgumentsSaving(absl::string_view before,
                             absl::string_view arguments,
                             const TokenCounter& counter) {
  const auto tokens = [&](absl::string_view value) {
    return absl::StartsWith(value, "\"")
               ? counter.CountText(value.substr(1, value.size() - 2),
                                   TextForm::kJsonEscaped)
               : counter.CountText(value, TextForm::kPlain);
  };
  return tokens(before) - tokens(arguments);
}

namespace {

std::set<std::string> SetOf(std::vector<std::string> values) {
  return {std::make_move_iterator(values.begin()),
          std::make_move_iterator(values.end())};
}

// Whether `mask` says something, and nothing of it is masked already; or all of
// it is, if it is to be shown again.
bool CanApply(const Mask& mask, const Observation& observation,
              const Call& call) {
  if (observation.is_dropped || call.is_dropped) return false;
  if (mask.is_restored) {
    return !mask.is_dropped &&
           mask.placeholder == observation.placeholder.value_or("") &&
           (mask.arguments.empty() || mask.arguments == call.arguments) &&
           !(mask.placeholder.empty() && mask.arguments.empty());
  }
  if (mask.is_dropped) {
    return mask.placeholder.empty() && mask.arguments.empty() &&
           !observation.placeholder.has_value() &&
           observation.result.element.size > 0 && call.call.element.size > 0;
  }
  if (!mask.placeholder.empty() &&
      (observation.placeholder.has_value() || !observation.result.maskable)) {
    return false;
  }
  if (!mask.arguments.empty() &&
      (call.arguments.has_value() || call.call.arguments.size == 0)) {
    return false;
  }
  return !mask.placeholder.empty() || !mask.arguments.empty();
}

}  // namespace

absl::Status Session::CheckView(const ViewServed& view) const {
  if (view.message_count != message_count()) {
    return Corrupt("a view of other messages than it has");
  }
  if (view.eligible_count > static_cast<std::int64_t>(observations_.size())) {
    return Corrupt("more eligible observations than it has");
  }
  if (static_cast<std::size_t>(view.break_reason) >= ledger_.breaks.size()) {
    return Corrupt("a break without a known reason");
  }
  if (view.strip_from.has_value() &&
      (*view.strip_from < 0 ||
       StripFrom(*view.strip_from) != view.strip_from)) {
    return Corrupt("reasoning left out of a message that shows none");
  }
  std::size_t next = 0;
  std::set<std::size_t> changed_calls;
  std::set<std::size_t> dropped_calls;
  for (const Mask& mask : view.masks) {
    if (mask.sequence < 0 || mask.sequence >= message_count()) {
      return Corrupt("a mask in a message that it does not have");
    }
    const SessionMessage& message =
        messages_[static_cast<std::size_t>(mask.sequence)];
    if (mask.index < 0 ||
        static_cast<std::size_t>(mask.index) >= message.observation_count) {
      return Corrupt("a mask of an observation that it does not have");
    }
    const std::size_t i = IndexOf(mask);
    if (i < next) return Corrupt("masks that are not in order");
    if (!CanApply(mask, observations_[i], calls_[observations_[i].call])) {
      return Corrupt("a mask of what is masked, or has no content");
    }
    const std::size_t call = observations_[i].call;
    const bool changes_call = mask.is_dropped || !mask.arguments.empty();
    if (dropped_calls.contains(call) ||
        (changes_call && !changed_calls.insert(call).second)) {
      return Corrupt("two masks of one call");
    }
    if (mask.is_dropped) dropped_calls.insert(call);
    next = i + 1;
  }
  return absl::OkStatus();
}

std::size_t Session::IndexOf(const Mask& mask) const {
  return messages_[static_cast<std::size_t>(mask.sequence)].first_observation +
         static_cast<std::size_t>(mask.index);
}

std::int64_t Session::FirstChange(const std::vector<Mask>& masks) const {
  std::int64_t first = message_count();
  for (const Mask& mask : masks) {
    first = std::min(first, mask.sequence);
    if (mask.arguments.empty() && !mask.is_dropped) continue;
    first = std::min(first, calls_[observations_[IndexOf(mask)].call].sequence);
  }
  return first;
}

std::int64_t Session::FirstChange(const ViewServed& view) const {
  const std::int64_t first = FirstChange(view.masks);
  return std::min(first, view.strip_from.value_or(first));
}

std::int64_t Session::SavingOf(const std::vector<Mask>& masks) const {
  std::int64_t saving = 0;
  for (const Mask& mask : masks) {
    const Observation& observation = observations_[IndexOf(mask)];
    const Call& call = calls_[observation.call];
    if (mask.is_dropped) {
      saving += observation.result.token_count + call.call.token_count;
    }
    if (!mask.placeholder.empty()) {
      const std::int64_t part =
          observation.result.token_count - observation.placeholder_tokens;
      saving += mask.is_restored ? -part : part;
    }
    if (mask.arguments.empty()) continue;
    saving += mask.is_restored ? -ArgumentsSaving(ArgumentsOf(observation.call),
                                                  mask.arguments, counter_)
                               : call.arguments_saving;
  }
  return saving;
}

void Session::Restore(const Mask& mask) {
  const std::size_t i = IndexOf(mask);
  Observation& observation = observations_[i];
  Call& call = calls_[observation.call];
  CLERESTORY_CHECK(CanApply(mask, observation, call));
  memory_bytes_ -= static_cast<std::int64_t>(mask.placeholder.size() +
                                             mask.arguments.size());
  if (!mask.arguments.empty()) {
    call.arguments.reset();
    call.arguments_saving = 0;
  }
  if (!mask.placeholder.empty()) {
    observation.placeholder.reset();
    TallyOf(observation.tool).masked_tokens -=
        observation.result.token_count - observation.placeholder_tokens;
    observation.mask_time = 0;
    observation.mask_reason = BreakReason::kNone;
    view_image_count_ += observation.result.image_count;
    --ledger_.mask_count;
    ++ledger_.restore_count;
  }
  // It may be masked again, and pays rent anew.
  observation.restore_rent_base = read_price_sum_;
  if (static_cast<std::int64_t>(i) < eligible_count_) {
    candidates_.insert(std::ranges::lower_bound(candidates_, i), i);
  }
}

void Session::SetMask(const Mask& mask, const ViewServed& view) {
  const std::size_t i = IndexOf(mask);
  Observation& observation = observations_[i];
  Call& call = calls_[observation.call];
  CLERESTORY_CHECK(CanApply(mask, observation, call));
  memory_bytes_ += static_cast<std::int64_t>(mask.placeholder.size() +
                                             mask.arguments.size());
  if (!mask.arguments.empty()) {
    const absl::string_view before = ArgumentsOf(observation.call);
    call.arguments = mask.arguments;
    call.arguments_saving = ArgumentsSaving(before, mask.arguments, counter_);
    for (const std::string& placeholder : NewStrings(before, mask.arguments)) {
      placeholders_.merge(SetOf(EscapedForms(placeholder)));
    }
    ++ledger_.argument_mask_count;
  }
  if (mask.is_dropped) {
    observation.is_dropped = true;
    call.is_dropped = true;
    ++ledger_.drop_count;
  }
  if (!mask.placeholder.empty()) {
    observation.placeholder = mask.placeholder;
    observation.placeholder_tokens =
        counter_.CountText(mask.placeholder, TextForm::kPlain);
    placeholders_.merge(SetOf(EscapedForms(mask.placeholder)));
  }
  if (mask.is_dropped || !mask.placeholder.empty()) {
    observation.mask_time = view.time;
    observation.mask_reason = view.break_reason;
    view_image_count_ -= observation.result.image_count;
    ++ledger_.mask_count;
    if (!observation.was_masked) {
      AddOutcome(observation.tool, {.masked_count = 1});
    }
    observation.was_masked = true;
    TallyOf(observation.tool).masked_tokens +=
        observation.result.token_count -
        (mask.is_dropped ? 0 : observation.placeholder_tokens);
  }
}

}  // namespace clerestory
