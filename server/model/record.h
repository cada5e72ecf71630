// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_RECORD_H_
#define CLERESTORY_SERVER_MODEL_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"

namespace clerestory {

// A session is its header and a log of records; all else is derived from them.
// What is decided is recorded with what it was decided on, so that a replay by
// a later version, with other prices or another estimate of tokens, gives the
// same views.

// Which session. Two sessions of one name under two tenants have nothing in
// common.
struct SessionKey {
  std::string tenant;
  std::string session;

  friend bool operator==(const SessionKey&, const SessionKey&) = default;
  friend auto operator<=>(const SessionKey&, const SessionKey&) = default;
};

// What a client says of its session, for policies to match: values by key.
using Labels = std::map<std::string, std::string>;

// How a session ended. The numbers are stored.
enum class Outcome {
  kOpen = 0,
  kResolved = 1,
  kFailed = 2,
  kAbandoned = 3,
};

// What a session is created with, and how it ended.
struct SessionHeader {
  SessionKey key;
  Format format = Format::kUnspecified;
  std::string model;
  TimeMicros create_time = 0;
  Outcome outcome = Outcome::kOpen;
  TimeMicros close_time = 0;  // 0 while open.
  Labels labels = {};
  // Whether its model has the tool that recalls what is masked
  // (formats/recall_tool.h): then placeholders say what to recall.
  bool has_recall_tool = false;
  // What it came to; nothing while it is open, or if it was closed before this
  // was kept.
  SessionTotals totals = {};

  friend bool operator==(const SessionHeader&, const SessionHeader&) = default;
};

// A message was appended. Its sequence is the number of messages before it.
struct MessageAppended {
  TimeMicros time = 0;
  Bytes message;
};

// Why a view differs from the one before it before its end. The numbers are
// stored.
enum class BreakReason {
  kNone = 0,          // It does not.
  kPays = 1,          // The rent of what it masks has reached its price.
  kCacheCold = 2,     // Free: nothing of the last view is cached any more.
  kModelChanged = 3,  // Free: another model has a cache of its own.
  kWindow = 4,        // Forced: the view would not fit the model's window.
  kSchedule =
      5,  // The policy's mode asks for it: block, threshold, every turn.
  kPreambleChanged = 6,  // Free: what stands before the messages is another.
  kCacheMissed = 7,      // Free: the provider reported that nothing is cached.
};
inline constexpr std::size_t kBreakReasonCount = 8;

// An observation that is masked from now on, and by what; or its call; or both.
// Or one that is shown again, with its call as it was.
struct Mask {
  std::int64_t sequence = 0;  // Of the message that holds the observation.
  std::int64_t index = 0;     // Among the results of that message.
  // What stands in place of the observation; "" if it stays.
  std::string placeholder = {};
  // The JSON value that stands in place of its call's arguments; "" if they
  // stay.
  std::string arguments = {};
  // Whether the observation and its call are left out altogether; then there is
  // neither a placeholder nor a value.
  bool is_dropped = false;
  // Whether what was masked of it and of its call is shown again; then the
  // placeholder and the value are those that no longer stand there.
  bool is_restored = false;

  friend bool operator==(const Mask&, const Mask&) = default;
};

// The tokens of one model call, by what the provider's cache does with them.
struct CallTokens {
  std::int64_t read = 0;      // Found in the cache.
  std::int64_t written = 0;   // Not found, and written to it.
  std::int64_t uncached = 0;  // Neither: too short for it, or there is none.

  std::int64_t total() const { return read + written + uncached; }
  friend bool operator==(const CallTokens&, const CallTokens&) = default;
};

// A view was served. Written before the view is answered.
struct ViewServed {
  TimeMicros time = 0;
  std::string model;
  // Messages of the history that the view covers.
  std::int64_t message_count = 0;
  // False if nothing was appended since the view before: the same model call
  // again, which adds nothing to rent or ledger.
  bool is_new_call = true;
  // Whether the session was of the policy's control group then.
  bool is_control = false;
  // Observations, counted from the first, that were eligible by age.
  std::int64_t eligible_count = 0;
  // What a token in the cache cost this call: the rent of one eligible token.
  PicoUsd read_price = 0;

