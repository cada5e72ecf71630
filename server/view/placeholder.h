// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_PLACEHOLDER_H_
#define CLERESTORY_SERVER_VIEW_PLACEHOLDER_H_

#include <cstdint>
#include <string>

#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"

namespace clerestory {

// The text that stands for `result` in a view: the policy's template for a
// success or an error, filled in. A pure function of the two, never empty.
std::string PlaceholderFor(const ParsedResult& result, const Policy& policy);

// What follows that in a session whose model has the recall tool: how to name
// the observation `id` to it, as in ` (recall id 12.0)`. Pure.
std::string RecallMark(const ObservationId& id);

// The text that stands for a string of `tokens` in the arguments of a call.
std::string ArgumentPlaceholder(std::int64_t tokens, const Policy& policy);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_PLACEHOLDER_H_
