// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/candidate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/cost/prices.h"
#include "server/formats/edit.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/tool_glob.h"
#include "server/tokens/token_counter.h"
#include "server/view/placeholder.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// Nothing is dropped from a message of more calls or results: each of them has
// all others looked at.
constexpr std::size_t kDropPartsMax = 256;

const SessionMessage& MessageAt(const Session& session, std::int64_t sequence) {
  return session.messages()[static_cast<std::size_t>(sequence)];
}

const Batch& BatchOf(const Session& session, const Call& call) {
  return session.batches()[static_cast<std::size_t>(call.turn)];
}

// Whether the provider would refuse what stands behind a change of the message
// `sequence`, or the policy wants no such change.
bool IsBound(const Session& session, const Policy& policy,
             const ModelPrices& prices, std::int64_t sequence) {
  if (!prices.reasoning_prefix_bound) return false;
  switch (policy.thinking) {
    case ThinkingRule::kAuto:
    case ThinkingRule::kStrip:
      return !session.CanStripFrom(sequence);
    case ThinkingRule::kDropBlock:
      return false;
    case ThinkingRule::kAvoid:
      break;
  }
  return session.last_thinking() > sequence;
}

// A call and its only result, an error, of which nothing is masked: the two can
// be dropped as far as they are concerned.
bool IsFailedPair(const Session& session, const Call& call) {
  if (call.observation_count != 1 || !call.call.is_removable ||
      call.arguments.has_value() || call.is_dropped) {
    return false;
  }
  const Observation& observation =
      session.observations()[call.first_observation];
  return observation.result.is_error && observation.result.is_removable &&
         !observation.placeholder.has_value();
}

// How many of the calls in `message` are parts of failed pairs.
std::size_t FailedCount(const Session& session, const SessionMessage& message) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < message.call_count; ++i) {
    if (IsFailedPair(session, session.calls()[message.first_call + i])) {
      ++count;
    }
  }
  return count;
}

// Whether the results in `message` all answer calls of the message `sequence`.
bool AnswersOnly(const Session& session, const SessionMessage& message,
                 std::int64_t sequence) {
  if (message.observation_count > kDropPartsMax ||
      message.part_count !=
          static_cast<std::int64_t>(message.observation_count)) {
    return false;
  }
  for (std::size_t i = 0; i < message.observation_count; ++i) {
    const Observation& observation =
        session.observations()[message.first_observation + i];
    if (session.calls()[observation.call].sequence != sequence) return false;
  }
  return true;
}

// Whether the messages with the calls and with all the results of a turn that
// failed as a whole can go, without the roles around them no longer taking
// turns. `sequence` is that of the message with the calls. What is still to
// come behind them is taken for the assistant's.
bool CanDropMessages(const Session& session, std::int64_t sequence) {
  const SessionMessage& calls = MessageAt(session, sequence);
  if (calls.part_count != static_cast<std::int64_t>(calls.call_count)) {
    return false;
  }
  std::int64_t end = sequence + 1;
  std::size_t result_count = 0;
  while (end < session.message_count() && result_count < calls.call_count &&
         AnswersOnly(session, MessageAt(session, end), sequence) &&
         MessageAt(session, end).observation_count > 0) {
    result_count += MessageAt(session, end).observation_count;
    ++end;
  }
  return result_count == calls.call_count &&
         MessageAt(session, sequence - 1).role != Role::kAssistant &&
         (end == session.message_count() ||
          MessageAt(session, end).role == Role::kAssistant);
}

// Whether a result stays in the message of `observation` if all failed pairs
// go, or the message is nothing but this result and may go.
bool LeavesResults(const Session& session, const Observation& observation) {
  const SessionMessage& message = MessageAt(session, observation.sequence);
  if (message.role == Role::kTool) return message.part_count == 1;
  for (std::size_t i = 0; i < message.observation_count; ++i) {
    const Observation& other =
        session.observations()[message.first_observation + i];
    if (!IsFailedPair(session, session.calls()[other.call])) return true;
  }
  return false;
}

bool CanDrop(const Session& session, const Policy& policy,
             const ModelPrices& prices, const Observation& observation) {
  const Call& call = session.calls()[observation.call];
  // The first message of a view is that of the history.
  if (call.sequence == 0 || !IsFailedPair(session, call) ||
      BatchOf(session, call).has_thinking ||
      IsBound(session, policy, prices, call.sequence)) {
    return false;
  }
  const SessionMessage& message = MessageAt(session, call.sequence);
  if (message.call_count > kDropPartsMax ||
      MessageAt(session, observation.sequence).observation_count >
          kDropPartsMax) {
    return false;
  }
  return FailedCount(session, message) == message.call_count
             ? CanDropMessages(session, call.sequence)
             : LeavesResults(session, observation);
}

// What the placeholder of `observation` ends with, after the template.
std::string MarkOf(const Session& session, const Observation& observation) {
  if (!session.header().has_recall_tool) return "";
  return RecallMark(
      {.sequence = observation.sequence, .index = observation.index});
}

