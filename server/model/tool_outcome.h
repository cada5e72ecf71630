// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_TOOL_OUTCOME_H_
#define CLERESTORY_SERVER_MODEL_TOOL_OUTCOME_H_

#include <cstdint>
#include <string>

#include "server/model/money.h"

namespace clerestory {

// What came of masking a tool's observations, in one write to a session.
struct ToolOutcome {
  std::string tool = {};
  // Observations that were masked, and those among all that were masked which
  // the agent fetched again for the first time: never more of them than of
  // those, over a session.
  std::int64_t masked_count = 0;
  std::int64_t refetched_count = 0;
  // What masking them saved of the calls, less its part of what breaks cost;
  // and what fetching them again cost.
  PicoUsd saved = 0;
  PicoUsd lost = 0;

  friend bool operator==(const ToolOutcome&, const ToolOutcome&) = default;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_TOOL_OUTCOME_H_
