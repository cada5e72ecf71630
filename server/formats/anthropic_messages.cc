// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/anthropic_messages.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/formats/content.h"
#include "server/formats/format.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

// Content blocks of the Messages API (anthropic-sdk-python, types/*_param.py,
// 2026-08), as far as they are told apart here. All others, server tools and
// their results among them, are passed on untouched.
enum class Block {
  kText,
  kToolUse,
  kToolResult,
  kThinking,
  kRedactedThinking,
  kImage,
  kDocument,
  kOther,
};

struct BlockRule {
  absl::string_view type;
  Block block = Block::kOther;
};

constexpr BlockRule kBlocks[] = {
    {"text", Block::kText},
    {"tool_use", Block::kToolUse},
    {"tool_result", Block::kToolResult},
    {"thinking", Block::kThinking},
    {"redacted_thinking", Block::kRedactedThinking},
    {"image", Block::kImage},
    {"document", Block::kDocument},
};

// Blocks inside a result that the API demands to find again: a result that
// holds one has no legal placeholder.
constexpr absl::string_view kUnmaskable[] = {"browser_state", "tool_reference"};

Block BlockOf(const json::Value& block) {
  const json::Value type = block["type"];
  for (const BlockRule& rule : kBlocks) {
    if (type.equals(rule.type)) return rule.block;
  }
  return Block::kOther;
}

// An image or document: `source` holds base64, text, a URL or a file id.
std::int64_t SourceTokens(const json::Value& block,
                          const TokenCounter& counter) {
  const json::Value source = block["source"];
  if (source["type"].equals("text")) {
    return StringTokens(source["data"], counter);
  }
  if (source["type"].equals("content")) {
    return JsonTokens(source["content"], counter);
  }
  return ImageTokens(source["data"], ImageFormula::kAnthropic, counter);
}

// Measures what a result holds, which is a string or an array.
void ScanResult(const json::Value& content, const TokenCounter& counter,
                ParsedResult& result) {
  if (content.is_string()) {
    result.maskable = content.span().size > 2;
    result.token_count = StringTokens(content, counter);
    result.line_count = LineCount(content);
    return;
  }
  result.maskable = !content.children().empty();
  for (const json::Value& block : content.children()) {
    switch (BlockOf(block)) {
      case Block::kText:
        result.token_count += StringTokens(block["text"], counter);
        result.line_count += LineCount(block["text"]);
        break;
      case Block::kImage:
        ++result.image_count;
        result.token_count += SourceTokens(block, counter);
        break;
      case Block::kDocument:
        ++result.document_count;
        result.token_count += SourceTokens(block, counter);
        break;
      case Block::kToolUse:
      case Block::kToolResult:
      case Block::kThinking:
      case Block::kRedactedThinking:
      case Block::kOther:
        result.token_count += JsonTokens(block, counter);
        break;
    }
    for (const absl::string_view type : kUnmaskable) {
      if (!block["type"].equals(type)) continue;
      result.maskable = false;
      result.is_removable = false;
    }
    if (block["cache_control"].is_object()) {
      result.cache_mark = ToByteSpan(block["cache_control"].span());
      result.is_removable = false;
    }
  }
}

// One pass over a message.
class Scan {
 public:
  explicit Scan(const TokenCounter& counter) : counter_(counter) {}

  absl::StatusOr<ParsedMessage> Run(const json::Value& root) {
    CLERESTORY_RETURN_IF_ERROR(SetRole(root["role"]));
    const json::Value content = root["content"];
    if (content.is_string()) {
      own_tokens() += StringTokens(content, counter_);
      message_.part_count = content.span().size > 2 ? 1 : 0;
    } else if (content.is_array()) {
      std::size_t index = 0;
      for (const json::Value& block : content.children()) {
        CLERESTORY_RETURN_IF_ERROR(
            AddBlock(block, absl::StrCat("content[", index, "]")));
        ++index;
      }
      message_.part_count = static_cast<std::int64_t>(index);
    } else {
      return InvalidMessage("content", "expected a string or an array");
    }
    return std::move(message_);
  }

 private:
  absl::Status SetRole(const json::Value& role) {
    if (role.equals("user")) {
      message_.role = Role::kUser;
    } else if (role.equals("assistant")) {
      message_.role = Role::kAssistant;
    } else if (role.equals("system")) {
      message_.role = Role::kSystem;
    } else {
      return InvalidMessage("role", "expected user, assistant or system");
    }
    return absl::OkStatus();
  }

