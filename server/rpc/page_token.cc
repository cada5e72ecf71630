// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/page_token.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/digest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"

namespace clerestory {
namespace {

constexpr std::size_t kSealBytes = 16;

std::string SealOf(absl::string_view scope, absl::string_view position) {
  return Digest::Of(absl::StrCat(scope.size(), ":", scope, position))
      .ToHex()
      .substr(0, kSealBytes);
}

}  // namespace

std::string MakePageToken(absl::string_view scope, absl::string_view position) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(SealOf(scope, position), position));
}

absl::StatusOr<std::string> ReadPageToken(absl::string_view scope,
                                          absl::string_view token) {
  if (token.empty()) return std::string();
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text) || text.size() < kSealBytes ||
      text.substr(0, kSealBytes) != SealOf(scope, text.substr(kSealBytes))) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     Reason::kPageTokenInvalid,
                     "page_token: not one that this call returned; start from "
                     "the first page",
                     {{"field", "page_token"}});
  }
  return text.substr(kSealBytes);
}

absl::StatusOr<std::int64_t> PageSize(std::int32_t asked) {
  if (asked < 0) return FieldError("page_size", "must not be negative");
  if (asked == 0) return kPageSizeDefault;
  return std::min<std::int64_t>(asked, kPageSizeMax);
}

}  // namespace clerestory
