// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/replay_command.h"

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <ios>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cc/client.h"
#include "client/cli/backtest_report.h"
#include "client/cli/backtest_run.h"
#include "client/cli/replay_check.h"
#include "client/cli/replay_session.h"
#include "client/cli/terminal.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "server/backtest/price_source.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/class_token_counter.h"

namespace clerestory {
namespace {

using nlohmann::ordered_json;

// A session id for the session `name` of `file`: what is allowed of its name,
// and the time, so that it is new.
std::string SessionId(const ReplayOptions& options, absl::string_view name) {
  absl::string_view file = options.file;
  const std::size_t slash = file.rfind('/');
  if (slash != absl::string_view::npos) file.remove_prefix(slash + 1);
  std::string id = absl::StrCat(options.session_prefix, "-");
  for (const char c : absl::StrCat(file, name)) {
    const bool is_allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '.' || c == '-';
    id.push_back(is_allowed ? c : '_');
  }
  constexpr std::size_t kNameBytesMax = 100;
  if (id.size() > kNameBytesMax) id.resize(kNameBytesMax);
  return absl::StrCat(id, "-", Clock::Real().Now());
}

std::string FormatCalls(const ReplayOutcome& outcome) {
  std::vector<std::vector<std::string>> table = {
      {"call", "messages", "raw tokens", "sent", "read", "written", "output",
       "masked", "cost $", "break"}};
  for (std::size_t i = 0; i < outcome.calls.size(); ++i) {
    const ReplayCall& call = outcome.calls[i];
    table.push_back(
        {absl::StrCat(i + 1), absl::StrCat(call.message_count),
         absl::StrCat(call.raw_tokens), absl::StrCat(call.tokens.total()),
         absl::StrCat(call.tokens.read), absl::StrCat(call.tokens.written),
         absl::StrCat(call.output_tokens), absl::StrCat(call.masked_count),
         FormatUsd(call.cost, 4), std::string(BreakName(call.break_reason))});
  }
  return FormatTable(table);
}

struct PolicyCost {
  std::string name;
  PicoUsd cost = 0;
};

// What the session would have cost otherwise, by back-test, and what it did.
absl::StatusOr<std::vector<PolicyCost>> Compare(const ReplayOptions& options,
                                                const Transcript& transcript,
                                                const ReplayOutcome& outcome) {
  std::vector<NamedPolicy> policies;
  for (const char* name : {"off", "every_turn", "block"}) {
    CLERESTORY_ASSIGN_OR_RETURN(Policy policy, ParsePolicy(name));
    policies.push_back({.name = name, .policy = std::move(policy)});
  }
  CLERESTORY_ASSIGN_OR_RETURN(
      const SessionOutcome tested,
      RunSession(ToInput(transcript, options.model, options.preamble_tokens),
                 policies, ClassTokenCounter(), ListPrices()));
  return std::vector<PolicyCost>{
      {.name = "raw", .cost = tested.policies[0].result.cost},
      {.name = "masked every turn", .cost = tested.policies[1].result.cost},
      {.name = "masked in blocks of 10",
       .cost = tested.policies[2].result.cost},
      {.name = "as the server decided", .cost = outcome.cost}};
}

std::string FormatCosts(const std::vector<PolicyCost>& costs) {
  std::vector<std::vector<std::string>> table = {
      {"session", "cost $", "of raw"}};
  for (const PolicyCost& cost : costs) {
    table.push_back({cost.name, FormatUsd(cost.cost, 4),
                     FormatRatio(Ratio(cost.cost, costs.front().cost))});
  }
  return FormatTable(table);
}

ordered_json ToJson(const ReplayOutcome& outcome, const ReplayCheck& check,
                    const std::vector<PolicyCost>& costs) {
  ordered_json calls = ordered_json::array();
  for (const ReplayCall& call : outcome.calls) {
    calls.push_back({{"digest", call.digest},
                     {"messages", call.message_count},
                     {"read", call.tokens.read},
                     {"written", call.tokens.written},
                     {"break", BreakName(call.break_reason)}});
  }
  ordered_json cost = ordered_json::object();
  for (const PolicyCost& policy : costs) {
    cost[policy.name] = FormatUsd(policy.cost, 12);
  }
  return {{"session_id", outcome.session_id},
          {"messages", outcome.message_count},
          {"history_digest", outcome.history_digest},
          {"lossless_mismatches", check.lossless().size()},
          {"invalid_views", check.valid().size()},
          {"prefix_violations", check.prefix_stable().size()},
          {"estimate_mismatches", check.estimates().size()},
          {"cost_usd", cost},
          {"calls", calls}};
}

// Replays one session, prints it and adds it to `json`. Returns how many
// promises were broken.
absl::StatusOr<std::size_t> ReplayOne(const Client& client,
                                      const ReplayOptions& options,
                                      const Transcript& transcript,
                                      ordered_json& json) {
  ReplayCheck check(transcript.format, options.preamble_tokens,
                    ClassTokenCounter());
  ReplaySession session(client, options, transcript,
                        SessionId(options, transcript.name), check);
  CLERESTORY_RETURN_IF_ERROR(session.Run());
  const ReplayOutcome& outcome = session.outcome();
  CLERESTORY_ASSIGN_OR_RETURN(const std::vector<PolicyCost> costs,
                              Compare(options, transcript, outcome));
  std::printf("\n%s: %zu model calls, %lld messages\n",
              outcome.session_id.c_str(), outcome.calls.size(),
              static_cast<long long>(outcome.message_count));
  if (!options.quiet) std::printf("\n%s", FormatCalls(outcome).c_str());
  std::printf("\n%s", FormatCosts(costs).c_str());

  std::size_t broken = 0;
  for (const auto* list :
       {&check.lossless(), &check.valid(), &check.prefix_stable()}) {
    broken += list->size();
    for (const std::string& what : *list) {
      std::fprintf(stderr, "broken promise: %s\n", what.c_str());
    }
  }
  for (const std::string& what : check.estimates()) {
    std::fprintf(stderr, "note: %s\n", what.c_str());
  }
  if (check.calls_edited()) {
    std::fprintf(stderr,
                 "note: the policy drops calls or masks their arguments, so "
                 "views were not compared message by message\n");
  }
  std::printf(
      "\nchecked %zu views: lossless %s, valid %s, prefix-stable %s; history "
      "SHA-256 %s\n",
      outcome.calls.size(), check.lossless().empty() ? "yes" : "NO",
      check.valid().empty() ? "yes" : "NO",
      check.prefix_stable().empty() ? "yes" : "NO",
      outcome.history_digest.c_str());
  json.push_back(ToJson(outcome, check, costs));
  return broken;
}

}  // namespace

absl::Status RunReplay(const ReplayOptions& options) {
  const absl::StatusOr<ReadResult> file =
      ReadTranscriptFile(options.file, options.source);
  if (!file.ok()) return Annotate(file.status(), options.file);
  const ReadResult& read = *file;
  for (const ReadIssue& issue : read.issues) {
    std::fprintf(stderr, "%s:%lld: %s\n", options.file.c_str(),
                 static_cast<long long>(issue.line), issue.what.c_str());
  }
  const Client client(options.target);
  ordered_json sessions = ordered_json::array();
  std::size_t broken = 0;
  for (const Transcript& transcript : read.transcripts) {
    CLERESTORY_ASSIGN_OR_RETURN(
        const std::size_t count,
        ReplayOne(client, options, transcript, sessions));
    broken += count;
  }
  if (!options.json_path.empty()) {
    std::ofstream out(options.json_path, std::ios::trunc);
    out << ordered_json{{"file", options.file}, {"sessions", sessions}}.dump()
        << "\n";
    out.close();
    if (!out) return FieldError("json", "cannot write " + options.json_path);
  }
  if (broken > 0) {
    return absl::InternalError(
        absl::StrCat("the server broke ", broken, " promises; see above"));
  }
  return absl::OkStatus();
}

}  // namespace clerestory
