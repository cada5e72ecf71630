// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_OPENAI_CHAT_H_
#define CLERESTORY_SERVER_FORMATS_OPENAI_CHAT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// OpenAI's Chat Completions and the many servers that speak it: elements of
// `messages`. Results are messages of role `tool`, or `function` in the old
// form, where a result is paired by position since it has no id; their
// `content` is masked.
class OpenaiChat final : public FormatAdapter {
 public:
  absl::StatusOr<ParsedMessage> Parse(
      absl::string_view message, const TokenCounter& counter) const override;
  std::vector<Replacement> Mask(absl::string_view message,
                                const ParsedResult& result,
                                absl::string_view placeholder) const override;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_OPENAI_CHAT_H_
