// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_BACKTEST_REPORT_H_
#define CLERESTORY_CLIENT_CLI_BACKTEST_REPORT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/backtest_run.h"
#include "server/model/record.h"

namespace clerestory {

// `pays`, `cache_cold` and so on.
absl::string_view BreakName(BreakReason reason);

// The quotient with three digits behind the point.
std::string FormatRatio(double ratio);

// A table with a row for each session and one for each policy's summary.
std::string FormatSessions(const std::vector<SessionOutcome>& sessions);

// The table of a simulation: costs in dollars, by length.
std::string FormatSimulation(const std::vector<SessionOutcome>& sessions);

// {"files":[...],"summary":[...]}; README.md describes it.
std::string FormatJson(const std::vector<SessionOutcome>& sessions);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_BACKTEST_REPORT_H_
