// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_SESSION_H_
#define CLERESTORY_SERVER_VIEW_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/digest.h"
#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/tokens/token_counter.h"
#include "server/view/cache.h"

namespace clerestory {

// An observation of fewer tokens is never masked: no placeholder worth reading
// is smaller.
inline constexpr std::int64_t kMaskableTokensMin = 8;

// What is not there.
inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// A tool call of the history.
struct Call {
  std::int64_t sequence = 0;  // Of the message that holds it.
  std::int64_t turn = 0;      // Counted from 1: which turn made it.
  // What its adapter found. Offsets are into the message as appended.
  ParsedCall call;
  // Among the observations: the first that answers it; kNone while it waits.
  std::size_t first_observation = kNone;
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
  std::int64_t sequence = 0;  // Of the message that holds it.
  std::int64_t index = 0;     // Among the results of that message.
  std::size_t call = kNone;   // Among the calls: which it answers.
  std::string tool;           // Name of the tool that was called.
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
  // The next observation with the same content from the same tool, and if it is
  // no error, the next one of an equal call that is none; kNone until there is
  // one.
  std::size_t next_identical = kNone;
  std::size_t next_equal_call = kNone;

  // Whether it is left out of the view, with its call.
  bool is_dropped = false;
  // Set while it is masked.
  std::optional<std::string> placeholder;
  std::int64_t placeholder_tokens = 0;
  TimeMicros mask_time = 0;
  BreakReason mask_reason = BreakReason::kNone;
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
  std::int64_t mask_count = 0;  // Observations, dropped ones included.
  std::int64_t drop_count = 0;
  std::int64_t argument_mask_count = 0;  // Calls.
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

// A session: its history, and what was decided about it. All of it follows from
// the header and the records, which Apply takes one by one, now or after a
// restart.
//
// A value that is copied when something is only to be tried. Not safe to use
// from two threads while one of them applies.
class Session {
 public:
  // `counter` must outlive the session.
  Session(SessionHeader header, const TokenCounter& counter);

  // Checks `messages` for appending behind the history, all or none, and
  // returns what their adapter found in them. To the client they are the
  // messages from `first_index` on.
  //
  // INVALID_ARGUMENT with the metadata `field` ("messages[2]"):
  // kMessageTooLarge, kMessageInvalid, or kResultWithoutCall for a result that
  // answers no call of the history. Pure.
  absl::StatusOr<std::vector<ParsedMessage>> CheckAppend(
      const std::vector<Bytes>& messages, std::size_t first_index = 0) const;

  // Adds a message that CheckAppend accepted.
  void Append(const MessageAppended& record, ParsedMessage parsed);

  // Takes over any record that is not a message.
  void Apply(const ViewServed& record);
  // Returns what the scale of the tenant and the model can learn from it, if
  // anything.
  std::optional<CalibrationSample> Apply(const UsageReported& record);
  void Apply(const SessionClosed& record);

  // Takes over a stored record. DATA_LOSS with kRecordCorrupt if it cannot
  // follow what was applied before.
  absl::Status Replay(const Record& record);

