// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/decide.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/cost/usage_cost.h"
#include "server/engine/policy_document.h"
#include "server/formats/context_management.h"
#include "server/formats/usage.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/policy/tool_glob.h"
#include "server/view/call_cost.h"
#include "server/view/exempt.h"
#include "server/view/plan_view.h"
#include "server/view/repeats.h"
#include "server/view/session.h"
#include "server/view/view.h"

namespace clerestory {
namespace {

// How many of the messages of `request` are in the history of `session`
// already.
absl::StatusOr<std::size_t> PresentCount(const Session& session,
                                         const AppendRequest& request) {
  if (!request.expected_sequence.has_value()) return 0;
  const std::int64_t expected = *request.expected_sequence;
  const std::int64_t next = session.message_count();
  const std::string& id = session.header().key.session;
  if (expected < 0) {
    return FieldError("expected_sequence", "must not be negative");
  }
  if (expected > next) {
    return MakeError(
        absl::StatusCode::kAborted, Reason::kSequenceGap,
        absl::StrCat("expected_sequence ", expected,
                     " lies behind the end of the history; append from ", next,
                     " on"),
        {{"session_id", id}, {"next_sequence", absl::StrCat(next)}});
  }
  std::size_t present = 0;
  for (std::int64_t sequence = expected;
       sequence < next && present < request.messages.size(); ++sequence) {
    const Bytes& there =
        session.messages()[static_cast<std::size_t>(sequence)].raw;
    if (*there != *request.messages[present]) {
      return MakeError(
          absl::StatusCode::kAborted, Reason::kAppendConflict,
          absl::StrCat("message ", sequence,
                       " of the history has other bytes; read the history "
                       "from there"),
          {{"session_id", id},
           {"sequence", absl::StrCat(sequence)},
           {"next_sequence", absl::StrCat(next)}});
    }
    ++present;
  }
  return present;
}

absl::StatusOr<Usage> ReadUsage(Format format, const UsageInput& input) {
  if (const auto* json = std::get_if<std::string>(&input)) {
    return ParseUsage(format, *json);
  }
  const auto& usage = std::get<Usage>(input);
  CLERESTORY_RETURN_IF_ERROR(CheckUsage(usage));
  return usage;
}

// What has Anthropic clear what `policy` would have us mask. Each tool that
// was called is looked at once, however often it was.
std::string DelegatedClearing(const Session& session, const Policy& policy) {
  ClearToolUses edit = {.trigger_tokens = policy.threshold_tokens,
                        .keep = policy.keep_observations,
                        .clear_tokens_min = policy.reclaim_tokens_min};
  std::set<absl::string_view> seen;
  for (const Call& call : session.calls()) {
    const std::string& tool = call.call.tool;
    if (!seen.insert(tool).second || IsMaskable(policy, tool)) continue;
    edit.exclude_tools.insert(tool);
    if (edit.exclude_tools.size() == kDelegatedToolsMax) break;
  }
  return ContextManagement(edit);
}

}  // namespace

const std::string& LastModel(const Session& session) {
  return session.last_view().has_value() ? session.last_view()->model
                                         : session.header().model;
}

absl::Status Closed(const Session& session) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, Reason::kSessionClosed,
      "the session is closed and cannot be changed; create another one",
      {{"session_id", session.header().key.session}});
}

absl::Status Append(const AppendRequest& request, const Rules& rules,
                    Session& session, std::vector<Record>& records) {
  CLERESTORY_ASSIGN_OR_RETURN(const std::size_t present,
                              PresentCount(session, request));
  if (present == request.messages.size()) return absl::OkStatus();
  if (session.header().outcome != Outcome::kOpen) return Closed(session);
  const std::vector<Bytes> fresh(
      request.messages.begin() + static_cast<std::ptrdiff_t>(present),
      request.messages.end());
  if (session.message_count() + static_cast<std::int64_t>(fresh.size()) >
      kSessionMessagesMax) {
    return FieldError("messages",
                      absl::StrCat("the session would have more than ",
                                   kSessionMessagesMax, " messages"));
  }
  std::int64_t bytes = session.history_bytes();
  for (const Bytes& message : fresh) {
    bytes += static_cast<std::int64_t>(message->size());
  }
  if (bytes > kSessionBytesMax) {
    return FieldError("messages", absl::StrCat("the session would have more "
                                               "than ",
                                               kSessionBytesMax, " bytes"));
  }
  absl::StatusOr<std::vector<ParsedMessage>> parsed =
      session.CheckAppend(fresh, present);
  if (!parsed.ok()) return parsed.status();
  const std::size_t first = session.observations().size();
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    MessageAppended record{.time = request.now, .message = fresh[i]};
    session.Append(record, std::move((*parsed)[i]));
    records.emplace_back(std::move(record));
  }
  if (first == session.observations().size()) return absl::OkStatus();
  const std::string& model = LastModel(session);
  NoteRepeats(first, request.now,
              *rules.policies.For(session.header(), model).policy,
              rules.prices.Of(model, request.now), session, records);
  return absl::OkStatus();
}

