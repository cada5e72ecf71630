// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/openai_chat.h"

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
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

struct RoleRule {
  absl::string_view name;
  Role role = Role::kUser;
};

// openai-python, types/chat/*_message_param.py, 2026-08.
constexpr RoleRule kRoles[] = {
    {"system", Role::kSystem}, {"developer", Role::kSystem},
    {"user", Role::kUser},     {"assistant", Role::kAssistant},
    {"tool", Role::kTool},     {"function", Role::kTool},
};

// Fields of an assistant message, beside its content, that hold text which
// later requests pay for: refusals, and the reasoning that compatible servers
// return.
constexpr absl::string_view kTextFields[] = {"refusal", "reasoning_content"};

// Fields of an assistant message that are parts of it, as its content is.
constexpr absl::string_view kPartFields[] = {"refusal", "audio"};

// What a content value holds.
struct Measure {
  std::int64_t token_count = 0;
  std::int64_t line_count = 0;
  std::int64_t image_count = 0;
  std::int64_t document_count = 0;
  std::int64_t part_count = 0;
  ByteSpan cache_mark;
};

std::int64_t PictureTokens(const json::Value& image_url,
                           const TokenCounter& counter) {
  if (image_url["detail"].equals("low")) return kOpenaiLowDetailTokens;
  return ImageTokens(image_url["url"], ImageFormula::kOpenai, counter);
}

absl::StatusOr<Measure> MeasureContent(const json::Value& content,
                                       const TokenCounter& counter) {
  Measure measure;
  if (content.is_string()) {
    measure.token_count = StringTokens(content, counter);
    measure.line_count = LineCount(content);
    measure.part_count = content.span().size > 2 ? 1 : 0;
    return measure;
  }
  if (IsAbsentOrNull(content)) return measure;
  if (!content.is_array()) {
    return InvalidMessage("content", "expected a string, an array or null");
  }
  std::size_t index = 0;
  for (const json::Value& part : content.children()) {
    if (!part.is_object()) {
      return InvalidMessage(absl::StrCat("content[", index, "]"),
                            "expected an object");
    }
    if (part["type"].equals("text")) {
      measure.token_count += StringTokens(part["text"], counter);
      measure.line_count += LineCount(part["text"]);
    } else if (part["type"].equals("image_url")) {
      ++measure.image_count;
      measure.token_count += PictureTokens(part["image_url"], counter);
    } else if (part["type"].equals("file")) {
      ++measure.document_count;
      measure.token_count += ImageTokens(part["file"]["file_data"],
                                         ImageFormula::kOpenai, counter);
    } else if (part["type"].equals("input_audio")) {
      measure.token_count += MediaTokens(part["input_audio"]["data"]);
    } else {
      measure.token_count += JsonTokens(part, counter);
    }
    // Gateways to Anthropic take cache marks on parts.
    if (part["cache_control"].is_object()) {
      measure.cache_mark = ToByteSpan(part["cache_control"].span());
    }
    ++index;
  }
  measure.part_count = static_cast<std::int64_t>(index);
  return measure;
}

absl::StatusOr<Role> RoleOf(const json::Value& role) {
  for (const RoleRule& rule : kRoles) {
    if (role.equals(rule.name)) return rule.role;
  }
  return InvalidMessage(
      "role", "expected system, developer, user, assistant, tool or function");
}

// Adds `parsed` with the name and the arguments that are members of `call`.
absl::Status AddCall(const json::Value& call, absl::string_view arguments,
                     absl::string_view path, ParsedCall parsed,
                     const TokenCounter& counter, ParsedMessage& message) {
  CLERESTORY_ASSIGN_OR_RETURN(
      parsed.tool, RequiredString(call, "name", path, kToolNameBytesMax));
  CLERESTORY_RETURN_IF_ERROR(
      CheckKind(call, arguments, path, json::Kind::kString));
  const json::Value text = call[arguments];
  if (text.is_string()) parsed.arguments = ToByteSpan(text.span());
  parsed.token_count = counter.CountText(parsed.tool, TextForm::kPlain) +
                       StringTokens(text, counter);
  parsed.tokens_before = message.tokens.total();
  message.tokens.calls += parsed.token_count;
  ++message.part_count;
  message.calls.push_back(std::move(parsed));
  return absl::OkStatus();
}

