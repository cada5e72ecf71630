// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_REPEATS_H_
#define CLERESTORY_SERVER_VIEW_REPEATS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"

namespace clerestory {

// Judges what the observations from `first` on, which were just appended,
// repeat of earlier ones; applies it to `session` and adds it to `records`.
// What the agent recalls by the tool for that is judged when it is recalled.
// `prices` are those of the model that was called last. Pure.
void NoteRepeats(std::size_t first, TimeMicros now, const Policy& policy,
                 const ModelPrices& prices, Session& session,
                 std::vector<Record>& records);

// What it costs, by estimate, that the model had to ask for the observation at
// `index` of its own: its part of the prompt of the call that asked, which is
// shared by all calls of that turn, the output that asks, and writing the
// observation to the cache. Pure.
PicoUsd FetchCost(const Session& session, const ModelPrices& prices,
                  std::size_t index);

// What it costs, by estimate, that the model recalls the observation at
// `index`: a call of its own that reads the prompt, the few tokens that ask,
// and writing the observation to the cache. Pure.
PicoUsd RecallCost(const Session& session, const ModelPrices& prices,
                   std::size_t index);

// What the model says to recall an observation by its id.
inline constexpr std::int64_t kRecallOutputTokens = 60;

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_REPEATS_H_
