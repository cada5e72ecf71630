// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a naive session does not mask, what it shows again, and what came of its
// tools.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/base/check.h"
#include "server/cost/calibration.h"
#include "server/cost/prices.h"
#include "server/formats/recall_tool.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/policy/policy.h"
#include "server/view/plan_view.h"
#include "server/view/session_parts.h"
#include "tests/support/naive_session.h"

namespace clerestory {

void NaiveSession::Note(const Record& record) {
  if (const auto* repeat = std::get_if<ObservationRepeated>(&record)) {
    events_.emplace_back(*repeat);
  } else if (const auto* recall = std::get_if<ObservationRecalled>(&record)) {
    events_.emplace_back(*recall);
  } else {
    events_.emplace_back(std::get<PinChanged>(record));
  }
}

std::size_t NaiveSession::PlaceOf(std::int64_t message,
                                  std::int64_t index) const {
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    if (observations_[i].message == static_cast<std::size_t>(message) &&
        observations_[i].index == static_cast<std::size_t>(index)) {
      return i;
    }
  }
  CLERESTORY_CHECK(false);
  return 0;
}

std::map<std::string, std::int64_t> NaiveSession::FetchCounts() const {
  std::map<std::string, std::int64_t> counts;
  std::set<std::size_t> masked;
  std::set<std::size_t> recalled;
  for (const Event& event : events_) {
    if (const auto* served = std::get_if<Served>(&event)) {
      for (const Mask& mask : served->view.masks) {
        const std::size_t place = PlaceOf(mask.sequence, mask.index);
        if (mask.is_restored) {
          masked.erase(place);
        } else {
          masked.insert(place);
        }
      }
    } else if (const auto* repeat = std::get_if<ObservationRepeated>(&event)) {
      if (repeat->kind != RepeatKind::kRefetch) continue;
      const ObservationId& id = repeat->earlier;
      ++counts[CallOf(PlaceOf(id.sequence, id.index)).tool];
    } else if (const auto* recall = std::get_if<ObservationRecalled>(&event)) {
      const ObservationId& id = recall->observation;
      const std::size_t place = PlaceOf(id.sequence, id.index);
      if (masked.contains(place) && recalled.insert(place).second) {
        ++counts[CallOf(place).tool];
      }
    }
  }
  return counts;
}

std::set<std::string> NaiveSession::UnmaskedTools(
    const Policy& policy, const ViewRequest& request) const {
  std::set<std::string> tools;
  if (request.unmasked_tools != nullptr) tools = *request.unmasked_tools;
  if (policy.refetch_session_limit == 0) return tools;
  for (const auto& [tool, count] : FetchCounts()) {
    if (count >= policy.refetch_session_limit) tools.insert(tool);
  }
  return tools;
}

bool NaiveSession::IsPinned(std::size_t observation) const {
  const Observation& at = observations_[observation];
  bool is_pinned_itself = false;
  bool is_tool_pinned = false;
  for (const Event& event : events_) {
    const auto* change = std::get_if<PinChanged>(&event);
    if (change == nullptr) continue;
    if (change->pin.observation.has_value()) {
      const ObservationId& id = *change->pin.observation;
      if (static_cast<std::size_t>(id.sequence) == at.message &&
          static_cast<std::size_t>(id.index) == at.index) {
        is_pinned_itself = change->is_pinned;
      }
    } else if (change->pin.tool == CallOf(observation).tool) {
      is_tool_pinned = change->is_pinned;
    }
  }
  return is_pinned_itself || is_tool_pinned;
}

bool NaiveSession::IsExempt(std::size_t observation, bool is_forced,
                            const Question& question) const {
  if (question.pinned.contains(observation)) return true;
  if (is_forced) return false;
  const std::string& tool = CallOf(observation).tool;
  if (question.unmasked_tools.contains(tool)) return true;
  const std::int64_t age = turn_count_ - observations_[observation].turn;
  return has_recall_tool_ && kRecallToolName == tool &&
         age < question.policy.recall_keep_turns;
}

std::optional<std::size_t> NaiveSession::ShowsAgainFrom(
    const Choice& choice, const Question& question) const {
  if (choice.reason == BreakReason::kWindow) return std::nullopt;
  if (!choice.masks.empty()) {
    std::size_t first = messages_.size();
    for (const Candidate& mask : choice.masks) {
      first = std::min(first, observations_[mask.observation].message);
    }
    return first;
  }
  // A view that only leaves out reasoning is a break as well.
  if (question.prices.reasoning_prefix_bound) return StripFrom({}, question);
  if (question.cold == BreakReason::kNone) return std::nullopt;
  return 0;
}

