// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_TOKEN_COUNTER_H_
#define CLERESTORY_SERVER_TOKENS_TOKEN_COUNTER_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace clerestory {

// Whether text stands as it is, or as the inside of a JSON string: there `\n`
// is one line break, `\"` one character and `\u00e9` one letter, since the
// model sees the string and not its spelling.
enum class TextForm { kPlain, kJsonEscaped };

// Whose rule says how many tokens a picture is.
enum class ImageFormula { kAnthropic, kOpenai, kGemini };

// Estimates how many tokens a model sees in a text. No model is asked: the
// counts are integers that depend on the text alone, on any machine. Safe from
// any thread.
class TokenCounter {
 public:
  TokenCounter() = default;
  TokenCounter(const TokenCounter&) = delete;
  TokenCounter& operator=(const TokenCounter&) = delete;
  virtual ~TokenCounter() = default;

  // The tokens of `text`, 0 for "" and at least 1 for anything else. Any bytes
  // are accepted.
  virtual std::int64_t CountText(absl::string_view text,
                                 TextForm form) const = 0;

  // The tokens by `formula` of the picture or document whose data are `base64`,
  // decoded only as far as its header, or of one of unknown size if that says
  // nothing or `base64` is empty (it is given by reference).
  virtual std::int64_t CountImage(absl::string_view base64,
                                  ImageFormula formula) const = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOKENS_TOKEN_COUNTER_H_
