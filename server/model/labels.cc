// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/model/labels.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"

namespace clerestory {
namespace {

// Whether `text` is 1 to `bytes_max` letters, digits and characters of
// `others`.
bool IsName(absl::string_view text, std::int64_t bytes_max,
            absl::string_view others) {
  return !text.empty() && static_cast<std::int64_t>(text.size()) <= bytes_max &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  others.find(c) != absl::string_view::npos;
         });
}

}  // namespace

std::string LabelKeyProblem(absl::string_view key) {
  if (IsName(key, kLabelKeyBytesMax, "_-./")) return "";
  return absl::StrCat("the name of a label has 1 to ", kLabelKeyBytesMax,
                      " letters, digits, _, -, . and /; write another");
}

std::string LabelValueProblem(absl::string_view value) {
  if (IsName(value, kLabelValueBytesMax, "_-./:@+")) return "";
  return absl::StrCat("expected 1 to ", kLabelValueBytesMax,
                      " letters, digits, _, -, ., /, :, @ and +");
}

}  // namespace clerestory
