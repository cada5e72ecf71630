// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/status.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "server/base/check.h"
#include "server/base/reason.h"

namespace clerestory {
namespace {

// The payload is the reason's number, then name and value in turn, each behind
// its size: they may quote what a client sent, and so hold any byte.
constexpr absl::string_view kPayloadUrl = "clerestory/error_detail";

std::string Encode(const ErrorDetail& detail) {
  std::string out = absl::StrCat(static_cast<int>(detail.reason), ";");
  for (const auto& [key, value] : detail.metadata) {
    absl::StrAppend(&out, key.size(), ";", key, value.size(), ";", value);
  }
  return out;
}

// Takes the number and the ";" behind it off the front of `text`.
std::size_t TakeNumber(absl::string_view& text) {
  const std::size_t end = text.find(';');
  std::size_t number = 0;
  CLERESTORY_CHECK(end != absl::string_view::npos &&
                   absl::SimpleAtoi(text.substr(0, end), &number));
  text.remove_prefix(end + 1);
  return number;
}

// The name under which the description of a violation follows its field.
constexpr absl::string_view kViolation = "violation";

std::string TakeText(absl::string_view& text) {
  const std::size_t size = TakeNumber(text);
  CLERESTORY_CHECK(size <= text.size());
  std::string out(text.substr(0, size));
  text.remove_prefix(size);
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

absl::Status ViolationsError(Reason reason, absl::string_view message,
                             const std::vector<Violation>& violations) {
  CLERESTORY_CHECK(!violations.empty());
  ErrorMetadata metadata;
  for (const Violation& violation : violations) {
    metadata.emplace_back("field", violation.field);
    metadata.emplace_back(std::string(kViolation), violation.description);
  }
  return MakeError(absl::StatusCode::kInvalidArgument, reason, message,
                   std::move(metadata));
}

std::vector<Violation> ViolationsOf(const absl::Status& status) {
  std::vector<Violation> violations;
  std::string field;
  for (auto& [name, value] : DetailOf(status).metadata) {
    if (name == "field") field = std::move(value);
    if (name == kViolation) {
      violations.push_back({std::move(field), std::move(value)});
    }
  }
  return violations;
}

ErrorDetail DetailOf(const absl::Status& status) {
  ErrorDetail detail;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return detail;
  const std::string encoded(*payload);
  absl::string_view rest = encoded;
  detail.reason = static_cast<Reason>(TakeNumber(rest));
  while (!rest.empty()) {
    std::string key = TakeText(rest);
    std::string value = TakeText(rest);
    detail.metadata.emplace_back(std::move(key), std::move(value));
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
