// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/formats/edit.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

void Add(std::int64_t part, std::int64_t& sum) {
  sum = SaturatingAdd(sum, part);
}

void Add(const CallTokens& part, CallTokens& sum) {
  Add(part.read, sum.read);
  Add(part.written, sum.written);
  Add(part.uncached, sum.uncached);
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
  Add(call.every_turn_call, ledger.every_turn_call);
  Add(call.every_turn_cost, ledger.every_turn_cost);
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

absl::Status Session::Corrupt(absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt,
                   absl::StrCat("stored session: ", what));
}

Session::Session(SessionHeader header, const TokenCounter& counter)
    : header_(std::move(header)), counter_(counter) {}

void Session::Apply(const ViewServed& record) {
  // Before masks move what stands behind them.
  const std::int64_t view_change = ViewChange(record);
  const std::int64_t every_turn_change = EveryTurnChange(record);
  const PicoUsd read_price_sum = read_price_sum_;
  const std::int64_t stripped_tokens =
      record.strip_from.has_value() ? StripSaving(*record.strip_from) : 0;
  if (last_view_.has_value() && last_view_->model != record.model) {
    anchor_.BreakSamples();
  }
  if (record.is_new_call) {
    AdvanceEligible(record);
    ++ledger_.call_count;
    if (record.is_control) ++control_call_count_;
    AddCall(record, ledger_);
  }
  if (!record.masks.empty()) {
    std::erase_if(candidates_, [&](std::size_t candidate) {
      return std::ranges::binary_search(
          record.masks, candidate, {},
          [&](const Mask& mask) { return IndexOf(mask); });
    });
    for (const Mask& mask : record.masks) {
      if (mask.is_restored) {
        Restore(mask);
      } else {
        SetMask(mask, record);
      }
    }
  }
  NoteSavings(record);
  const bool is_changed =
      !record.masks.empty() || record.strip_from.has_value();
  if (is_changed) {
    const std::int64_t change = FirstChange(record);
    Strip(record, change);
    Render(change);
  }
  if (record.break_reason != BreakReason::kNone) {
    NoteBreak(record, read_price_sum, stripped_tokens);
  }
  cache_.Serve(record, view_change, every_turn_change);
  if (record.is_new_call) every_turn_saving_ = record.every_turn_saving;
  if (record.is_new_call || is_changed) {
    view_before_count_ = last_view_.has_value() ? last_view_->message_count : 0;
    last_decision_ = record;
  }
  last_view_ = record;
  ++version_;
}

void Session::NoteBreak(const ViewServed& record, PicoUsd read_price_sum,
                        std::int64_t stripped_tokens) {
  ++ledger_.breaks.at(static_cast<std::size_t>(record.break_reason));
  std::deque<BreakEntry>& entries = ledger_.break_entries;
  if (entries.size() == kBreakEntriesMax) entries.pop_front();
  entries.push_back(
      {.time = record.time,
       .message_count = record.message_count,
       .first_sequence = FirstChange(record),
       .reason = record.break_reason,
       .price = record.break_price,
       .rent = record.break_rent,
       .mask_count =
           std::ranges::count(record.masks, false, &Mask::is_restored),
       .saved_tokens = Scaled(
           SavingOf(record.masks) + stripped_tokens,
           record.token_scale_ppm == 0 ? kScaleOne : record.token_scale_ppm),
       .read_price_sum = read_price_sum});
}

std::int64_t Session::ViewChange(const ViewServed& record) const {
  if (record.masks.empty() && !record.strip_from.has_value()) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return PromptTokens(ViewTokens(FirstChange(record)), record.preamble_tokens,
                      record.token_scale_ppm);
}

std::int64_t Session::EveryTurnChange(const ViewServed& record) const {
  if (record.every_turn_saving == every_turn_saving_ ||
      record.eligible_count <= eligible_count_) {
    return std::numeric_limits<std::int64_t>::max();
  }
  const Observation& first =
      observations_[static_cast<std::size_t>(eligible_count_)];
  return PromptTokens(first.raw_tokens_before - every_turn_saving_,
                      record.preamble_tokens, record.token_scale_ppm);
}

