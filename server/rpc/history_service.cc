// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/history_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/history_service.pb.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/engine/recall.h"
#include "server/engine/session_engine.h"
#include "server/model/record.h"
#include "server/rpc/call.h"
#include "server/rpc/convert.h"
#include "server/rpc/page_token.h"
#include "server/rpc/recall_convert.h"
#include "server/rpc/status.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// Messages are put together up to about so many bytes.
constexpr std::size_t kChunkBytes = 256 << 10;

// Sends a history, one chunk after the other. Deletes itself when done.
class HistoryReactor final
    : public grpc::ServerWriteReactor<v1::ReadHistoryResponse> {
 public:
  HistoryReactor(std::int64_t start, const CallMeter& meter)
      : sequence_(start), meter_(meter) {}

  void Start(std::vector<HistoryEntry> history) {
    history_ = std::move(history);
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      WriteNext();
    } else {
      End(absl::CancelledError("the caller has gone"));
    }
  }

  void OnDone() override { delete this; }

  void End(const absl::Status& status) {
    meter_.Done(status.code());
    Finish(ToGrpcStatus(status));
  }

 private:
  void WriteNext() {
    if (next_ == history_.size()) {
      End(absl::OkStatus());
      return;
    }
    chunk_.Clear();
    std::size_t bytes = 0;
    while (next_ < history_.size() && bytes < kChunkBytes) {
      HistoryEntry& entry = history_[next_++];
      v1::HistoryMessage& message = *chunk_.add_messages();
      message.set_sequence(sequence_++);
      message.set_message(*entry.message);
      *message.mutable_append_time() = FromTime(entry.time);
      bytes += entry.message->size();
      entry.message.reset();
    }
    StartWrite(&chunk_);
  }

  std::int64_t sequence_;
  const CallMeter meter_;
  std::size_t next_ = 0;
  std::vector<HistoryEntry> history_;
  v1::ReadHistoryResponse chunk_;
};

// The bytes that a limit of `asked` stands for. kFieldInvalid.
absl::StatusOr<std::int64_t> LimitOf(std::int64_t asked,
                                     std::int64_t otherwise) {
  if (asked < 0) return FieldError("limit", "must not be negative");
  return asked == 0 ? otherwise : std::min(asked, kObservationPageBytesMax);
}

}  // namespace

grpc::ServerUnaryReactor* HistoryService::AppendMessages(
    grpc::CallbackServerContext* context,
    const v1::AppendMessagesRequest* request,
    v1::AppendMessagesResponse* response) {
  return RunUnary(service_, context, "AppendMessages",
                  [=, this] { return Append(*request, *response); });
}

grpc::ServerWriteReactor<v1::ReadHistoryResponse>* HistoryService::ReadHistory(
    grpc::CallbackServerContext*, const v1::ReadHistoryRequest* request) {
  auto* const reactor = new HistoryReactor(
      request->start_sequence(), CallMeter(service_.metrics, "ReadHistory"));
  service_.executor.Run([this, reactor, session_id = request->session_id(),
                         start = request->start_sequence()] {
    const absl::Status serving = CheckServing(service_);
    absl::StatusOr<SessionKey> key =
        serving.ok() ? KeyOf(service_, session_id) : serving;
    absl::StatusOr<std::vector<HistoryEntry>> history =
        key.ok() ? service_.engine.ReadHistory(*key, start) : key.status();
    if (history.ok()) {
      reactor->Start(*std::move(history));
      return;
    }
    LogFailure(service_, "ReadHistory", history.status());
    reactor->End(history.status());
  });
  return reactor;
}

grpc::ServerUnaryReactor* HistoryService::ListObservations(
    grpc::CallbackServerContext* context,
    const v1::ListObservationsRequest* request,
    v1::ListObservationsResponse* response) {
  return RunUnary(service_, context, "ListObservations",
                  [=, this] { return List(*request, *response); });
}

grpc::ServerUnaryReactor* HistoryService::ReadObservation(
    grpc::CallbackServerContext* context,
    const v1::ReadObservationRequest* request,
    v1::ReadObservationResponse* response) {
  return RunUnary(service_, context, "ReadObservation",
                  [=, this] { return Read(*request, *response); });
}

grpc::ServerUnaryReactor* HistoryService::RecallObservation(
    grpc::CallbackServerContext* context,
    const v1::RecallObservationRequest* request,
    v1::RecallObservationResponse* response) {
  return RunUnary(service_, context, "RecallObservation",
                  [=, this] { return Recall(*request, *response); });
}

