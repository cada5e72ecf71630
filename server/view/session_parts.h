// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_SESSION_PARTS_H_
#define CLERESTORY_SERVER_VIEW_SESSION_PARTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "server/base/digest.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"

// What a session consists of. The values are a Session's to set.

namespace clerestory {

// An observation of fewer tokens is never masked: no placeholder worth reading
// is smaller.
inline constexpr std::int64_t kMaskableTokensMin = 8;

// What is not there.
inline constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

// A tool call of the history.
struct Call {
  std::int64_t sequence = 0;  // Of the message that holds it.
  std::int64_t turn = 0;      // Counted from 1: which turn made it.
  // What its adapter found. Offsets are into the message as appended.
  ParsedCall call;
  // Among the observations: the first that answers it; kNoIndex while it waits.
  std::size_t first_observation = kNoIndex;
  std::int64_t observation_count = 0;
  // Tokens before it, as in Observation.
  std::int64_t view_tokens_before = 0;
  // Of its tool and its arguments: calls that are equal have equal ones.
  std::size_t arguments_hash = 0;

  // The JSON value that stands in place of its arguments, if any does.
  std::optional<std::string> arguments;
  std::int64_t arguments_saving = 0;
  bool is_dropped = false;
};

// The calls of a turn and what answers them are a batch, and are masked
// together.
struct Batch {
  std::int64_t open_call_count = 0;
  // Behind the last observation that was the first to answer a call.
  std::size_t observations_end = 0;
  // Whether reasoning that is signed stands in the turn.
  bool has_thinking = false;
};

// A tool result of the history.
struct Observation {
  std::int64_t sequence = 0;    // Of the message that holds it.
  std::int64_t index = 0;       // Among the results of that message.
  std::size_t call = kNoIndex;  // Among the calls: which it answers.
  std::string tool;             // Name of the tool that was called.
  // Turns begun before it. A late result comes in a later turn than its call.
  std::int64_t turn = 0;
  // The turn of its call.
  std::int64_t batch = 0;
  // What its adapter found. Offsets are into the message as appended.
  ParsedResult result;
  // Tokens before it in the history as the last view shows it, without the
  // preamble.
  std::int64_t view_tokens_before = 0;
  // Tokens before it in the history, and those of observations alone.
  std::int64_t raw_tokens_before = 0;
  std::int64_t observation_tokens_before = 0;
  // The sum of read prices before the call in which it was first eligible.
  PicoUsd rent_base = 0;
  // The same before the call that it came for.
  PicoUsd come_rent_base = 0;
  // The same behind the call in which it was shown again last: what was masked
  // paid nothing. 0 if it never was.
  PicoUsd restore_rent_base = 0;
  // The next observation with the same content from the same tool, and if it is
  // no error, the next one of an equal call that is none; kNoIndex until there
  // is one.
  std::size_t next_identical = kNoIndex;
  std::size_t next_equal_call = kNoIndex;

  // Whether it is left out of the view, with its call.
  bool is_dropped = false;
  // Set while it is masked.
  std::optional<std::string> placeholder;
  std::int64_t placeholder_tokens = 0;
  TimeMicros mask_time = 0;
  BreakReason mask_reason = BreakReason::kNone;
  // Whether it ever was masked; and whether the agent fetched it again then, or
  // recalled it.
  bool was_masked = false;
  bool is_refetched = false;
  bool is_recalled = false;
};

// Reasoning of the history that its provider may bind to its prefix.
struct Reasoning {
  std::int64_t sequence = 0;  // Of the message that holds it.
  std::int64_t turn = 0;      // Which turn it is of.
  // What its adapter found. Offsets are into the message as appended.
  ParsedReasoning reasoning;
  // Whether a message before it was changed since it was made: a provider that
  // binds it no longer takes it.
  bool is_stale = false;
  // Whether it is left out of the view. Then it is stale, too.
  bool is_stripped = false;
  // The tokens of what stands before it and is not stale; and of what could be
  // left out and is not.
  std::int64_t valid_tokens_before = 0;
  std::int64_t shown_tokens_before = 0;

