// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_VIEW_H_
#define CLERESTORY_SERVER_VIEW_VIEW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/base/digest.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {

// The leading part of a view: so many messages, which have so many bytes and,
// by estimate and with the preamble, so many tokens.
struct ViewPrefix {
  std::int64_t message_count = 0;
  std::int64_t byte_count = 0;
  std::int64_t token_count = 0;
  Digest digest;
};

// What a model is to be sent of a session, and what can be said of it.
struct View {
  // One for each message of the history, in order, but for those that are
  // dropped whole; its very bytes, or with the contents of masked observations
  // replaced by placeholders.
  std::vector<Bytes> messages;
  ViewPrefix whole;
  // How the view begins as the one before it did; empty for the first one.
  ViewPrefix stable;
  // The sequence of the first message that this view's break changed; the
  // number of messages of the history if it made none.
  std::int64_t first_change = 0;
  // The sequence of the first message that a later break may still mask
  // something of. What a break shows again may stand before it.
  std::int64_t frontier = 0;
  // After which of `messages` the client should place cache marks, by index, in
  // order, at most three: the end of what no break will change, the end of what
  // this view has in common with the one before it, and the end. Without the
  // second, a provider that looks back only a few blocks from a mark would not
  // find what stands before a break; it is moved back to where an earlier view
  // ended if that is 20 blocks away or more. No mark is given behind fewer
  // tokens than are cached at all.
  std::vector<std::int64_t> cache_marks;
  // What was decided, with its masks.
  ViewServed decision;
};

// Returns the view of `session`, to which `decision` was just applied.
// `last_count` is how many messages the view before it had, 0 before the first;
// `frontier` is what FrontierOf says now; prompts of fewer than
// `cache_tokens_min` tokens are not cached.
//
// Deterministic and pure.
View DescribeView(const Session& session, ViewServed decision,
                  std::int64_t last_count, std::int64_t frontier,
                  std::int64_t cache_tokens_min = 0);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_VIEW_H_
