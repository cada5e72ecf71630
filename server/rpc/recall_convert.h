// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_RECALL_CONVERT_H_
#define CLERESTORY_SERVER_RPC_RECALL_CONVERT_H_

#include "absl/status/statusor.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "server/engine/recall.h"
#include "server/model/record.h"

namespace clerestory {

// Between our values of recalls and pins and the messages of clerestory.v1; as
// in convert.h.

absl::StatusOr<Pin> ToPin(const v1::PinObservationRequest& request);
v1::Pin FromPin(const Pin& pin);
v1::RecallObservationResponse FromRecalled(RecalledPage recalled);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_RECALL_CONVERT_H_
