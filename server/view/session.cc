// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

// Memory that a message and an observation take beside their bytes.
constexpr std::int64_t kMessageMemoryBytes = sizeof(SessionMessage) + 64;
constexpr std::int64_t kObservationMemoryBytes = sizeof(Observation) + 96;

absl::Status Corrupt(absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt,
                   absl::StrCat("stored session: ", what));
}

// `status` of the message at `index` of an append.
absl::Status AtMessage(const absl::Status& status, std::size_t index) {
  const std::string field = absl::StrCat("messages[", index, "]");
  return MakeError(status.code(), DetailOf(status).reason,
                   absl::StrCat(field, ": ", status.message()),
                   {{"field", field}});
}

void Add(std::int64_t part, std::int64_t& sum) {
  sum = SaturatingAdd(sum, part);
}

void Add(const CallTokens& part, CallTokens& sum) {
  Add(part.read, sum.read);
  Add(part.written, sum.written);
}

void Add(const StageTokens& part, StageTokens& sum) {
  Add(part.user, sum.user);
  Add(part.assistant, sum.assistant);
  Add(part.calls, sum.calls);
  Add(part.observations, sum.observations);
}

void AddCall(const ViewServed& call, Ledger& ledger) {
  Add(call.preamble_tokens, ledger.preamble_tokens);
  Add(call.raw_tokens, ledger.raw_tokens);
  Add(call.view_tokens, ledger.view_tokens);
  Add(call.raw_call, ledger.raw_call);
  Add(call.view_call, ledger.view_call);
  Add(call.raw_cost, ledger.raw_cost);
  Add(call.view_cost, ledger.view_cost);
  Add(call.output_tokens, ledger.output_tokens);
  Add(call.output_cost, ledger.output_cost);
}

void AddIfPresent(const std::optional<std::int64_t>& part,
                  std::optional<std::int64_t>& sum) {
  if (part.has_value()) sum = SaturatingAdd(sum.value_or(0), *part);
}

}  // namespace

void AddUsage(const Usage& part, Usage& sum) {
  AddIfPresent(part.input_uncached, sum.input_uncached);
  AddIfPresent(part.cache_read, sum.cache_read);
  AddIfPresent(part.cache_write, sum.cache_write);
  AddIfPresent(part.output, sum.output);
  AddIfPresent(part.reasoning, sum.reasoning);
}

Session::Session(SessionHeader header, const TokenCounter& counter)
    : header_(std::move(header)), counter_(counter) {}

absl::StatusOr<std::vector<ParsedMessage>> Session::CheckAppend(
    const std::vector<Bytes>& messages, std::size_t first_index) const {
  std::vector<ParsedMessage> all;
  all.reserve(messages.size());
  std::unordered_set<std::string> new_calls;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& message = *messages[i];
    if (static_cast<std::int64_t>(message.size()) > kMessageBytesMax) {
      return AtMessage(
          MakeError(absl::StatusCode::kInvalidArgument,
                    Reason::kMessageTooLarge,
                    absl::StrCat(message.size(), " bytes, at most ",
                                 kMessageBytesMax, " are accepted")),
          first_index + i);
    }
    absl::StatusOr<ParsedMessage> parsed = adapter().Parse(message, counter_);
    if (!parsed.ok()) return AtMessage(parsed.status(), first_index + i);
    if (parsed->tokens.total() > kTokensMax) {
      return AtMessage(MakeError(absl::StatusCode::kInvalidArgument,
                                 Reason::kMessageTooLarge, "too many tokens"),
                       first_index + i);
    }
    for (const ParsedCall& call : parsed->calls) new_calls.insert(call.id);
    for (std::size_t r = 0; r < parsed->results.size(); ++r) {
      const std::string& id = parsed->results[r].call_id;
      if (!new_calls.contains(id) && !tool_of_call_.contains(id)) {
        return AtMessage(
            MakeError(absl::StatusCode::kInvalidArgument,
                      Reason::kResultWithoutCall,
                      absl::StrCat("result ", r,
                                   " answers no call of this session; append "
                                   "the assistant message with the call "
                                   "first")),
            first_index + i);
      }
    }
    all.push_back(*std::move(parsed));
  }
  return all;
}

