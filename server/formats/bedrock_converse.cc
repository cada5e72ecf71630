// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/bedrock_converse.h"

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
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

// Members of the unions ContentBlock and ToolResultContentBlock (botocore,
// bedrock-runtime 2023-09-30, 2026-08), as far as they are told apart here. All
// others, `citationsContent` among them, are passed on untouched.
enum class Block {
  kText,
  kToolUse,
  kToolResult,
  kReasoning,
  kImage,
  kDocument,
  kMedia,
  kGuard,
  kCachePoint,
  kOther,
};

struct BlockRule {
  absl::string_view member;
  Block block = Block::kOther;
};

constexpr BlockRule kBlocks[] = {
    {"text", Block::kText},
    {"toolUse", Block::kToolUse},
    {"toolResult", Block::kToolResult},
    {"reasoningContent", Block::kReasoning},
    {"image", Block::kImage},
    {"document", Block::kDocument},
    {"video", Block::kMedia},
    {"audio", Block::kMedia},
    {"guardContent", Block::kGuard},
    {"cachePoint", Block::kCachePoint},
};

// What a block is, and the value that says so.
struct Member {
  Block block = Block::kOther;
  json::Value value;
};

Member MemberOf(const json::Value& block) {
  for (const BlockRule& rule : kBlocks) {
    const json::Value value = block[rule.member];
    if (IsAbsentOrNull(value)) continue;
    // Calls of tools that the server runs have a type, and so have their
    // results.
    const bool is_tool =
        rule.block == Block::kToolUse || rule.block == Block::kToolResult;
    if (is_tool && !IsAbsentOrNull(value["type"])) break;
    return {.block = rule.block, .value = value};
  }
  return {};
}

// A document: `source` holds bytes in base64, text, or a place in S3.
std::int64_t DocumentTokens(const json::Value& document,
                            const TokenCounter& counter) {
  const json::Value source = document["source"];
  if (source["text"].is_string()) return StringTokens(source["text"], counter);
  if (source["content"].is_array()) {
    return JsonTokens(source["content"], counter);
  }
  const json::Value bytes = source["bytes"];
  if (bytes.is_string() && !document["format"].equals("pdf")) {
    return OpaqueTokens(bytes);
  }
  return ImageTokens(bytes, ImageFormula::kAnthropic, counter);
}

// The tokens of a block that is no call and no result.
std::int64_t BlockTokens(const json::Value& block, const Member& member,
                         const TokenCounter& counter) {
  const json::Value& value = member.value;
  switch (member.block) {
    case Block::kText:
      return StringTokens(value, counter);
    case Block::kReasoning:
      return StringTokens(value["reasoningText"]["text"], counter) +
             OpaqueTokens(value["redactedContent"]);
    case Block::kImage:
      return ImageTokens(value["source"]["bytes"], ImageFormula::kAnthropic,
                         counter);
    case Block::kDocument:
      return DocumentTokens(value, counter);
    case Block::kMedia:
      return MediaTokens(value["source"]["bytes"]);
    case Block::kGuard:
      return value["image"].is_object()
                 ? ImageTokens(value["image"]["source"]["bytes"],
                               ImageFormula::kAnthropic, counter)
                 : StringTokens(value["text"]["text"], counter);
    case Block::kCachePoint:
      return 0;
    case Block::kToolUse:
    case Block::kToolResult:
    case Block::kOther:
      break;
  }
  return JsonTokens(block, counter);
}

// One pass over a message.
class Scan {
 public:
  explicit Scan(const TokenCounter& counter) : counter_(counter) {}

