// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/policy_service.h"

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/policy_service.pb.h"
#include "google/protobuf/empty.pb.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_registry.h"
#include "server/engine/policy_trial.h"
#include "server/engine/session_engine.h"
#include "server/engine/tool_registry.h"
#include "server/model/record.h"
#include "server/policy/policy_set.h"
#include "server/policy/presets.h"
#include "server/rpc/call.h"
#include "server/rpc/convert.h"
#include "server/rpc/policy_convert.h"
#include "server/rpc/tool_convert.h"
#include "server/rpc/trial_limits.h"
#include "server/store/session_store.h"

namespace clerestory {
namespace {

template <typename Request>
ExpectedEtag EtagOf(const Request& request) {
  if (!request.has_etag()) return {};
  return request.etag();
}

// A session that is to be played: what it is matched by, and its messages.
struct Played {
  // The field of the request that it comes from.
  std::string field;
  SessionHeader header;
  std::string model;
  BacktestInput input;
};

// REQUIRES: there is a session in `request`.
absl::StatusOr<Played> ReadPlayed(const ServiceContext& service,
                                  const v1::CheckPolicyRequest& request) {
  Played played;
  if (request.has_posted()) {
    played.field = "posted.messages";
    CLERESTORY_ASSIGN_OR_RETURN(played.input,
                                ToBacktestInput(request.posted()));
    CLERESTORY_ASSIGN_OR_RETURN(
        played.header.labels,
        ToLabels("posted.labels", request.posted().labels()));
    played.header.key.tenant = service.tenant;
    played.model = request.posted().model();
    return played;
  }
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service, request.session_id()));
  played.field = "session_id";
  CLERESTORY_ASSIGN_OR_RETURN(const SessionSummary summary,
                              service.engine.GetSession(key));
  CLERESTORY_RETURN_IF_ERROR(
      CheckTrialBytes(played.field, summary.history_bytes));
  CLERESTORY_ASSIGN_OR_RETURN(played.input, service.engine.ReadForTrial(key));
  played.header = summary.header;
  played.model = played.input.messages.empty()
                     ? summary.header.model
                     : played.input.messages.back().model;
  return played;
}

// The error of a message that was posted, with its field as it is in the
// request. What is stored has none.
absl::Status InPosted(const absl::Status& status) {
  ErrorDetail detail = DetailOf(status);
  for (auto& [name, value] : detail.metadata) {
    if (name == "field") value = absl::StrCat("posted.", value);
  }
  return MakeError(status.code(), detail.reason,
                   absl::StrCat("posted.", status.message()),
                   std::move(detail.metadata));
}

absl::StatusOr<v1::PolicyTrial> Try(
    const ServiceContext& service, const Played& played,
    const PolicyDocument& document,
    const std::function<absl::Status()>& check_call) {
  // What the policy does is asked for, also of a session of the control group.
  const AppliedPolicy applied = document.For(played.header, played.model);
  absl::Status ended;  // Why it was not played to its end.
  const GoOn limit = LimitTrial(played.field, check_call);
  absl::StatusOr<PolicyTrial> trial = TryPolicy(
      played.input, *applied.policy, service.engine.counter(),
      BookPrices(service.engine.prices()), [&](std::int64_t observations) {
        ended = limit(observations);
        return ended;
      });
  CLERESTORY_RETURN_IF_ERROR(ended);
  if (!trial.ok()) return InPosted(trial.status());
  v1::PolicyTrial out = FromTrial(*trial);
  for (const TenantPolicy& policy : document.policies().policies()) {
    if (policy.name != applied.name) continue;
    *out.mutable_policy() = FromPolicy(policy, document.source());
  }
  return out;
}

}  // namespace

grpc::ServerUnaryReactor* PolicyService::GetPolicy(
    grpc::CallbackServerContext* context, const v1::GetPolicyRequest* request,
    v1::GetPolicyResponse* response) {
  return RunUnary(service_, context, "GetPolicy",
                  [=, this] { return Get(*request, *response); });
}

