// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_NAIVE_SESSION_H_
#define CLERESTORY_TESTS_SUPPORT_NAIVE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/plan_view.h"

namespace clerestory {

// The digest of a view with these messages, in hexadecimal, by the definition
// of Digest::Then alone.
std::string ChainDigest(const std::vector<std::string>& messages);

// A session as its contract has it, for comparison: nothing is kept but what
// was appended and served, and every answer goes through all of it again.
class NaiveSession {
 public:
  NaiveSession(Format format, const TokenCounter& counter);

  // REQUIRES: the message is acceptable.
  void Append(const std::string& message);
  void Serve(const ViewServed& view);

  // What PlanView has to return.
  ViewServed Plan(const Policy& policy, const ModelPrices& prices,
                  const ViewRequest& request) const;
  // What FrontierOf has to return.
  std::int64_t Frontier(const Policy& policy, const ModelPrices& prices) const;

  // The messages that a model is to be sent.
  std::vector<std::string> View() const;
  // The tokens before each of them, and in the end of all.
  std::vector<std::int64_t> TokensBefore() const;

  const std::vector<std::string>& history() const { return messages_; }
  const std::vector<ParsedMessage>& parsed() const { return parsed_; }

 private:
  struct Observation {
    std::size_t message = 0;
    std::size_t index = 0;
    std::int64_t turn = 0;   // In which it came.
    std::int64_t batch = 0;  // The turn of its call.
    std::optional<std::string> placeholder;
  };
  struct MadeCall {
    std::string id;
    std::int64_t turn = 0;
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
  };
  struct Call {
    std::int64_t eligible_count = 0;
    PicoUsd read_price = 0;
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
    PicoUsd read_price = 0;
    std::vector<std::int64_t> tokens_before;  // In the last view, by message.
  };

  const ParsedResult& result(const Observation& observation) const;
  // Notes that the next observation answers the call `id`, and returns the turn
  // of the call.
  std::int64_t Answer(const std::string& id);
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
  // newer observations and turns.
  std::size_t OldCount(std::int64_t keep_observations, std::int64_t keep_turns,
                       bool holds_batches) const;
  std::optional<Candidate> MaskOf(std::size_t observation, const Policy& policy,
                                  const ModelPrices& prices) const;
  std::vector<Candidate> CandidatesUpTo(std::size_t end,
                                        const Question& question) const;
  std::int64_t SavedIn(std::size_t message) const;
  std::int64_t SavedBefore(const Observation& observation) const;
  std::int64_t ShownImages() const;
  bool IsWarm(const Question& question) const;
  std::int64_t PromptTokens(const Question& question) const;
  // Tokens of the prompt that the cache still holds when `masks` are made.
  std::int64_t Found(const std::vector<Candidate>& masks,
                     const Question& question) const;
  Choice ByMode(const Question& question) const;
  Choice BestSuffix(const std::vector<Candidate>& candidates,
                    const Question& question) const;
  void FitWindow(const Question& question, Choice& choice) const;
  // Whether the model may still need what it thought in the last turn.
  bool IsMidTurn() const;
  void Strip(const Question& question, Choice& choice) const;
  std::int64_t ThoughtTokens(std::size_t message) const;

  Format format_;
  const TokenCounter& counter_;
  std::vector<std::string> messages_;
  std::vector<ParsedMessage> parsed_;
  std::vector<Observation> observations_;
  std::vector<Thought> thoughts_;
  std::vector<MadeCall> made_calls_;
  std::int64_t turn_count_ = 0;
  std::vector<Call> calls_;
  std::optional<ViewServed> last_;
  std::int64_t paid_break_count_ = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_NAIVE_SESSION_H_
