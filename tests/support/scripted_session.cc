// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/scripted_session.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/policy/policy.h"
#include "server/tokens/chars_token_counter.h"
#include "server/tokens/token_counter.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "server/view/session_totals.h"
#include "server/view/view.h"
#include "tests/support/messages.h"

namespace clerestory {
namespace {

SessionHeader HeaderOf(Format format, bool has_recall_tool) {
  SessionHeader header;
  header.key = {.tenant = "t", .session = "s"};
  header.format = format;
  header.has_recall_tool = has_recall_tool;
  return header;
}

std::string Text(const std::optional<std::int64_t>& number) {
  return number.has_value() ? absl::StrCat(*number) : "-";
}

std::string Text(const StageTokens& tokens) {
  return absl::StrCat(tokens.user, " ", tokens.assistant, " ", tokens.calls,
                      " ", tokens.observations);
}

std::string Text(const CallTokens& call) {
  return absl::StrCat(call.read, " ", call.written, " ", call.uncached);
}

}  // namespace

const TokenCounter& CharacterCounter() {
  static const auto* const counter = new CharsTokenCounter(1);
  return *counter;
}

ModelPrices PlainPrices() {
  return {.model = "m",
          .input = 10,
          .write = 11,
          .read = 1,
          .output = 50,
          .window_tokens = 1'000'000'000,
          .output_tokens_max = 0,
          .cache_ttl_seconds = 300};
}

Policy PlainPolicy() {
  Policy policy;
  policy.first_break_percent = 100;
  policy.later_break_percent = 100;
  policy.look_ahead_calls = 0;
  policy.keep_observations = 3;
  policy.placeholder = "[masked]";
  policy.error_placeholder = "[failed]";
  return policy;
}

ScriptedSession::ScriptedSession(Format format, bool has_recall_tool)
    : header_(HeaderOf(format, has_recall_tool)),
      format_(format),
      session_(header_, CharacterCounter()) {}

void ScriptedSession::Append(const std::string& message) {
  const MessageAppended record = {.time = now, .message = ToBytes(message)};
  absl::StatusOr<std::vector<ParsedMessage>> parsed =
      session_.CheckAppend({record.message});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  session_.Append(record, std::move(parsed->front()));
  records_.emplace_back(record);
}

void ScriptedSession::Append(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) Append(message);
}

void ScriptedSession::Turn(std::int64_t tokens) {
  Batch({LiteralOf(static_cast<std::size_t>(tokens))});
}

void ScriptedSession::Turns(int count, std::int64_t tokens) {
  for (int i = 0; i < count; ++i) Turn(tokens);
}

void ScriptedSession::Batch(const std::vector<std::string>& contents) {
  std::vector<CallSpec> calls;
  std::vector<ResultSpec> results;
  for (const std::string& content : contents) {
    const std::string id = absl::StrCat("c", call_count_++);
    calls.push_back({.id = id});
    results.push_back({.id = id, .content = content});
  }
  Append(AssistantMessage(format_, "", calls));
  Append(ResultMessages(format_, results));
}

void ScriptedSession::Call(CallSpec call, const std::string& content,
                           bool is_error) {
  call.id = absl::StrCat("c", call_count_++);
  Append(AssistantMessage(format_, "", {call}));
  Append(ResultMessages(format_, {{.id = call.id,
                                   .content = content,
                                   .is_error = is_error,
                                   .tool = call.tool}}));
}

void ScriptedSession::Answer(std::int64_t tokens) {
  Append(AssistantMessage(format_,
                          std::string(static_cast<std::size_t>(tokens), 'a')));
}

void ScriptedSession::Ask(std::int64_t tokens) {
  Append(
      UserMessage(format_, std::string(static_cast<std::size_t>(tokens), 'u')));
}

ViewServed ScriptedSession::Plan() const {
  return PlanView(session_, policy, prices,
                  {.now = now,
                   .model = model,
                   .preamble_tokens = preamble_tokens,
                   .preamble_digest = preamble_digest,
                   .unmasked_tools = &unmasked_tools});
}

