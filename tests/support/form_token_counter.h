// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_FORM_TOKEN_COUNTER_H_
#define CLERESTORY_TESTS_SUPPORT_FORM_TOKEN_COUNTER_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// Counts so that a test sees from a sum what was counted, and as what: a byte
// of plain text is 1 token, one of an escaped string 1'000, a picture 1'000'000
// and a byte of its data as many again; by OpenAI's formula 100'000 more, by
// Gemini's 200'000.
class FormTokenCounter final : public TokenCounter {
 public:
  std::int64_t CountText(absl::string_view text, TextForm form) const override {
    return static_cast<std::int64_t>(text.size()) *
           (form == TextForm::kPlain ? 1 : 1'000);
  }
  std::int64_t CountImage(absl::string_view base64,
                          ImageFormula formula) const override {
    return 1'000'000 * (1 + static_cast<std::int64_t>(base64.size())) +
           100'000 * static_cast<std::int64_t>(formula);
  }
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_FORM_TOKEN_COUNTER_H_
