// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_OPENAI_RESPONSES_H_
#define CLERESTORY_SERVER_FORMATS_OPENAI_RESPONSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// OpenAI's Responses API: each message is one item of `input`. Results are the
// items `..._call_output`; their `output` is masked, in the shape that the item
// demands. Items that the server made itself are left alone.
class OpenaiResponses final : public FormatAdapter {
 public:
  absl::StatusOr<ParsedMessage> Parse(
      absl::string_view message, const TokenCounter& counter) const override;
  std::vector<Replacement> Mask(absl::string_view message,
                                const ParsedResult& result,
                                absl::string_view placeholder) const override;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_OPENAI_RESPONSES_H_
