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

ViewPrefix PrefixOf(const Session& session, std::int64_t count,
                    std::int64_t preamble_tokens) {
  return {.message_count = session.ViewMessages(count),
          .byte_count = session.ViewBytes(count),
          .token_count = preamble_tokens + session.ViewTokens(count),
          .digest = session.ViewDigest(count)};
}

}  // namespace

View DescribeView(const Session& session, ViewServed decision,
                  std::int64_t last_count, std::int64_t frontier) {
  View view;
  view.messages.reserve(session.messages().size());
  for (const SessionMessage& message : session.messages()) {
    if (message.view != nullptr) view.messages.push_back(message.view);
  }
  view.whole =
      PrefixOf(session, session.message_count(), decision.preamble_tokens);
  view.first_change = session.FirstChange(decision);
  const std::int64_t stable = std::min(last_count, view.first_change);
  if (stable > 0) {
    view.stable = PrefixOf(session, stable, decision.preamble_tokens);
  }
  view.frontier = frontier;
  for (const std::int64_t end :
       {view.frontier, stable, session.message_count()}) {
    const std::int64_t shown = session.ViewMessages(end);
    if (shown > 0) view.cache_marks.push_back(shown - 1);
  }
  std::ranges::sort(view.cache_marks);
  const auto repeated = std::ranges::unique(view.cache_marks);
  view.cache_marks.erase(repeated.begin(), repeated.end());
  view.decision = std::move(decision);
  return view;
}

}  // namespace clerestory