// No template for `result`, filled in, is shorter: it without the fields. Most
// observations that are too small are told by it, and their placeholders need
// not be made.
std::size_t PlaceholderBytesMin(const ParsedResult& result,
                                const Policy& policy) {
  const std::string& text =
      result.is_error ? policy.error_placeholder : policy.placeholder;
  std::size_t bytes = text.size();
  for (const absl::string_view mark : {"{size}", "{tokens}"}) {
    for (std::size_t at = text.find(mark.data()); at != std::string::npos;
         at = text.find(mark.data(), at + mark.size())) {
      bytes -= mark.size();
    }
  }
  return bytes;
}

void MaskContent(const Session& session, const Policy& policy,
                 const ModelPrices& prices, Candidate& candidate) {
  const Observation& observation = *candidate.observation;
  const ParsedResult& result = observation.result;
  if (!result.maskable || observation.placeholder.has_value() ||
      result.token_count < kMaskableTokensMin ||
      IsBound(session, policy, prices, observation.sequence)) {
    return;
  }
  const std::string mark = MarkOf(session, observation);
  if (result.content.size + result.attachments.size <=
      PlaceholderBytesMin(result, policy) + mark.size()) {
    return;
  }
  std::string placeholder = absl::StrCat(PlaceholderFor(result, policy), mark);
  const std::int64_t saving =
      result.token_count -
      session.counter().CountText(placeholder, TextForm::kPlain);
  if (saving <= 0) return;
  const SessionMessage& message = MessageAt(session, observation.sequence);
  std::size_t before = 0;
  std::size_t after = 0;
  for (const Replacement& replacement :
       session.adapter().Mask(*message.raw, result, placeholder)) {
    before += replacement.at.size;
    after += replacement.value.size();
  }
  if (after >= before) return;
  candidate.mask.placeholder = std::move(placeholder);
  candidate.observation_saving = saving;
}

void MaskCall(const Session& session, const Policy& policy,
              const ModelPrices& prices, Candidate& candidate) {
  const Call& call = session.calls()[candidate.observation->call];
  // The first message of a view is that of the history; and of two results the
  // first masks what they share.
  if (policy.argument_tokens_min == 0 || call.sequence == 0 ||
      candidate.observation !=
          &session.observations()[call.first_observation] ||
      call.arguments.has_value() || !call.call.is_removable ||
      BatchOf(session, call).has_thinking ||
      call.call.token_count < policy.argument_tokens_min ||
      IsBound(session, policy, prices, call.sequence)) {
    return;
  }
  const absl::string_view message = *MessageAt(session, call.sequence).raw;
  const absl::string_view before =
      message.substr(call.call.arguments.offset, call.call.arguments.size);
  std::string arguments = MaskArguments(
      before, policy.argument_tokens_min,
      [&](std::int64_t tokens) { return ArgumentPlaceholder(tokens, policy); },
      session.counter());
  if (arguments.empty()) return;
  const std::int64_t saving =
      ArgumentsSaving(before, arguments, session.counter());
  if (saving <= 0) return;
  candidate.mask.arguments = std::move(arguments);
  candidate.call_saving = saving;
}

}  // namespace

std::optional<Candidate> CandidateFor(const Session& session,
                                      const Policy& policy,
                                      const ModelPrices& prices,
                                      std::size_t index) {
  const Observation& observation = session.observations()[index];
  const Call& call = session.calls()[observation.call];
  const bool is_error = observation.result.is_error;
  if (!IsMaskable(policy, observation.tool)) return std::nullopt;
  if (call.is_dropped || (is_error && policy.errors == ErrorRule::kKeep)) {
    return std::nullopt;
  }
  Candidate candidate;
  candidate.observation = &observation;
  candidate.mask.sequence = observation.sequence;
  candidate.mask.index = observation.index;
  if (is_error && policy.errors == ErrorRule::kDrop &&
      CanDrop(session, policy, prices, observation)) {
    candidate.mask.is_dropped = true;
    candidate.observation_saving = observation.result.token_count;
    candidate.call_saving = call.call.token_count;
  } else {
    MaskContent(session, policy, prices, candidate);
    MaskCall(session, policy, prices, candidate);
  }
  if (candidate.saving() <= 0) return std::nullopt;
  candidate.first_sequence = observation.sequence;
  candidate.tokens_before = observation.view_tokens_before;
  if (candidate.mask.is_dropped || !candidate.mask.arguments.empty()) {
    candidate.first_sequence = call.sequence;
    candidate.tokens_before = call.view_tokens_before;
  }
  return candidate;
}

std::optional<std::int64_t> StripFor(const Session& session,
                                     const Policy& policy,
                                     const ModelPrices& prices,
                                     std::int64_t change) {
  if (!prices.reasoning_prefix_bound ||
      policy.thinking == ThinkingRule::kDropBlock) {
    return std::nullopt;
  }
  return session.StripFrom(
      std::min(change, session.stale_from().value_or(change)));
}

std::int64_t MaskSaving(const Session& session, const Policy& policy,
                        const ModelPrices& prices, std::size_t index) {
  const std::optional<Candidate> candidate =
      CandidateFor(session, policy, prices, index);
  return candidate.has_value() ? candidate->saving() : 0;
}

}  // namespace clerestory