  // Where the message's own text counts.
  std::int64_t& own_tokens() {
    return message_.role == Role::kAssistant ? message_.tokens.assistant
                                             : message_.tokens.user;
  }

  absl::Status AddBlock(const json::Value& block, absl::string_view path) {
    if (!block.is_object()) return InvalidMessage(path, "expected an object");
    switch (BlockOf(block)) {
      case Block::kText:
        own_tokens() += StringTokens(block["text"], counter_);
        break;
      case Block::kToolUse:
        return AddCall(block, path);
      case Block::kToolResult:
        return AddResult(block, path);
      case Block::kThinking:
        AddReasoning(block, StringTokens(block["thinking"], counter_));
        break;
      case Block::kRedactedThinking:
        AddReasoning(block, OpaqueTokens(block["data"]));
        break;
      case Block::kImage:
        ++message_.image_count;
        [[fallthrough]];
      case Block::kDocument:
        own_tokens() += SourceTokens(block, counter_);
        break;
      case Block::kOther:
        own_tokens() += JsonTokens(block, counter_);
        break;
    }
    return absl::OkStatus();
  }

  void AddReasoning(const json::Value& block, std::int64_t token_count) {
    message_.has_thinking = true;
    // A message of nothing else goes with it: messages in a row of one role
    // are one turn.
    if (message_.role == Role::kAssistant) {
      message_.reasoning.push_back({.element = ToByteSpan(block.span()),
                                    .is_removable = true,
                                    .token_count = token_count,
                                    .tokens_before = message_.tokens.total()});
    }
    own_tokens() += token_count;
  }

  absl::Status AddCall(const json::Value& block, absl::string_view path) {
    if (message_.role != Role::kAssistant) {
      return InvalidMessage(path,
                            "tool_use in a message that is not the "
                            "assistant's");
    }
    ParsedCall call;
    CLERESTORY_ASSIGN_OR_RETURN(
        call.id, RequiredString(block, "id", path, kCallIdBytesMax));
    CLERESTORY_ASSIGN_OR_RETURN(
        call.tool, RequiredString(block, "name", path, kToolNameBytesMax));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(block, "input", path, json::Kind::kObject));
    const json::Value input = block["input"];
    if (input.is_object()) call.arguments = ToByteSpan(input.span());
    call.element = ToByteSpan(block.span());
    call.is_removable = !IsHeld(block);
    call.token_count = counter_.CountText(call.tool, TextForm::kPlain) +
                       JsonTokens(input, counter_);
    call.tokens_before = message_.tokens.total();
    message_.tokens.calls += call.token_count;
    message_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& block, absl::string_view path) {
    if (message_.role != Role::kUser) {
      return InvalidMessage(path,
                            "tool_result in a message that is not the user's");
    }
    ParsedResult result;
    CLERESTORY_ASSIGN_OR_RETURN(
        result.call_id,
        RequiredString(block, "tool_use_id", path, kCallIdBytesMax));
    result.is_error = block["is_error"].is_true();
    result.tokens_before = message_.tokens.total();
    result.element = ToByteSpan(block.span());
    result.is_removable = !IsHeld(block);
    const json::Value content = block["content"];
    result.content = ToByteSpan(content.span());
    if (!IsAbsentOrNull(content)) {
      if (!content.is_string() && !content.is_array()) {
        return InvalidMessage(PathOf(path, "content"),
                              "expected a string or an array");
      }
      ScanResult(content, counter_, result);
    }
    message_.tokens.observations += result.token_count;
    message_.results.push_back(std::move(result));
    return absl::OkStatus();
  }

  const TokenCounter& counter_;
  ParsedMessage message_;
};

}  // namespace

absl::StatusOr<ParsedMessage> AnthropicMessages::Parse(
    absl::string_view message, const TokenCounter& counter) const {
  // Down to messages[].content[].content[].source.data.
  CLERESTORY_ASSIGN_OR_RETURN(const json::Document document,
                              ParseObject(message, 7));
  return Scan(counter).Run(document.root());
}

std::vector<Replacement> AnthropicMessages::Mask(
    absl::string_view message, const ParsedResult& result,
    absl::string_view placeholder) const {
  return {{.at = result.content,
           .value = TextContent(message, result, placeholder)}};
}

}  // namespace clerestory
