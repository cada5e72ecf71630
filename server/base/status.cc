// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/status.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "server/base/reason.h"

namespace clerestory {
namespace {

// The payload is the reason's number, then name and value in turn, each ended
// by a NUL; no name or value of ours contains one.
constexpr absl::string_view kPayloadUrl = "clerestory/error_detail";

std::string Encode(const ErrorDetail& detail) {
  std::string out = absl::StrCat(static_cast<int>(detail.reason));
  for (const auto& [key, value] : detail.metadata) {
    absl::StrAppend(&out, absl::string_view("\0", 1), key,
                    absl::string_view("\0", 1), value);
  }
  return out;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, Reason reason,
                       absl::string_view message, ErrorMetadata metadata) {
  absl::Status status(code, message);
  status.SetPayload(
      kPayloadUrl,
      absl::Cord(Encode({.reason = reason, .metadata = std::move(metadata)})));
  return status;
}

absl::Status FieldError(absl::string_view field, absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid,
                   absl::StrCat(field, ": ", message),
                   {{"field", std::string(field)}});
}

ErrorDetail DetailOf(const absl::Status& status) {
  ErrorDetail detail;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return detail;
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(*payload), '\0');
  int reason = 0;
  if (absl::SimpleAtoi(parts[0], &reason)) {
    detail.reason = static_cast<Reason>(reason);
  }
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) {
    detail.metadata.emplace_back(parts[i], parts[i + 1]);
  }
  return detail;
}

std::string MetadataOf(const absl::Status& status, absl::string_view key) {
  for (const auto& [name, value] : DetailOf(status).metadata) {
    if (name == key) return value;
  }
  return "";
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  ErrorDetail detail = DetailOf(status);
  return MakeError(status.code(), detail.reason,
                   absl::StrCat(context, ": ", status.message()),
                   std::move(detail.metadata));
}

}  // namespace clerestory
