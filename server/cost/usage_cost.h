// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_COST_USAGE_COST_H_
#define CLERESTORY_SERVER_COST_USAGE_COST_H_

#include <optional>

#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/model/record.h"

namespace clerestory {

// What a provider bills for a call that it reported as `usage`, exactly: each
// class of tokens at the rate for the whole prompt, which is what was read,
// written and neither. `is_long_life` is whether the client asks for the long
// life of the cache. Reasoning is part of the output.
//
// Absent if a class is missing that could change it: absent is not zero. So
//  - `input_uncached` and `output` must be there;
//  - `cache_read` and `cache_write` may be missing where such a token costs
//  what
//    `input` does: with a provider that has no cache, and for `cache_write`
//    with one that charges no writes, which counts them as input.
// A prompt that the provider says it cached is billed as cached, however short.
// Pure.
std::optional<PicoUsd> UsageCost(const ModelPrices& prices, const Usage& usage,
                                 bool is_long_life);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_COST_USAGE_COST_H_
