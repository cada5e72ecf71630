// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_REPLAY_SESSION_H_
#define CLERESTORY_CLIENT_CLI_REPLAY_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clerestory/v1/view_service.pb.h"
#include "client/cc/client.h"
#include "client/cli/replay_check.h"
#include "client/cli/replay_command.h"
#include "client/transcripts/transcript.h"
#include "server/base/time.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {

// One model call of a replay.
struct ReplayCall {
  std::int64_t message_count = 0;
  std::int64_t raw_tokens = 0;  // Of the prompt, nothing masked.
  CallTokens tokens;            // Of what was sent.
  std::int64_t output_tokens = 0;
  PicoUsd cost = 0;
  BreakReason break_reason = BreakReason::kNone;
  std::int64_t masked_count = 0;
  std::string digest;
};

// What became of one session.
struct ReplayOutcome {
  std::string session_id;
  std::vector<ReplayCall> calls;
  PicoUsd cost = 0;
  std::int64_t message_count = 0;
  std::string history_digest;  // SHA-256 over all messages that were read back.
};

// Drives a server through one session.
class ReplaySession {
 public:
  // All must outlive it. `session_id` must be new to the server.
  ReplaySession(const Client& client, const ReplayOptions& options,
                const Transcript& transcript, std::string session_id,
                ReplayCheck& check);

  // Creates the session, sends it, reads it back, and closes it. Returns the
  // first call's error.
  absl::Status Run();

  const ReplayOutcome& outcome() const { return outcome_; }

 private:
  absl::Status Create();
  // The view before the assistant message `answer`.
  absl::Status BuildView(const TranscriptMessage& answer);
  // Adds what the model answered to the last call, and its cost.
  void AddOutput(const TranscriptMessage& answer);
  absl::Status AppendRest();
  absl::Status ReadBack();
  absl::Status Close();

  // The time of `message`, and of those before it if it has none.
  void Advance(const TranscriptMessage& message);

  const Client& client_;
  const ReplayOptions& options_;
  const Transcript& transcript_;
  ReplayCheck& check_;

  std::string model_;
  TimeMicros now_ = 0;
  // What was appended, and how much of it the server has.
  bool answering_ = false;  // The last message was the assistant's.
  std::vector<std::string> history_;
  std::size_t sent_ = 0;
  ReplayOutcome outcome_;
};

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_REPLAY_SESSION_H_