  const SessionHeader& header() const { return header_; }
  const std::vector<SessionMessage>& messages() const { return messages_; }
  const std::vector<Observation>& observations() const { return observations_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<Reasoning>& reasoning() const { return reasoning_; }
  // By turn, from 0: what precedes the first turn is no batch but has a place.
  const std::vector<Batch>& batches() const { return batches_; }
  const Ledger& ledger() const { return ledger_; }
  const TokenCounter& counter() const { return counter_; }
  const FormatAdapter& adapter() const { return AdapterFor(header_.format); }

  std::int64_t message_count() const {
    return static_cast<std::int64_t>(messages_.size());
  }
  // Number of records applied.
  std::int64_t version() const { return version_; }
  // Turns of the history: runs of assistant messages.
  std::int64_t turn_count() const { return turn_count_; }
  // Tokens of the history, by stage.
  const StageTokens& raw_tokens() const { return raw_tokens_; }
  // Bytes of the history.
  std::int64_t history_bytes() const { return history_bytes_; }
  // Tokens and bytes of the history as the last view shows it, with what was
  // appended since.
  std::int64_t view_tokens() const { return view_tokens_; }
  std::int64_t view_bytes() const { return view_bytes_; }
  // What masking calls' arguments and dropping calls has saved of them.
  std::int64_t saved_call_tokens() const { return saved_call_tokens_; }
  // What leaving out reasoning has saved.
  std::int64_t stripped_tokens() const { return stripped_tokens_; }
  // About how much memory it takes.
  std::int64_t memory_bytes() const { return memory_bytes_; }
  // The view that was served last; nothing before the first.
  const std::optional<ViewServed>& last_view() const { return last_view_; }
  // What was decided when it was served for the first time: asking for it again
  // decides nothing new, and is answered in the same way.
  const ViewServed& last_decision() const { return last_decision_; }
  // How many messages the view before that one had; 0 if it was the first.
  std::int64_t view_before_count() const { return view_before_count_; }
  // The sum of read prices over all calls: an eligible token's rent is what was
  // added since it became eligible.
  PicoUsd read_price_sum() const { return read_price_sum_; }
  // Observations that were eligible by age in the last view, from the first.
  std::int64_t eligible_count() const { return eligible_count_; }
  // Of those, which are not masked and may be, in order.
  const std::vector<std::size_t>& candidates() const { return candidates_; }
  // Whether `report` was the last one and no message was appended since: then
  // it is the same report again.
  bool IsReported(const UsageReported& report) const {
    return last_usage_.has_value() && last_usage_->usage == report.usage &&
           last_usage_->model == report.model;
  }
  // Observations that have a later copy, or an equal call, in order.
  const std::set<std::size_t>& copied() const { return copied_; }
  // What its providers' caches hold of it.
  const Cache& cache() const { return cache_; }
  // What its provider will count for messages of `message_tokens` by estimate
  // behind a preamble of `preamble_tokens` (SessionAnchor::Predict).
  std::int64_t PromptTokens(std::int64_t message_tokens,
                            std::int64_t preamble_tokens,
                            std::int64_t token_scale_ppm) const;
  // What masking in every turn would have saved of the messages so far.
  std::int64_t every_turn_saving() const { return every_turn_saving_; }
  // Sequence of the last message of which the view shows signed reasoning; -1
  // if there is none.
  std::int64_t last_thinking() const { return last_thinking_; }
  // Pictures that the last view still shows.
  std::int64_t view_image_count() const { return view_image_count_; }

  // Whether a view may have its first change in the message `sequence` on a
  // model that binds reasoning to its prefix, if all reasoning behind it that
  // can be left out is: what remains is not refused.
  bool CanStripFrom(std::int64_t sequence) const;
  // The first message from `sequence` on of which reasoning could be left out
  // and is not: what to put in ViewServed::strip_from. Nothing if there is
  // none, as in a format whose provider drops it by itself.
  std::optional<std::int64_t> StripFrom(std::int64_t sequence) const;
  // The tokens that leaving out the reasoning from the message `sequence` on
  // would save.
  std::int64_t StripSaving(std::int64_t sequence) const;
  // The tokens of the reasoning from the message `sequence` on that a change
  // there would make stale, whether it is left out or dropped by the provider.
  std::int64_t LostReasoning(std::int64_t sequence) const;
  // The first message of which the view shows reasoning that is stale and could
  // be left out. A model that binds reasoning refuses such a view, unless it is
  // told to drop it.
  std::optional<std::int64_t> stale_from() const { return stale_from_; }
  // Whether the view shows any reasoning that is stale.
  bool ShowsStaleReasoning() const;
  // Whether the last turn made calls that the model has not gone on from, and
  // has reasoning that no change made stale: a change now would take it from
  // the model while it needs it.
  bool IsMidTurn() const;

  // The digest of the first `count` messages as the last view shows them.
  Digest ViewDigest(std::int64_t count) const;
  // The sequence of the first message that `masks` change, which are in place;
  // the number of messages if there are none.
  std::int64_t FirstChange(const std::vector<Mask>& masks) const;
  // The same of all that `view` changed.
  std::int64_t FirstChange(const ViewServed& view) const;
  // The tokens that `masks`, which are in place, have saved.
  std::int64_t SavingOf(const std::vector<Mask>& masks) const;
  // How many of the first `count` messages the last view shows, dropped ones
  // being left out.
  std::int64_t ViewMessages(std::int64_t count) const;
  // Their bytes.
  std::int64_t ViewBytes(std::int64_t count) const;
  // Their tokens, without the preamble.
  std::int64_t ViewTokens(std::int64_t count) const;

 private:
  // Whether `view` can follow what was applied.
  absl::Status CheckView(const ViewServed& view) const;
  void SetMask(const Mask& mask, const ViewServed& view);
  // Which observation `mask` is about.
  std::size_t IndexOf(const Mask& mask) const;
  // The call that `result` answers, among calls(): of those with its id, or of
  // its tool if it has none, the first one open of the latest turn with any; or
  // the last one, which then has two results.
  std::size_t FindCall(const ParsedResult& result) const;
  // The message `sequence`: `message` if it is only being appended.
  absl::string_view TextAt(std::int64_t sequence,
                           absl::string_view message) const;
  void AddCalls(std::vector<ParsedCall> calls, absl::string_view message);
  void AddObservations(std::vector<ParsedResult> results);
  void AddReasoning(std::vector<ParsedReasoning> reasoning);
  // Among the reasoning, the first from the message `sequence` on.
  std::size_t ReasoningFrom(std::int64_t sequence) const;
  // Notes what `view` leaves out, and that what stands behind its first change,
  // in the message `change`, is stale.
  void Strip(const ViewServed& view, std::int64_t change);
  void Answer(std::size_t call);
  // Tells the earlier copies of the observation at `index`, which stands in
  // `message`, that it is there.
  void LinkCopies(std::size_t index, absl::string_view message);
  // Whether a placeholder of the session stands at the beginning of `text`.
  bool BeginsWithPlaceholder(absl::string_view text) const;
  // Whether the arguments of `call` hold a placeholder of the session.
  bool HasCopiedPlaceholder(absl::string_view message,
                            const ParsedCall& call) const;
  // What the view of `message` replaces in it, in order.
  std::vector<Replacement> Edits(const SessionMessage& message) const;
  // Sets where the calls and observations of `message` stand in the view, which
  // has view_tokens_ before it, and returns the tokens that it saves.
  std::int64_t PlaceParts(SessionMessage& message);
  // Whether nothing of `message` is left.
  bool IsDropped(const SessionMessage& message) const;
  // Renders messages and sums anew from the message `first` on.
  void Render(std::int64_t first);
  void AdvanceEligible(const ViewServed& view);
  // How many tokens of a prompt stand before what `record` changes of the view,
  // or of one in which everything is masked in every turn.
  std::int64_t ViewChange(const ViewServed& record) const;
  std::int64_t EveryTurnChange(const ViewServed& record) const;
  void NoteBreak(const ViewServed& record, PicoUsd read_price_sum,
                 std::int64_t stripped_tokens);
  // Adds what was reported of the last view to the ledger.
  void Compare(std::int64_t reported);
  // Sets what the caches hold of the last view to what is known of it now.
  void RebaseCache();

  SessionHeader header_;
  const TokenCounter& counter_;
  std::vector<SessionMessage> messages_;
  std::vector<Observation> observations_;
  std::vector<Call> calls_;
  std::vector<Reasoning> reasoning_;
  std::vector<Batch> batches_ = {{}};
  // The calls that a result may mean, in order.
  struct CallList {
    std::set<std::size_t> open;
    std::size_t last = kNone;
  };
  // By KeysOf.
  std::unordered_map<std::string, CallList> calls_of_key_;
  // All placeholders that the session has, as the inside of JSON strings.
  std::set<std::string> placeholders_;
  Ledger ledger_;
  std::int64_t version_ = 0;
  // The last record was applied; the header may have said so before.
  bool is_closed_ = false;
  std::int64_t turn_count_ = 0;
  StageTokens raw_tokens_;
  std::int64_t history_bytes_ = 0;
  std::int64_t view_messages_ = 0;
  std::int64_t view_tokens_ = 0;
  std::int64_t view_bytes_ = 0;
  std::int64_t saved_call_tokens_ = 0;
  std::int64_t stripped_tokens_ = 0;
  std::int64_t memory_bytes_ = 0;
  std::optional<ViewServed> last_view_;
  ViewServed last_decision_;
  // Absent once a message was appended.
  std::optional<UsageReported> last_usage_;
  std::int64_t view_before_count_ = 0;
  PicoUsd read_price_sum_ = 0;
  std::int64_t eligible_count_ = 0;
  std::vector<std::size_t> candidates_;
  // By tool and content, and by tool and arguments: the last observation.
  // By hashes, which differ from process to process and decide nothing alone.
  std::unordered_map<std::size_t, std::size_t> last_of_content_;
  std::unordered_map<std::size_t, std::size_t> last_of_call_;
  std::set<std::size_t> copied_;
  Cache cache_;
  SessionAnchor anchor_;
  std::int64_t every_turn_saving_ = 0;
  std::int64_t last_thinking_ = -1;
  // The message of the last reasoning that cannot be left out; -1 if there is
  // none.
  std::int64_t last_fixed_reasoning_ = -1;
  std::optional<std::int64_t> stale_from_;
  std::int64_t valid_reasoning_tokens_ = 0;
  std::int64_t shown_reasoning_tokens_ = 0;
  std::int64_t view_image_count_ = 0;
};

// What `arguments` save in place of `before`, both as JSON values.
std::int64_t ArgumentsSaving(absl::string_view before,
                             absl::string_view arguments,
                             const TokenCounter& counter);

// Adds what `part` reports to `sum`; a class that is absent in both stays so.
void AddUsage(const Usage& part, Usage& sum);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_SESSION_H_
