// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_engine.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/backtest/backtest.h"
#include "server/base/limits.h"
#include "server/base/mutex.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_registry.h"
#include "server/engine/session_cache.h"
#include "server/formats/usage.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/store/session_store.h"
#include "server/tokens/token_counter.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/view.h"

namespace clerestory {
namespace {

absl::Status Closed(const Session& session) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, Reason::kSessionClosed,
      "the session is closed and cannot be changed; create another one",
      {{"session_id", session.header().key.session}});
}

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

// Appends what is not there yet to `session` and to `records`.
absl::Status Append(const AppendRequest& request, Session& session,
                    std::vector<Record>& records) {
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
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    MessageAppended record{.time = request.now, .message = fresh[i]};
    session.Append(record, std::move((*parsed)[i]));
    records.emplace_back(std::move(record));
  }
  return absl::OkStatus();
}

absl::StatusOr<Usage> ReadUsage(Format format, const UsageInput& input) {
  if (const auto* json = std::get_if<std::string>(&input)) {
    return ParseUsage(format, *json);
  }
  const auto& usage = std::get<Usage>(input);
  CLERESTORY_RETURN_IF_ERROR(CheckUsage(usage));
  return usage;
}

std::string ModelOr(absl::string_view model, const Session& session) {
  return model.empty() ? session.header().model : std::string(model);
}

// Whether `records` may be lost with the machine's power: only a view that
// masks nothing anew, whose time then is.
Durability DurabilityOf(const std::vector<Record>& records) {
  for (const Record& record : records) {
    const auto* view = std::get_if<ViewServed>(&record);
    if (view == nullptr || !view->masks.empty()) return Durability::kSynced;
  }
  return Durability::kBuffered;
}

SessionSummary Summarize(const Session& session) {
  SessionSummary summary;
  summary.header = session.header();
  summary.message_count = session.message_count();
  summary.history_bytes = session.history_bytes();
  summary.observation_count =
      static_cast<std::int64_t>(session.observations().size());
  summary.masked_count = session.ledger().mask_count;
  summary.ledger = session.ledger();
  return summary;
}

}  // namespace

SessionEngine::SessionEngine(SessionStore& store, const TokenCounter& counter,
                             Options options)
    : store_(store),
      counter_(counter),
      options_(std::move(options)),
      policies_(store, options_.policy),
      cache_(options_.cache_bytes_max) {}

absl::Status SessionEngine::Load(SessionCache::Entry& entry) {
  if (entry.session != nullptr) return absl::OkStatus();
  CLERESTORY_ASSIGN_OR_RETURN(StoredSession stored, store_.Read(entry.key));
  auto session = std::make_unique<Session>(std::move(stored.header), counter_);
  for (const Record& record : stored.records) {
    CLERESTORY_RETURN_IF_ERROR(session->Replay(record));
  }
  entry.session = std::move(session);
  return absl::OkStatus();
}

absl::Status SessionEngine::Commit(SessionCache::Entry& entry,
                                   const std::vector<Record>& records) {
  if (records.empty()) return absl::OkStatus();
  const std::int64_t version =
      entry.session->version() - static_cast<std::int64_t>(records.size());
  const absl::Status status =
      store_.Write(entry.key, version, records, DurabilityOf(records));
  if (!status.ok()) entry.session.reset();
  return status;
}

template <typename Result, typename Work>
Result SessionEngine::WithSession(const SessionKey& key, Work work) {
  const SessionCache::Lease lease = cache_.Take(key);
  SessionCache::Entry& entry = lease.entry();
  const MutexLock lock(entry.mutex);
  CLERESTORY_RETURN_IF_ERROR(Load(entry));
  std::vector<Record> records;
  Result result = work(*entry.session, records);
  absl::Status written = Commit(entry, records);
  entry.session_bytes =
      entry.session == nullptr ? 0 : entry.session->memory_bytes();
  if (result.ok() && !written.ok()) return written;
  return result;
}

absl::StatusOr<SessionHeader> SessionEngine::CreateSession(
    const SessionHeader& header) {
  absl::Status created = store_.Create(header);
  if (created.ok()) return header;
  if (created.code() != absl::StatusCode::kAlreadyExists) return created;
  return WithSession<absl::StatusOr<SessionHeader>>(
      header.key,
      [&](Session& session,
          std::vector<Record>&) -> absl::StatusOr<SessionHeader> {
        const SessionHeader& there = session.header();
        if (there.format != header.format || there.model != header.model ||
            there.labels != header.labels) {
          return created;
        }
        return there;
      });
}

absl::StatusOr<SessionSummary> SessionEngine::GetSession(
    const SessionKey& key) {
  return WithSession<absl::StatusOr<SessionSummary>>(
      key,
      [](Session& session, std::vector<Record>&)
          -> absl::StatusOr<SessionSummary> { return Summarize(session); });
}

