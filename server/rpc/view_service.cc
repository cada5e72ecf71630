// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/view_service.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/view_service.pb.h"
#include "server/base/check.h"
#include "server/base/limits.h"
#include "server/base/log.h"
#include "server/base/mutex.h"
#include "server/base/status.h"
#include "server/engine/session_engine.h"
#include "server/metrics/catalogue.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/rpc/call.h"
#include "server/rpc/convert.h"
#include "server/view/view.h"

namespace clerestory {
namespace {

using google::protobuf::io::CodedOutputStream;

// The tag of `repeated bytes messages = 1`.
constexpr std::uint8_t kMessagesTag = (1 << 3) | 2;

absl::StatusOr<v1::BuildViewRequest> ParseRequest(
    const grpc::ByteBuffer& bytes) {
  v1::BuildViewRequest request;
  grpc::ByteBuffer copy(bytes);  // Of the references; parsing takes it apart.
  const grpc::Status status =
      grpc::SerializationTraits<v1::BuildViewRequest>::Deserialize(&copy,
                                                                   &request);
  if (!status.ok()) {
    return FieldError("request", "not a clerestory.v1.BuildViewRequest");
  }
  return request;
}

// A serialised BuildViewResponse with `messages` and `report`, in one slice.
grpc::ByteBuffer SerializeResponse(const std::vector<Bytes>& messages,
                                   const v1::ViewReport& report) {
  v1::BuildViewResponse rest;
  *rest.mutable_report() = report;
  std::size_t size = rest.ByteSizeLong();
  for (const Bytes& message : messages) {
    const auto length = static_cast<std::uint32_t>(message->size());
    size += 1 + CodedOutputStream::VarintSize32(length) + length;
  }
  grpc::Slice slice(size);
  auto* out = const_cast<std::uint8_t*>(slice.begin());
  for (const Bytes& message : messages) {
    *out++ = kMessagesTag;
    out = CodedOutputStream::WriteVarint32ToArray(
        static_cast<std::uint32_t>(message->size()), out);
    out = CodedOutputStream::WriteRawToArray(
        message->data(), static_cast<int>(message->size()), out);
  }
  out = rest.SerializeWithCachedSizesToArray(out);
  CLERESTORY_CHECK(out == slice.end());
  return {&slice, 1};
}

}  // namespace

grpc::ServerUnaryReactor* ViewService::BuildView(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return RunUnary(service_, context, "BuildView",
                  [=, this] { return Build(*request, *response); });
}

grpc::ServerUnaryReactor* ViewService::ReportUsage(
    grpc::CallbackServerContext* context, const v1::ReportUsageRequest* request,
    v1::ReportUsageResponse* response) {
  return RunUnary(service_, context, "ReportUsage",
                  [=, this] { return Report(*request, *response); });
}

absl::Status ViewService::Build(const grpc::ByteBuffer& bytes,
                                grpc::ByteBuffer& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(v1::BuildViewRequest request,
                              ParseRequest(bytes));
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_RETURN_IF_ERROR(CheckModel(request.model()));
  if (request.messages_size() > kAppendMessagesMax) {
    return FieldError("messages", absl::StrCat("more than ", kAppendMessagesMax,
                                               "; append them in parts"));
  }
  if (request.preamble_tokens() < 0 || request.preamble_tokens() > kTokensMax) {
    return FieldError("preamble_tokens",
                      absl::StrCat("expected 0 to ", kTokensMax));
  }
  if (static_cast<std::int64_t>(request.preamble_digest().size()) >
      kPreambleDigestBytesMax) {
    return FieldError(
        "preamble_digest",
        absl::StrCat("longer than ", kPreambleDigestBytesMax, " bytes"));
  }
  BuildViewRequest build;
  CLERESTORY_ASSIGN_OR_RETURN(
      build.append.now,
      CallTime(service_, request.has_call_time(), request.call_time()));
  if (request.has_expected_sequence()) {
    build.append.expected_sequence = request.expected_sequence();
  }
  for (std::string& message : *request.mutable_messages()) {
    build.append.messages.push_back(
        std::make_shared<const std::string>(std::move(message)));
  }
  if (request.has_usage()) build.usage = ToUsageInput(request.usage());
  build.model = request.model();
  build.preamble_tokens = request.preamble_tokens();
  build.preamble_digest = request.preamble_digest();
  build.dry_run = request.dry_run();

  CLERESTORY_ASSIGN_OR_RETURN(const BuiltView built,
                              service_.engine.BuildView(key, build));
  if (!built.is_model_known) NoteUnknownModel(built.model);
  response = SerializeResponse(built.view.messages, FromView(built));
  return absl::OkStatus();
}

void ViewService::NoteUnknownModel(const std::string& model) const {
  // The names come from clients.
  constexpr std::size_t kNamesMax = 1'000;
  {
    const MutexLock lock(mutex_);
    if (unknown_models_.size() == kNamesMax ||
        !unknown_models_.insert(model).second) {
      return;
    }
  }
  service_.metrics.Add(Metric::kUnknownModels, "", 1);
  service_.logger.Write(
      Severity::kWarning, "model_unknown",
      {{"model", model},
       {"message",
        "no prices are known of it, so those of the unknown are assumed; add "
        "it to prices_file"}});
}

absl::Status ViewService::Report(const v1::ReportUsageRequest& request,
                                 v1::ReportUsageResponse& response) const {
  CLERESTORY_ASSIGN_OR_RETURN(const SessionKey key,
                              KeyOf(service_, request.session_id()));
  CLERESTORY_RETURN_IF_ERROR(CheckModel(request.model()));
  if (!request.has_usage()) return FieldError("usage", "missing");
  CLERESTORY_ASSIGN_OR_RETURN(
      const Usage usage,
      service_.engine.ReportUsage(key, ToUsageInput(request.usage()),
                                  request.model(), service_.clock.Now()));
  *response.mutable_usage() = FromUsage(usage);
  return absl::OkStatus();
}

}  // namespace clerestory