grpc::ServerUnaryReactor* HistoryService::PinObservation(
    grpc::CallbackServerContext* context,
    const v1::PinObservationRequest* request,
    v1::PinObservationResponse* response) {
  return RunUnary(service_, context, "PinObservation",
                  [=, this] { return Pin(*request, *response); });
}

absl::Status HistoryService::Append(
    const v1::AppendMessagesRequest& request,
    v1::AppendMessagesResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  if (request.messages().empty()) {
    return FieldError("messages", "missing; append at least one");
  }
  if (request.messages_size() > kAppendMessagesMax) {
    return FieldError("messages", absl::StrCat("more than ", kAppendMessagesMax,
                                               "; append them in parts"));
  }
  AppendRequest append;
  CLERESTORY_ASSIGN_OR_RETURN(
      append.now,
      CallTime(service_, request.has_call_time(), request.call_time()));
  if (request.has_expected_sequence()) {
    append.expected_sequence = request.expected_sequence();
  }
  for (const std::string& message : request.messages()) {
    append.messages.push_back(std::make_shared<const std::string>(message));
  }
  CLERESTORY_ASSIGN_OR_RETURN(const std::int64_t next,
                              service_.engine.AppendMessages(key, append));
  response.set_next_sequence(next);
  return absl::OkStatus();
}

absl::Status HistoryService::List(
    const v1::ListObservationsRequest& request,
    v1::ListObservationsResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_ASSIGN_OR_RETURN(const std::int64_t page_size,
                              PageSize(request.page_size()));
  const std::string scope =
      absl::StrCat("ListObservations/", key.tenant, "/", key.session);
  CLERESTORY_ASSIGN_OR_RETURN(const std::string position,
                              ReadPageToken(scope, request.page_token()));
  std::uint64_t start = 0;
  // A token that is sealed holds a number; the empty one stands for 0.
  static_cast<void>(absl::SimpleAtoi(position, &start));
  CLERESTORY_ASSIGN_OR_RETURN(
      const std::vector<ListedObservation> observations,
      service_.engine.ListObservations(key, start, page_size + 1));
  const std::size_t count =
      std::min(observations.size(), static_cast<std::size_t>(page_size));
  for (std::size_t i = 0; i < count; ++i) {
    *response.add_observations() =
        FromObservation(observations[i].observation, observations[i].is_pinned);
  }
  if (count < observations.size()) {
    response.set_next_page_token(
        MakePageToken(scope, absl::StrCat(start + count)));
  }
  return absl::OkStatus();
}

absl::Status HistoryService::Read(const v1::ReadObservationRequest& request,
                                  v1::ReadObservationResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_ASSIGN_OR_RETURN(const ObservationId id,
                              ToObservationId(request.observation_id()));
  CLERESTORY_ASSIGN_OR_RETURN(
      const std::int64_t limit,
      LimitOf(request.limit(), kObservationPageBytesMax));
  CLERESTORY_ASSIGN_OR_RETURN(
      ObservationContent part,
      service_.engine.ReadObservation(key, id.sequence, id.index,
                                      request.offset(), limit));
  *response.mutable_observation() =
      FromObservation(part.observation, part.is_pinned);
  response.set_content(std::move(part.content));
  response.set_next_offset(part.next_offset);
  return absl::OkStatus();
}

absl::Status HistoryService::Recall(
    const v1::RecallObservationRequest& request,
    v1::RecallObservationResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  RecallRequest recall = {.offset = request.offset(),
                          .now = service_.clock.Now()};
  CLERESTORY_ASSIGN_OR_RETURN(recall.id,
                              ToObservationId(request.observation_id()));
  CLERESTORY_ASSIGN_OR_RETURN(
      recall.limit, LimitOf(request.limit(), kRecallPageBytesDefault));
  CLERESTORY_ASSIGN_OR_RETURN(RecalledPage recalled,
                              service_.engine.Recall(key, recall));
  response = FromRecalled(std::move(recalled));
  return absl::OkStatus();
}

absl::Status HistoryService::Pin(const v1::PinObservationRequest& request,
                                 v1::PinObservationResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_ASSIGN_OR_RETURN(const auto pin, ToPin(request));
  CLERESTORY_ASSIGN_OR_RETURN(
      const PinResult result,
      service_.engine.SetPin(key, pin, !request.unpin(), service_.clock.Now()));
  response.set_is_changed(result.is_changed);
  response.set_pin_count(result.pin_count);
  return absl::OkStatus();
}

}  // namespace clerestory
