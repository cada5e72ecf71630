// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_engine.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
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
#include "server/engine/recall.h"
#include "server/engine/session_cache.h"
#include "server/engine/session_meter.h"
#include "server/engine/tenant_report.h"
#include "server/engine/tool_registry.h"
#include "server/formats/usage.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/store/session_store.h"
#include "server/tokens/token_counter.h"
#include "server/view/exempt.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/session_totals.h"
#include "server/view/view.h"

namespace clerestory {
namespace {

// Whether `records` may be lost with the machine's power: only a view that
// masks nothing anew, whose time then is.
Durability DurabilityOf(const std::vector<Record>& records) {
  for (const Record& record : records) {
    const auto* view = std::get_if<ViewServed>(&record);
    if (view == nullptr || !view->masks.empty() ||
        view->strip_from.has_value()) {
      return Durability::kSynced;
    }
  }
  return Durability::kBuffered;
}

}  // namespace

SessionEngine::SessionEngine(SessionStore& store, const TokenCounter& counter,
                             Options options)
    : store_(store),
      counter_(counter),
      options_(std::move(options)),
      policies_(store, options_.policy),
      calibrations_(store),
      tools_(store, options_.logger, options_.metrics),
      cache_(options_.cache_bytes_max),
      // Lives for ever, so nobody has to delete it.
      prices_(&BuiltInPrices(), [](const PriceBook*) {}) {}

template <typename Work>
auto SessionEngine::WithRules(const SessionKey& key, TimeMicros now,
                              Work work) {
  const std::string& tenant = key.tenant;
  const PolicyDocumentPtr policies = policies_.For(tenant);
  const std::shared_ptr<const std::set<std::string>> unmasked =
      tools_.UnmaskedFor(tenant, key.session, now);
  const std::shared_ptr<const PriceBook> book = prices();
  const auto token_scale_of = [&](const std::string& model) {
    return calibrations_.ScaleOf(tenant, model);
  };
  return work(Rules{.policies = *policies,
                    .prices = *book,
                    .token_scale_of = token_scale_of,
                    .unmasked_tools = unmasked.get()});
}

std::vector<bool> SessionEngine::ByPins(const Session& session,
                                        std::size_t begin, std::size_t end) {
  const PolicyDocumentPtr policies = policies_.For(session.header().key.tenant);
  const AppliedPolicy applied =
      policies->For(session.header(), LastModel(session));
  const Exempt exempt(session, *applied.policy, /*unmasked_tools=*/nullptr);
  std::vector<bool> pinned;
  pinned.reserve(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    pinned.push_back(exempt.IsPinned(i));
  }
  return pinned;
}

SessionSummary SessionEngine::Summarize(const Session& session) {
  SessionSummary summary;
  summary.header = session.header();
  summary.message_count = session.message_count();
  summary.history_bytes = session.history_bytes();
  summary.observation_count =
      static_cast<std::int64_t>(session.observations().size());
  summary.masked_count = session.ledger().mask_count;
  summary.ledger = session.ledger();
  summary.read_price_sum = session.read_price_sum();
  if (session.last_view().has_value()) {
    summary.cache_status = session.cache().StatusOf(session.last_view()->model);
  }
  summary.pins.assign(session.pins().begin(), session.pins().end());
  summary.control_call_count = session.control_call_count();
  const TimeMicros last_time = session.last_view().has_value()
                                   ? session.last_view()->time
                                   : session.header().create_time;
  WithRules(session.header().key, last_time, [&](const Rules& rules) {
    const AppliedPolicy applied =
        rules.policies.For(session.header(), LastModel(session));
    const Exempt exempt(session, *applied.policy, rules.unmasked_tools);
    for (const auto& [tool, tally] : session.tools()) {
      summary.tools.push_back({.tool = tool,
                               .tally = tally,
                               .is_unmasked = exempt.IsUnmasked(tool)});
    }
  });
  if (session.other_tools().observation_count > 0) {
    summary.tools.push_back({.is_other = true, .tally = session.other_tools()});
  }
  return summary;
}

absl::Status SessionEngine::Load(SessionCache::Entry& entry) {
  if (entry.session != nullptr) return absl::OkStatus();
  CLERESTORY_ASSIGN_OR_RETURN(StoredSession stored, store_.Read(entry.key));
  auto session = std::make_unique<Session>(std::move(stored.header), counter_);
  for (const Record& record : stored.records) {
    CLERESTORY_RETURN_IF_ERROR(session->Replay(record));
    // What was learned of then is not to be learned again; the rest still is.
    if ((std::holds_alternative<ViewServed>(record) &&
         session->HasToolOutcome()) ||
        std::holds_alternative<SessionClosed>(record)) {
      session->TakeToolOutcomes();
    }
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
Result SessionEngine::WithSession(const SessionKey& key, Work work,
                                  LearnedTools* learned) {
  const SessionCache::Lease lease = cache_.Take(key);
  SessionCache::Entry& entry = lease.entry();
  const MutexLock lock(entry.mutex);
  CLERESTORY_RETURN_IF_ERROR(Load(entry));
  const SessionMeter meter(options_.metrics, *entry.session);
  std::vector<Record> records;
  Result result = work(*entry.session, records);
  absl::Status written = Commit(entry, records);
  if (written.ok()) {
    meter.Stored(*entry.session, records);
    if (learned != nullptr) TakeLearned(*entry.session, *learned);
  }
  entry.session_bytes =
      entry.session == nullptr ? 0 : entry.session->memory_bytes();
  if (result.ok() && !written.ok()) return written;
  return result;
}

void SessionEngine::TakeLearned(Session& session, LearnedTools& learned) const {
  const SessionHeader& header = session.header();
  // What was saved alone can wait: learning is a write.
  if (header.outcome == Outcome::kOpen && !session.HasToolOutcome()) return;
  learned.outcomes = session.TakeToolOutcomes();
  const std::string& model = session.last_view().has_value()
                                 ? session.last_view()->model
                                 : header.model;
  learned.options = BreakerOptionsOf(
      *policies_.For(header.key.tenant)->For(header, model).policy);
}

std::shared_ptr<const PriceBook> SessionEngine::prices() const {
  const MutexLock lock(mutex_);
  return prices_;
}

void SessionEngine::SetPrices(std::shared_ptr<const PriceBook> prices) {
  const MutexLock lock(mutex_);
  prices_ = std::move(prices);
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
            there.labels != header.labels ||
            there.has_recall_tool != header.has_recall_tool) {
          return created;
        }
        return there;
      });
}

