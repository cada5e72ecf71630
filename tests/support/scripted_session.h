// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_SCRIPTED_SESSION_H_
#define CLERESTORY_TESTS_SUPPORT_SCRIPTED_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "server/view/view.h"
#include "tests/support/messages.h"

namespace clerestory {

// One token a character, so that a test can be reckoned by hand.
const TokenCounter& CharacterCounter();

// Prices that a test can reckon with: reads cost 1, writes 11, and nothing is
// ever too long.
ModelPrices PlainPrices();

// A policy of plain rent or buy that keeps three observations and masks others
// with `[masked]`, of 8 tokens.
Policy PlainPolicy();

// A session that a test drives step by step as an engine would: every record is
// kept, and applied after it was planned.
class ScriptedSession {
 public:
  explicit ScriptedSession(Format format = Format::kAnthropicMessages,
                           bool has_recall_tool = false);

  // What the next view is planned with, for a test to set.
  Policy policy = PlainPolicy();
  ModelPrices prices = PlainPrices();
  std::string model = "m";
  TimeMicros now = 1'000 * kMicrosPerSecond;
  std::int64_t preamble_tokens = 0;
  std::string preamble_digest = {};
  std::set<std::string> unmasked_tools = {};

  // Appends messages; they must be acceptable.
  void Append(const std::string& message);
  void Append(const std::vector<std::string>& messages);

  // Appends a turn: an assistant message of 3 tokens with one call, and its
  // result of `tokens`.
  void Turn(std::int64_t tokens);
  void Turns(int count, std::int64_t tokens);
  // The same with a call and a result, of ids that the session chooses, for
  // each of `contents` (JSON).
  void Batch(const std::vector<std::string>& contents);
  // The same with one call as `call` says, but for its id, and its result.
  void Call(CallSpec call, const std::string& content, bool is_error = false);
  // An assistant message of `tokens`, which acts upon what stands before it.
  void Answer(std::int64_t tokens = 1);
  // A user message of `tokens`.
  void Ask(std::int64_t tokens);

  // Plans the next view without serving it.
  ViewServed Plan() const;
  // Serves the next view.
  View Serve();
  void Report(const Usage& usage);
  void Close(Outcome outcome);

  // Applies a record that is no message and no view.
  void Note(const Record& record);
  // The same for the observations at these places among all.
  void SetPin(const Pin& pin, bool is_pinned = true);
  void PinObservation(std::size_t observation, bool is_pinned = true);
  void NoteRepeat(std::size_t later, std::size_t earlier,
                  RepeatKind kind = RepeatKind::kRefetch, PicoUsd cost = 0);
  void NoteRecall(std::size_t observation, PicoUsd cost = 0);

  const Session& session() const { return session_; }
  const std::vector<Record>& records() const { return records_; }
  // The session as it is after a restart.
  Session Replayed() const;

  // The last view's messages.
  std::vector<std::string> view() const;
  // The positions, among all observations, of those that are masked.
  std::vector<std::size_t> masked() const;

 private:
  ObservationId IdOf(std::size_t observation) const;

  SessionHeader header_;
  Format format_;
  Session session_;
  std::vector<Record> records_;
  std::int64_t call_count_ = 0;
};

// The bytes of `messages`.
std::vector<std::string> Texts(const std::vector<Bytes>& messages);

// All that a ledger says, a line each: equal texts, equal ledgers.
std::string LedgerText(const Ledger& ledger);

// All that a tally says, in one line.
std::string TallyText(const ToolTally& tally);

// All that a session says of itself, its view and ledger: equal texts, equal
// sessions.
std::string SessionText(const Session& session);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_SCRIPTED_SESSION_H_