void NaiveSession::ShowAgain(const Question& question, Choice& choice) const {
  const std::optional<std::size_t> from = ShowsAgainFrom(choice, question);
  if (!from.has_value()) return;
  const bool stays_without_images = format_ == Format::kAnthropicMessages &&
                                    question.cold == BreakReason::kNone &&
                                    ShownImages() == 0;
  // A sixth stays free of the window, and of the threshold if there is one.
  const auto five_sixths = [](std::int64_t limit) { return limit - limit / 6; };
  std::int64_t room =
      five_sixths(PromptTokensMax(question.policy, question.prices));
  if (question.policy.mode == Mode::kThreshold) {
    room = std::min(room, five_sixths(question.policy.threshold_tokens));
  }
  const auto prompt_with = [&](const std::vector<Candidate>& all) {
    return PromptTokens(question, SizeOf(all, question).saving);
  };
  const TokenRates paid = RatesOf(prompt_with(choice.masks), question);
  std::vector<Candidate> changes = choice.masks;
  std::size_t count = 0;
  for (std::size_t i = observations_.size(); i-- > 0;) {
    const Observation& masked = observations_[i];
    if (!masked.placeholder.has_value() || masked.message < *from) continue;
    if (!question.pinned.contains(i) &&
        !question.unmasked_tools.contains(CallOf(i).tool)) {
      continue;
    }
    if (stays_without_images && result(masked).image_count > 0) continue;
    changes.push_back({.observation = i,
                       .placeholder = *masked.placeholder,
                       .saving = -PlaceholderSaving(i),
                       .rent = 0,
                       .is_restored = true});
    const std::int64_t prompt = prompt_with(changes);
    const TokenRates asked = RatesOf(prompt, question);
    const bool is_dearer =
        asked.input > paid.input || asked.output > paid.output;
    if (prompt > room || is_dearer) {
      changes.pop_back();
      break;
    }
    ++count;
  }
  if (count == 0) return;
  std::ranges::sort(changes, {}, &Candidate::observation);
  BreakReason reason = choice.reason;
  if (reason == BreakReason::kNone) {
    reason = question.cold == BreakReason::kNone ? BreakReason::kSchedule
                                                 : question.cold;
  }
  choice = Choose(reason, std::move(changes), question);
}

std::map<std::string, ToolTally> NaiveSession::Tallies() const {
  std::map<std::string, ToolTally> tallies;
  const auto tally_of = [&](std::size_t place) -> ToolTally& {
    return tallies[CallOf(place).tool];
  };
  for (std::size_t i = 0; i < observations_.size(); ++i) {
    ++tally_of(i).observation_count;
  }
  std::map<std::size_t, std::int64_t> masked;  // The tokens that it saves.
  std::set<std::size_t> ever_masked;
  std::set<std::size_t> fetched;
  std::set<std::size_t> recalled;
  const auto fetch = [&](std::size_t place, PicoUsd cost) {
    tally_of(place).lost += cost;
    if (!ever_masked.contains(place)) return;
    if (fetched.insert(place).second) ++tally_of(place).refetched_count;
  };
  for (const Event& event : events_) {
    if (const auto* served = std::get_if<Served>(&event)) {
      const ViewServed& view = served->view;
      std::int64_t size = 0;  // Of what is masked now.
      for (const Mask& mask : view.masks) {
        const std::size_t place = PlaceOf(mask.sequence, mask.index);
        if (mask.is_restored) {
          masked.erase(place);
          continue;
        }
        const std::int64_t tokens = result(observations_[place]).token_count;
        masked[place] =
            tokens - counter_.CountText(mask.placeholder, TextForm::kPlain);
        if (ever_masked.insert(place).second) ++tally_of(place).mask_count;
        size += tokens;
      }
      for (const Mask& mask : view.masks) {
        if (mask.is_restored) continue;
        const std::size_t place = PlaceOf(mask.sequence, mask.index);
        tally_of(place).saved -=
            view.break_price / size * result(observations_[place]).token_count;
      }
      if (!view.is_new_call) continue;
      std::map<std::string, std::int64_t> kept_out;
      for (const auto& [place, tokens] : masked) {
        kept_out[CallOf(place).tool] += tokens;
      }
      for (const auto& [tool, tokens] : kept_out) {
        tallies[tool].saved +=
            Scaled(tokens, view.token_scale_ppm == 0 ? kScaleOne
                                                     : view.token_scale_ppm) *
            view.read_price;
      }
    } else if (const auto* repeat = std::get_if<ObservationRepeated>(&event)) {
      const std::size_t earlier =
          PlaceOf(repeat->earlier.sequence, repeat->earlier.index);
      ++tally_of(earlier).repeats.at(static_cast<std::size_t>(repeat->kind));
      if (repeat->kind != RepeatKind::kRefetch) continue;
      const std::size_t later =
          PlaceOf(repeat->later.sequence, repeat->later.index);
      tally_of(earlier).refetch_turns +=
          observations_[later].batch - observations_[earlier].batch;
      fetch(earlier, repeat->cost);
    } else if (const auto* recall = std::get_if<ObservationRecalled>(&event)) {
      const std::size_t place =
          PlaceOf(recall->observation.sequence, recall->observation.index);
      if (!masked.contains(place) || !recalled.insert(place).second) continue;
      ++tally_of(place).recall_count;
      fetch(place, recall->cost);
    }
  }
  for (const auto& [place, tokens] : masked) {
    tally_of(place).masked_tokens += tokens;
  }
  return tallies;
}

}  // namespace clerestory
