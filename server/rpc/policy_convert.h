// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_POLICY_CONVERT_H_
#define CLERESTORY_SERVER_RPC_POLICY_CONVERT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/policy_service.pb.h"
#include "server/backtest/backtest.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_trial.h"
#include "server/policy/policy_set.h"
#include "server/policy/presets.h"

namespace clerestory {

// Between our values and the messages of clerestory.v1.PolicyService. What is
// refused is kFieldInvalid with the name of the field in the request.

absl::StatusOr<PolicySource> ToPolicySource(v1::PolicySource source);

// A session of which the messages are sent. Only the adapter of its format can
// tell whether it takes the messages.
absl::StatusOr<BacktestInput> ToBacktestInput(const v1::PostedSession& posted);

v1::PolicyDocument FromDocument(const PolicyDocument& document,
                                absl::string_view tenant);
v1::Policy FromPolicy(const TenantPolicy& policy, PolicySource source);
v1::PolicyPreset FromPreset(const Preset& preset);
// Without its policy.
v1::PolicyTrial FromTrial(const PolicyTrial& trial);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_POLICY_CONVERT_H_
