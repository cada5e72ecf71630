// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_RESTORING_H_
#define CLERESTORY_SERVER_VIEW_RESTORING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/view/candidate.h"
#include "server/view/exempt.h"
#include "server/view/session.h"

namespace clerestory {

// Returns what shows again those masked observations of `session` that `exempt`
// says, with their calls, and that change no message before `from`: the newest
// first, for as long as `fits` says so of the tokens that the view then has
// more. What is dropped stays so, and what has pictures unless
// `may_show_images`. Pure.
std::vector<Candidate> Restorings(
    const Session& session, const Exempt& exempt, std::int64_t from,
    bool may_show_images,
    absl::FunctionRef<bool(std::int64_t more_tokens)> fits);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_RESTORING_H_
