// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How a session's messages look with what is masked and dropped.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/digest.h"
#include "server/formats/edit.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/view/session.h"

namespace clerestory {

std::vector<Replacement> Session::Edits(const SessionMessage& message) const {
  std::vector<Replacement> edits;
  std::vector<ByteSpan> removed;
  for (std::size_t i = 0; i < message.call_count; ++i) {
    const Call& call = calls_[message.first_call + i];
    if (call.is_dropped) removed.push_back(call.call.element);
    if (call.is_dropped || !call.arguments.has_value()) continue;
    edits.push_back({.at = call.call.arguments, .value = *call.arguments});
  }
  for (std::size_t i = 0; i < message.observation_count; ++i) {
    const Observation& observation =
        observations_[message.first_observation + i];
    if (observation.is_dropped) removed.push_back(observation.result.element);
    if (observation.is_dropped || !observation.placeholder.has_value()) {
      continue;
    }
    for (Replacement& edit : adapter().Mask(*message.raw, observation.result,
                                            *observation.placeholder)) {
      edits.push_back(std::move(edit));
    }
  }
  for (std::size_t i = 0; i < message.reasoning_count; ++i) {
    const Reasoning& reasoning = reasoning_[message.first_reasoning + i];
    if (!reasoning.is_stripped) continue;
    removed.push_back(reasoning.reasoning.element);
  }
  if (removed.empty()) return edits;
  std::ranges::sort(removed, {}, &ByteSpan::offset);
  for (Replacement& removal : RemoveElements(*message.raw, removed)) {
    edits.push_back(std::move(removal));
  }
  std::ranges::sort(edits, {},
                    [](const Replacement& edit) { return edit.at.offset; });
  return edits;
}

std::int64_t Session::PlaceParts(SessionMessage& message) {
  std::int64_t saved = 0;
  std::size_t next = message.first_reasoning;
  const std::size_t end = next + message.reasoning_count;
  const auto strip_before = [&](std::size_t offset) {
    for (; next < end && reasoning_[next].reasoning.element.offset < offset;
         ++next) {
      if (!reasoning_[next].is_stripped) continue;
      saved += reasoning_[next].reasoning.token_count;
      stripped_tokens_ += reasoning_[next].reasoning.token_count;
    }
  };
  for (std::size_t i = 0; i < message.call_count; ++i) {
    Call& call = calls_[message.first_call + i];
    strip_before(call.call.element.offset);
    call.view_tokens_before = view_tokens_ + call.call.tokens_before - saved;
    const std::int64_t saving =
        call.is_dropped ? call.call.token_count : call.arguments_saving;
    saved += saving;
    saved_call_tokens_ += saving;
  }
  for (std::size_t i = 0; i < message.observation_count; ++i) {
    Observation& observation = observations_[message.first_observation + i];
    observation.view_tokens_before =
        view_tokens_ + observation.result.tokens_before - saved;
    if (observation.is_dropped) {
      saved += observation.result.token_count;
    } else if (observation.placeholder.has_value()) {
      saved += observation.result.token_count - observation.placeholder_tokens;
    }
  }
  strip_before(message.raw->size());
  return saved;
}

bool Session::IsDropped(const SessionMessage& message) const {
  std::int64_t dropped = 0;
  for (std::size_t i = 0; i < message.call_count; ++i) {
    if (calls_[message.first_call + i].is_dropped) ++dropped;
  }
  for (std::size_t i = 0; i < message.observation_count; ++i) {
    if (observations_[message.first_observation + i].is_dropped) ++dropped;
  }
  for (std::size_t i = 0; i < message.reasoning_count; ++i) {
    if (reasoning_[message.first_reasoning + i].is_stripped) ++dropped;
  }
  return dropped > 0 && dropped == message.part_count;
}

void Session::Render(std::int64_t first) {
  const auto start = static_cast<std::size_t>(first);
  if (start == messages_.size()) return;
  view_messages_ = messages_[start].view_messages_before;
  view_bytes_ = messages_[start].view_bytes_before;
  view_tokens_ = messages_[start].view_tokens_before;
  saved_call_tokens_ = messages_[start].saved_call_tokens_before;
  stripped_tokens_ = messages_[start].stripped_tokens_before;
  Digest digest = ViewDigest(first);
  for (std::size_t m = start; m < messages_.size(); ++m) {
    SessionMessage& message = messages_[m];
    message.view_messages_before = view_messages_;
    message.view_bytes_before = view_bytes_;
    message.view_tokens_before = view_tokens_;
    message.saved_call_tokens_before = saved_call_tokens_;
    message.stripped_tokens_before = stripped_tokens_;
    const std::int64_t saved = PlaceParts(message);
    const auto own_bytes = [&] {
      return message.view == nullptr || message.view == message.raw
                 ? std::size_t{0}
                 : message.view->size();
    };
    memory_bytes_ -= static_cast<std::int64_t>(own_bytes());
    if (IsDropped(message)) {
      message.view = nullptr;
    } else if (const std::vector<Replacement> edits = Edits(message);
               !edits.empty()) {
      message.view =
          std::make_shared<const std::string>(Splice(*message.raw, edits));
    } else {
      message.view = message.raw;
    }
    memory_bytes_ += static_cast<std::int64_t>(own_bytes());
    if (message.view != nullptr) {
      ++view_messages_;
      view_bytes_ += static_cast<std::int64_t>(message.view->size());
      digest = digest.Then(Digest::Of(*message.view));
    }
    view_tokens_ += message.tokens.total() - saved;
    message.view_digest = digest;
  }
}

}  // namespace clerestory