void Session::Append(const MessageAppended& record, ParsedMessage parsed) {
  SessionMessage message;
  last_usage_.reset();
  message.raw = record.message;
  message.view = record.message;
  message.time = record.time;
  message.role = parsed.role;
  message.tokens = parsed.tokens;
  message.first_observation = observations_.size();
  message.observation_count = parsed.results.size();
  message.view_bytes_before = view_bytes_;
  message.view_tokens_before = view_tokens_;
  message.view_digest =
      ViewDigest(message_count()).Then(Digest::Of(*record.message));

  for (ParsedCall& call : parsed.calls) {
    tool_of_call_[std::move(call.id)] = std::move(call.tool);
  }
  std::int64_t index = 0;
  for (ParsedResult& result : parsed.results) {
    Observation observation;
    observation.sequence = message_count();
    observation.index = index++;
    observation.tool = tool_of_call_[result.call_id];
    observation.turn = turn_count_;
    observation.view_tokens_before = view_tokens_ + result.tokens_before;
    view_image_count_ += result.image_count;
    observation.result = std::move(result);
    observations_.push_back(std::move(observation));
    memory_bytes_ += kObservationMemoryBytes;
  }
  if (parsed.role == Role::kAssistant) ++turn_count_;
  if (parsed.has_thinking) last_thinking_ = message_count();
  view_image_count_ += parsed.image_count;
  raw_tokens_ += parsed.tokens;
  view_tokens_ += parsed.tokens.total();
  const auto bytes = static_cast<std::int64_t>(record.message->size());
  history_bytes_ += bytes;
  view_bytes_ += bytes;
  memory_bytes_ += bytes + kMessageMemoryBytes;
  messages_.push_back(std::move(message));
  ++version_;
}

void Session::Apply(const ViewServed& record) {
  if (record.is_new_call) {
    AdvanceEligible(record);
    ++ledger_.call_count;
    AddCall(record, ledger_);
  }
  if (record.break_reason != BreakReason::kNone) {
    ++ledger_.breaks.at(static_cast<std::size_t>(record.break_reason));
  }
  if (!record.masks.empty()) {
    for (const Mask& mask : record.masks) SetMask(mask, record);
    Render(record.masks.front().sequence);
  }
  if (record.is_new_call || !record.masks.empty()) {
    view_before_count_ = last_view_.has_value() ? last_view_->message_count : 0;
    last_decision_ = record;
  }
  last_view_ = record;
  ++version_;
}

void Session::Apply(const UsageReported& record) {
  ++ledger_.usage_count;
  AddUsage(record.usage, ledger_.usage);
  last_usage_ = record.usage;
  ++version_;
}

void Session::Apply(const SessionClosed& record) {
  header_.outcome = record.outcome;
  header_.close_time = record.time;
  is_closed_ = true;
  ++version_;
}

absl::Status Session::Replay(const Record& record) {
  if (is_closed_) return Corrupt("a record behind its end");
  if (const auto* appended = std::get_if<MessageAppended>(&record)) {
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        CheckAppend({appended->message});
    if (!parsed.ok()) return Corrupt("a message that does not parse");
    Append(*appended, std::move(parsed->front()));
    return absl::OkStatus();
  }
  if (const auto* view = std::get_if<ViewServed>(&record)) {
    CLERESTORY_RETURN_IF_ERROR(CheckView(*view));
    Apply(*view);
    return absl::OkStatus();
  }
  std::visit(
      [this](const auto& other) {
        using Kind = std::decay_t<decltype(other)>;
        if constexpr (std::is_same_v<Kind, UsageReported> ||
                      std::is_same_v<Kind, SessionClosed>) {
          Apply(other);
        }
      },
      record);
  return absl::OkStatus();
}

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
  std::size_t next = 0;
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
    const std::size_t i =
        message.first_observation + static_cast<std::size_t>(mask.index);
    if (i < next) return Corrupt("masks that are not in order");
    if (observations_[i].placeholder.has_value() ||
        observations_[i].result.content.size == 0) {
      return Corrupt("a mask of what is masked, or has no content");
    }
    next = i + 1;
  }
  return absl::OkStatus();
}

