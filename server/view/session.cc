// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
#include "server/model/record.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

// An observation of fewer tokens can save nothing: no placeholder is shorter.
constexpr std::int64_t kMaskableTokensMin = 8;

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

void AddIfPresent(const std::optional<std::int64_t>& part,
                  std::optional<std::int64_t>& sum) {
  if (part.has_value()) sum = sum.value_or(0) + *part;
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
    const std::vector<Bytes>& messages) const {
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
          i);
    }
    absl::StatusOr<ParsedMessage> parsed = adapter().Parse(message, counter_);
    if (!parsed.ok()) return AtMessage(parsed.status(), i);
    if (parsed->tokens.total() > kTokensMax) {
      return AtMessage(MakeError(absl::StatusCode::kInvalidArgument,
                                 Reason::kMessageTooLarge, "too many tokens"),
                       i);
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
            i);
      }
    }
    all.push_back(*std::move(parsed));
  }
  return all;
}

void Session::Append(const MessageAppended& record, ParsedMessage parsed) {
  SessionMessage message;
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
  view_bytes_ += bytes;
  memory_bytes_ += bytes + kMessageMemoryBytes;
  messages_.push_back(std::move(message));
  ++version_;
}

void Session::Apply(const ViewServed& record) {
  if (record.is_new_call) {
    AdvanceEligible(record);
    ++ledger_.call_count;
    ledger_.preamble_tokens += record.preamble_tokens;
    ledger_.raw_tokens += record.raw_tokens;
    ledger_.view_tokens += record.view_tokens;
    ledger_.raw_call.read += record.raw_call.read;
    ledger_.raw_call.written += record.raw_call.written;
    ledger_.view_call.read += record.view_call.read;
    ledger_.view_call.written += record.view_call.written;
    ledger_.raw_cost += record.raw_cost;
    ledger_.view_cost += record.view_cost;
    ledger_.output_tokens += record.output_tokens;
    ledger_.output_cost += record.output_cost;
  }
  ++ledger_.breaks.at(static_cast<std::size_t>(record.break_reason));
  if (!record.masks.empty()) {
    for (const Mask& mask : record.masks) SetMask(mask, record);
    Render(record.masks.front().sequence);
  }
  last_view_ = record;
  last_view_->masks.clear();
  ++version_;
}

void Session::Apply(const UsageReported& record) {
  ++ledger_.usage_count;
  AddUsage(record.usage, ledger_.usage);
  ++version_;
}

void Session::Apply(const SessionClosed& record) {
  header_.outcome = record.outcome;
  header_.close_time = record.time;
  ++version_;
}

absl::Status Session::Replay(const Record& record) {
  if (const auto* appended = std::get_if<MessageAppended>(&record)) {
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        CheckAppend({appended->message});
    if (!parsed.ok()) return Corrupt("a message that does not parse");
    Append(*appended, std::move(parsed->front()));
    return absl::OkStatus();
  }
  if (const auto* view = std::get_if<ViewServed>(&record)) {
    if (view->message_count < 0 || view->message_count > message_count()) {
      return Corrupt("a view of messages that it does not have");
    }
    for (const Mask& mask : view->masks) {
      if (mask.sequence < 0 || mask.sequence >= view->message_count ||
          mask.index < 0 ||
          static_cast<std::size_t>(mask.index) >=
              messages_[static_cast<std::size_t>(mask.sequence)]
                  .observation_count) {
        return Corrupt("a mask of an observation that it does not have");
      }
    }
    if (view->eligible_count >
        static_cast<std::int64_t>(observations_.size())) {
      return Corrupt("more eligible observations than it has");
    }
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
  read_price_sum_ += view.read_price;
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
  const auto at = std::lower_bound(candidates_.begin(), candidates_.end(), i);
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
      replacements.push_back(
          {.at = observation.result.content,
           .value = adapter().MaskedContent(*message.raw, observation.result,
                                            *observation.placeholder)});
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