grpc::ServerUnaryReactor* PolicyService::ListPolicies(
    grpc::CallbackServerContext* context, const v1::ListPoliciesRequest*,
    v1::ListPoliciesResponse* response) {
  return RunUnary(service_, context, "ListPolicies",
                  [=, this] { return List(*response); });
}

grpc::ServerUnaryReactor* PolicyService::SetPolicy(
    grpc::CallbackServerContext* context, const v1::SetPolicyRequest* request,
    v1::SetPolicyResponse* response) {
  return RunUnary(service_, context, "SetPolicy",
                  [=, this] { return Set(*request, *response); });
}

grpc::ServerUnaryReactor* PolicyService::DeletePolicy(
    grpc::CallbackServerContext* context,
    const v1::DeletePolicyRequest* request, google::protobuf::Empty*) {
  return RunUnary(service_, context, "DeletePolicy",
                  [=, this] { return Delete(*request); });
}

grpc::ServerUnaryReactor* PolicyService::CheckPolicy(
    grpc::CallbackServerContext* context, const v1::CheckPolicyRequest* request,
    v1::CheckPolicyResponse* response) {
  // The context lives until the call is finished, which is after the work.
  const auto check_call = [this, context] {
    if (context->IsCancelled()) {
      return MakeError(absl::StatusCode::kCancelled, Reason::kCallCancelled,
                       "the call was cancelled or its deadline has passed");
    }
    return CheckServing(service_);
  };
  return RunUnary(service_, context, "CheckPolicy",
                  [=, this] { return Check(*request, check_call, *response); });
}

grpc::ServerUnaryReactor* PolicyService::ListTools(
    grpc::CallbackServerContext* context, const v1::ListToolsRequest* request,
    v1::ListToolsResponse* response) {
  return RunUnary(service_, context, "ListTools",
                  [=, this] { return ListAllTools(*request, *response); });
}

grpc::ServerUnaryReactor* PolicyService::ResetTool(
    grpc::CallbackServerContext* context, const v1::ResetToolRequest* request,
    v1::ResetToolResponse* response) {
  return RunUnary(service_, context, "ResetTool",
                  [=, this] { return Reset(*request, *response); });
}

absl::Status PolicyService::Get(const v1::GetPolicyRequest& request,
                                v1::GetPolicyResponse& response) const {
  const PolicyRegistry& policies = service_.engine.policies();
  PolicyDocumentPtr document;
  if (request.source() == v1::POLICY_SOURCE_UNSPECIFIED) {
    document = policies.For(service_.tenant);
  } else {
    CLERESTORY_ASSIGN_OR_RETURN(const PolicySource source,
                                ToPolicySource(request.source()));
    document = policies.Find(service_.tenant, source);
  }
  if (document == nullptr) {
    return MakeError(absl::StatusCode::kNotFound, Reason::kPolicyNotFound,
                     "the tenant has no document of policies of this source; "
                     "leave the source out for the one that is in force");
  }
  *response.mutable_policy() = FromDocument(*document, service_.tenant);
  return absl::OkStatus();
}

absl::Status PolicyService::List(v1::ListPoliciesResponse& response) const {
  const PolicyDocumentPtr document =
      service_.engine.policies().For(service_.tenant);
  for (const TenantPolicy& policy : document->policies().policies()) {
    *response.add_policies() = FromPolicy(policy, document->source());
  }
  for (const Preset& preset : Presets()) {
    *response.add_presets() = FromPreset(preset);
  }
  return absl::OkStatus();
}

