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

NaiveSession::NaiveSession(Format format, const TokenCounter& counter,
                           bool has_recall_tool)
    : format_(format), counter_(counter), has_recall_tool_(has_recall_tool) {}

void NaiveSession::Append(const std::string& message) {
  absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(format_).Parse(message, counter_);
  CLERESTORY_CHECK(parsed.ok());
  // A turn is a run of assistant messages.
  const bool continues =
      !parsed_.empty() && parsed_.back().role == Role::kAssistant;
  if (parsed->role == Role::kAssistant && !continues) ++turn_count_;
  for (const ParsedCall& call : parsed->calls) {
    made_calls_.push_back({.id = call.id,
                           .turn = turn_count_,
                           .tool = call.tool,
                           .arguments = message.substr(call.arguments.offset,
                                                       call.arguments.size)});
  }
  for (std::size_t i = 0; i < parsed->results.size(); ++i) {
    const std::size_t call = Answer(parsed->results[i].call_id);
    observations_.push_back({.message = messages_.size(),
                             .index = i,
                             .turn = turn_count_,
                             .batch = made_calls_[call].turn,
                             .call = call,
                             .placeholder = std::nullopt});
  }
  if (!parsed->reasoning.empty()) {
    thoughts_.push_back({.message = messages_.size(), .turn = turn_count_});
  }
  messages_.push_back(message);
  parsed_.push_back(*std::move(parsed));
}

std::size_t NaiveSession::Answer(const std::string& id) {
  std::optional<std::size_t> answered;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < made_calls_.size(); ++i) {
    const MadeCall& call = made_calls_[i];
    if (call.id != id) continue;
    last = i;
    if (call.answer.has_value()) continue;
    if (!answered || made_calls_[*answered].turn < call.turn) answered = i;
  }
  CLERESTORY_CHECK(last.has_value());
  if (!answered.has_value()) return *last;
  made_calls_[*answered].answer = observations_.size();
  return *answered;
}

void NaiveSession::Serve(const ViewServed& view) {
  Served served = {.view = view};
  // Nothing before the first message that changes, as the last view had it.
  std::int64_t first = Signed(messages_.size());
  for (const Mask& mask : view.masks) first = std::min(first, mask.sequence);
  first = std::min(first, view.strip_from.value_or(first));
  if (first < Signed(messages_.size())) {
    served.change =
        Foreseen(TokensBefore().at(static_cast<std::size_t>(first)), view);
  }
  const std::int64_t eligible =
      calls_.empty() ? 0 : calls_.back().eligible_count;
  if (view.every_turn_saving != every_turn_saving_ &&
      view.eligible_count > eligible) {
    served.every_turn_change =
        Foreseen(RawTokensBefore(static_cast<std::size_t>(eligible)) -
                     every_turn_saving_,
                 view);
  }
  events_.emplace_back(std::move(served));
  for (const Mask& mask : view.masks) {
    Observation& observation =
        observations_[PlaceOf(mask.sequence, mask.index)];
    CLERESTORY_CHECK(observation.placeholder.has_value() == mask.is_restored);
    observation.placeholder = mask.placeholder;
    if (!mask.is_restored) continue;
    observation.placeholder.reset();
    observation.shown_again = calls_.size() + (view.is_new_call ? 1 : 0);
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
    calls_.push_back({.eligible_count = view.eligible_count,
                      .observation_count = observations_.size(),
                      .read_price = view.read_price});
    every_turn_saving_ = view.every_turn_saving;
  }
  if (view.break_reason == BreakReason::kPays) ++paid_break_count_;
  last_ = view;
}

const ParsedResult& NaiveSession::result(const Observation& observation) const {
  return parsed_[observation.message].results[observation.index];
}

void NaiveSession::Report(const UsageReported& report) {
  const std::optional<std::int64_t> total = ReportedPromptTokens(report.usage);
  if (last_.has_value() && last_->model == report.model && total.has_value()) {
    const std::int64_t raw = last_->raw_tokens.total();
    const SessionAnchor::Outcome outcome =
        anchor_.Report(*total, {.message_tokens = last_->view_tokens.total(),
                                .preamble_tokens = last_->preamble_tokens});
    if (outcome.verdict == ReportVerdict::kBelieved) {
      events_.emplace_back(Recounted{
          .model = report.model,
          .view = Foreseen(last_->view_tokens.total(), *last_),
          .raw = Foreseen(raw, *last_),
          .every_turn = Foreseen(raw - last_->every_turn_saving, *last_)});
    }
  }
  events_.emplace_back(report);
}

std::int64_t NaiveSession::RawTokensBefore(std::size_t observation) const {
  const Observation& at = observations_[observation];
  std::int64_t before = result(at).tokens_before;
  for (std::size_t m = 0; m < at.message; ++m) {
    before += parsed_[m].tokens.total();
  }
  return before;
}

std::int64_t NaiveSession::PlaceholderSaving(std::size_t observation) const {
  const Observation& masked = observations_[observation];
  return result(masked).token_count -
         counter_.CountText(*masked.placeholder, TextForm::kPlain);
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
