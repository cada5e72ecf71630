// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/status.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"

namespace clerestory {
namespace {

TEST(StatusTest, CarriesCodeMessageReasonAndMetadata) {
  const absl::Status status =
      MakeError(absl::StatusCode::kNotFound, Reason::kSessionNotFound,
                "no such session", {{"session_id", "s"}, {"tenant", ""}});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no such session");
  const ErrorDetail detail = DetailOf(status);
  EXPECT_EQ(detail.reason, Reason::kSessionNotFound);
  EXPECT_EQ(detail.metadata,
            (ErrorMetadata{{"session_id", "s"}, {"tenant", ""}}));
}

TEST(StatusTest, MetadataKeepTheirOrder) {
  const ErrorMetadata metadata = {{"z", "1"}, {"a", "2"}, {"z", "3"}};
  const absl::Status status =
      MakeError(absl::StatusCode::kAborted, Reason::kSequenceGap, "", metadata);
  EXPECT_EQ(DetailOf(status).metadata, metadata);
  EXPECT_EQ(MetadataOf(status, "z"), "1");
}

TEST(StatusTest, MetadataMayHoldAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  const ErrorMetadata metadata = {
      {"field", bytes}, {bytes, ";"}, {"", std::string(3, '\0')}, {"9;", "9;"}};
  EXPECT_EQ(DetailOf(MakeError(absl::StatusCode::kInvalidArgument,
                               Reason::kFieldInvalid, "", metadata))
                .metadata,
            metadata);
}

TEST(StatusTest, OfAnotherMakerHasNoReason) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::InternalError("broken")}) {
    EXPECT_EQ(DetailOf(status).reason, Reason::kUnspecified);
    EXPECT_TRUE(DetailOf(status).metadata.empty());
    EXPECT_EQ(MetadataOf(status, "field"), "");
  }
}

TEST(StatusTest, MetadataThatIsNotThereIsEmpty) {
  EXPECT_EQ(MetadataOf(FieldError("page_size", "negative"), "session_id"), "");
}

TEST(StatusTest, FieldErrorNamesTheField) {
  const absl::Status status = FieldError("messages[3]", "missing");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "messages[3]: missing");
  EXPECT_EQ(DetailOf(status).reason, Reason::kFieldInvalid);
  EXPECT_EQ(MetadataOf(status, "field"), "messages[3]");
}

TEST(StatusTest, AnnotateAddsToTheMessageAlone) {
  const absl::Status status =
      Annotate(FieldError("page_size", "negative"), "ListSessions");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "ListSessions: page_size: negative");
  EXPECT_EQ(DetailOf(status).reason, Reason::kFieldInvalid);
  EXPECT_EQ(MetadataOf(status, "field"), "page_size");
}

TEST(StatusTest, AnnotateLeavesOkAlone) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "context").ok());
}

absl::Status Both(const absl::Status& first, const absl::Status& second,
                  int& steps) {
  CLERESTORY_RETURN_IF_ERROR(first);
  ++steps;
  CLERESTORY_RETURN_IF_ERROR(second);
  ++steps;
  return absl::OkStatus();
}

TEST(StatusTest, ReturnIfErrorReturnsTheFirstError) {
  const absl::Status error = FieldError("a", "b");
  int steps = 0;
  EXPECT_TRUE(Both(absl::OkStatus(), absl::OkStatus(), steps).ok());
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(Both(absl::OkStatus(), error, steps), error);
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(Both(error, absl::OkStatus(), steps), error);
  EXPECT_EQ(steps, 3);
}

absl::StatusOr<int> Sum(absl::StatusOr<std::unique_ptr<int>> a,
                        const absl::StatusOr<int>& b) {
  CLERESTORY_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, std::move(a));
  CLERESTORY_ASSIGN_OR_RETURN(const int second, b);
  return *first + second;
}

TEST(StatusTest, AssignOrReturnMovesTheValueOrReturnsTheError) {
  const absl::Status error = FieldError("a", "b");
  EXPECT_EQ(Sum(std::make_unique<int>(2), 3).value(), 5);
  EXPECT_EQ(Sum(error, 3).status(), error);
  EXPECT_EQ(Sum(std::make_unique<int>(2), error).status(), error);
}

TEST(StatusTest, EveryViolationComesBackInItsOrder) {
  const std::vector<Violation> violations = {
      {.field = "mode", .description = "1:7: not a mode"},
      {.field = "", .description = ""},
      {.field = "mode", .description = std::string("a\0;3;", 6)}};
  const absl::Status status =
      ViolationsError(Reason::kPolicyInvalid, "three problems", violations);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "three problems");
  EXPECT_EQ(DetailOf(status).reason, Reason::kPolicyInvalid);
  EXPECT_EQ(MetadataOf(status, "field"), "mode");
  EXPECT_EQ(ViolationsOf(status), violations);
  EXPECT_EQ(ViolationsOf(Annotate(status, "here")), violations);
  EXPECT_TRUE(ViolationsOf(FieldError("f", "wrong")).empty());
  EXPECT_TRUE(ViolationsOf(absl::OkStatus()).empty());
}

}  // namespace
}  // namespace clerestory
