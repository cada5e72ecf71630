// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How long a prompt may get.

#include <algorithm>
#include <cstdint>

#include "server/cost/prices.h"
#include "server/policy/policy.h"
#include "server/view/plan_view.h"

namespace clerestory {

std::int64_t PromptTokensMax(const Policy& policy, const ModelPrices& prices) {
  const std::int64_t window =
      policy.window_tokens > 0 ? policy.window_tokens : prices.window_tokens;
  const std::int64_t reserve =
      policy.reserve_tokens > 0
          ? policy.reserve_tokens
          : std::min(prices.output_tokens_max, window / 5);
  return window - reserve;
}

std::int64_t ShownAgainTokensMax(const Policy& policy,
                                 const ModelPrices& prices) {
  std::int64_t limit = PromptTokensMax(policy, prices);
  if (policy.mode == Mode::kThreshold) {
    limit = std::min(limit, policy.threshold_tokens);
  }
  return limit - limit / 6;
}

}  // namespace clerestory