absl::StatusOr<std::vector<SessionHeader>> SessionEngine::ListSessions(
    absl::string_view tenant, absl::string_view after, std::int64_t limit) {
  return store_.List(tenant, after, limit);
}

absl::StatusOr<SessionSummary> SessionEngine::CloseSession(
    const SessionKey& key, Outcome outcome, TimeMicros now) {
  return WithSession<absl::StatusOr<SessionSummary>>(
      key,
      [&](Session& session,
          std::vector<Record>& records) -> absl::StatusOr<SessionSummary> {
        const Outcome there = session.header().outcome;
        if (there == outcome) return Summarize(session);
        if (there != Outcome::kOpen) return Closed(session);
        const SessionClosed record{.time = now, .outcome = outcome};
        session.Apply(record);
        records.emplace_back(record);
        return Summarize(session);
      });
}

absl::Status SessionEngine::DeleteSession(const SessionKey& key) {
  const SessionCache::Lease lease = cache_.Take(key);
  SessionCache::Entry& entry = lease.entry();
  const MutexLock lock(entry.mutex);
  entry.session.reset();
  entry.session_bytes = 0;
  return store_.Delete(key);
}

absl::StatusOr<std::int64_t> SessionEngine::AppendMessages(
    const SessionKey& key, const AppendRequest& request) {
  return WithSession<absl::StatusOr<std::int64_t>>(
      key,
      [&](Session& session,
          std::vector<Record>& records) -> absl::StatusOr<std::int64_t> {
        CLERESTORY_RETURN_IF_ERROR(Append(request, session, records));
        return session.message_count();
      });
}

absl::StatusOr<BuiltView> SessionEngine::BuildView(
    const SessionKey& key, const BuildViewRequest& request) {
  return WithSession<absl::StatusOr<BuiltView>>(
      key,
      [&](Session& session,
          std::vector<Record>& records) -> absl::StatusOr<BuiltView> {
        if (request.dry_run) {
          Session trial = session;
          std::vector<Record> dropped;
          return Decide(request, trial, dropped);
        }
        if (session.header().outcome != Outcome::kOpen) return Closed(session);
        return Decide(request, session, records);
      });
}

absl::StatusOr<BuiltView> SessionEngine::Decide(
    const BuildViewRequest& request, Session& session,
    std::vector<Record>& records) const {
  // What can be refused comes first: nothing is changed by then.
  std::optional<UsageReported> usage;
  const std::string model = ModelOr(request.model, session);
  if (request.usage.has_value()) {
    CLERESTORY_ASSIGN_OR_RETURN(
        const Usage understood,
        ReadUsage(session.header().format, *request.usage));
    usage = UsageReported{
        .time = request.append.now, .model = model, .usage = understood};
  }
  CLERESTORY_RETURN_IF_ERROR(Append(request.append, session, records));
  if (usage.has_value() && !session.IsReported(usage->usage)) {
    session.Apply(*usage);
    records.emplace_back(*usage);
  }

  const PolicyDocumentPtr document = policies_.For(session.header().key.tenant);
  const AppliedPolicy applied = document->For(session.header(), model);
  std::optional<Policy> control;
  if (applied.is_control) {
    control = *applied.policy;
    control->mode = Mode::kOff;
  }
  const Policy& policy = control.has_value() ? *control : *applied.policy;
  const ModelPrices& prices = BuiltInPrices().Of(model, request.append.now);
  ViewServed decision = PlanView(session, policy, prices,
                                 {.now = request.append.now,
                                  .model = model,
                                  .preamble_tokens = request.preamble_tokens});
  session.Apply(decision);
  records.emplace_back(std::move(decision));

  BuiltView built;
  built.view = DescribeView(session, session.last_decision(),
                            session.view_before_count(),
                            FrontierOf(session, policy, prices));
  const ViewServed& decided = built.view.decision;
  built.saved_tokens = session.SavingOf(decided.masks);
  built.over_window_tokens = std::max<std::int64_t>(
      0, decided.view_call.total() - PromptTokensMax(policy, prices));
  built.masked_count = session.ledger().mask_count;
  built.copied_placeholder_count = session.ledger().copied_placeholder_count;
  built.policy_digest = std::string(applied.digest);
  return built;
}

absl::StatusOr<Usage> SessionEngine::ReportUsage(const SessionKey& key,
                                                 const UsageInput& usage,
                                                 absl::string_view model,
                                                 TimeMicros now) {
  return WithSession<absl::StatusOr<Usage>>(
      key,
      [&](Session& session,
          std::vector<Record>& records) -> absl::StatusOr<Usage> {
        if (session.header().outcome != Outcome::kOpen) return Closed(session);
        UsageReported record{
            .time = now, .model = ModelOr(model, session), .usage = {}};
        CLERESTORY_ASSIGN_OR_RETURN(record.usage,
                                    ReadUsage(session.header().format, usage));
        if (session.IsReported(record.usage)) return record.usage;
        session.Apply(record);
        records.emplace_back(record);
        return record.usage;
      });
}

