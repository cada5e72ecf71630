// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_ANTHROPIC_MESSAGES_H_
#define CLERESTORY_SERVER_FORMATS_ANTHROPIC_MESSAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// Anthropic's Messages API: elements of `messages`. Results are `tool_result`
// blocks in user messages; their `content` is masked, and their id, error flag,
// cache mark and toolset stay.
class AnthropicMessages final : public FormatAdapter {
 public:
  absl::StatusOr<ParsedMessage> Parse(
      absl::string_view message, const TokenCounter& counter) const override;
  std::vector<Replacement> Mask(absl::string_view message,
                                const ParsedResult& result,
                                absl::string_view placeholder) const override;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_ANTHROPIC_MESSAGES_H_
