// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/replay_session.h"

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "clerestory/v1/session_service.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "client/cc/client.h"
#include "client/cli/replay_check.h"
#include "client/cli/replay_command.h"
#include "client/transcripts/transcript.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/digest.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/tokens/class_token_counter.h"

namespace clerestory {
namespace {

absl::Status Failed(const char* what, const grpc::Status& status) {
  return absl::InternalError(
      absl::StrCat(what, " failed: ", DescribeError(status)));
}

// A transcript without times begins here: at some time, always the same.
constexpr TimeMicros kStart = 1'700'000'000 * kMicrosPerSecond;

void SetTime(TimeMicros time, google::protobuf::Timestamp& out) {
  out.set_seconds(time / kMicrosPerSecond);
  out.set_nanos(static_cast<std::int32_t>(time % kMicrosPerSecond * 1000));
}

bool IsAnswer(Format format, const std::string& message) {
  const absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(format).Parse(message, ClassTokenCounter());
  return parsed.ok() && parsed->role == Role::kAssistant;
}

std::int64_t TokensOf(Format format, const std::string& message) {
  const absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(format).Parse(message, ClassTokenCounter());
  return parsed.ok() ? parsed->tokens.total() : 0;
}

std::string FirstModel(const Transcript& transcript) {
  for (const TranscriptMessage& message : transcript.messages) {
    if (!message.model.empty()) return message.model;
  }
  return "";
}

}  // namespace

ReplaySession::ReplaySession(const Client& client, const ReplayOptions& options,
                             const Transcript& transcript,
                             std::string session_id, ReplayCheck& check)
    : client_(client),
      options_(options),
      transcript_(transcript),
      check_(check),
      model_(options.model.empty() ? FirstModel(transcript) : options.model),
      now_(kStart) {
  outcome_.session_id = std::move(session_id);
}

absl::Status ReplaySession::Run() {
  CLERESTORY_RETURN_IF_ERROR(Create());
  for (const TranscriptMessage& message : transcript_.messages) {
    Advance(message);
    const bool is_answer = IsAnswer(transcript_.format, message.bytes);
    // In the Responses API an answer is a run of items.
    if (is_answer && answering_ &&
        transcript_.format == Format::kOpenaiResponses) {
      AddOutput(message);
    } else if (is_answer) {
      CLERESTORY_RETURN_IF_ERROR(BuildView(message));
    }
    answering_ = is_answer;
    history_.push_back(message.bytes);
  }
  CLERESTORY_RETURN_IF_ERROR(AppendRest());
  CLERESTORY_RETURN_IF_ERROR(ReadBack());
  return Close();
}

void ReplaySession::Advance(const TranscriptMessage& message) {
  if (message.time != 0) now_ = message.time;
}

absl::Status ReplaySession::Create() {
  v1::CreateSessionRequest request;
  request.set_session_id(outcome_.session_id);
  request.set_format(static_cast<v1::Format>(transcript_.format));
  request.set_model(model_);
  v1::CreateSessionResponse response;
  const grpc::Status status =
      CallWithRetry(options_.retry_seconds, [&](grpc::ClientContext& context) {
        return client_.sessions().CreateSession(&context, request, &response);
      });
  return status.ok() ? absl::OkStatus() : Failed("CreateSession", status);
}

absl::Status ReplaySession::BuildView(const TranscriptMessage& answer) {
  if (options_.model.empty() && !answer.model.empty()) model_ = answer.model;
  v1::BuildViewRequest request;
  request.set_session_id(outcome_.session_id);
  request.set_expected_sequence(static_cast<std::int64_t>(sent_));
  for (std::size_t i = sent_; i < history_.size(); ++i) {
    request.add_messages(history_[i]);
  }
  request.set_model(model_);
  request.set_preamble_tokens(options_.preamble_tokens);
  if (options_.use_transcript_times) {
    SetTime(now_, *request.mutable_call_time());
  }
  v1::BuildViewResponse response;
  const grpc::Status status =
      CallWithRetry(options_.retry_seconds, [&](grpc::ClientContext& context) {
        return client_.views().BuildView(&context, request, &response);
      });
  if (!status.ok()) return Failed("BuildView", status);
  sent_ = history_.size();

  const v1::ViewReport& report = response.report();
  const ModelPrices& prices = BuiltInPrices().Of(model_, now_);
  ReplayCall call;
  call.message_count = response.messages_size();
  call.raw_tokens = report.raw_call().read() + report.raw_call().written() +
                    report.raw_call().uncached();
  call.break_reason = static_cast<BreakReason>(report.break_().reason());
  call.masked_count = report.masked_count();
  call.digest = report.whole().digest();
  call.tokens = check_.Add(history_, std::move(response), now_, model_);
  call.cost = InputCost(prices, call.tokens);
  outcome_.cost += call.cost;
  outcome_.calls.push_back(std::move(call));
  AddOutput(answer);
  return absl::OkStatus();
}

void ReplaySession::AddOutput(const TranscriptMessage& answer) {
  const std::int64_t tokens = TokensOf(transcript_.format, answer.bytes);
  ReplayCall& call = outcome_.calls.back();
  const TokenRates rates =
      RatesFor(BuiltInPrices().Of(model_, now_), call.tokens.total(), false);
  const PicoUsd cost = SaturatingMultiply(tokens, rates.output);
  call.output_tokens += tokens;
  call.cost += cost;
  outcome_.cost += cost;
}

absl::Status ReplaySession::AppendRest() {
  if (sent_ == history_.size()) return absl::OkStatus();
  v1::AppendMessagesRequest request;
  request.set_session_id(outcome_.session_id);
  request.set_expected_sequence(static_cast<std::int64_t>(sent_));
  for (std::size_t i = sent_; i < history_.size(); ++i) {
    request.add_messages(history_[i]);
  }
  v1::AppendMessagesResponse response;
  const grpc::Status status =
      CallWithRetry(options_.retry_seconds, [&](grpc::ClientContext& context) {
        return client_.history().AppendMessages(&context, request, &response);
      });
  if (!status.ok()) return Failed("AppendMessages", status);
  sent_ = history_.size();
  return absl::OkStatus();
}

absl::Status ReplaySession::ReadBack() {
  v1::ReadHistoryRequest request;
  request.set_session_id(outcome_.session_id);
  Digest digest;
  std::int64_t sequence = 0;
  const grpc::Status status =
      CallWithRetry(options_.retry_seconds, [&](grpc::ClientContext& context) {
        digest = Digest();
        sequence = 0;
        const std::unique_ptr<grpc::ClientReader<v1::ReadHistoryResponse>>
            reader = client_.history().ReadHistory(&context, request);
        v1::ReadHistoryResponse part;
        while (reader->Read(&part)) {
          for (const v1::HistoryMessage& message : part.messages()) {
            const auto at = static_cast<std::size_t>(sequence);
            if (message.sequence() != sequence || at >= history_.size() ||
                message.message() != history_[at]) {
              check_.NoteLoss(sequence);
            }
            digest = digest.Then(Digest::Of(message.message()));
            ++sequence;
          }
        }
        return reader->Finish();
      });
  if (!status.ok()) return Failed("ReadHistory", status);
  if (static_cast<std::size_t>(sequence) != history_.size()) {
    check_.NoteLoss(sequence);
  }
  outcome_.message_count = sequence;
  outcome_.history_digest = digest.ToHex();
  return absl::OkStatus();
}

absl::Status ReplaySession::Close() {
  v1::CloseSessionRequest request;
  request.set_session_id(outcome_.session_id);
  request.set_outcome(v1::OUTCOME_RESOLVED);
  v1::CloseSessionResponse response;
  const grpc::Status status =
      CallWithRetry(options_.retry_seconds, [&](grpc::ClientContext& context) {
        return client_.sessions().CloseSession(&context, request, &response);
      });
  return status.ok() ? absl::OkStatus() : Failed("CloseSession", status);
}

}  // namespace clerestory
