// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_NAIVE_SESSION_H_
#define CLERESTORY_TESTS_SUPPORT_NAIVE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/plan_view.h"
#include "server/view/session_parts.h"

namespace clerestory {

// The digest of a view with these messages, in hexadecimal, by the definition
// of Digest::Then alone.
std::string ChainDigest(const std::vector<std::string>& messages);

// A session as its contract has it, for comparison: nothing is kept but what
// was appended and served, and every answer goes through all of it again.
class NaiveSession {
 public:
  NaiveSession(Format format, const TokenCounter& counter,
               bool has_recall_tool = false);

  // REQUIRES: the message is acceptable.
  void Append(const std::string& message);
  void Serve(const ViewServed& view);
  void Report(const UsageReported& report);
  // REQUIRES: a repeat, a recall or a pin.
  void Note(const Record& record);

  // What PlanView has to return.
  ViewServed Plan(const Policy& policy, const ModelPrices& prices,
                  const ViewRequest& request) const;
  // Tokens of a prompt with messages of so many, in a call like `call`: a
  // ViewServed or a ViewRequest.
  template <typename Call>
  std::int64_t Foreseen(std::int64_t message_tokens, const Call& call) const {
    return anchor_.Predict(
        {.message_tokens = message_tokens,
         .preamble_tokens = call.preamble_tokens},
        call.token_scale_ppm == 0 ? kScaleOne : call.token_scale_ppm);
  }
  // What FrontierOf has to return.
  std::int64_t Frontier(const Policy& policy, const ModelPrices& prices) const;

  // The messages that a model is to be sent.
  std::vector<std::string> View() const;
  // The tokens before each of them, and in the end of all.
  std::vector<std::int64_t> TokensBefore() const;
  // Whether the view shows later what the observation had, as `duplicates` has
  // it. Counted from the first of the history.
  bool IsCopied(std::size_t observation, DuplicateRule duplicates) const;
  // What came of each tool.
  std::map<std::string, ToolTally> Tallies() const;

  const std::vector<std::string>& history() const { return messages_; }
  const std::vector<ParsedMessage>& parsed() const { return parsed_; }

 private:
  struct Observation {
    std::size_t message = 0;
    std::size_t index = 0;
    std::int64_t turn = 0;   // In which it came.
    std::int64_t batch = 0;  // The turn of its call.
    std::size_t call = 0;    // Among made_calls_.
    std::optional<std::string> placeholder;
    // How many calls there had been when it was last shown again.
    std::size_t shown_again = 0;
  };
  struct MadeCall {
    std::string id;
    std::int64_t turn = 0;
    std::string tool;
    std::string arguments;                             // JSON.
    std::optional<std::size_t> answer = std::nullopt;  // The first observation.
  };
  // The reasoning of a message.
  struct Thought {
    std::size_t message = 0;
    std::int64_t turn = 0;
    bool is_stale = false;
    bool is_stripped = false;
  };
  struct Candidate {
    std::size_t observation = 0;
    std::string placeholder;
    std::int64_t saving = 0;
    PicoUsd rent = 0;
    bool is_restored = false;
  };
  struct Call {
    std::int64_t eligible_count = 0;
    std::size_t observation_count = 0;  // Of the history.
    PicoUsd read_price = 0;
  };
  // A view that was served, and the tokens of its prompt before what it changed
  // of the view before, and of one in which all is masked in every turn.
  struct Served {
    ViewServed view;
    std::int64_t change = INT64_MAX;
    std::int64_t every_turn_change = INT64_MAX;
  };
  // How many tokens the last prompt of a model turned out to have, or would
  // have had.
  struct Recounted {
    std::string model;
    std::int64_t view = 0;
    std::int64_t raw = 0;
    std::int64_t every_turn = 0;
  };
  using Event =
      std::variant<Served, Recounted, UsageReported, ObservationRepeated,
                   ObservationRecalled, PinChanged>;
  // What a model's cache holds, by all that was served and reported.
  struct Held {
    bool is_known = false;   // Whether the model was ever called.
    bool is_absent = false;  // Whether nothing is cached.
    bool is_missed = false;
    TimeMicros time = 0;
    std::string preamble_digest;
    std::int64_t view = 0;
    std::int64_t raw = 0;
    std::int64_t every_turn = 0;
  };
  // A break as far as its price depends on it.
  struct Size {
    std::int64_t saving = 0;
    std::int64_t saving_in_last = 0;
    std::int64_t tokens_before = 0;
    std::int64_t images = 0;
    std::int64_t lost_reasoning = 0;
  };
  struct Choice {
    BreakReason reason = BreakReason::kNone;
    std::vector<Candidate> masks;
    PicoUsd price = 0;
    PicoUsd rent = 0;
    std::optional<std::size_t> strip_from = std::nullopt;
  };
  // What Plan asks for at every turn.
  struct Question {
    const Policy& policy;
    const ModelPrices& prices;
    const ViewRequest& request;
    std::vector<std::int64_t> tokens_before;  // In the last view, by message.
    Held held = {};         // For the model, as the cache was left.
    bool is_alive = false;  // Whether its life has not ended.
    // Why nothing of the view is found.
    BreakReason cold = BreakReason::kNone;
    PicoUsd read_price = 0;
    // The tools of which nothing more is masked, and the observations that are
    // pinned.
    std::set<std::string> unmasked_tools = {};
    std::set<std::size_t> pinned = {};
  };

