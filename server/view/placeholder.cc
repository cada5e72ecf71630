// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/placeholder.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

// "1 line", "2 lines".
std::string Counted(std::int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// "47 lines", "1 image", "3 lines and 2 images", "1 line and 1 document".
std::string SizeOf(const ParsedResult& result) {
  std::string size;
  const auto add = [&](std::int64_t count, absl::string_view noun) {
    if (count == 0) return;
    absl::StrAppend(&size, size.empty() ? "" : " and ", Counted(count, noun));
  };
  add(result.line_count, "line");
  add(result.image_count, "image");
  add(result.document_count, "document");
  return size.empty() ? Counted(0, "line") : size;
}

}  // namespace

std::string PlaceholderFor(const ParsedResult& result, const Policy& policy) {
  return absl::StrReplaceAll(
      result.is_error ? policy.error_placeholder : policy.placeholder,
      {{"{size}", SizeOf(result)},
       {"{tokens}", absl::StrCat(result.token_count)}});
}

std::string RecallMark(const ObservationId& id) {
  return absl::StrCat(" (recall id ", id.sequence, ".", id.index, ")");
}

std::string ArgumentPlaceholder(std::int64_t tokens, const Policy& policy) {
  return absl::StrReplaceAll(policy.argument_placeholder,
                             {{"{tokens}", absl::StrCat(tokens)}});
}

}  // namespace clerestory
