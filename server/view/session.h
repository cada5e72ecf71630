// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_SESSION_H_
#define CLERESTORY_SERVER_VIEW_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
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
#include "server/model/repeat.h"
#include "server/model/tool_outcome.h"
#include "server/refetch/detector.h"
#include "server/tokens/token_counter.h"
#include "server/view/cache.h"
#include "server/view/pinned_resources.h"
#include "server/view/session_parts.h"

namespace clerestory {

// A session: its history, and what was decided about it. All of it follows from
// the header and the records, which Apply takes one by one, now or after a
// restart.
//
// A value that is copied when something is only to be tried. Not safe to use
// from two threads.
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
  void Apply(const ObservationRepeated& record);
  void Apply(const ObservationRecalled& record);
  void Apply(const PinChanged& record);

  // Tells what the observation at `index` repeats, by what `rule_of` says of
  // tools and else by the tables. REQUIRES: it was not asked of this one or one
  // behind it.
  Repeat FindRepeat(std::size_t index, RepeatDetector::RuleOf rule_of);

  // What came of masking tools since this was asked last, or since the session
  // was made; the tools in the order of their names.
  std::vector<ToolOutcome> TakeToolOutcomes();
  // Whether observations were masked, or fetched again, among it.
  bool HasToolOutcome() const;

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
  // By name, the first kSessionToolsMax that there were; and all others.
  const std::map<std::string, ToolTally>& tools() const { return tools_; }
  const ToolTally& other_tools() const { return other_tools_; }
  const std::set<Pin>& pins() const { return pins_; }
  // How many of them are resources; and how often pins were set or taken away.
  std::size_t resource_pin_count() const { return pinned_resources_.size(); }
  std::int64_t pin_change_count() const { return pin_change_count_; }
  // Whether the pin of a resource keeps what the call at `index` of calls()
  // gives. What the call does is found once, when this is asked while any
  // resource is pinned, by what `rule_of` says of its tool then.
  bool IsResourcePinned(std::size_t index,
                        RepeatDetector::RuleOf rule_of) const;
  // The number of views with a new call that were served to a member of the
  // control group.
  std::int64_t control_call_count() const { return control_call_count_; }
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
  std::int64_t memory_bytes() const {
    return memory_bytes_ + detector_.memory_bytes() +
           pinned_resources_.memory_bytes();
  }
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

  // Among the observations, the one with this id; nothing if there is none.
  std::optional<std::size_t> Find(const ObservationId& id) const;
  // The arguments of the call at `index` of calls(), as appended: a JSON value,
  // or nothing.
  absl::string_view ArgumentsOf(std::size_t index) const;

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
  // DATA_LOSS with kRecordCorrupt.
  static absl::Status Corrupt(absl::string_view what);
  // Whether `view` can follow what was applied.
  absl::Status CheckView(const ViewServed& view) const;
  void SetMask(const Mask& mask, const ViewServed& view);
  void Restore(const Mask& mask);
  absl::Status CheckRepeat(const ObservationRepeated& record) const;
  // The tally of `tool`, by its name if there is room.
  ToolTally& TallyOf(const std::string& tool);
  // Adds `part` to what came of `tool`.
  void AddOutcome(const std::string& tool, const ToolOutcome& part);
  // Notes that the masked observation at `index` was fetched again for `cost`.
  void NoteFetch(std::size_t index, PicoUsd cost);
  // Adds what masking saves of the call that `record` is for, with what it
  // masks itself, and takes off what its break costs.
  void NoteSavings(const ViewServed& record);
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
    std::size_t last = kNoIndex;
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
  std::map<std::string, ToolTally> tools_;
  ToolTally other_tools_;
  std::map<std::string, ToolOutcome> outcomes_;
  std::set<Pin> pins_;
  std::int64_t pin_change_count_ = 0;
  // Remembers what is asked of it.
  mutable PinnedResources pinned_resources_;
  std::int64_t control_call_count_ = 0;
  RepeatDetector detector_;
};

// What `arguments` save in place of `before`, both as JSON values.
std::int64_t ArgumentsSaving(absl::string_view before,
                             absl::string_view arguments,
                             const TokenCounter& counter);

// Adds what `part` reports to `sum`; a class that is absent in both stays so.
void AddUsage(const Usage& part, Usage& sum);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_SESSION_H_
