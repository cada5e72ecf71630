// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/simulation_spec.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/backtest/backtest.h"
#include "server/backtest/simulate.h"
#include "server/base/status.h"

namespace clerestory {
namespace {

constexpr std::int64_t kTurnsMax = 100'000;
constexpr std::int64_t kSeedMax = 1'000'000'000;
constexpr std::int64_t kSeedCountMax = 1'000;
constexpr std::int64_t kPausePercent = 10;

absl::Status Wrong(absl::string_view text, absl::string_view what) {
  return FieldError(
      "simulate",
      absl::StrCat(text, ": ", what,
                   "; write published, lognormal:TURNS:SEED or "
                   "lognormal:TURNS:FIRST-LAST, and :pauses behind it for a "
                   "user who pauses, as in lognormal:100:1-24:pauses"));
}

std::vector<SimulatedInput> Published() {
  std::vector<SimulatedInput> inputs;
  for (const std::int64_t turns : {20, 40, 60, 100, 200, 300}) {
    inputs.push_back({.name = absl::StrCat("simulate-", turns),
                      .input = SimulatedSession(turns)});
  }
  return inputs;
}

bool ParseUpTo(absl::string_view text, std::int64_t least, std::int64_t most,
               std::int64_t& number) {
  return absl::SimpleAtoi(text, &number) && number >= least && number <= most;
}

}  // namespace

absl::StatusOr<std::vector<SimulatedInput>> ParseSimulation(
    absl::string_view text) {
  if (text.empty() || text == "published") return Published();
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts[0] != "lognormal") {
    return Wrong(text, absl::StrCat("there is no simulation '", parts[0], "'"));
  }
  if (parts.size() < 3 || parts.size() > 4) {
    return Wrong(text, "it has two or three fields behind its name");
  }
  std::int64_t turns = 0;
  if (!ParseUpTo(parts[1], 1, kTurnsMax, turns)) {
    return Wrong(text, absl::StrCat("the turns '", parts[1],
                                    "' are no number from 1 to ", kTurnsMax));
  }
  const std::vector<absl::string_view> seeds = absl::StrSplit(parts[2], '-');
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (seeds.size() > 2 || !ParseUpTo(seeds.front(), 0, kSeedMax, first) ||
      !ParseUpTo(seeds.back(), first, kSeedMax, last) ||
      last - first >= kSeedCountMax) {
    return Wrong(
        text,
        absl::StrCat("the seed '", parts[2], "' is neither a number from 0 to ",
                     kSeedMax, " nor a first and a last one, of ",
                     kSeedCountMax, " at most"));
  }
  const bool pauses = parts.size() == 4;
  if (pauses && parts[3] != "pauses") {
    return Wrong(text, absl::StrCat("'", parts[3], "' is not pauses"));
  }
  std::vector<SimulatedInput> inputs;
  for (std::int64_t seed = first; seed <= last; ++seed) {
    inputs.push_back({.name = absl::StrCat("lognormal:", turns, ":", seed,
                                           pauses ? ":pauses" : ""),
                      .input = LogNormalSession(
                          {.turns = turns,
                           .seed = static_cast<std::uint64_t>(seed),
                           .pause_percent = pauses ? kPausePercent : 0})});
  }
  return inputs;
}

}  // namespace clerestory
