// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/format.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/formats/anthropic_messages.h"
#include "server/formats/bedrock_converse.h"
#include "server/formats/gemini.h"
#include "server/formats/openai_chat.h"
#include "server/formats/openai_responses.h"
#include "server/model/message.h"

namespace clerestory {

const FormatAdapter& AdapterFor(Format format) {
  static const auto* const anthropic = new AnthropicMessages();
  static const auto* const chat = new OpenaiChat();
  static const auto* const responses = new OpenaiResponses();
  static const auto* const gemini = new Gemini();
  static const auto* const converse = new BedrockConverse();
  switch (format) {
    case Format::kUnspecified:
      break;
    case Format::kAnthropicMessages:
      return *anthropic;
    case Format::kOpenaiChat:
      return *chat;
    case Format::kOpenaiResponses:
      return *responses;
    case Format::kGemini:
      return *gemini;
    case Format::kBedrockConverse:
      return *converse;
  }
  CLERESTORY_CHECK(format != Format::kUnspecified);
  return *anthropic;
}

StaleReasoning StaleReasoningOf(Format format) {
  switch (format) {
    case Format::kAnthropicMessages:
    case Format::kBedrockConverse:
      return StaleReasoning::kRefused;
    case Format::kOpenaiResponses:
      return StaleReasoning::kDropped;
    case Format::kOpenaiChat:
    case Format::kGemini:
    case Format::kUnspecified:
      break;
  }
  return StaleReasoning::kNone;
}

absl::string_view FormatName(Format format) {
  switch (format) {
    case Format::kAnthropicMessages:
      return "ANTHROPIC_MESSAGES";
    case Format::kOpenaiChat:
      return "OPENAI_CHAT";
    case Format::kOpenaiResponses:
      return "OPENAI_RESPONSES";
    case Format::kGemini:
      return "GEMINI";
    case Format::kBedrockConverse:
      return "BEDROCK_CONVERSE";
    case Format::kUnspecified:
      break;
  }
  return "FORMAT_UNSPECIFIED";
}

std::string Splice(absl::string_view message,
                   const std::vector<Replacement>& replacements) {
  std::size_t size = message.size();
  for (const Replacement& replacement : replacements) {
    size += replacement.value.size();
    size -= replacement.at.size;
  }
  std::string out;
  out.reserve(size);
  std::size_t from = 0;
  for (const Replacement& replacement : replacements) {
    const ByteSpan at = replacement.at;
    CLERESTORY_CHECK(at.offset >= from &&
                     at.offset + at.size <= message.size());
    const absl::string_view kept = message.substr(from, at.offset - from);
    out.append(kept.data(), kept.size());
    out.append(replacement.value);
    from = at.offset + at.size;
  }
  const absl::string_view rest = message.substr(from);
  out.append(rest.data(), rest.size());
  return out;
}

}  // namespace clerestory
