// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_UNESCAPE_H_
#define CLERESTORY_SERVER_TOKENS_UNESCAPE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// One character in UTF-8.
struct Utf8Character {
  std::array<char, 4> bytes = {};
  std::size_t size = 0;

  absl::string_view view() const { return {bytes.data(), size}; }
};

// Takes the escape that `text` begins with, a backslash, off `text` and returns
// what it stands for. A surrogate without its half stands for U+FFFD, and a
// backslash that begins no escape for itself. REQUIRES: `text` is not empty.
Utf8Character TakeEscape(absl::string_view& text);

// Calls `sink(run)` with what `text` in `form` stands for, cut into an
// absl::string_view after the other, which are valid during the call.
template <typename Sink>
void ForEachRun(absl::string_view text, TextForm form, Sink&& sink) {
  if (form == TextForm::kPlain) {
    sink(text);
    return;
  }
  while (!text.empty()) {
    const absl::string_view run = text.substr(0, text.find('\\'));
    sink(run);
    text.remove_prefix(run.size());
    if (!text.empty()) sink(TakeEscape(text).view());
  }
}

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOKENS_UNESCAPE_H_
