// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_PLAN_VIEW_H_
#define CLERESTORY_SERVER_VIEW_PLAN_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/call_cost.h"
#include "server/view/session.h"

namespace clerestory {

// Decides about the next view of `session`: whether it breaks, why, and what it
// masks; and estimates what the call will cost. Nothing is changed: the record
// that is returned has to be stored, and applied to the session, before the
// view is served.
//
// The decision. With the price `write` of a token that the provider has to
// write to its cache, and `read` of one that it finds there, a break costs
// `write - read` for each token behind the first changed one that would
// otherwise have been found, once; and every later call saves `read` for each
// token that it removed. How many calls will follow is not known. So each
// eligible observation accrues as rent what masking it would have saved so far,
// and a break is made when the rent of what it would mask has reached its
// price, or the policy's percentage of it. At 100 that is the ski-rental rule,
// which never pays more than twice what the best schedule would have paid. Of
// all starting points the one with the largest surplus is taken, and everything
// eligible behind it is masked in the same break. It waits if it is known to be
// better made a few calls later (outlook.h).
//
// A break is free, and everything eligible is masked, if nothing of the last
// view is in the cache any more (CallCost::cold_reason), unless what is left
// would be too short to be cached; it is forced if the view would not fit the
// window, and then goes on below what the policy keeps until a sixth of the
// window is free, or only the newest kKeepObservationsMin observations are
// left; it waits for no batch.
//
// What a break saves at once by getting the whole request into a cheaper tier
// is taken off its price. Where nothing is cached, a break has no price, and
// what is eligible is masked at once.
//
// A break that is made anyway, and no window forces, and a free one also show
// again what is masked and should be shown by now (Exempt::IsShownAgain), the
// newest first, if it stands behind the first message that the break masks
// anything of; where nothing of the view is cached, wherever it stands. They
// stop where the prompt would have more than five sixths of what the window
// holds or, in the mode kThreshold, of threshold_tokens, since later turns
// would break again; and where it would get into a tier with a higher price of
// input or output than without.
//
// An observation is eligible if it is older than what the policy keeps, an
// assistant message follows it, its whole batch is eligible, its format lets a
// placeholder stand in its place, and the placeholder is smaller than it is, in
// tokens and in bytes; it has at least kMaskableTokensMin, and the policy lets
// its tool be masked. Where the policy says so, an earlier copy of what the
// view shows later is eligible at once.
//
// On a model whose reasoning is bound to its prefix, a break also leaves out
// all reasoning behind its first change, for ever; what the model thinks
// afterwards is bound to what it was shown, and stays. Where that would not be
// valid (Session::CanStripFrom), and under ThinkingRule::kAvoid wherever there
// is reasoning, no observation in front of it is eligible; under kDropBlock
// nothing is left out. Where its provider refuses stale reasoning, no break is
// made while the model is in the middle of a turn with reasoning
// (Session::IsMidTurn), unless the window forces it; elsewhere what is lost is
// priced as output. If what
// was masked for another model, or under another policy, stands before
// reasoning, the view breaks only to leave that out.
//
// Deterministic: equal arguments give equal records, on any machine. Pure:
// reads no clock, store or global, and may be called from any thread.
ViewServed PlanView(const Session& session, const Policy& policy,
                    const ModelPrices& prices, const ViewRequest& request);

// The sequence of the first message that a later break may still mask something
// of: the first with an observation that is not masked and could be. The number
// of messages if there is none. What a break shows again may stand before it.
// Pure.
std::int64_t FrontierOf(const Session& session, const Policy& policy,
                        const ModelPrices& prices);

// The most tokens that a view and its preamble may have under `policy` on a
// model with `prices`.
std::int64_t PromptTokensMax(const Policy& policy, const ModelPrices& prices);

// The most tokens that they may have if anything is shown again: a sixth less
// than what forces a break, or makes one due.
std::int64_t ShownAgainTokensMax(const Policy& policy,
                                 const ModelPrices& prices);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_PLAN_VIEW_H_
