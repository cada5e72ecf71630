// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_CANDIDATE_H_
#define CLERESTORY_SERVER_VIEW_CANDIDATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "server/cost/prices.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"

namespace clerestory {

// What masking an observation comes to, with what goes with it of its call.
struct Candidate {
  const Observation* observation = nullptr;
  Mask mask;
  // The tokens that it saves of the observation, and of the call; together > 0,
  // or < 0 if they are shown again (restoring.h).
  std::int64_t observation_saving = 0;
  std::int64_t call_saving = 0;
  // The first message that it changes, and the tokens before the change in the
  // last view, without the preamble.
  std::int64_t first_sequence = 0;
  std::int64_t tokens_before = 0;
  PicoUsd rent = 0;

  std::int64_t saving() const { return observation_saving + call_saving; }
};

// Returns what `policy` masks with the observation at `index`, without its
// rent; nothing if that is illegal, excluded or saves nothing, in tokens and in
// bytes.
//
// An error is dropped with its call, where the policy says so, if it is the
// only result of its call, nothing of the two is masked, no signed reasoning
// stands in the turn, and the messages without them are legal: either others of
// the calls and of the results stay beside them, or all of the messages goes
// and what stands around them is a user's and an assistant's message, or
// nothing yet: an observation is not eligible before the assistant answered. A
// second result that comes when its call is dropped stays as it is. Messages of
// more than 256 calls or results are masked: looking through them for each is
// too much.
//
// Arguments are masked with the first result of their call.
//
// Pure.
std::optional<Candidate> CandidateFor(const Session& session,
                                      const Policy& policy,
                                      const ModelPrices& prices,
                                      std::size_t index);

// The tokens that masking the observation at `index` would save under `policy`;
// 0 if it is masked, may not be, or would not become smaller. Pure.
std::int64_t MaskSaving(const Session& session, const Policy& policy,
                        const ModelPrices& prices, std::size_t index);

// Returns the first message of which a view whose first change is in the
// message `change` has to leave reasoning out, for its provider not to refuse
// it: behind that change, or behind one that was made for a model or under a
// policy that did not mind. Nothing if there is none, if reasoning is not bound
// to its prefix, or if the policy has the provider drop it. Pure.
std::optional<std::int64_t> StripFor(const Session& session,
                                     const Policy& policy,
                                     const ModelPrices& prices,
                                     std::int64_t change);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_CANDIDATE_H_