  const ParsedResult& result(const Observation& observation) const;
  const MadeCall& CallOf(std::size_t observation) const {
    return made_calls_[observations_[observation].call];
  }
  // Notes that the next observation answers the call `id`, and returns which of
  // made_calls_ that is.
  std::size_t Answer(const std::string& id);
  std::int64_t SavedIn(std::size_t message) const;
  std::int64_t SavedBefore(const Observation& observation) const;
  std::int64_t ShownImages() const;
  std::int64_t ThoughtTokens(std::size_t message) const;
  std::int64_t PlaceholderSaving(std::size_t observation) const;
  std::int64_t RawTokensBefore(std::size_t observation) const;

  // Which observations may be masked (naive_session_eligible.cc).
  // Whether no assistant message stands between two observations.
  bool CameTogether(std::size_t a, std::size_t b) const;
  // Whether a batch has candidates on both sides of `at`.
  bool CutsBatch(const std::vector<Candidate>& candidates,
                 std::size_t at) const;
  // Whether a batch with results before `end` is still waited for there.
  bool HoldsBatch(std::size_t end) const;
  bool IsShorter(const std::string& message, const ParsedResult& found,
                 const std::string& placeholder) const;
  // How many observations, from the first, came together and leave so many
  // newer observations, turns and tokens of observations.
  std::size_t OldCount(std::int64_t keep_observations, std::int64_t keep_turns,
                       std::int64_t keep_tokens, bool holds_batches) const;
  std::size_t OldCount(const Policy& policy) const;
  // Whether the later observation has what the earlier one had.
  bool IsCopyOf(std::size_t later, std::size_t earlier,
                DuplicateRule duplicates) const;
  // Whether its tool's rule keeps it in a history of `count` observations.
  bool IsKeptByTool(std::size_t observation, const Policy& policy,
                    std::size_t count) const;
  // By observation: whether it goes before it is old enough, since the view
  // shows it later.
  std::vector<bool> EarlyCopies(const Question& question, bool is_forced) const;
  std::optional<Candidate> MaskOf(std::size_t observation, const Policy& policy,
                                  const ModelPrices& prices) const;
  PicoUsd RentOf(std::size_t observation, const Question& question) const;
  // Those before `end`, and earlier copies.
  std::vector<Candidate> CandidatesUpTo(std::size_t end, bool is_forced,
                                        const Question& question) const;

  // Which observations stay, or are shown again (naive_session_exempt.cc).
  std::size_t PlaceOf(std::int64_t message, std::int64_t index) const;
  // By tool: its re-fetches and recalls.
  std::map<std::string, std::int64_t> FetchCounts() const;
  std::set<std::string> UnmaskedTools(const Policy& policy,
                                      const ViewRequest& request) const;
  bool IsPinned(std::size_t observation) const;
  bool IsExempt(std::size_t observation, bool is_forced,
                const Question& question) const;
  // The first message from which on `choice` may show again what is masked;
  // nothing if it may not.
  std::optional<std::size_t> ShowsAgainFrom(const Choice& choice,
                                            const Question& question) const;
  void ShowAgain(const Question& question, Choice& choice) const;

  // What the cache holds and what a call costs (naive_session_cost.cc).
  Held HeldFor(const std::string& model) const;
  // Why nothing that a cache held is found; kNone if it may be.
  BreakReason ColdReason(const Held& held, const Policy& policy,
                         const ModelPrices& prices,
                         const ViewRequest& request) const;
  TokenRates RatesOf(std::int64_t prompt, const Question& question) const;
  CallTokens Split(std::int64_t prompt, std::int64_t cached,
                   const Question& question) const;
  PicoUsd CostOf(const CallTokens& call, const Question& question) const;
  bool LosesCache(std::int64_t saving, const Question& question) const;
  // What the provider counts for so many tokens.
  static std::int64_t Scale(std::int64_t tokens, const Question& question);
  // Tokens of the prompt if `saving` tokens of its messages were removed.
  std::int64_t PromptTokens(const Question& question,
                            std::int64_t saving = 0) const;
  Size SizeOf(const std::vector<Candidate>& masks,
              const Question& question) const;
  // Tokens of the prompt that the cache still holds with such a break.
  std::int64_t Found(const Size& size, const Question& question) const;
  PicoUsd BreakPrice(const Size& size, const Question& question) const;
  void PriceEveryTurn(const Question& question, ViewServed& view) const;
  void PriceOutput(const Question& question, ViewServed& view) const;

  // What is chosen (naive_session_plan.cc).
  static std::int64_t SavingOf(const std::vector<Candidate>& masks);
  Choice Choose(BreakReason reason, std::vector<Candidate> masks,
                const Question& question) const;
  Choice ByMode(const Question& question) const;
  Choice BestSuffix(const std::vector<Candidate>& candidates,
                    const Question& question) const;
  // Whether `choice` would cost less for each call if it were made later.
  bool IsBetterLater(const Choice& choice, const Question& question) const;
  void FitWindow(const Question& question, Choice& choice) const;
  // Whether the model may still need what it thought in the last turn.
  bool IsMidTurn() const;
  // The first message whose reasoning has to go with `masks`.
  std::optional<std::size_t> StripFrom(const std::vector<Candidate>& masks,
                                       const Question& question) const;

  Format format_;
  const TokenCounter& counter_;
  bool has_recall_tool_;
  std::vector<std::string> messages_;
  std::vector<ParsedMessage> parsed_;
  std::vector<Observation> observations_;
  std::vector<Thought> thoughts_;
  std::vector<MadeCall> made_calls_;
  std::int64_t turn_count_ = 0;
  std::vector<Call> calls_;
  std::vector<Event> events_;
  std::optional<ViewServed> last_;
  // Has tests of its own.
  SessionAnchor anchor_;
  std::int64_t every_turn_saving_ = 0;  // By the last new call.
  std::int64_t paid_break_count_ = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_NAIVE_SESSION_H_