View ScriptedSession::Serve() {
  const std::int64_t last_count = session_.last_view().has_value()
                                      ? session_.last_view()->message_count
                                      : 0;
  ViewServed decision = Plan();
  session_.Apply(decision);
  records_.emplace_back(decision);
  return DescribeView(session_, std::move(decision), last_count,
                      FrontierOf(session_, policy, prices));
}

void ScriptedSession::Report(const Usage& usage) {
  const UsageReported record = {.time = now, .model = model, .usage = usage};
  session_.Apply(record);
  records_.emplace_back(record);
}

void ScriptedSession::Close(Outcome outcome) {
  const SessionClosed record = {
      .time = now, .outcome = outcome, .totals = TotalsOf(session_)};
  session_.Apply(record);
  records_.emplace_back(record);
}

ObservationId ScriptedSession::IdOf(std::size_t observation) const {
  const Observation& at = session_.observations()[observation];
  return {.sequence = at.sequence, .index = at.index};
}

void ScriptedSession::Note(const Record& record) {
  std::visit(
      [this](const auto& note) {
        using Kind = std::decay_t<decltype(note)>;
        if constexpr (!std::is_same_v<Kind, MessageAppended>) {
          session_.Apply(note);
        }
      },
      record);
  records_.push_back(record);
}

void ScriptedSession::SetPin(const Pin& pin, bool is_pinned) {
  Note(PinChanged{.time = now, .pin = pin, .is_pinned = is_pinned});
}

void ScriptedSession::PinObservation(std::size_t observation, bool is_pinned) {
  SetPin({.observation = IdOf(observation)}, is_pinned);
}

void ScriptedSession::NoteRepeat(std::size_t later, std::size_t earlier,
                                 RepeatKind kind, PicoUsd cost) {
  Note(ObservationRepeated{.time = now,
                           .later = IdOf(later),
                           .earlier = IdOf(earlier),
                           .kind = kind,
                           .cost = cost});
}

void ScriptedSession::NoteRecall(std::size_t observation, PicoUsd cost) {
  Note(ObservationRecalled{
      .time = now, .observation = IdOf(observation), .cost = cost});
}

Session ScriptedSession::Replayed() const {
  Session session(header_, CharacterCounter());
  for (const Record& record : records_) {
    const absl::Status status = session.Replay(record);
    EXPECT_TRUE(status.ok()) << status;
  }
  return session;
}

std::vector<std::string> ScriptedSession::view() const {
  std::vector<std::string> texts;
  for (const SessionMessage& message : session_.messages()) {
    if (message.view != nullptr) texts.push_back(*message.view);
  }
  return texts;
}

std::vector<std::size_t> ScriptedSession::masked() const {
  std::vector<std::size_t> masked;
  for (std::size_t i = 0; i < session_.observations().size(); ++i) {
    if (session_.observations()[i].placeholder.has_value()) masked.push_back(i);
  }
  return masked;
}

std::vector<std::string> Texts(const std::vector<Bytes>& messages) {
  std::vector<std::string> texts;
  for (const Bytes& message : messages) texts.push_back(*message);
  return texts;
}