absl::Status AddCalls(const json::Value& root, const TokenCounter& counter,
                      ParsedMessage& message) {
  const json::Value calls = root["tool_calls"];
  if (!calls.is_array() && !IsAbsentOrNull(calls)) {
    return InvalidMessage("tool_calls", "expected an array or null");
  }
  std::size_t index = 0;
  for (const json::Value& call : calls.children()) {
    const std::string path = absl::StrCat("tool_calls[", index, "]");
    if (!call.is_object()) return InvalidMessage(path, "expected an object");
    ParsedCall parsed;
    CLERESTORY_ASSIGN_OR_RETURN(
        parsed.id, RequiredString(call, "id", path, kCallIdBytesMax));
    parsed.element = ToByteSpan(call.span());
    // Gateways to Gemini keep its signatures here.
    const bool is_signed = !IsAbsentOrNull(call["extra_content"]);
    if (is_signed) message.has_thinking = true;
    parsed.is_removable = !is_signed && !IsHeld(call);
    const bool custom = call["custom"].is_object();
    CLERESTORY_RETURN_IF_ERROR(AddCall(
        call[custom ? "custom" : "function"], custom ? "input" : "arguments",
        PathOf(path, custom ? "custom" : "function"), std::move(parsed),
        counter, message));
    ++index;
  }
  CLERESTORY_RETURN_IF_ERROR(
      CheckKind(root, "function_call", "", json::Kind::kObject));
  if (root["function_call"].is_object()) {
    // It is no entry of an array: it goes with the message, or not at all.
    ParsedCall parsed;
    parsed.element = ToByteSpan(root.span());
    parsed.is_removable = message.part_count == 0 && !IsHeld(root);
    return AddCall(root["function_call"], "arguments", "function_call",
                   std::move(parsed), counter, message);
  }
  return absl::OkStatus();
}

absl::Status AddResult(const json::Value& root, const Measure& measure,
                       ParsedMessage& message) {
  ParsedResult result;
  if (root["role"].equals("tool")) {
    CLERESTORY_ASSIGN_OR_RETURN(
        result.call_id,
        RequiredString(root, "tool_call_id", "", kCallIdBytesMax));
  }
  CLERESTORY_ASSIGN_OR_RETURN(
      result.tool, OptionalString(root, "name", "", kToolNameBytesMax));
  const json::Value content = root["content"];
  result.content = ToByteSpan(content.span());
  result.element = ToByteSpan(root.span());
  result.maskable = measure.token_count > 0;
  result.cache_mark = measure.cache_mark;
  result.is_removable = measure.cache_mark.size == 0 && !IsHeld(root);
  result.image_count = measure.image_count;
  result.document_count = measure.document_count;
  result.line_count = measure.line_count;
  result.token_count = measure.token_count;
  message.tokens.observations += measure.token_count;
  message.part_count = 1;
  message.results.push_back(std::move(result));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParsedMessage> OpenaiChat::Parse(
    absl::string_view message, const TokenCounter& counter) const {
  // Down to messages[].content[].image_url.url.
  CLERESTORY_ASSIGN_OR_RETURN(const json::Document document,
                              ParseObject(message, 5));
  const json::Value root = document.root();
  ParsedMessage parsed;
  CLERESTORY_ASSIGN_OR_RETURN(parsed.role, RoleOf(root["role"]));
  CLERESTORY_ASSIGN_OR_RETURN(const Measure measure,
                              MeasureContent(root["content"], counter));
  if (parsed.role == Role::kTool) {
    CLERESTORY_RETURN_IF_ERROR(AddResult(root, measure, parsed));
    return parsed;
  }
  parsed.image_count = measure.image_count;
  parsed.part_count = measure.part_count;
  if (parsed.role != Role::kAssistant) {
    parsed.tokens.user = measure.token_count;
    return parsed;
  }
  parsed.tokens.assistant = measure.token_count;
  for (const absl::string_view field : kTextFields) {
    parsed.tokens.assistant += StringTokens(root[field], counter);
  }
  // What the model said stands by itself; its reasoning goes with its calls.
  for (const absl::string_view field : kPartFields) {
    const json::Value value = root[field];
    if (!IsAbsentOrNull(value) && !value.equals("")) ++parsed.part_count;
  }
  CLERESTORY_RETURN_IF_ERROR(AddCalls(root, counter, parsed));
  return parsed;
}

std::vector<Replacement> OpenaiChat::Mask(absl::string_view message,
                                          const ParsedResult& result,
                                          absl::string_view placeholder) const {
  return {{.at = result.content,
           .value = TextContent(message, result, placeholder)}};
}

}  // namespace clerestory