absl::StatusOr<Usage> TakeUsage(const UsageInput& usage,
                                const std::string& model, TimeMicros now,
                                const Rules& rules, Session& session,
                                std::vector<Record>& records,
                                std::optional<LearnedSample>& learned) {
  UsageReported record{.time = now, .model = model, .usage = {}};
  if (record.model.empty()) record.model = LastModel(session);
  CLERESTORY_ASSIGN_OR_RETURN(record.usage,
                              ReadUsage(session.header().format, usage));
  if (session.IsReported(record)) return record.usage;
  const Policy& policy =
      *rules.policies.For(session.header(), record.model).policy;
  record.cost = UsageCost(rules.prices.Of(record.model, now), record.usage,
                          policy.cache_life == CacheLife::kLong);
  if (const auto sample = session.Apply(record)) {
    learned = LearnedSample{.model = record.model, .sample = *sample};
  }
  Usage understood = record.usage;
  records.emplace_back(std::move(record));
  return understood;
}

absl::StatusOr<BuiltView> Decide(const BuildViewRequest& request,
                                 const Rules& rules, Session& session,
                                 std::vector<Record>& records,
                                 std::optional<LearnedSample>& learned) {
  const TimeMicros now = request.append.now;
  // What can be refused comes first: nothing is changed by then.
  std::optional<Usage> usage;
  if (request.usage.has_value()) {
    CLERESTORY_ASSIGN_OR_RETURN(
        usage, ReadUsage(session.header().format, *request.usage));
  }
  CLERESTORY_RETURN_IF_ERROR(Append(request.append, rules, session, records));
  if (usage.has_value()) {
    CLERESTORY_RETURN_IF_ERROR(
        TakeUsage(*usage, "", now, rules, session, records, learned).status());
  }

  const std::string model =
      request.model.empty() ? session.header().model : request.model;
  const AppliedPolicy applied = rules.policies.For(session.header(), model);
  std::optional<Policy> control;
  if (applied.is_control) {
    control = *applied.policy;
    control->mode = Mode::kOff;
  }
  const Policy& policy = control.has_value() ? *control : *applied.policy;
  const ModelPrices& prices = rules.prices.Of(model, now);
  ViewServed decision =
      PlanView(session, policy, prices,
               {.now = now,
                .model = model,
                .preamble_tokens = request.preamble_tokens,
                .preamble_digest = request.preamble_digest,
                .token_scale_ppm = rules.token_scale_of(model),
                .unmasked_tools = rules.unmasked_tools});
  decision.is_control = applied.is_control;
  session.Apply(decision);
  records.emplace_back(std::move(decision));

  BuiltView built;
  built.view = DescribeView(
      session, session.last_decision(), session.view_before_count(),
      FrontierOf(session, policy, prices), prices.cache_tokens_min);
  const ViewServed& decided = built.view.decision;
  if (decided.break_reason != BreakReason::kNone) {
    built.saved_tokens = session.ledger().break_entries.back().saved_tokens;
  }
  built.over_window_tokens = std::max<std::int64_t>(
      0, decided.view_call.total() - PromptTokensMax(policy, prices));
  built.masked_count = session.ledger().mask_count;
  built.copied_placeholder_count = session.ledger().copied_placeholder_count;
  built.policy_name = std::string(applied.name);
  built.policy_digest = std::string(applied.digest);
  built.is_control = applied.is_control;
  const Exempt exempt(session, policy, rules.unmasked_tools);
  for (const auto& [tool, tally] : session.tools()) {
    if (exempt.IsUnmasked(tool)) built.unmasked_tools.push_back(tool);
  }
  built.model = model;
  built.is_model_known = rules.prices.IsKnown(model);
  built.cache_status = session.cache().StatusOf(model);
  if (policy.mode == Mode::kDelegate &&
      session.header().format == Format::kAnthropicMessages) {
    built.context_management = DelegatedClearing(session, policy);
  }
  built.needs_drop_block = policy.thinking == ThinkingRule::kDropBlock &&
                           prices.reasoning_prefix_bound &&
                           session.ShowsStaleReasoning();
  return built;
}

}  // namespace clerestory
