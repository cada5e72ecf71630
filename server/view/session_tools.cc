// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a session knows of its tools: what was fetched again, recalled, pinned.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/cost/calibration.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/tool_outcome.h"
#include "server/refetch/detector.h"
#include "server/tools/access.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// Memory that a pin and a tool take beside the bytes of their names.
constexpr std::int64_t kPinMemoryBytes = sizeof(Pin) + 64;
constexpr std::int64_t kToolMemoryBytes =
    sizeof(ToolTally) + sizeof(ToolOutcome) + 256;

absl::string_view Part(const SessionMessage& message, ByteSpan span) {
  return absl::string_view(*message.raw).substr(span.offset, span.size);
}

}  // namespace

ToolTally& Session::TallyOf(const std::string& tool) {
  const auto found = tools_.find(tool);
  if (found != tools_.end()) return found->second;
  if (tools_.size() == kSessionToolsMax) return other_tools_;
  // In outcomes_, too, which names it twice.
  memory_bytes_ +=
      kToolMemoryBytes + 3 * static_cast<std::int64_t>(tool.size());
  return tools_[tool];
}

std::optional<std::size_t> Session::Find(const ObservationId& id) const {
  if (id.sequence < 0 || id.sequence >= message_count() || id.index < 0) {
    return std::nullopt;
  }
  const SessionMessage& message =
      messages_[static_cast<std::size_t>(id.sequence)];
  const auto index = static_cast<std::size_t>(id.index);
  if (index >= message.observation_count) return std::nullopt;
  return message.first_observation + index;
}

absl::string_view Session::ArgumentsOf(std::size_t index) const {
  const Call& call = calls_[index];
  return Part(messages_[static_cast<std::size_t>(call.sequence)],
              call.call.arguments);
}

Repeat Session::FindRepeat(std::size_t index, RepeatDetector::RuleOf rule_of) {
  const auto at = [this](std::size_t i) {
    const Observation& observation = observations_[i];
    const SessionMessage& message =
        messages_[static_cast<std::size_t>(observation.sequence)];
    return SeenObservation{.tool = observation.tool,
                           .arguments = ArgumentsOf(observation.call),
                           .content = Part(message, observation.result.content),
                           .is_error = observation.result.is_error,
                           .token_count = observation.result.token_count,
                           .turn = observation.batch};
  };
  const auto is_masked = [this](std::size_t i) {
    return observations_[i].placeholder.has_value() ||
           observations_[i].is_dropped;
  };
  return detector_.Look(index, at, is_masked, rule_of);
}

void Session::AddOutcome(const std::string& tool, const ToolOutcome& part) {
  ToolTally& tally = TallyOf(tool);
  tally.mask_count += part.masked_count;
  tally.refetched_count += part.refetched_count;
  tally.saved = SaturatingAdd(tally.saved, part.saved);
  tally.lost = SaturatingAdd(tally.lost, part.lost);
  if (&tally == &other_tools_) return;
  ToolOutcome& outcome = outcomes_[tool];
  outcome.tool = tool;
  outcome.masked_count += part.masked_count;
  outcome.refetched_count += part.refetched_count;
  outcome.saved = SaturatingAdd(outcome.saved, part.saved);
  outcome.lost = SaturatingAdd(outcome.lost, part.lost);
}

std::vector<ToolOutcome> Session::TakeToolOutcomes() {
  std::vector<ToolOutcome> taken;
  taken.reserve(outcomes_.size());
  for (auto& [tool, outcome] : outcomes_) taken.push_back(std::move(outcome));
  outcomes_.clear();
  return taken;
}

bool Session::HasToolOutcome() const {
  return std::ranges::any_of(outcomes_, [](const auto& entry) {
    return entry.second.masked_count > 0 || entry.second.refetched_count > 0;
  });
}

void Session::NoteFetch(std::size_t index, PicoUsd cost) {
  Observation& observation = observations_[index];
  const bool is_first = observation.was_masked && !observation.is_refetched;
  if (is_first) observation.is_refetched = true;
  AddOutcome(observation.tool,
             {.refetched_count = is_first ? 1 : 0, .lost = cost});
}

