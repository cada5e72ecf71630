// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_RECORD_COST_H_
#define CLERESTORY_SERVER_VIEW_RECORD_COST_H_

#include <cstdint>

#include "server/cost/prices.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/call_cost.h"
#include "server/view/eligible.h"
#include "server/view/session.h"

namespace clerestory {

// What a view that was decided is priced with.
struct RecordPricing {
  const Session& session;
  const Policy& policy;
  const ModelPrices& prices;
  const ViewRequest& request;
  const Eligible& eligible;
  const CallCost& cost;
  // Tokens of the last prompt that the view finds in the cache.
  std::int64_t found = 0;
};

// Fills in what the provider's cache does with the call of `record`, and what
// that costs: of the view, as if nothing had been masked, and as if all had
// been that is old enough and no tool's rule keeps; and the answer to the call
// before. REQUIRES: its tokens, raw and of the view, are filled in. Pure.
void PriceRecord(const RecordPricing& pricing, ViewServed& record);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_RECORD_COST_H_