std::optional<CalibrationSample> Session::Apply(const UsageReported& record) {
  ++ledger_.usage_count;
  AddUsage(record.usage, ledger_.usage);
  ledger_.usage_cost =
      SaturatingAdd(ledger_.usage_cost, record.cost.value_or(0));
  last_usage_ = record;
  ++version_;
  if (!last_view_.has_value() || record.model != last_view_->model) {
    return std::nullopt;
  }
  std::optional<CalibrationSample> sample;
  if (const auto reported = ReportedPromptTokens(record.usage)) {
    Compare(*reported);
    const SessionAnchor::Outcome outcome = anchor_.Report(
        *reported, {.message_tokens = last_view_->view_tokens.total(),
                    .preamble_tokens = last_view_->preamble_tokens});
    sample = outcome.sample;
    if (outcome.verdict == ReportVerdict::kBelieved) RebaseCache();
  }
  cache_.Report(record, *last_view_);
  return sample;
}

std::int64_t Session::PromptTokens(std::int64_t message_tokens,
                                   std::int64_t preamble_tokens,
                                   std::int64_t token_scale_ppm) const {
  return anchor_.Predict(
      {.message_tokens = message_tokens, .preamble_tokens = preamble_tokens},
      token_scale_ppm == 0 ? kScaleOne : token_scale_ppm);
}

void Session::RebaseCache() {
  const auto tokens = [&](std::int64_t message_tokens) {
    return PromptTokens(message_tokens, last_view_->preamble_tokens,
                        last_view_->token_scale_ppm);
  };
  const std::int64_t raw = last_view_->raw_tokens.total();
  cache_.Rebase(last_view_->model, tokens(last_view_->view_tokens.total()),
                tokens(raw), tokens(raw - last_view_->every_turn_saving));
}

void Session::Compare(std::int64_t reported) {
  const std::int64_t estimated = last_view_->view_call.total();
  ++ledger_.compared_count;
  Add(estimated, ledger_.estimated_tokens);
  Add(reported, ledger_.reported_tokens);
  Add(std::max(estimated, reported) - std::min(estimated, reported),
      ledger_.error_tokens);
}

void Session::Apply(const SessionClosed& record) {
  header_.outcome = record.outcome;
  header_.close_time = record.time;
  header_.totals = record.totals;
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
  } else if (const auto* repeat = std::get_if<ObservationRepeated>(&record)) {
    CLERESTORY_RETURN_IF_ERROR(CheckRepeat(*repeat));
  } else if (const auto* recall = std::get_if<ObservationRecalled>(&record)) {
    if (!Find(recall->observation).has_value()) {
      return Corrupt("a recall of an observation that it does not have");
    }
  } else if (const auto* change = std::get_if<PinChanged>(&record)) {
    if (change->pin.observation.has_value() &&
        !Find(*change->pin.observation).has_value()) {
      return Corrupt("a pin of an observation that it does not have");
    }
  }
  std::visit(
      [this](const auto& other) {
        using Kind = std::decay_t<decltype(other)>;
        if constexpr (!std::is_same_v<Kind, MessageAppended>) Apply(other);
      },
      record);
  return absl::OkStatus();
}

void Session::AdvanceEligible(const ViewServed& view) {
  for (; eligible_count_ < view.eligible_count; ++eligible_count_) {
    const auto i = static_cast<std::size_t>(eligible_count_);
    Observation& observation = observations_[i];
    observation.rent_base = read_price_sum_;
    const Call& call = calls_[observation.call];
    const bool is_large = observation.result.maskable &&
                          observation.result.token_count >= kMaskableTokensMin;
    if (!observation.is_dropped && !observation.placeholder.has_value() &&
        (is_large || observation.result.is_error ||
         call.call.token_count >= kMaskableTokensMin)) {
      candidates_.push_back(i);
    }
  }
  read_price_sum_ = SaturatingAdd(read_price_sum_, view.read_price);
}

Digest Session::ViewDigest(std::int64_t count) const {
  if (count == 0) return {};
  return messages_[static_cast<std::size_t>(count - 1)].view_digest;
}

std::int64_t Session::ViewMessages(std::int64_t count) const {
  if (count == message_count()) return view_messages_;
  return messages_[static_cast<std::size_t>(count)].view_messages_before;
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