  absl::StatusOr<ParsedMessage> Run(const json::Value& root) {
    CLERESTORY_RETURN_IF_ERROR(SetRole(root["role"]));
    const json::Value content = root["content"];
    if (!content.is_array()) {
      return InvalidMessage("content", "expected an array");
    }
    for (const json::Value& block : content.children()) {
      const std::string path =
          absl::StrCat("content[", message_.part_count, "]");
      if (!block.is_object()) return InvalidMessage(path, "expected an object");
      CLERESTORY_RETURN_IF_ERROR(AddBlock(block, path));
      ++message_.part_count;
    }
    EndReasoning();
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

  absl::Status AddBlock(const json::Value& block, absl::string_view path) {
    const Member member = MemberOf(block);
    if (member.block == Block::kToolUse) {
      return AddCall(block, member.value, PathOf(path, "toolUse"));
    }
    if (member.block == Block::kToolResult) {
      return AddResult(block, member.value, PathOf(path, "toolResult"));
    }
    if (member.block == Block::kImage) ++message_.image_count;
    if (member.block == Block::kCachePoint) ++cache_point_count_;
    const std::int64_t token_count = BlockTokens(block, member, counter_);
    if (member.block == Block::kReasoning) message_.has_thinking = true;
    if (member.block == Block::kReasoning &&
        message_.role == Role::kAssistant) {
      message_.reasoning.push_back({.element = ToByteSpan(block.span()),
                                    .token_count = token_count,
                                    .tokens_before = message_.tokens.total()});
    }
    std::int64_t& own_tokens = message_.role == Role::kAssistant
                                   ? message_.tokens.assistant
                                   : message_.tokens.user;
    own_tokens += token_count;
    return absl::OkStatus();
  }

  // Reasoning may be left out where something is left. Roles have to take
  // turns, so a message of nothing else cannot go, and a cache point alone is
  // no message.
  void EndReasoning() {
    const auto left = message_.part_count - cache_point_count_ -
                      static_cast<std::int64_t>(message_.reasoning.size());
    for (ParsedReasoning& reasoning : message_.reasoning) {
      reasoning.is_removable = left > 0;
    }
  }

  absl::Status AddCall(const json::Value& block, const json::Value& use,
                       absl::string_view path) {
    if (message_.role != Role::kAssistant) {
      return InvalidMessage(path, "in a message that is not the assistant's");
    }
    ParsedCall call;
    CLERESTORY_ASSIGN_OR_RETURN(
        call.id, RequiredString(use, "toolUseId", path, kCallIdBytesMax));
    CLERESTORY_ASSIGN_OR_RETURN(
        call.tool, RequiredString(use, "name", path, kToolNameBytesMax));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(use, "input", path, json::Kind::kObject));
    const json::Value input = use["input"];
    if (input.is_object()) call.arguments = ToByteSpan(input.span());
    call.element = ToByteSpan(block.span());
    call.is_removable = true;
    call.token_count = counter_.CountText(call.tool, TextForm::kPlain) +
                       JsonTokens(input, counter_);
    call.tokens_before = message_.tokens.total();
    message_.tokens.calls += call.token_count;
    message_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& block, const json::Value& use,
                         absl::string_view path) {
    if (message_.role != Role::kUser) {
      return InvalidMessage(path, "in a message that is not the user's");
    }
    ParsedResult result;
    CLERESTORY_ASSIGN_OR_RETURN(
        result.call_id,
        RequiredString(use, "toolUseId", path, kCallIdBytesMax));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(use, "content", path, json::Kind::kArray));
    result.element = ToByteSpan(block.span());
    result.is_error = use["status"].equals("error");
    result.is_removable = true;
    result.tokens_before = message_.tokens.total();
    CLERESTORY_RETURN_IF_ERROR(
        Measure(use["content"], PathOf(path, "content"), result));
    message_.tokens.observations += result.token_count;
    message_.results.push_back(std::move(result));
    return absl::OkStatus();
  }

  // Measures what a result holds.
  absl::Status Measure(const json::Value& content, absl::string_view path,
                       ParsedResult& result) const {
    result.content = ToByteSpan(content.span());
    std::size_t index = 0;
    for (const json::Value& block : content.children()) {
      if (!block.is_object()) {
        return InvalidMessage(absl::StrCat(path, "[", index, "]"),
                              "expected an object");
      }
      const Member member = MemberOf(block);
      result.token_count += BlockTokens(block, member, counter_);
      if (member.block == Block::kText) {
        result.line_count += LineCount(member.value);
      }
      if (member.block == Block::kImage) ++result.image_count;
      if (member.block == Block::kDocument) ++result.document_count;
      ++index;
    }
    result.maskable = index > 0;
    return absl::OkStatus();
  }

  const TokenCounter& counter_;
  ParsedMessage message_;
  std::int64_t cache_point_count_ = 0;
};

}  // namespace

absl::StatusOr<ParsedMessage> BedrockConverse::Parse(
    absl::string_view message, const TokenCounter& counter) const {
  // Down to messages[].content[].toolResult.content[].image.source.bytes.
  CLERESTORY_ASSIGN_OR_RETURN(const json::Document document,
                              ParseObject(message, 9));
  return Scan(counter).Run(document.root());
}

std::vector<Replacement> BedrockConverse::Mask(
    absl::string_view /*message*/, const ParsedResult& result,
    absl::string_view placeholder) const {
  return {
      {.at = result.content,
       .value = absl::StrCat(R"([{"text":)", json::Quote(placeholder), "}]")}};
}

}  // namespace clerestory
