// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_MESSAGES_H_
#define CLERESTORY_TESTS_SUPPORT_MESSAGES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/model/message.h"

namespace clerestory {

// Builders of messages as agents send them, in the JSON of any format.

// A tool call.
struct CallSpec {
  std::string id;  // In Gemini's format it may be empty.
  std::string tool = "r";
  std::string arguments = "{}";  // JSON.
};

// A tool result.
struct ResultSpec {
  std::string id;
  std::string content;  // JSON: a literal or an array.
  bool is_error = false;
  std::string tool = "r";  // Of the call; named in Gemini's format only.
};

// `text` as a JSON string.
std::string Literal(absl::string_view text);
// A literal of `count` characters, and as many tokens, in one line.
std::string LiteralOf(std::size_t count);

// Content blocks, of Anthropic's format but for TextBlock, which is of both.
std::string TextBlock(absl::string_view text);
std::string MarkedTextBlock(absl::string_view text);  // With a cache mark.
std::string ImageBlock();
std::string ThinkingBlock();

// Messages of Anthropic's format with these content blocks.
std::string AnthropicUser(const std::vector<std::string>& blocks);
std::string AnthropicAssistant(const std::vector<std::string>& blocks);

std::string UserMessage(Format format, absl::string_view text);

// What the assistant says in a turn: `text`, unless it is empty, and then
// `calls`. One message, or in Responses an item for each.
std::vector<std::string> AssistantMessages(
    Format format, absl::string_view text,
    const std::vector<CallSpec>& calls = {});

// The same where it is one message: in Responses either `text` or a single
// call.
std::string AssistantMessage(Format format, absl::string_view text,
                             const std::vector<CallSpec>& calls = {});

// The messages that give `results` to the model: one with all of them, or in
// chat and in Responses one for each. Has no place for `is_error` in these two.
std::vector<std::string> ResultMessages(Format format,
                                        const std::vector<ResultSpec>& results);

// `message`, to be shared.
Bytes ToBytes(std::string message);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_MESSAGES_H_
