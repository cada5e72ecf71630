// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_GEMINI_H_
#define CLERESTORY_SERVER_FORMATS_GEMINI_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// Google's Gemini API: elements of `contents`, with names in either case.
// Results are `functionResponse` parts, paired by id or else by name and
// position; their `response` is masked, and the `parts` beside it are emptied.
class Gemini final : public FormatAdapter {
 public:
  absl::StatusOr<ParsedMessage> Parse(
      absl::string_view message, const TokenCounter& counter) const override;
  std::vector<Replacement> Mask(absl::string_view message,
                                const ParsedResult& result,
                                absl::string_view placeholder) const override;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_GEMINI_H_
