// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/status.h"

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/errors.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"

namespace clerestory {
namespace {

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

// The details of type T; there must be `count`, 0 or 1.
template <typename T>
T Take(const google::rpc::Status& details, int count) {
  T found;
  int seen = 0;
  for (const google::protobuf::Any& any : details.details()) {
    if (!any.Is<T>()) continue;
    ++seen;
    EXPECT_TRUE(any.UnpackTo(&found));
  }
  EXPECT_EQ(seen, count) << T::descriptor()->full_name();
  return found;
}

TEST(RpcStatusTest, EveryReasonHasTheNameOfItsProtoValue) {
  const google::protobuf::EnumDescriptor& reasons =
      *v1::ErrorReason_descriptor();
  // Both end with kCallCancelled: a value that is added to one only is found.
  ASSERT_EQ(reasons.value_count(),
            static_cast<int>(Reason::kCallCancelled) + 1);
  for (int i = 0; i < reasons.value_count(); ++i) {
    EXPECT_EQ(reasons.value(i)->number(), i);
    EXPECT_EQ(absl::StrCat("ERROR_REASON_", ReasonName(static_cast<Reason>(i))),
              reasons.value(i)->name());
  }
}

TEST(RpcStatusTest, NamesAreThoseThatOurNamesSay) {
  EXPECT_EQ(ReasonName(Reason::kFieldInvalid), "FIELD_INVALID");
  EXPECT_EQ(ReasonName(Reason::kSessionNotFound), "SESSION_NOT_FOUND");
  EXPECT_EQ(ReasonName(Reason::kSessionExists), "SESSION_EXISTS");
  EXPECT_EQ(ReasonName(Reason::kSessionClosed), "SESSION_CLOSED");
  EXPECT_EQ(ReasonName(Reason::kAppendConflict), "APPEND_CONFLICT");
  EXPECT_EQ(ReasonName(Reason::kSequenceGap), "SEQUENCE_GAP");
  EXPECT_EQ(ReasonName(Reason::kMessageInvalid), "MESSAGE_INVALID");
  EXPECT_EQ(ReasonName(Reason::kMessageTooLarge), "MESSAGE_TOO_LARGE");
  EXPECT_EQ(ReasonName(Reason::kResultWithoutCall), "RESULT_WITHOUT_CALL");
  EXPECT_EQ(ReasonName(Reason::kObservationNotFound), "OBSERVATION_NOT_FOUND");
  EXPECT_EQ(ReasonName(Reason::kCallTimeRefused), "CALL_TIME_REFUSED");
  EXPECT_EQ(ReasonName(Reason::kUsageInvalid), "USAGE_INVALID");
  EXPECT_EQ(ReasonName(Reason::kPageTokenInvalid), "PAGE_TOKEN_INVALID");
  EXPECT_EQ(ReasonName(Reason::kRecordCorrupt), "RECORD_CORRUPT");
  EXPECT_EQ(ReasonName(Reason::kStoreUnavailable), "STORE_UNAVAILABLE");
  EXPECT_EQ(ReasonName(Reason::kStoreFull), "STORE_FULL");
  EXPECT_EQ(ReasonName(Reason::kShuttingDown), "SHUTTING_DOWN");
  EXPECT_EQ(ReasonName(Reason::kInternal), "INTERNAL");
  EXPECT_EQ(ReasonName(Reason::kPolicyInvalid), "POLICY_INVALID");
  EXPECT_EQ(ReasonName(Reason::kPolicyNotFound), "POLICY_NOT_FOUND");
  EXPECT_EQ(ReasonName(Reason::kPolicyConflict), "POLICY_CONFLICT");
  EXPECT_EQ(ReasonName(Reason::kTrialBusy), "TRIAL_BUSY");
  EXPECT_EQ(ReasonName(Reason::kCallCancelled), "CALL_CANCELLED");
}

TEST(RpcStatusTest, OkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(RpcStatusTest, AnErrorTellsItsCodeMessageReasonAndMetadata) {
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kAborted, Reason::kSequenceGap, "too far",
                {{"session_id", "s"}, {"next_sequence", "7"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "too far");
  const google::rpc::Status details = DetailsOf(status);
  EXPECT_EQ(details.code(), static_cast<int>(grpc::StatusCode::ABORTED));
  EXPECT_EQ(details.message(), "too far");
  const auto info = Take<google::rpc::ErrorInfo>(details, 1);
  EXPECT_EQ(info.reason(), "SEQUENCE_GAP");
  EXPECT_EQ(info.domain(), "clerestory.dev");
  ASSERT_EQ(info.metadata_size(), 2);
  EXPECT_EQ(info.metadata().at("session_id"), "s");
  EXPECT_EQ(info.metadata().at("next_sequence"), "7");
  Take<google::rpc::BadRequest>(details, 0);
  Take<google::rpc::RetryInfo>(details, 0);
}

TEST(RpcStatusTest, AnInvalidArgumentNamesItsField) {
  const grpc::Status status = ToGrpcStatus(FieldError("messages[3]", "wrong"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const google::rpc::Status details = DetailsOf(status);
  EXPECT_EQ(Take<google::rpc::ErrorInfo>(details, 1).reason(), "FIELD_INVALID");
  const auto bad = Take<google::rpc::BadRequest>(details, 1);
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "messages[3]");
  EXPECT_EQ(bad.field_violations(0).description(), "messages[3]: wrong");
  Take<google::rpc::RetryInfo>(details, 0);
}

TEST(RpcStatusTest, EveryViolationIsInTheBadRequestAndTheFirstFieldInTheInfo) {
  const grpc::Status status = ToGrpcStatus(
      ViolationsError(Reason::kPolicyInvalid, "two problems",
                      {{.field = "mode", .description = "1:7: wrong"},
                       {.field = "keep", .description = "2:1: wrong too"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "two problems");
  const google::rpc::Status details = DetailsOf(status);
  const auto info = Take<google::rpc::ErrorInfo>(details, 1);
  EXPECT_EQ(info.reason(), "POLICY_INVALID");
  ASSERT_EQ(info.metadata_size(), 1);
  EXPECT_EQ(info.metadata().at("field"), "mode");
  const auto bad = Take<google::rpc::BadRequest>(details, 1);
  ASSERT_EQ(bad.field_violations_size(), 2);
  EXPECT_EQ(bad.field_violations(0).field(), "mode");
  EXPECT_EQ(bad.field_violations(0).description(), "1:7: wrong");
  EXPECT_EQ(bad.field_violations(1).field(), "keep");
  EXPECT_EQ(bad.field_violations(1).description(), "2:1: wrong too");
}

TEST(RpcStatusTest, OnlyWhatIsWorthTryingAgainSaysWhen) {
  for (int code = 1; code <= 16; ++code) {
    const google::rpc::Status details = DetailsOf(ToGrpcStatus(MakeError(
        static_cast<absl::StatusCode>(code), Reason::kStoreUnavailable, "m")));
    Take<google::rpc::ErrorInfo>(details, 1);
    const bool again =
        code == static_cast<int>(absl::StatusCode::kUnavailable) ||
        code == static_cast<int>(absl::StatusCode::kResourceExhausted);
    const auto retry = Take<google::rpc::RetryInfo>(details, again ? 1 : 0);
    EXPECT_EQ(retry.retry_delay().seconds(), 0);
    EXPECT_EQ(retry.retry_delay().nanos() > 0, again);
  }
}

TEST(RpcStatusTest, WithoutReasonIsInternalAndHidesItsText) {
  for (const absl::Status& fault :
       {absl::InternalError("secret"), absl::NotFoundError("secret"),
        absl::UnavailableError("secret"), absl::InvalidArgumentError("secret"),
        MakeError(absl::StatusCode::kAborted, Reason::kUnspecified,
                  "secret")}) {
    const grpc::Status status = ToGrpcStatus(fault);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_EQ(status.error_message().find("secret"), std::string::npos);
    EXPECT_EQ(status.error_details().find("secret"), std::string::npos);
    const google::rpc::Status details = DetailsOf(status);
    const auto info = Take<google::rpc::ErrorInfo>(details, 1);
    EXPECT_EQ(info.reason(), "INTERNAL");
    EXPECT_EQ(info.metadata_size(), 0);
    EXPECT_EQ(details.details_size(), 1);
  }
}

}  // namespace
}  // namespace clerestory
