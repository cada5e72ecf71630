// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_BACKTEST_HTML_H_
#define CLERESTORY_CLIENT_CLI_BACKTEST_HTML_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/backtest_run.h"

namespace clerestory {

// A page about `sessions` that reads without a network and without scripts, in
// light and dark: what each policy costs beside raw and the best schedule, what
// it costs if the model fetches masked observations again, and for the dearest
// sessions the size of the prompt, the cost by length and the modelled time of
// prefill, by call; and all numbers as tables. HTML that is well-formed XML.
//
// `prices` says which prices they are. Deterministic and pure.
//
// REQUIRES: there is a session, and all of them have the same policies.
std::string FormatHtml(const std::vector<SessionOutcome>& sessions,
                       absl::string_view prices);

// What fetching masked observations again costs, over all of `sessions`, by
// policy: the share of them, in percent, at which it costs what raw does; a
// negative number if it costs no less even without.
// REQUIRES: as above; `policy` is an index of theirs.
double BreakEvenPercent(const std::vector<SessionOutcome>& sessions,
                        std::size_t policy);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_BACKTEST_HTML_H_