absl::Status PolicyService::Set(const v1::SetPolicyRequest& request,
                                v1::SetPolicyResponse& response) const {
  PolicyRegistry& policies = service_.engine.policies();
  const TimeMicros now = service_.clock.Now();
  const ExpectedEtag expected = EtagOf(request);
  CLERESTORY_ASSIGN_OR_RETURN(
      const PolicyDocumentPtr document,
      request.validate_only()
          ? policies.Validate(service_.tenant, request.yaml(), expected, now)
          : policies.Set(service_.tenant, request.yaml(), expected, now));
  *response.mutable_policy() = FromDocument(*document, service_.tenant);
  if (!request.validate_only()) {
    service_.logger.Write(Severity::kInfo, "policy_stored",
                          {{"tenant", service_.tenant},
                           {"etag", document->etag()},
                           {"digest", document->policies().digest()}});
  }
  return absl::OkStatus();
}

absl::Status PolicyService::Delete(
    const v1::DeletePolicyRequest& request) const {
  CLERESTORY_RETURN_IF_ERROR(
      service_.engine.policies().Delete(service_.tenant, EtagOf(request)));
  service_.logger.Write(Severity::kInfo, "policy_deleted",
                        {{"tenant", service_.tenant}});
  return absl::OkStatus();
}

absl::Status PolicyService::Check(const v1::CheckPolicyRequest& request,
                                  const CheckCall& check_call,
                                  v1::CheckPolicyResponse& response) {
  PolicyDocumentPtr candidate;
  if (!request.yaml().empty()) {
    CLERESTORY_ASSIGN_OR_RETURN(
        candidate, service_.engine.policies().Validate(
                       service_.tenant, request.yaml(), ExpectedEtag(),
                       service_.clock.Now()));
    *response.mutable_candidate() = FromDocument(*candidate, service_.tenant);
    for (const TenantPolicy& policy : candidate->policies().policies()) {
      *response.add_policies() = FromPolicy(policy, candidate->source());
    }
  }
  if (request.played_case() == v1::CheckPolicyRequest::PLAYED_NOT_SET) {
    if (candidate == nullptr) {
      return FieldError("yaml", "missing; give a document, a session, or both");
    }
    return absl::OkStatus();
  }
  CLERESTORY_RETURN_IF_ERROR(check_call());
  CLERESTORY_ASSIGN_OR_RETURN(const std::shared_ptr<void> slot,
                              slots_.Take(service_.tenant));
  CLERESTORY_ASSIGN_OR_RETURN(const Played played,
                              ReadPlayed(service_, request));
  if (candidate != nullptr) {
    CLERESTORY_ASSIGN_OR_RETURN(*response.mutable_candidate_trial(),
                                Try(service_, played, *candidate, check_call));
  }
  CLERESTORY_ASSIGN_OR_RETURN(
      *response.mutable_present_trial(),
      Try(service_, played, *service_.engine.policies().For(service_.tenant),
          check_call));
  return absl::OkStatus();
}

BreakerOptions PolicyService::ToolOptions() const {
  const PolicyDocumentPtr document =
      service_.engine.policies().For(service_.tenant);
  SessionHeader session;
  session.key.tenant = service_.tenant;
  return BreakerOptionsOf(*document->For(session, "").policy);
}

absl::Status PolicyService::ListAllTools(
    const v1::ListToolsRequest& request,
    v1::ListToolsResponse& response) const {
  return ToPage(service_.engine.tools().List(service_.tenant, ToolOptions(),
                                             service_.clock.Now()),
                service_.tenant, request, response);
}

absl::Status PolicyService::Reset(const v1::ResetToolRequest& request,
                                  v1::ResetToolResponse& response) const {
  CLERESTORY_RETURN_IF_ERROR(CheckToolName(request.name()));
  CLERESTORY_RETURN_IF_ERROR(service_.engine.tools().Reset(
      service_.tenant, request.name(), service_.clock.Now()));
  *response.mutable_tool() =
      FromTool({.tool = request.name(),
                .figures = ToolBreaker().Figures(ToolOptions())});
  return absl::OkStatus();
}

}  // namespace clerestory