std::string LedgerText(const Ledger& ledger) {
  return absl::StrCat(
      "calls ", ledger.call_count, "\npreamble ", ledger.preamble_tokens,
      "\nraw ", Text(ledger.raw_tokens), "\nview ", Text(ledger.view_tokens),
      "\nraw call ", Text(ledger.raw_call), "\nview call ",
      Text(ledger.view_call), "\nevery turn call ",
      Text(ledger.every_turn_call), "\ncosts ", ledger.raw_cost, " ",
      ledger.view_cost, " ", ledger.every_turn_cost, "\noutput ",
      ledger.output_tokens, " ", ledger.output_cost, "\nbreaks ",
      absl::StrJoin(ledger.breaks, " "), "\nmasks ", ledger.mask_count, " ",
      ledger.restore_count, " ", ledger.drop_count, " ",
      ledger.argument_mask_count, " ", ledger.copied_placeholder_count,
      "\nusage ", ledger.usage_count, " ", Text(ledger.usage.input_uncached),
      " ", Text(ledger.usage.cache_read), " ", Text(ledger.usage.cache_write),
      " ", Text(ledger.usage.output), " ", Text(ledger.usage.reasoning),
      " cost ", ledger.usage_cost, "\ncompared ", ledger.compared_count, " ",
      ledger.estimated_tokens, " ", ledger.reported_tokens, " ",
      ledger.error_tokens, "\n");
}

std::string TallyText(const ToolTally& tally) {
  return absl::StrCat("observations ", tally.observation_count, " masked ",
                      tally.mask_count, " fetched ", tally.refetched_count,
                      " repeats ", absl::StrJoin(tally.repeats, " "),
                      " recalls ", tally.recall_count, " turns ",
                      tally.refetch_turns, " tokens ", tally.masked_tokens,
                      " saved ", tally.saved, " lost ", tally.lost);
}

std::string SessionText(const Session& session) {
  std::string text = absl::StrCat(
      LedgerText(session.ledger()), "version ", session.version(), " turns ",
      session.turn_count(), " raw ", Text(session.raw_tokens()), " view ",
      session.view_tokens(), " ", session.view_bytes(), " history ",
      session.history_bytes(), " memory ", session.memory_bytes(),
      " price sum ", session.read_price_sum(), " every turn ",
      session.every_turn_saving(), " copied ",
      absl::StrJoin(session.copied(), " "), " eligible ",
      session.eligible_count(), " candidates ",
      absl::StrJoin(session.candidates(), " "), " thinking ",
      session.last_thinking(), " ", session.stripped_tokens(), " ",
      session.stale_from().value_or(-1), " ", session.StripSaving(0), " ",
      session.LostReasoning(0), " images ", session.view_image_count(),
      " outcome ", static_cast<int>(session.header().outcome), " ",
      session.header().close_time, "\n");
  if (session.last_view().has_value()) {
    const ViewServed& last = *session.last_view();
    absl::StrAppend(&text, "last ", last.time, " ", last.model, " ",
                    last.message_count, " ", last.view_call.total(), " ",
                    last.raw_call.total(), "\n");
  }
  for (const auto& [tool, tally] : session.tools()) {
    absl::StrAppend(&text, "tool ", tool, " ", TallyText(tally), "\n");
  }
  absl::StrAppend(&text, "other tools ", TallyText(session.other_tools()),
                  "\n");
  for (const Pin& pin : session.pins()) {
    const ObservationId id = pin.observation.value_or(ObservationId{-1, -1});
    absl::StrAppend(&text, "pin ", id.sequence, " ", id.index, " ", pin.tool,
                    " ", pin.resource, "\n");
  }
  for (std::int64_t m = 0; m < session.message_count(); ++m) {
    const SessionMessage& message =
        session.messages()[static_cast<std::size_t>(m)];
    absl::StrAppend(&text, "message ", message.time, " ",
                    message.view_bytes_before, " ", message.view_tokens_before,
                    " ", session.ViewDigest(m + 1).ToHex(), "\n");
  }
  for (const Observation& observation : session.observations()) {
    absl::StrAppend(
        &text, "observation ", observation.sequence, " ", observation.index,
        " ", observation.tool, " ", observation.turn, " ",
        observation.view_tokens_before, " ", observation.rent_base, " ",
        observation.placeholder.value_or("-"), " ",
        observation.placeholder_tokens, " ", observation.mask_time, " ",
        static_cast<int>(observation.mask_reason), " ", observation.was_masked,
        observation.is_refetched, observation.is_recalled, "\n");
  }
  return text;
}

}  // namespace clerestory
