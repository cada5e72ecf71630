// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_BACKTEST_COMMAND_H_
#define CLERESTORY_CLIENT_CLI_BACKTEST_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace clerestory {

// What a system prompt and the tools of a coding agent take, if nobody says.
inline constexpr std::int64_t kPreambleTokensDefault = 12'000;

struct BacktestOptions {
  std::vector<std::string> files;
  std::vector<std::string> policies = {"off", "every_turn", "block",
                                       "rent_or_buy", "adaptive"};
  std::string source = "auto";  // The kind of the files.
  std::string model;            // For all calls; "" takes the transcripts'.
  std::int64_t preamble_tokens = kPreambleTokensDefault;
  std::int64_t chars_per_token = 0;  // 0: estimate by kind of text.
  // One of PriceStructureNames() for all calls; "" takes their models' prices.
  std::string prices;
  std::string json_path;  // Where to write JSON; "" is nowhere.
  std::string html_path;  // Where to write a page; "" is nowhere.
  // Play these instead of files: see ParseSimulation().
  bool simulate = false;
  std::vector<std::string> simulations;
};

// `clerestory backtest`: plays transcripts again under policies, offline, and
// prints what each would have cost. What cannot be read is named on the
// standard error, with file and line, and the rest goes on.
//
// INVALID_ARGUMENT if an option is wrong, no file can be read, or what was
// asked for cannot be written.
absl::Status RunBacktest(const BacktestOptions& options);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_BACKTEST_COMMAND_H_
