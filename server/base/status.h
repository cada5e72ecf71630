// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_STATUS_H_
#define CLERESTORY_SERVER_BASE_STATUS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/reason.h"

namespace clerestory {

// Name and value of what varies in an error. A key, once sent for a reason, is
// always sent for it.
using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// What a program needs to know of an error beside its code and message.
struct ErrorDetail {
  Reason reason = Reason::kUnspecified;
  ErrorMetadata metadata;
};

// Returns a status with `code`, `message` and the machine-readable `reason` and
// `metadata`. The message says what was wrong and what to do next, and never
// contains message content, tokens or keys. REQUIRES: `code` is not OK.
absl::Status MakeError(absl::StatusCode code, Reason reason,
                       absl::string_view message, ErrorMetadata metadata = {});

// INVALID_ARGUMENT with `kFieldInvalid` and the metadata `field`: a request
// field (`messages[3]`, `page_size`), a flag or a configuration key.
absl::Status FieldError(absl::string_view field, absl::string_view message);

// A field that is wrong, and what is wrong with it.
struct Violation {
  std::string field;
  std::string description;

  friend bool operator==(const Violation&, const Violation&) = default;
};

// INVALID_ARGUMENT with `reason` for several fields. The metadata `field` is
// that of the first violation. REQUIRES: there is one.
absl::Status ViolationsError(Reason reason, absl::string_view message,
                             const std::vector<Violation>& violations);

// Returns the violations of `status`: those that ViolationsError was given; of
// another one, none.
std::vector<Violation> ViolationsOf(const absl::Status& status);

// Returns the detail of `status`; of a status that was not made by MakeError,
// one with `kUnspecified`.
ErrorDetail DetailOf(const absl::Status& status);

// Returns the value of `key` in the metadata of `status`, or "".
std::string MetadataOf(const absl::Status& status, absl::string_view key);

// Returns `status` with `context` and ": " before its message; code, reason and
// metadata stay.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace clerestory

// Returns from the calling function if `expr`, an absl::Status, is not OK.
#define CLERESTORY_RETURN_IF_ERROR(expr)                                      \
  do {                                                                        \
    if (absl::Status status_macro_value = (expr); !status_macro_value.ok()) { \
      return status_macro_value;                                              \
    }                                                                         \
  } while (false)

#define CLERESTORY_STATUS_CONCAT_INNER(a, b) a##b
#define CLERESTORY_STATUS_CONCAT(a, b) CLERESTORY_STATUS_CONCAT_INNER(a, b)

// Evaluates `expr`, an absl::StatusOr, and either moves its value into `lhs` or
// returns its status from the calling function.
#define CLERESTORY_ASSIGN_OR_RETURN(lhs, expr) \
  CLERESTORY_ASSIGN_OR_RETURN_INNER(           \
      CLERESTORY_STATUS_CONCAT(status_or_, __LINE__), lhs, expr)
#define CLERESTORY_ASSIGN_OR_RETURN_INNER(name, lhs, expr) \
  auto name = (expr);                                      \
  if (!name.ok()) return name.status();                    \
  lhs = *std::move(name)

#endif  // CLERESTORY_SERVER_BASE_STATUS_H_