void Session::AdvanceEligible(const ViewServed& view) {
  for (; eligible_count_ < view.eligible_count; ++eligible_count_) {
    const auto i = static_cast<std::size_t>(eligible_count_);
    Observation& observation = observations_[i];
    observation.rent_base = read_price_sum_;
    if (observation.result.maskable && !observation.placeholder.has_value() &&
        observation.result.token_count >= kMaskableTokensMin) {
      candidates_.push_back(i);
    }
  }
  read_price_sum_ = SaturatingAdd(read_price_sum_, view.read_price);
}

void Session::SetMask(const Mask& mask, const ViewServed& view) {
  const SessionMessage& message =
      messages_[static_cast<std::size_t>(mask.sequence)];
  const std::size_t i =
      message.first_observation + static_cast<std::size_t>(mask.index);
  Observation& observation = observations_[i];
  CLERESTORY_CHECK(!observation.placeholder.has_value());
  observation.placeholder = mask.placeholder;
  observation.placeholder_tokens =
      counter_.CountText(mask.placeholder, TextForm::kPlain);
  observation.mask_time = view.time;
  observation.mask_reason = view.break_reason;
  view_image_count_ -= observation.result.image_count;
  ++ledger_.mask_count;
  const auto at = std::ranges::lower_bound(candidates_, i);
  if (at != candidates_.end() && *at == i) candidates_.erase(at);
}

void Session::Render(std::int64_t first) {
  const auto start = static_cast<std::size_t>(first);
  view_bytes_ = messages_[start].view_bytes_before;
  view_tokens_ = messages_[start].view_tokens_before;
  Digest digest = ViewDigest(first);
  for (std::size_t m = start; m < messages_.size(); ++m) {
    SessionMessage& message = messages_[m];
    message.view_bytes_before = view_bytes_;
    message.view_tokens_before = view_tokens_;
    std::vector<Replacement> replacements;
    std::int64_t saved = 0;
    for (std::size_t i = 0; i < message.observation_count; ++i) {
      Observation& observation = observations_[message.first_observation + i];
      observation.view_tokens_before =
          view_tokens_ + observation.result.tokens_before - saved;
      if (!observation.placeholder.has_value()) continue;
      saved += observation.result.token_count - observation.placeholder_tokens;
      for (Replacement& replacement : adapter().Mask(
               *message.raw, observation.result, *observation.placeholder)) {
        replacements.push_back(std::move(replacement));
      }
    }
    if (!replacements.empty()) {
      const auto size_before =
          message.view == message.raw ? 0 : message.view->size();
      message.view = std::make_shared<const std::string>(
          Splice(*message.raw, replacements));
      memory_bytes_ += static_cast<std::int64_t>(message.view->size()) -
                       static_cast<std::int64_t>(size_before);
    }
    view_bytes_ += static_cast<std::int64_t>(message.view->size());
    view_tokens_ += message.tokens.total() - saved;
    digest = digest.Then(Digest::Of(*message.view));
    message.view_digest = digest;
  }
}

Digest Session::ViewDigest(std::int64_t count) const {
  if (count == 0) return {};
  return messages_[static_cast<std::size_t>(count - 1)].view_digest;
}

std::int64_t Session::ViewBytes(std::int64_t count) const {
  if (count == message_count()) return view_bytes_;
  return messages_[static_cast<std::size_t>(count)].view_bytes_before;
}

std::int64_t Session::ViewTokens(std::int64_t count) const {
  if (count == message_count()) return view_tokens_;
  return messages_[static_cast<std::size_t>(count)].view_tokens_before;
}

}  // namespace clerestory