absl::StatusOr<SessionSummary> SessionEngine::GetSession(
    const SessionKey& key) {
  return WithSession<absl::StatusOr<SessionSummary>>(
      key,
      [this](Session& session, std::vector<Record>&)
          -> absl::StatusOr<SessionSummary> { return Summarize(session); });
}

absl::StatusOr<std::vector<SessionHeader>> SessionEngine::ListSessions(
    absl::string_view tenant, absl::string_view after, std::int64_t limit) {
  return store_.List(tenant, after, limit);
}

absl::StatusOr<TenantReport> SessionEngine::ReportOnTenant(
    const TenantReportRequest& request,
    absl::FunctionRef<absl::Status()> check_call) {
  return MakeTenantReport(
      request,
      [&](absl::string_view after, std::int64_t limit) {
        return store_.List(request.tenant, after, limit);
      },
      check_call);
}

absl::StatusOr<SessionSummary> SessionEngine::CloseSession(
    const SessionKey& key, Outcome outcome, TimeMicros now) {
  LearnedTools tools;
  absl::StatusOr<SessionSummary> closed =
      WithSession<absl::StatusOr<SessionSummary>>(
          key,
          [&](Session& session,
              std::vector<Record>& records) -> absl::StatusOr<SessionSummary> {
            const Outcome there = session.header().outcome;
            if (there == outcome) return Summarize(session);
            if (there != Outcome::kOpen) return Closed(session);
            const SessionClosed record{
                .time = now, .outcome = outcome, .totals = TotalsOf(session)};
            session.Apply(record);
            records.emplace_back(record);
            return Summarize(session);
          },
          &tools);
  tools_.Learn(key.tenant, key.session, tools.outcomes, tools.options, now);
  return closed;
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
        CLERESTORY_RETURN_IF_ERROR(
            WithRules(key, request.now, [&](const Rules& rules) {
              return Append(request, rules, session, records);
            }));
        return session.message_count();
      });
}

