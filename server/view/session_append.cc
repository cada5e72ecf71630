// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How messages come into a session, and which call a result answers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
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
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// Memory that a message and an observation take beside their bytes.
constexpr std::int64_t kMessageMemoryBytes = sizeof(SessionMessage) + 64;
constexpr std::int64_t kObservationMemoryBytes = sizeof(Observation) + 384;
constexpr std::int64_t kCallMemoryBytes = sizeof(Call) + 256;
constexpr std::int64_t kReasoningMemoryBytes = sizeof(Reasoning);

// The beginning that a text must share with a placeholder before the two are
// compared.
constexpr std::size_t kPlaceholderStemBytes = 8;
// More than any placeholder has, as the inside of a JSON string.
constexpr std::size_t kPlaceholderBytesMax = 2048;

// What calls are found by: their id, or their tool where a result or a call has
// no id. A tool's key begins with a byte that no id in UTF-8 has.
std::string ToolKey(const std::string& tool) {
  return absl::StrCat("\xff", tool);
}

std::vector<std::string> KeysOf(const ParsedCall& call) {
  return {call.id, ToolKey(call.tool)};
}

// In the order in which they are tried.
std::vector<std::string> KeysOf(const ParsedResult& result) {
  if (result.tool.empty()) return {result.call_id};
  if (result.call_id.empty()) return {ToolKey(result.tool)};
  return {result.call_id, ToolKey(result.tool)};
}

absl::string_view Part(absl::string_view message, ByteSpan span) {
  return message.substr(span.offset, span.size);
}

// `status` of the message at `index` of an append.
absl::Status AtMessage(const absl::Status& status, std::size_t index) {
  const std::string field = absl::StrCat("messages[", index, "]");
  return MakeError(status.code(), DetailOf(status).reason,
                   absl::StrCat(field, ": ", status.message()),
                   {{"field", field}});
}

}  // namespace