  bool IsStrippable() const { return reasoning.is_removable && !is_stripped; }
};

// A message of the history, and how the last view shows it.
struct SessionMessage {
  Bytes raw;
  // `raw` itself unless something in it is masked; null if all of it is
  // dropped.
  Bytes view;
  TimeMicros time = 0;
  Role role = Role::kUser;
  StageTokens tokens;
  std::size_t first_observation = 0;  // Into Session::observations().
  std::size_t observation_count = 0;
  std::size_t first_call = 0;  // Into Session::calls().
  std::size_t call_count = 0;
  std::size_t first_reasoning = 0;  // Into Session::reasoning().
  std::size_t reasoning_count = 0;
  std::int64_t part_count = 0;  // As in ParsedMessage.
  // What stands before it in the history as the last view shows it.
  std::int64_t view_messages_before = 0;
  std::int64_t view_bytes_before = 0;
  std::int64_t view_tokens_before = 0;
  std::int64_t saved_call_tokens_before = 0;
  std::int64_t stripped_tokens_before = 0;
  Digest view_digest;  // Of the view up to and with this message.
};

// A break that was made.
struct BreakEntry {
  TimeMicros time = 0;
  std::int64_t message_count = 0;   // Of the history then.
  std::int64_t first_sequence = 0;  // Of the first message that it changed.
  BreakReason reason = BreakReason::kNone;
  PicoUsd price = 0;
  PicoUsd rent = 0;
  std::int64_t mask_count = 0;
  // Of the provider's, what was stripped included.
  std::int64_t saved_tokens = 0;
  // The sum of read prices before the call that it was made for: what it has
  // saved so far is its tokens times what was added since.
  PicoUsd read_price_sum = 0;
};
inline constexpr std::size_t kBreakEntriesMax = 100;

// What came of a tool's observations in a session.
struct ToolTally {
  std::int64_t observation_count = 0;
  // Observations that were masked, each counted once, though it was shown again
  // since; and how many of them the agent fetched again or recalled.
  std::int64_t mask_count = 0;
  std::int64_t refetched_count = 0;
  // How often its observations were asked for again, by RepeatKind, and
  // recalled while they were masked.
  std::array<std::int64_t, kRepeatKindCount> repeats = {};
  std::int64_t recall_count = 0;
  // The turns between a re-fetch and what it fetched again, summed.
  std::int64_t refetch_turns = 0;
  // Tokens that placeholders of its observations keep out of the view, of the
  // session's estimates.
  std::int64_t masked_tokens = 0;
  // What that saved of the calls so far, less its part of what breaks cost, and
  // what re-fetches and recalls cost.
  PicoUsd saved = 0;
  PicoUsd lost = 0;

  // Re-fetches and recalls.
  std::int64_t fetch_count() const {
    return repeats[static_cast<std::size_t>(RepeatKind::kRefetch)] +
           recall_count;
  }
};

// The most tools of a session that are told apart by name; names come from
// clients and may be anything.
inline constexpr std::size_t kSessionToolsMax = 256;
// The most pins of a session.
inline constexpr std::size_t kSessionPinsMax = 1'000;
// The most of them that are resources: each is compared with what calls do.
inline constexpr std::size_t kSessionResourcePinsMax = 32;
// After so many changes of its pins a session takes no more pins; what is
// pinned can still be unpinned.
inline constexpr std::int64_t kSessionPinChangesMax = 10'000;

// What a session has used, raw (as if nothing were masked) against view. Sums
// over its model calls; money and tokens are estimates, but for what was
// reported.
struct Ledger {
  std::int64_t call_count = 0;
  std::int64_t preamble_tokens = 0;
  StageTokens raw_tokens;
  StageTokens view_tokens;
  CallTokens raw_call;
  CallTokens view_call;
  PicoUsd raw_cost = 0;
  PicoUsd view_cost = 0;
  // As if all that was old enough had been masked in every turn.
  CallTokens every_turn_call;
  PicoUsd every_turn_cost = 0;
  std::int64_t output_tokens = 0;
  PicoUsd output_cost = 0;
  std::array<std::int64_t, kBreakReasonCount> breaks = {};  // By BreakReason.
  // Observations that are masked, dropped ones included.
  std::int64_t mask_count = 0;
  std::int64_t restore_count = 0;  // Observations that were shown again.
  std::int64_t drop_count = 0;
  // Calls whose arguments were masked, though they were shown again since.
  std::int64_t argument_mask_count = 0;
  // Calls with a placeholder of the session in their arguments: the model has
  // copied it.
  std::int64_t copied_placeholder_count = 0;
  std::int64_t usage_count = 0;
  // Sums of what was reported; a class that never was stays absent.
  Usage usage;
  PicoUsd usage_cost = 0;
  // Of the calls whose whole input was reported: how many, what was estimated
  // and what was reported of them, and the sum of the differences, each taken
  // as positive.
  std::int64_t compared_count = 0;
  std::int64_t estimated_tokens = 0;
  std::int64_t reported_tokens = 0;
  std::int64_t error_tokens = 0;
  // The newest breaks, at most kBreakEntriesMax, oldest first.
  std::deque<BreakEntry> break_entries;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_SESSION_PARTS_H_
