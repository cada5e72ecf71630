// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/gemini.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/formats/content.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

absl::StatusOr<ParsedMessage> Gemini::Parse(
    absl::string_view /*message*/, const TokenCounter& /*counter*/) const {
  return InvalidMessage("format", "not there yet");
}

std::vector<Replacement> Gemini::Mask(absl::string_view message,
                                      const ParsedResult& result,
                                      absl::string_view placeholder) const {
  return {{.at = result.content,
           .value = TextContent(message, result, placeholder)}};
}

}  // namespace clerestory
