// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/messages.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/json/literal.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

std::string CallOf(Format format, const CallSpec& call) {
  if (format == Format::kAnthropicMessages) {
    return absl::StrCat(R"({"type":"tool_use","id":)", Literal(call.id),
                        R"(,"name":)", Literal(call.tool), R"(,"input":)",
                        call.arguments, "}");
  }
  return absl::StrCat(R"({"id":)", Literal(call.id),
                      R"(,"type":"function","function":{"name":)",
                      Literal(call.tool), R"(,"arguments":)",
                      Literal(call.arguments), "}}");
}

std::string Anthropic(absl::string_view role,
                      const std::vector<std::string>& blocks) {
  return absl::StrCat(R"({"role":")", role, R"(","content":[)",
                      absl::StrJoin(blocks, ","), "]}");
}

}  // namespace

std::string Literal(absl::string_view text) { return json::Quote(text); }

std::string LiteralOf(std::size_t count) {
  return Literal(std::string(count, 'o'));
}

std::string TextBlock(absl::string_view text) {
  return absl::StrCat(R"({"type":"text","text":)", Literal(text), "}");
}

std::string MarkedTextBlock(absl::string_view text) {
  return absl::StrCat(R"({"type":"text","text":)", Literal(text),
                      R"(,"cache_control":{"type":"ephemeral"}})");
}

std::string ImageBlock() {
  return R"({"type":"image","source":{"type":"base64",)"
         R"("media_type":"image/png","data":"iVBORw0KGgo="}})";
}

std::string ThinkingBlock() {
  return R"({"type":"thinking","thinking":"hm","signature":"Eq"})";
}

std::string AnthropicUser(const std::vector<std::string>& blocks) {
  return Anthropic("user", blocks);
}

std::string AnthropicAssistant(const std::vector<std::string>& blocks) {
  return Anthropic("assistant", blocks);
}

std::string UserMessage(Format format, absl::string_view text) {
  if (format == Format::kAnthropicMessages) {
    return AnthropicUser({TextBlock(text)});
  }
  return absl::StrCat(R"({"role":"user","content":)", Literal(text), "}");
}

std::string AssistantMessage(Format format, absl::string_view text,
                             const std::vector<CallSpec>& calls) {
  std::vector<std::string> parts;
  if (format == Format::kAnthropicMessages && !text.empty()) {
    parts.push_back(TextBlock(text));
  }
  for (const CallSpec& call : calls) parts.push_back(CallOf(format, call));
  if (format == Format::kAnthropicMessages) return AnthropicAssistant(parts);
  std::string message = absl::StrCat(R"({"role":"assistant","content":)",
                                     text.empty() ? "null" : Literal(text));
  if (!calls.empty()) {
    absl::StrAppend(&message, R"(,"tool_calls":[)", absl::StrJoin(parts, ","),
                    "]");
  }
  return absl::StrCat(message, "}");
}

std::vector<std::string> ResultMessages(
    Format format, const std::vector<ResultSpec>& results) {
  std::vector<std::string> parts;
  for (const ResultSpec& result : results) {
    if (format == Format::kAnthropicMessages) {
      parts.push_back(absl::StrCat(R"({"type":"tool_result","tool_use_id":)",
                                   Literal(result.id),
                                   result.is_error ? R"(,"is_error":true)" : "",
                                   R"(,"content":)", result.content, "}"));
    } else {
      parts.push_back(absl::StrCat(R"({"role":"tool","tool_call_id":)",
                                   Literal(result.id), R"(,"content":)",
                                   result.content, "}"));
    }
  }
  if (format == Format::kAnthropicMessages) return {AnthropicUser(parts)};
  return parts;
}

Bytes ToBytes(std::string message) {
  return std::make_shared<const std::string>(std::move(message));
}

}  // namespace clerestory
