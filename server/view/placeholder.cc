// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/placeholder.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "server/model/message.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

// "1 line", "2 lines".
std::string Counted(std::int64_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// "47 lines", "1 image", "3 lines and 2 images".
std::string SizeOf(const ParsedResult& result) {
  if (result.image_count == 0) return Counted(result.line_count, "line");
  const std::string images = Counted(result.image_count, "image");
  if (result.line_count == 0) return images;
  return absl::StrCat(Counted(result.line_count, "line"), " and ", images);
}

}  // namespace

std::string PlaceholderFor(const ParsedResult& result, const Policy& policy) {
  return absl::StrReplaceAll(
      result.is_error ? policy.error_placeholder : policy.placeholder,
      {{"{size}", SizeOf(result)},
       {"{tokens}", absl::StrCat(result.token_count)}});
}

}  // namespace clerestory
