// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_SESSION_TOTALS_H_
#define CLERESTORY_SERVER_MODEL_SESSION_TOTALS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/model/money.h"
#include "server/model/repeat.h"

namespace clerestory {

// How the model calls of a session were treated. The numbers are stored.
enum class SessionArm {
  kNone = 0,     // There was none.
  kMasked = 1,   // None was of the control group: its policy decided.
  kControl = 2,  // All were of the control group: nothing was masked.
  kMixed = 3,    // The group changed under it, as with a new policy.
};
inline constexpr std::size_t kSessionArmCount = 4;

// What came of a tool's observations.
struct ToolTotals {
  std::string tool = {};  // "" stands for all tools that are not named.
  std::int64_t observation_count = 0;
  // Their tokens, of the session's estimates.
  std::int64_t token_count = 0;
  // Observations that were ever masked; and those of them that the agent
  // fetched again or recalled.
  std::int64_t masked_count = 0;
  std::int64_t refetched_count = 0;
  // Observations of which it can be told whether something later refers to
  // them, and those to which nothing does (view/overreading.h), with their
  // tokens.
  std::int64_t judged_count = 0;
  std::int64_t unreferenced_count = 0;
  std::int64_t unreferenced_tokens = 0;
  // Calls with the very arguments of an earlier one.
  std::int64_t identical_call_count = 0;

  friend bool operator==(const ToolTotals&, const ToolTotals&) = default;
};

// The most tools of a session that are named in what is kept of it: those with
// most observations. All others are one more.
inline constexpr std::size_t kTotalsToolsMax = 32;

// What is kept of a session when it is closed, beside its records, so that what
// is said of many sessions needs no more than their headers. Sums over its
// model calls; tokens and money are estimates, but for what was reported.
struct SessionTotals {
  SessionArm arm = SessionArm::kNone;
  std::int64_t turn_count = 0;
  std::int64_t call_count = 0;
  // Tokens of the prompts, preambles included: as if nothing had been masked,
  // and as they were sent.
  std::int64_t raw_tokens = 0;
  std::int64_t view_tokens = 0;
  PicoUsd raw_cost = 0;
  PicoUsd view_cost = 0;
  PicoUsd output_cost = 0;
  PicoUsd usage_cost = 0;
  std::int64_t observation_count = 0;
  // As in ToolTotals, of all tools.
  std::int64_t masked_count = 0;
  std::int64_t refetched_count = 0;
  // Observations that repeat an earlier one, by RepeatKind. What would have
  // been a re-fetch is a duplicate where nothing is masked.
  std::array<std::int64_t, kRepeatKindCount> repeats = {};
  std::int64_t recall_count = 0;
  // What re-fetches and recalls cost.
  PicoUsd lost = 0;
  // The one with most observations first, equal ones in the order of their
  // names, and "" last.
  std::vector<ToolTotals> tools = {};

  friend bool operator==(const SessionTotals&, const SessionTotals&) = default;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_SESSION_TOTALS_H_
