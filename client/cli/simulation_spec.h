// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_SIMULATION_SPEC_H_
#define CLERESTORY_CLIENT_CLI_SIMULATION_SPEC_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/backtest/backtest.h"

namespace clerestory {

// A simulated session, to be counted by SimulationCounter().
struct SimulatedInput {
  std::string name;
  BacktestInput input;
};

// The sessions that `text` asks for: "published" (or nothing) is the published
// simulation, of 20 to 300 turns; "lognormal:TURNS:SEED" is a session of
// log-normal sizes, "lognormal:TURNS:FIRST-LAST" one of each seed, and with
// ":pauses" behind it the user waits before a tenth of the calls.
//
// INVALID_ARGUMENT with kFieldInvalid and the metadata `field`, saying what is
// wrong and what is allowed, if it is anything else: TURNS is at most 100,000,
// a seed at most a milliard, and there are at most 1,000 seeds.
absl::StatusOr<std::vector<SimulatedInput>> ParseSimulation(
    absl::string_view text);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_SIMULATION_SPEC_H_