absl::StatusOr<BuiltView> SessionEngine::BuildView(
    const SessionKey& key, const BuildViewRequest& request) {
  std::optional<LearnedSample> learned;
  LearnedTools tools;
  absl::StatusOr<BuiltView> built = WithSession<absl::StatusOr<BuiltView>>(
      key,
      [&](Session& session, std::vector<Record>& records) {
        return WithRules(
            key, request.append.now,
            [&](const Rules& rules) -> absl::StatusOr<BuiltView> {
              if (request.dry_run) {
                Session trial = session;
                std::vector<Record> dropped;
                std::optional<LearnedSample> unlearned;
                return Decide(request, rules, trial, dropped, unlearned);
              }
              if (session.header().outcome != Outcome::kOpen) {
                return Closed(session);
              }
              return Decide(request, rules, session, records, learned);
            });
      },
      request.dry_run ? nullptr : &tools);
  if (built.ok()) Learn(key.tenant, learned);
  tools_.Learn(key.tenant, key.session, tools.outcomes, tools.options,
               request.append.now);
  return built;
}

absl::StatusOr<Usage> SessionEngine::ReportUsage(const SessionKey& key,
                                                 const UsageInput& usage,
                                                 absl::string_view model,
                                                 TimeMicros now) {
  std::optional<LearnedSample> learned;
  absl::StatusOr<Usage> understood = WithSession<absl::StatusOr<Usage>>(
      key,
      [&](Session& session,
          std::vector<Record>& records) -> absl::StatusOr<Usage> {
        if (session.header().outcome != Outcome::kOpen) return Closed(session);
        return WithRules(key, now, [&](const Rules& rules) {
          return TakeUsage(usage, std::string(model), now, rules, session,
                           records, learned);
        });
      });
  if (understood.ok()) Learn(key.tenant, learned);
  return understood;
}

void SessionEngine::Learn(const std::string& tenant,
                          const std::optional<LearnedSample>& learned) {
  if (!learned.has_value()) return;
  calibrations_.Learn(tenant, learned->model, learned->sample);
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

absl::StatusOr<std::vector<ListedObservation>> SessionEngine::ListObservations(
    const SessionKey& key, std::size_t start, std::int64_t limit) {
  using Listed = std::vector<ListedObservation>;
  return WithSession<absl::StatusOr<Listed>>(
      key,
      [&](Session& session, std::vector<Record>&) -> absl::StatusOr<Listed> {
        const std::vector<Observation>& all = session.observations();
        const std::size_t begin = std::min(start, all.size());
        const std::size_t end =
            begin +
            std::min(static_cast<std::size_t>(limit), all.size() - begin);
        const std::vector<bool> pinned = ByPins(session, begin, end);
        Listed listed;
        listed.reserve(end - begin);
        for (std::size_t i = begin; i < end; ++i) {
          listed.push_back(
              {.observation = all[i], .is_pinned = pinned[i - begin]});
        }
        return listed;
      });
}

absl::StatusOr<ObservationContent> SessionEngine::ReadObservation(
    const SessionKey& key, std::int64_t sequence, std::int64_t index,
    std::int64_t offset, std::int64_t limit) {
  return WithSession<absl::StatusOr<ObservationContent>>(
      key,
      [&](Session& session,
          std::vector<Record>&) -> absl::StatusOr<ObservationContent> {
        CLERESTORY_ASSIGN_OR_RETURN(
            const std::size_t found,
            FindObservation(session, {.sequence = sequence, .index = index}));
        const SessionMessage& message =
            session.messages()[static_cast<std::size_t>(sequence)];
        ObservationContent part;
        part.observation = session.observations()[found];
        part.is_pinned = ByPins(session, found, found + 1).front();
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

absl::StatusOr<RecalledPage> SessionEngine::Recall(
    const SessionKey& key, const RecallRequest& request) {
  return WithSession<absl::StatusOr<RecalledPage>>(
      key, [&](Session& session, std::vector<Record>& records) {
        return WithRules(key, request.now, [&](const Rules& rules) {
          return RecallObservation(request, rules, session, records);
        });
      });
}

absl::StatusOr<PinResult> SessionEngine::SetPin(const SessionKey& key,
                                                const Pin& pin, bool is_pinned,
                                                TimeMicros now) {
  return WithSession<absl::StatusOr<PinResult>>(
      key,
      [&](Session& session,
          std::vector<Record>& records) -> absl::StatusOr<PinResult> {
        PinResult result;
        CLERESTORY_ASSIGN_OR_RETURN(
            result.is_changed,
            ChangePin(pin, is_pinned, now, session, records));
        result.pin_count = std::ssize(session.pins());
        return result;
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
