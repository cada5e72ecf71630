// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_CHARS_TOKEN_COUNTER_H_
#define CLERESTORY_SERVER_TOKENS_CHARS_TOKEN_COUNTER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// Counts a token for every so many characters, as published cost models do:
// with it a back-test can be compared with theirs. ClassTokenCounter is the
// better estimate.
class CharsTokenCounter final : public TokenCounter {
 public:
  // REQUIRES: `chars_per_token` > 0.
  explicit CharsTokenCounter(std::int64_t chars_per_token);

  // The characters of `text`, which are Unicode code points, by
  // `chars_per_token`, rounded down, but at least 1 unless it is "". Bytes that
  // are not UTF-8 count as one each, or with the character before them.
  std::int64_t CountText(absl::string_view text, TextForm form) const override;

  // UnknownImageTokens (image_tokens.h) for any picture: these models know no
  // pictures.
  std::int64_t CountImage(absl::string_view base64,
                          ImageFormula formula) const override;

 private:
  const std::int64_t chars_per_token_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOKENS_CHARS_TOKEN_COUNTER_H_
