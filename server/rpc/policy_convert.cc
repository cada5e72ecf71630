// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/policy_convert.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/policy_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "server/backtest/backtest.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_trial.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/policy/presets.h"
#include "server/rpc/convert.h"

namespace clerestory {

absl::StatusOr<PolicySource> ToPolicySource(v1::PolicySource source) {
  if (source == v1::POLICY_SOURCE_UNSPECIFIED ||
      !v1::PolicySource_IsValid(source)) {
    return FieldError("source",
                      "expected POLICY_SOURCE_BUILT_IN, POLICY_SOURCE_FILE or "
                      "POLICY_SOURCE_STORED");
  }
  return static_cast<PolicySource>(source);
}

absl::StatusOr<BacktestInput> ToBacktestInput(const v1::PostedSession& posted) {
  BacktestInput input;
  CLERESTORY_ASSIGN_OR_RETURN(input.format, ToFormat(posted.format()));
  CLERESTORY_RETURN_IF_ERROR(CheckModel(posted.model()));
  if (posted.preamble_tokens() < 0 || posted.preamble_tokens() > kTokensMax) {
    return FieldError("posted.preamble_tokens",
                      absl::StrCat("expected 0 to ", kTokensMax));
  }
  input.preamble_tokens = posted.preamble_tokens();
  if (posted.messages().size() > kAppendMessagesMax) {
    return FieldError("posted.messages",
                      absl::StrCat("more than ", kAppendMessagesMax));
  }
  TimeMicros last = 0;
  for (const v1::PostedMessage& message : posted.messages()) {
    BacktestInput::Message& played = input.messages.emplace_back();
    played.bytes = std::make_shared<const std::string>(message.message());
    played.model = posted.model();
    if (!message.has_time()) continue;
    const std::string field =
        absl::StrCat("posted.messages[", input.messages.size() - 1, "].time");
    absl::StatusOr<TimeMicros> time = ToTime(message.time());
    if (!time.ok()) return FieldError(field, "not a time");
    if (*time < last) {
      return FieldError(field, "before the time of the message before it");
    }
    last = *time;
    played.time = *time;
  }
  return input;
}

v1::PolicyDocument FromDocument(const PolicyDocument& document,
                                absl::string_view tenant) {
  v1::PolicyDocument out;
  out.set_name(std::string(tenant));
  out.set_yaml(document.yaml());
  out.set_etag(document.etag());
  out.set_source(static_cast<v1::PolicySource>(document.source()));
  out.set_digest(document.policies().digest());
  if (document.source() != PolicySource::kBuiltIn) {
    *out.mutable_update_time() = FromTime(document.update_time());
  }
  return out;
}

v1::Policy FromPolicy(const TenantPolicy& policy, PolicySource source) {
  v1::Policy out;
  out.set_name(policy.name);
  out.mutable_labels()->insert(policy.labels.begin(), policy.labels.end());
  out.set_model(policy.model);
  out.set_digest(policy.digest);
  out.set_yaml(DocumentOf(policy.policy));
  out.set_source(static_cast<v1::PolicySource>(source));
  return out;
}

v1::PolicyPreset FromPreset(const Preset& preset) {
  v1::PolicyPreset out;
  out.set_name(std::string(preset.name));
  out.set_origin(std::string(preset.source));
  out.set_difference(std::string(preset.difference));
  out.set_digest(PolicyDigest(preset.policy));
  out.set_yaml(DocumentOf(preset.policy));
  return out;
}

v1::PolicyTrial FromTrial(const PolicyTrial& trial) {
  v1::PolicyTrial out;
  out.set_call_count(trial.call_count);
  out.set_cost_pico_usd(trial.cost);
  out.set_raw_cost_pico_usd(trial.raw_cost);
  out.mutable_input()->set_read(trial.input.read);
  out.mutable_input()->set_written(trial.input.written);
  out.mutable_input()->set_uncached(trial.input.uncached);
  out.set_output_tokens(trial.output_tokens);
  for (const TrialBreak& each : trial.breaks) {
    v1::PolicyTrialBreak& to = *out.add_breaks();
    to.set_call(each.call);
    to.set_message_count(each.view.message_count);
    to.set_reason(static_cast<v1::BreakReason>(each.view.break_reason));
    for (const Mask& mask : each.view.masks) {
      *(mask.is_restored ? to.add_restored_observation_ids()
                         : to.add_observation_ids()) =
          absl::StrCat(mask.sequence, ".", mask.index);
    }
    to.set_price_pico_usd(each.view.break_price);
    to.set_rent_pico_usd(each.view.break_rent);
    to.set_saved_tokens(each.saved_tokens);
  }
  return out;
}

}  // namespace clerestory
