// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_REPLAY_COMMAND_H_
#define CLERESTORY_CLIENT_CLI_REPLAY_COMMAND_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/cli/backtest_command.h"

namespace clerestory {

struct ReplayOptions {
  std::string file;
  std::string target = "127.0.0.1:7171";
  std::string source = "auto";  // The kind of the file.
  std::string model;            // For all calls; "" takes the transcript's.
  std::string session_prefix = "replay";
  std::int64_t preamble_tokens = kPreambleTokensDefault;
  // Whether calls carry the transcript's times, or are made now.
  bool use_transcript_times = true;
  // For how long a call is tried again while the server is away.
  int retry_seconds = 0;
  std::string json_path;  // Where to write JSON; "" is nowhere.
  bool quiet = false;     // No line for each call.
};

// `clerestory replay`: sends each session of a transcript to a running server
// as an agent would, one BuildView before every model call; checks every view
// as it comes and the history at the end; and prints what each call sent, what
// the provider's cache does with it, and what it costs: raw, masked every turn,
// in blocks, and as the server decided.
//
// INVALID_ARGUMENT if an option is wrong or the file cannot be read; INTERNAL
// if a call failed or the server broke a promise.
absl::Status RunReplay(const ReplayOptions& options);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_REPLAY_COMMAND_H_
