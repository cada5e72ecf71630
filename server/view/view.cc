// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/view.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// How many blocks Anthropic's cache looks back from a mark
// (platform.claude.com, prompt caching, "How automatic prefix checking works").
constexpr std::int64_t kLookBackBlocks = 20;

ViewPrefix PrefixOf(const Session& session, std::int64_t count,
                    const ViewServed& decision) {
  return {.message_count = session.ViewMessages(count),
          .byte_count = session.ViewBytes(count),
          .token_count = session.PromptTokens(session.ViewTokens(count),
                                              decision.preamble_tokens,
                                              decision.token_scale_ppm),
          .digest = session.ViewDigest(count)};
}

// Where to mark what a view has in common with the one before it, which is its
// first `stable` messages. An entry of the cache ends where an earlier view
// did, and is found from a mark that is not too many blocks behind it; where
// there are more, that end is marked.
std::int64_t StableMark(const Session& session, std::int64_t stable) {
  std::int64_t blocks = 0;
  for (std::int64_t end = stable; end > 0; --end) {
    const auto i = static_cast<std::size_t>(end);
    // A view ended before each turn of the model.
    const bool is_view_end =
        i == session.messages().size() ||
        (session.messages()[i].role == Role::kAssistant &&
         session.messages()[i - 1].role != Role::kAssistant);
    if (is_view_end) return blocks >= kLookBackBlocks ? end : stable;
    blocks += session.messages()[i - 1].part_count;
  }
  return stable;
}

}  // namespace

View DescribeView(const Session& session, ViewServed decision,
                  std::int64_t last_count, std::int64_t frontier,
                  std::int64_t cache_tokens_min) {
  View view;
  view.messages.reserve(session.messages().size());
  for (const SessionMessage& message : session.messages()) {
    if (message.view != nullptr) view.messages.push_back(message.view);
  }
  view.whole = PrefixOf(session, session.message_count(), decision);
  view.first_change = session.FirstChange(decision);
  const std::int64_t stable = std::min(last_count, view.first_change);
  if (stable > 0) {
    view.stable = PrefixOf(session, stable, decision);
  }
  view.frontier = frontier;
  for (const std::int64_t end :
       {view.frontier, StableMark(session, stable), session.message_count()}) {
    const ViewPrefix prefix = PrefixOf(session, end, decision);
    if (prefix.message_count == 0 || prefix.token_count < cache_tokens_min) {
      continue;
    }
    view.cache_marks.push_back(prefix.message_count - 1);
  }
  std::ranges::sort(view.cache_marks);
  const auto repeated = std::ranges::unique(view.cache_marks);
  view.cache_marks.erase(repeated.begin(), repeated.end());
  view.decision = std::move(decision);
  return view;
}

}  // namespace clerestory