absl::StatusOr<std::vector<ParsedMessage>> Session::CheckAppend(
    const std::vector<Bytes>& messages, std::size_t first_index) const {
  std::vector<ParsedMessage> all;
  all.reserve(messages.size());
  std::unordered_set<std::string> new_keys;
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
    for (const ParsedCall& call : parsed->calls) {
      for (std::string& key : KeysOf(call)) new_keys.insert(std::move(key));
    }
    for (std::size_t r = 0; r < parsed->results.size(); ++r) {
      const std::vector<std::string> keys = KeysOf(parsed->results[r]);
      if (std::ranges::none_of(keys, [&](const std::string& key) {
            return new_keys.contains(key) || calls_of_key_.contains(key);
          })) {
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

  message.part_count = parsed.part_count;
  message.first_call = calls_.size();
  message.call_count = parsed.calls.size();
  message.first_reasoning = reasoning_.size();
  message.reasoning_count = parsed.reasoning.size();
  message.stripped_tokens_before = stripped_tokens_;
  message.view_messages_before = view_messages_;
  message.saved_call_tokens_before = saved_call_tokens_;
  if (parsed.role == Role::kAssistant &&
      (messages_.empty() || messages_.back().role != Role::kAssistant)) {
    ++turn_count_;
    batches_.emplace_back();
  }
  for (const ParsedCall& call : parsed.calls) {
    if (HasCopiedPlaceholder(*record.message, call)) {
      ++ledger_.copied_placeholder_count;
    }
  }
  AddCalls(std::move(parsed.calls), *record.message);
  const std::size_t first = observations_.size();
  AddObservations(std::move(parsed.results));
  for (std::size_t i = first; i < observations_.size(); ++i) {
    LinkCopies(i, *record.message);
  }
  AddReasoning(std::move(parsed.reasoning));
  batches_.back().has_thinking |= parsed.has_thinking;
  if (parsed.has_thinking) last_thinking_ = message_count();
  view_image_count_ += parsed.image_count;
  raw_tokens_ += parsed.tokens;
  ++view_messages_;
  view_tokens_ += parsed.tokens.total();
  const auto bytes = static_cast<std::int64_t>(record.message->size());
  history_bytes_ += bytes;
  view_bytes_ += bytes;
  memory_bytes_ += bytes + kMessageMemoryBytes;
  messages_.push_back(std::move(message));
  ++version_;
}

absl::string_view Session::TextAt(std::int64_t sequence,
                                  absl::string_view message) const {
  if (sequence == message_count()) return message;
  return *messages_[static_cast<std::size_t>(sequence)].raw;
}

void Session::AddCalls(std::vector<ParsedCall> calls,
                       absl::string_view message) {
  for (ParsedCall& parsed : calls) {
    for (std::string& key : KeysOf(parsed)) {
      CallList& list = calls_of_key_[std::move(key)];
      list.open.insert(calls_.size());
      list.last = calls_.size();
    }
    Call call;
    call.sequence = message_count();
    call.turn = turn_count_;
    call.view_tokens_before = view_tokens_ + parsed.tokens_before;
    call.arguments_hash =
        absl::HashOf(parsed.tool, Part(message, parsed.arguments));
    call.call = std::move(parsed);
    calls_.push_back(std::move(call));
    ++batches_.back().open_call_count;
    memory_bytes_ += kCallMemoryBytes;
  }
}

std::size_t Session::FindCall(const ParsedResult& result) const {
  auto found = calls_of_key_.end();
  for (const std::string& key : KeysOf(result)) {
    found = calls_of_key_.find(key);
    if (found != calls_of_key_.end()) break;
  }
  CLERESTORY_CHECK(found != calls_of_key_.end());
  const CallList& list = found->second;
  if (list.open.empty()) return list.last;
  // Of the latest turn with an open one, the first.
  const std::int64_t turn = calls_[*list.open.rbegin()].turn;
  const auto first = std::ranges::lower_bound(calls_, turn, {}, &Call::turn);
  return *list.open.lower_bound(
      static_cast<std::size_t>(first - calls_.begin()));
}

void Session::Answer(std::size_t call) {
  for (const std::string& key : KeysOf(calls_[call].call)) {
    calls_of_key_[key].open.erase(call);
  }
  Batch& batch = batches_[static_cast<std::size_t>(calls_[call].turn)];
  --batch.open_call_count;
  batch.observations_end = observations_.size() + 1;
  calls_[call].first_observation = observations_.size();
}

void Session::AddObservations(std::vector<ParsedResult> results) {
  std::int64_t index = 0;
  std::int64_t observation_tokens = raw_tokens_.observations;
  for (ParsedResult& result : results) {
    Observation observation;
    observation.sequence = message_count();
    observation.index = index++;
    observation.call = FindCall(result);
    if (calls_[observation.call].observation_count++ == 0) {
      Answer(observation.call);
    }
    observation.tool = calls_[observation.call].call.tool;
    observation.turn = turn_count_;
    observation.batch = calls_[observation.call].turn;
    observation.view_tokens_before = view_tokens_ + result.tokens_before;
    observation.raw_tokens_before = raw_tokens_.total() + result.tokens_before;
    observation.observation_tokens_before = observation_tokens;
    observation.come_rent_base = read_price_sum_;
    observation_tokens += result.token_count;
    view_image_count_ += result.image_count;
    observation.result = std::move(result);
    ++TallyOf(observation.tool).observation_count;
    observations_.push_back(std::move(observation));
    memory_bytes_ += kObservationMemoryBytes;
  }
}

void Session::LinkCopies(std::size_t index, absl::string_view message) {
  const auto content = [&](std::size_t i) {
    const Observation& observation = observations_[i];
    const absl::string_view text = TextAt(observation.sequence, message);
    return std::pair(Part(text, observation.result.content),
                     Part(text, observation.result.attachments));
  };
  const auto has_content = [&](std::size_t a, std::size_t b) {
    return content(a) == content(b);
  };
  const auto has_call = [&](std::size_t a, std::size_t b) {
    if (observations_[a].call == observations_[b].call) return true;
    const Call& one = calls_[observations_[a].call];
    const Call& other = calls_[observations_[b].call];
    return Part(TextAt(one.sequence, message), one.call.arguments) ==
           Part(TextAt(other.sequence, message), other.call.arguments);
  };
  const auto link = [&](std::size_t hash, auto is_equal, auto& last_of,
                        auto member) {
    const auto [entry, is_new] = last_of.try_emplace(hash, index);
    if (is_new) return;
    Observation& earlier = observations_[entry->second];
    // Two with one hash by chance are told apart, and the later one is kept.
    if (earlier.tool == observations_[index].tool &&
        is_equal(entry->second, index)) {
      earlier.*member = index;
      copied_.insert(entry->second);
    }
    entry->second = index;
  };
  const Observation& observation = observations_[index];
  if (observation.result.token_count >= kMaskableTokensMin) {
    link(absl::HashOf(observation.tool, content(index)), has_content,
         last_of_content_, &Observation::next_identical);
  }
  if (observation.result.is_error) return;
  link(calls_[observation.call].arguments_hash, has_call, last_of_call_,
       &Observation::next_equal_call);
}

void Session::AddReasoning(std::vector<ParsedReasoning> reasoning) {
  for (ParsedReasoning& parsed : reasoning) {
    Reasoning added;
    added.sequence = message_count();
    added.turn = turn_count_;
    added.valid_tokens_before = valid_reasoning_tokens_;
    added.shown_tokens_before = shown_reasoning_tokens_;
    valid_reasoning_tokens_ += parsed.token_count;
    if (parsed.is_removable) {
      shown_reasoning_tokens_ += parsed.token_count;
    } else {
      last_fixed_reasoning_ = message_count();
    }
    added.reasoning = std::move(parsed);
    reasoning_.push_back(std::move(added));
    memory_bytes_ += kReasoningMemoryBytes;
  }
}

bool Session::BeginsWithPlaceholder(absl::string_view text) const {
  // The one that it begins with is the last of those that are not behind it,
  // unless that has more in common with it than the one has.
  while (text.size() >= kPlaceholderStemBytes) {
    const auto next = placeholders_.upper_bound(std::string(text));
    if (next == placeholders_.begin()) return false;
    const std::string& last = *std::prev(next);
    if (absl::StartsWith(text, last)) return true;
    const auto end = std::ranges::mismatch(text, last).in1;
    text = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  }
  return false;
}

bool Session::HasCopiedPlaceholder(absl::string_view message,
                                   const ParsedCall& call) const {
  const absl::string_view arguments =
      message.substr(call.arguments.offset, call.arguments.size);
  std::string stem;
  for (const std::string& placeholder : placeholders_) {
    // They are sorted, so those with one beginning follow one another.
    if (!stem.empty() && absl::StartsWith(placeholder, stem)) continue;
    stem = placeholder.substr(0, kPlaceholderStemBytes);
    for (std::size_t at = arguments.find(stem); at != absl::string_view::npos;
         at = arguments.find(stem, at + 1)) {
      if (BeginsWithPlaceholder(arguments.substr(at, kPlaceholderBytesMax))) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace clerestory
