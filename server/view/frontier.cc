// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "server/cost/prices.h"
#include "server/policy/policy.h"
#include "server/view/candidate.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"

namespace clerestory {

std::int64_t FrontierOf(const Session& session, const Policy& policy,
                        const ModelPrices& prices) {
  if (policy.mode == Mode::kOff || policy.mode == Mode::kDelegate) {
    return session.message_count();
  }
  std::int64_t first = session.message_count();
  const auto look_at = [&](std::size_t index) {
    const std::optional<Candidate> candidate =
        CandidateFor(session, policy, prices, index);
    if (!candidate.has_value()) return;
    first = std::min(first, candidate->first_sequence);
  };
  // A call stands before its result, so one that is found later can only change
  // an earlier message if it does that.
  const bool changes_calls =
      policy.argument_tokens_min > 0 || policy.errors == ErrorRule::kDrop;
  const auto is_found = [&] {
    return first < session.message_count() && !changes_calls;
  };
  for (const std::size_t index : session.candidates()) {
    if (!is_found()) look_at(index);
  }
  for (auto i = static_cast<std::size_t>(session.eligible_count());
       i < session.observations().size() && !is_found(); ++i) {
    look_at(i);
  }
  return first;
}

}  // namespace clerestory
