// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/restoring.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/view/candidate.h"
#include "server/view/exempt.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// What shows the observation at `index` again, with its call; nothing if they
// are shown, or left out altogether.
std::optional<Candidate> RestoringOf(const Session& session,
                                     std::size_t index) {
  const Observation& observation = session.observations()[index];
  const Call& call = session.calls()[observation.call];
  if (observation.is_dropped || call.is_dropped) return std::nullopt;
  Candidate candidate;
  candidate.observation = &observation;
  candidate.mask.sequence = observation.sequence;
  candidate.mask.index = observation.index;
  candidate.mask.is_restored = true;
  candidate.first_sequence = observation.sequence;
  candidate.tokens_before = observation.view_tokens_before;
  if (observation.placeholder.has_value()) {
    candidate.mask.placeholder = *observation.placeholder;
    candidate.observation_saving =
        observation.placeholder_tokens - observation.result.token_count;
  }
  if (call.arguments.has_value() && call.first_observation == index) {
    candidate.mask.arguments = *call.arguments;
    candidate.call_saving = -call.arguments_saving;
    candidate.first_sequence = call.sequence;
    candidate.tokens_before = call.view_tokens_before;
  }
  if (candidate.saving() == 0) return std::nullopt;
  return candidate;
}

}  // namespace

std::vector<Candidate> Restorings(
    const Session& session, const Exempt& exempt, std::int64_t from,
    bool may_show_images,
    absl::FunctionRef<bool(std::int64_t more_tokens)> fits) {
  std::vector<Candidate> restorings;
  if (!exempt.ShowsAny()) return restorings;
  const auto& all = session.observations();
  std::int64_t more = 0;
  for (std::size_t i = all.size(); i-- > 0 && all[i].sequence >= from;) {
    if (!may_show_images && all[i].result.image_count > 0) continue;
    std::optional<Candidate> restoring = RestoringOf(session, i);
    if (!restoring.has_value() || restoring->first_sequence < from ||
        !exempt.IsShownAgain(i)) {
      continue;
    }
    more -= restoring->saving();
    if (!fits(more)) break;
    restorings.push_back(*std::move(restoring));
  }
  return restorings;
}

}  // namespace clerestory