  BreakReason break_reason = BreakReason::kNone;
  // The price of the break and the rent that had accrued, when it was priced.
  PicoUsd break_price = 0;
  PicoUsd break_rent = 0;
  std::vector<Mask> masks;
  // The reasoning of this message, and of all behind it that the view covers,
  // is left out from now on, since what stands before it was changed.
  std::optional<std::int64_t> strip_from;

  // What the client says that its preamble is, "" if it does not: another value
  // is another preamble.
  std::string preamble_digest;
  // From when on the life of what is cached runs.
  TimeMicros cache_time = 0;
  // What a token of the estimates below was taken for, in millionths of one of
  // the provider's; 0 if nothing had been learned of it yet, which is one.
  std::int64_t token_scale_ppm = 0;

  // What was estimated of this call, for the ledger.
  std::int64_t preamble_tokens = 0;
  StageTokens raw_tokens;
  StageTokens view_tokens;
  // In tokens of the provider, as far as they are known.
  CallTokens raw_call;  // As if nothing had ever been masked.
  CallTokens view_call;
  PicoUsd raw_cost = 0;
  PicoUsd view_cost = 0;
  // As if all that the policy does not keep had been masked as soon as it could
  // be, with the tokens that this would have saved of the messages so far.
  CallTokens every_turn_call;
  std::int64_t every_turn_saving = 0;
  PicoUsd every_turn_cost = 0;
  // The output of the call before, as far as it was appended since.
  std::int64_t output_tokens = 0;
  PicoUsd output_cost = 0;

  friend bool operator==(const ViewServed&, const ViewServed&) = default;
};

// What a provider billed for one call, in its tokens. Absent is not zero.
struct Usage {
  std::optional<std::int64_t> input_uncached;
  std::optional<std::int64_t> cache_read;
  std::optional<std::int64_t> cache_write;
  std::optional<std::int64_t> output;
  std::optional<std::int64_t> reasoning;  // Part of the output.

  friend bool operator==(const Usage&, const Usage&) = default;
};

// The provider's usage for a call was reported.
struct UsageReported {
  TimeMicros time = 0;
  std::string model;
  Usage usage;
  // What that costs at the model's prices; absent if too little was reported.
  std::optional<PicoUsd> cost = {};

  friend bool operator==(const UsageReported&, const UsageReported&) = default;
};

// Which observation: the message that holds it, and the place among the results
// of that message.
struct ObservationId {
  std::int64_t sequence = 0;
  std::int64_t index = 0;

  friend bool operator==(const ObservationId&, const ObservationId&) = default;
  friend auto operator<=>(const ObservationId&, const ObservationId&) = default;
};

// An observation that was just appended repeats an earlier one.
struct ObservationRepeated {
  TimeMicros time = 0;
  ObservationId later;
  ObservationId earlier;
  RepeatKind kind = RepeatKind::kNone;
  // What fetching it again cost, if it is a re-fetch: its part of the model
  // call that asked, the call's output and its writing to the cache.
  PicoUsd cost = 0;

  friend bool operator==(const ObservationRepeated&,
                         const ObservationRepeated&) = default;
};

// The agent read an original back from the service.
struct ObservationRecalled {
  TimeMicros time = 0;
  ObservationId observation;
  // As in ObservationRepeated, if it was masked, and was not recalled before:
  // reading it on is one recall.
  PicoUsd cost = 0;

  friend bool operator==(const ObservationRecalled&,
                         const ObservationRecalled&) = default;
};

// What is not masked, from now on, or no longer for this reason: an
// observation, or all of a tool, or all of a resource. Exactly one is set.
struct Pin {
  std::optional<ObservationId> observation = {};
  std::string tool = {};
  std::string resource = {};

  friend bool operator==(const Pin&, const Pin&) = default;
  friend auto operator<=>(const Pin&, const Pin&) = default;
};

// A pin was set, or taken away.
struct PinChanged {
  TimeMicros time = 0;
  Pin pin = {};
  bool is_pinned = true;

  friend bool operator==(const PinChanged&, const PinChanged&) = default;
};

// The session was closed. It is the last record.
struct SessionClosed {
  TimeMicros time = 0;
  Outcome outcome = Outcome::kResolved;
  SessionTotals totals = {};

  friend bool operator==(const SessionClosed&, const SessionClosed&) = default;
};

using Record =
    std::variant<MessageAppended, ViewServed, UsageReported, SessionClosed,
                 ObservationRepeated, ObservationRecalled, PinChanged>;

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_RECORD_H_
