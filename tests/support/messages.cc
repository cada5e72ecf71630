// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/messages.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/json/literal.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

std::string CallOf(Format format, const CallSpec& call) {
  const std::string name = Literal(call.tool);
  switch (format) {
    case Format::kAnthropicMessages:
      return absl::StrCat(R"({"type":"tool_use","id":)", Literal(call.id),
                          R"(,"name":)", name, R"(,"input":)", call.arguments,
                          "}");
    case Format::kOpenaiChat:
      return absl::StrCat(R"({"id":)", Literal(call.id),
                          R"(,"type":"function","function":{"name":)", name,
                          R"(,"arguments":)", Literal(call.arguments), "}}");
    case Format::kOpenaiResponses:
      return absl::StrCat(R"({"type":"function_call","call_id":)",
                          Literal(call.id), R"(,"name":)", name,
                          R"(,"arguments":)", Literal(call.arguments), "}");
    case Format::kGemini:
      return absl::StrCat(
          R"({"functionCall":{)",
          call.id.empty() ? ""
                          : absl::StrCat(R"("id":)", Literal(call.id), ","),
          R"("name":)", name, R"(,"args":)", call.arguments, "}}");
    case Format::kBedrockConverse:
      return absl::StrCat(R"({"toolUse":{"toolUseId":)", Literal(call.id),
                          R"(,"name":)", name, R"(,"input":)", call.arguments,
                          "}}");
    case Format::kUnspecified:
      break;
  }
  CLERESTORY_CHECK(false);
  return "";
}

std::string ResultOf(Format format, const ResultSpec& result) {
  const std::string id = Literal(result.id);
  switch (format) {
    case Format::kAnthropicMessages:
      return absl::StrCat(R"({"type":"tool_result","tool_use_id":)", id,
                          result.is_error ? R"(,"is_error":true)" : "",
                          R"(,"content":)", result.content, "}");
    case Format::kOpenaiChat:
      return absl::StrCat(R"({"role":"tool","tool_call_id":)", id,
                          R"(,"content":)", result.content, "}");
    case Format::kOpenaiResponses:
      return absl::StrCat(R"({"type":"function_call_output","call_id":)", id,
                          R"(,"output":)", result.content, "}");
    case Format::kGemini:
      return absl::StrCat(
          R"({"functionResponse":{)",
          result.id.empty() ? "" : absl::StrCat(R"("id":)", id, ","),
          R"("name":)", Literal(result.tool), R"(,"response":{)",
          result.is_error ? R"("error":)" : R"("output":)", result.content,
          "}}}");
    case Format::kBedrockConverse:
      return absl::StrCat(
          R"({"toolResult":{"toolUseId":)", id, R"(,"status":)",
          result.is_error ? R"("error")" : R"("success")", R"(,"content":)",
          absl::StartsWith(result.content, "\"")
              ? absl::StrCat(R"([{"text":)", result.content, "}]")
              : result.content,
          "}}");
    case Format::kUnspecified:
      break;
  }
  CLERESTORY_CHECK(false);
  return "";
}

std::string ConverseText(absl::string_view text) {
  return absl::StrCat(R"({"text":)", Literal(text), "}");
}

// A message of the formats that have content in parts.
std::string MessageOf(Format format, absl::string_view role,
                      const std::vector<std::string>& parts) {
  return absl::StrCat(R"({"role":")", role, R"(",")",
                      format == Format::kGemini ? "parts" : "content", R"(":[)",
                      absl::StrJoin(parts, ","), "]}");
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
  if (format == Format::kGemini || format == Format::kBedrockConverse) {
    return MessageOf(format, "user", {ConverseText(text)});
  }
  return absl::StrCat(R"({"role":"user","content":)", Literal(text), "}");
}

std::vector<std::string> AssistantMessages(Format format,
                                           absl::string_view text,
                                           const std::vector<CallSpec>& calls) {
  if (format != Format::kOpenaiResponses) {
    return {AssistantMessage(format, text, calls)};
  }
  std::vector<std::string> items;
  if (!text.empty()) items.push_back(AssistantMessage(format, text));
  for (const CallSpec& call : calls) items.push_back(CallOf(format, call));
  return items;
}

std::string AssistantMessage(Format format, absl::string_view text,
                             const std::vector<CallSpec>& calls) {
  if (format == Format::kOpenaiResponses) {
    CLERESTORY_CHECK(calls.size() == (text.empty() ? 1 : 0));
    if (!calls.empty()) return CallOf(format, calls[0]);
    return absl::StrCat(R"({"type":"message","role":"assistant","content":)",
                        Literal(text), "}");
  }
  std::vector<std::string> parts;
  for (const CallSpec& call : calls) parts.push_back(CallOf(format, call));
  if (format != Format::kOpenaiChat) {
    if (!text.empty()) {
      parts.insert(parts.begin(), format == Format::kAnthropicMessages
                                      ? TextBlock(text)
                                      : ConverseText(text));
    }
    return MessageOf(format, format == Format::kGemini ? "model" : "assistant",
                     parts);
  }
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
    parts.push_back(ResultOf(format, result));
  }
  if (format == Format::kOpenaiChat || format == Format::kOpenaiResponses) {
    return parts;
  }
  return {MessageOf(format, "user", parts)};
}

Bytes ToBytes(std::string message) {
  return std::make_shared<const std::string>(std::move(message));
}

}  // namespace clerestory