absl::Status Session::CheckRepeat(const ObservationRepeated& record) const {
  const std::optional<std::size_t> later = Find(record.later);
  const std::optional<std::size_t> earlier = Find(record.earlier);
  if (!later.has_value() || !earlier.has_value() || *earlier >= *later) {
    return Corrupt("a repeat of observations that it does not have");
  }
  if (static_cast<std::size_t>(record.kind) >= kRepeatKindCount) {
    return Corrupt("a repeat of no known kind");
  }
  return absl::OkStatus();
}

void Session::Apply(const ObservationRepeated& record) {
  const std::size_t earlier = *Find(record.earlier);
  const Observation& observation = observations_[earlier];
  ToolTally& tally = TallyOf(observation.tool);
  ++tally.repeats[static_cast<std::size_t>(record.kind)];
  if (record.kind == RepeatKind::kRefetch) {
    tally.refetch_turns +=
        observations_[*Find(record.later)].batch - observation.batch;
    NoteFetch(earlier, record.cost);
  }
  ++version_;
}

void Session::Apply(const ObservationRecalled& record) {
  const std::size_t index = *Find(record.observation);
  Observation& observation = observations_[index];
  const bool is_masked =
      observation.placeholder.has_value() || observation.is_dropped;
  // Reading it on is one recall, and reading what the view shows is none.
  if (is_masked && !observation.is_recalled) {
    observation.is_recalled = true;
    ++TallyOf(observation.tool).recall_count;
    NoteFetch(index, record.cost);
  }
  ++version_;
}

void Session::Apply(const PinChanged& record) {
  const Pin& pin = record.pin;
  const auto bytes =
      kPinMemoryBytes +
      static_cast<std::int64_t>(pin.tool.size() + pin.resource.size());
  if (record.is_pinned) {
    if (pins_.insert(pin).second) memory_bytes_ += bytes;
  } else if (pins_.erase(pin) > 0) {
    memory_bytes_ -= bytes;
  }
  if (!pin.resource.empty()) {
    pinned_resources_.Set(pin.resource, record.is_pinned);
  }
  ++pin_change_count_;
  ++version_;
}

bool Session::IsResourcePinned(std::size_t index,
                               RepeatDetector::RuleOf rule_of) const {
  return pinned_resources_.Keep(index, [&] {
    const std::string& tool = calls_[index].call.tool;
    return AccessesOf(tool, ArgumentsOf(index), /*directory=*/"",
                      rule_of(tool));
  });
}

void Session::NoteSavings(const ViewServed& record) {
  const std::int64_t scale =
      record.token_scale_ppm == 0 ? kScaleOne : record.token_scale_ppm;
  if (record.is_new_call) {
    const auto saved = [&](const ToolTally& tally) {
      return SaturatingMultiply(Scaled(tally.masked_tokens, scale),
                                record.read_price);
    };
    for (const auto& [tool, tally] : tools_) {
      if (tally.masked_tokens > 0) AddOutcome(tool, {.saved = saved(tally)});
    }
    other_tools_.saved = SaturatingAdd(other_tools_.saved, saved(other_tools_));
  }
  // What the break costs is shared by what it masks, by size.
  std::int64_t total = 0;
  const auto size_of = [&](const Mask& mask) {
    return observations_[*Find({mask.sequence, mask.index})].result.token_count;
  };
  for (const Mask& mask : record.masks) {
    if (!mask.is_restored) total += size_of(mask);
  }
  if (total <= 0 || record.break_price <= 0) return;
  const PicoUsd each = record.break_price / total;
  for (const Mask& mask : record.masks) {
    if (mask.is_restored) continue;
    AddOutcome(observations_[*Find({mask.sequence, mask.index})].tool,
               {.saved = -SaturatingMultiply(each, size_of(mask))});
  }
}

}  // namespace clerestory