absl::StatusOr<std::vector<HistoryEntry>> SessionEngine::ReadHistory(
    const SessionKey& key, std::int64_t start) {
  return WithSession<absl::StatusOr<std::vector<HistoryEntry>>>(
      key,
      [&](Session& session,
          std::vector<Record>&) -> absl::StatusOr<std::vector<HistoryEntry>> {
        if (start < 0 || start > session.message_count()) {
          return FieldError(
              "start_sequence",
              absl::StrCat("expected 0 to ", session.message_count()));
        }
        std::vector<HistoryEntry> history;
        for (auto i = static_cast<std::size_t>(start);
             i < session.messages().size(); ++i) {
          const SessionMessage& message = session.messages()[i];
          history.push_back({.message = message.raw, .time = message.time});
        }
        return history;
      });
}

absl::StatusOr<std::vector<Observation>> SessionEngine::ListObservations(
    const SessionKey& key, std::size_t start, std::int64_t limit) {
  return WithSession<absl::StatusOr<std::vector<Observation>>>(
      key,
      [&](Session& session,
          std::vector<Record>&) -> absl::StatusOr<std::vector<Observation>> {
        const std::vector<Observation>& all = session.observations();
        const std::size_t begin = std::min(start, all.size());
        const std::size_t end =
            begin +
            std::min(static_cast<std::size_t>(limit), all.size() - begin);
        return std::vector<Observation>(
            all.begin() + static_cast<std::ptrdiff_t>(begin),
            all.begin() + static_cast<std::ptrdiff_t>(end));
      });
}

absl::StatusOr<ObservationContent> SessionEngine::ReadObservation(
    const SessionKey& key, std::int64_t sequence, std::int64_t index,
    std::int64_t offset, std::int64_t limit) {
  return WithSession<absl::StatusOr<ObservationContent>>(
      key,
      [&](Session& session,
          std::vector<Record>&) -> absl::StatusOr<ObservationContent> {
        const bool has_message =
            sequence >= 0 && sequence < session.message_count();
        if (!has_message || index < 0 ||
            static_cast<std::size_t>(index) >=
                session.messages()[static_cast<std::size_t>(sequence)]
                    .observation_count) {
          const std::string id = absl::StrCat(sequence, ".", index);
          return MakeError(absl::StatusCode::kNotFound,
                           Reason::kObservationNotFound,
                           absl::StrCat("the session has no observation ", id),
                           {{"observation_id", id}});
        }
        const SessionMessage& message =
            session.messages()[static_cast<std::size_t>(sequence)];
        ObservationContent part;
        part.observation =
            session.observations()[message.first_observation +
                                   static_cast<std::size_t>(index)];
        const ByteSpan span = part.observation.result.content;
        const auto size = static_cast<std::int64_t>(span.size);
        if (offset < 0 || offset > size) {
          return FieldError("offset", absl::StrCat("expected 0 to ", size));
        }
        part.content = message.raw->substr(
            span.offset + static_cast<std::size_t>(offset),
            static_cast<std::size_t>(std::min(limit, size - offset)));
        const std::int64_t next =
            offset + static_cast<std::int64_t>(part.content.size());
        part.next_offset = next < size ? next : 0;
        return part;
      });
}

absl::StatusOr<BacktestInput> SessionEngine::ReadForTrial(
    const SessionKey& key) {
  return WithSession<absl::StatusOr<BacktestInput>>(
      key,
      [&](Session& session,
          std::vector<Record>&) -> absl::StatusOr<BacktestInput> {
        CLERESTORY_ASSIGN_OR_RETURN(const StoredSession stored,
                                    store_.Read(key));
        BacktestInput input;
        input.format = stored.header.format;
        std::string model = stored.header.model;
        // Of the view that no message of the model has answered yet.
        TimeMicros view_time = 0;
        for (const Record& record : stored.records) {
          if (const auto* view = std::get_if<ViewServed>(&record)) {
            model = view->model;
            view_time = view->time;
            input.preamble_tokens = view->preamble_tokens;
          } else if (const auto* came = std::get_if<MessageAppended>(&record)) {
            const bool is_answer =
                session.messages()[input.messages.size()].role ==
                Role::kAssistant;
            const bool is_first = is_answer && view_time != 0;
            input.messages.push_back({.bytes = came->message,
                                      .time = is_first ? view_time : came->time,
                                      .model = model});
            if (is_first) view_time = 0;
          }
        }
        return input;
      });
}

}  // namespace clerestory
