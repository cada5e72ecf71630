// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/chars_token_counter.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"
#include "server/tokens/unescape.h"

namespace clerestory {

CharsTokenCounter::CharsTokenCounter(std::int64_t chars_per_token)
    : chars_per_token_(chars_per_token) {
  CLERESTORY_CHECK(chars_per_token > 0);
}

std::int64_t CharsTokenCounter::CountText(absl::string_view text,
                                          TextForm form) const {
  if (text.empty()) return 0;
  // Every character has one byte that is no continuation byte.
  std::int64_t characters = 0;
  ForEachRun(text, form, [&characters](absl::string_view run) {
    for (const char c : run) {
      characters += (static_cast<std::uint8_t>(c) & 0xc0) != 0x80 ? 1 : 0;
    }
  });
  return std::max<std::int64_t>(1, characters / chars_per_token_);
}

std::int64_t CharsTokenCounter::CountImage(absl::string_view /*base64*/,
                                           ImageFormula formula) const {
  return UnknownImageTokens(formula);
}

}  // namespace clerestory
