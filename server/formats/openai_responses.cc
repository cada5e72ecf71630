// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/openai_responses.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/check.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/formats/content.h"
#include "server/formats/format.h"
#include "server/formats/shell_output.h"
#include "server/json/document.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

enum class Item {
  kMessage,
  kReasoning,  // And what else is encrypted.
  kCall,
  kTextOutput,  // A string, or parts.
  kShellOutput,
  kScreenshot,
  kPicture,
  kOther,
};

struct ItemRule {
  absl::string_view type;
  Item item = Item::kOther;
  Role role = Role::kUser;
  // The member with the arguments of a call, and of which kind it is.
  absl::string_view arguments = "";
  json::Kind kind = json::Kind::kObject;
  // Whether a call may be dropped together with its result.
  bool is_removable = false;
};

constexpr json::Kind kText = json::Kind::kString;
constexpr json::Kind kAction = json::Kind::kObject;

// Items of `input` (openai-python, types/responses/*, 2026-08), as far as they
// are told apart here. All others are passed on untouched: as the model's if
// they are calls of tools that the server runs, else as the user's.
constexpr ItemRule kItems[] = {
    {"message", Item::kMessage},
    {"reasoning", Item::kReasoning, Role::kAssistant},
    {"compaction", Item::kReasoning, Role::kAssistant},
    {"function_call", Item::kCall, Role::kAssistant, "arguments", kText, true},
    {"custom_tool_call", Item::kCall, Role::kAssistant, "input", kText, true},
    {"shell_call", Item::kCall, Role::kAssistant, "action", kAction, true},
    {"apply_patch_call", Item::kCall, Role::kAssistant, "operation", kAction,
     true},
    {"local_shell_call", Item::kCall, Role::kAssistant, "action", kAction},
    {"computer_call", Item::kCall, Role::kAssistant, "action", kAction},
    {"function_call_output", Item::kTextOutput, Role::kTool, "", kText, true},
    {"custom_tool_call_output", Item::kTextOutput, Role::kTool, "", kText,
     true},
    {"apply_patch_call_output", Item::kTextOutput, Role::kTool, "", kText,
     true},
    {"local_shell_call_output", Item::kTextOutput, Role::kTool},
    {"shell_call_output", Item::kShellOutput, Role::kTool, "", kText, true},
    {"computer_call_output", Item::kScreenshot, Role::kTool},
    {"tool_search_output", Item::kOther, Role::kTool},
    {"image_generation_call", Item::kPicture, Role::kAssistant},
    {"mcp_list_tools", Item::kOther, Role::kAssistant},
    {"mcp_approval_request", Item::kOther, Role::kAssistant},
    {"program", Item::kOther, Role::kAssistant},
    {"program_output", Item::kOther, Role::kAssistant},
    {"additional_tools", Item::kOther, Role::kSystem},
    {"configuration_update", Item::kOther, Role::kSystem},
};

constexpr ItemRule kUnknown = {};
constexpr ItemRule kUnknownCall = {"", Item::kOther, Role::kAssistant};

struct RoleRule {
  absl::string_view name;
  Role role = Role::kUser;
};

constexpr RoleRule kRoles[] = {
    {"user", Role::kUser},
    {"assistant", Role::kAssistant},
    {"system", Role::kSystem},
    {"developer", Role::kSystem},
};

struct PartRule {
  absl::string_view type;
  absl::string_view text;  // The member that holds it.
};

// Parts that are text, in messages, outputs and reasoning.
constexpr PartRule kTextParts[] = {
    {"input_text", "text"},   {"output_text", "text"},
    {"text", "text"},         {"refusal", "refusal"},
    {"summary_text", "text"}, {"reasoning_text", "text"},
};

const ItemRule& RuleOf(const json::Value& root) {
  const json::Value type = root["type"];
  for (const ItemRule& rule : kItems) {
    if (type.equals(rule.type)) return rule;
  }
  if (IsAbsentOrNull(type) && root["role"].exists()) return kItems[0];
  return absl::EndsWith(type.string(), "_call") ? kUnknownCall : kUnknown;
}

// What a string or a list of parts holds.
struct Measure {
  std::int64_t token_count = 0;
  std::int64_t line_count = 0;
  std::int64_t image_count = 0;
  std::int64_t document_count = 0;
};

void AddPart(const json::Value& part, const TokenCounter& counter,
             Measure& measure) {
  const json::Value type = part["type"];
  for (const PartRule& rule : kTextParts) {
    if (!type.equals(rule.type)) continue;
    measure.token_count += StringTokens(part[rule.text], counter);
    measure.line_count += LineCount(part[rule.text]);
    return;
  }
  if (type.equals("input_image") || type.equals("computer_screenshot")) {
    ++measure.image_count;
    measure.token_count +=
        part["detail"].equals("low")
            ? kOpenaiLowDetailTokens
            : ImageTokens(part["image_url"], ImageFormula::kOpenai, counter);
  } else if (type.equals("input_file")) {
    ++measure.document_count;
    measure.token_count +=
        ImageTokens(part["file_data"], ImageFormula::kOpenai, counter);
  } else if (type.equals("input_audio")) {
    measure.token_count += MediaTokens(part["input_audio"]["data"]);
  } else {
    measure.token_count += JsonTokens(part, counter);
  }
}

// Measures `root[name]`, a string or a list of parts.
absl::StatusOr<Measure> MeasureAt(const json::Value& root,
                                  absl::string_view name,
                                  const TokenCounter& counter) {
  const json::Value content = root[name];
  Measure measure;
  if (content.is_string()) {
    measure.token_count = StringTokens(content, counter);
    measure.line_count = LineCount(content);
    return measure;
  }
  if (!content.is_array()) {
    return InvalidMessage(name, "expected a string or an array");
  }
  std::size_t index = 0;
  for (const json::Value& part : content.children()) {
    if (!part.is_object()) {
      return InvalidMessage(absl::StrCat(name, "[", index, "]"),
                            "expected an object");
    }
    AddPart(part, counter, measure);
    ++index;
  }
  return measure;
}

// One pass over an item.
class Scan {
 public:
  Scan(const json::Value& root, const TokenCounter& counter)
      : root_(root), rule_(RuleOf(root)), counter_(counter) {
    message_.role = rule_.role;
    message_.part_count = 1;
  }

  absl::StatusOr<ParsedMessage> Run() {
    CLERESTORY_RETURN_IF_ERROR(Add());
    return std::move(message_);
  }

 private:
  absl::Status Add() {
    switch (rule_.item) {
      case Item::kMessage:
        return AddMessage();
      case Item::kReasoning:
        return AddReasoning();
      case Item::kCall:
        return AddCall();
      case Item::kTextOutput:
        return AddResult(&Scan::MeasureText);
      case Item::kShellOutput:
        return AddResult(&Scan::MeasureShell);
      case Item::kScreenshot:
        return AddResult(&Scan::MeasureScreenshot);
      case Item::kPicture:
        ++message_.image_count;
        own_tokens() +=
            ImageTokens(root_["result"], ImageFormula::kOpenai, counter_);
        return absl::OkStatus();
      case Item::kOther:
        break;
    }
    // A reference to an item may stand without a type.
    if (IsAbsentOrNull(root_["type"]) && !root_["id"].is_string()) {
      return InvalidMessage("type", "missing");
    }
    own_tokens() += JsonTokens(root_, counter_);
    return absl::OkStatus();
  }

  // Where the item's own text counts.
  std::int64_t& own_tokens() {
    if (message_.role == Role::kTool) return message_.tokens.observations;
    return message_.role == Role::kAssistant ? message_.tokens.assistant
                                             : message_.tokens.user;
  }

  absl::Status AddMessage() {
    bool found = false;
    for (const RoleRule& rule : kRoles) {
      if (!root_["role"].equals(rule.name)) continue;
      message_.role = rule.role;
      found = true;
    }
    if (!found) {
      return InvalidMessage("role",
                            "expected user, assistant, system or developer");
    }
    CLERESTORY_ASSIGN_OR_RETURN(const Measure measure,
                                MeasureAt(root_, "content", counter_));
    own_tokens() += measure.token_count;
    message_.image_count = measure.image_count;
    return absl::OkStatus();
  }

  absl::Status AddReasoning() {
    const json::Value encrypted = root_["encrypted_content"];
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(root_, "encrypted_content", "", json::Kind::kString));
    // A compaction is no reasoning, and nothing that could be left out.
    message_.has_thinking =
        rule_.type == "reasoning" &&
        (!encrypted.string().empty() || !root_["id"].string().empty());
    own_tokens() += OpaqueTokens(encrypted);
    for (const absl::string_view name : {"summary", "content"}) {
      if (IsAbsentOrNull(root_[name])) continue;
      CLERESTORY_ASSIGN_OR_RETURN(const Measure measure,
                                  MeasureAt(root_, name, counter_));
      own_tokens() += measure.token_count;
    }
    if (message_.has_thinking) {
      // It stays: the item that follows it requires it, and the provider drops
      // it by itself.
      message_.reasoning.push_back({.element = ToByteSpan(root_.span()),
                                    .token_count = message_.tokens.total()});
    }
    return absl::OkStatus();
  }

  absl::Status AddCall() {
    ParsedCall call;
    CLERESTORY_ASSIGN_OR_RETURN(
        call.id, RequiredString(root_, "call_id", "", kCallIdBytesMax));
    // Tools that the API defines have no name but the item's.
    if (rule_.kind == kText || !IsAbsentOrNull(root_["name"])) {
      CLERESTORY_ASSIGN_OR_RETURN(
          call.tool, RequiredString(root_, "name", "", kToolNameBytesMax));
    } else {
      call.tool = std::string(absl::StripSuffix(rule_.type, "_call"));
    }
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(root_, rule_.arguments, "", rule_.kind));
    const json::Value arguments = root_[rule_.arguments];
    // Of the others none is JSON in a string or free to be changed.
    if (rule_.arguments == "arguments" && arguments.is_string()) {
      call.arguments = ToByteSpan(arguments.span());
    }
    call.element = ToByteSpan(root_.span());
    call.is_removable = rule_.is_removable && !IsHeld(root_);
    call.token_count =
        counter_.CountText(call.tool, TextForm::kPlain) +
        (arguments.is_string() ? StringTokens(arguments, counter_)
                               : JsonTokens(arguments, counter_));
    message_.tokens.calls = call.token_count;
    message_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  absl::Status AddResult(absl::Status (Scan::*measure)(ParsedResult&) const) {
    ParsedResult result;
    // That of the local shell is called after the item.
    const bool by_item = rule_.type == "local_shell_call_output" &&
                         IsAbsentOrNull(root_["call_id"]);
    CLERESTORY_ASSIGN_OR_RETURN(
        result.call_id,
        RequiredString(root_, by_item ? "id" : "call_id", "", kCallIdBytesMax));
    result.element = ToByteSpan(root_.span());
    result.is_removable = rule_.is_removable && !IsHeld(root_);
    CLERESTORY_RETURN_IF_ERROR((this->*measure)(result));
    message_.tokens.observations = result.token_count;
    message_.results.push_back(std::move(result));
    return absl::OkStatus();
  }

  absl::Status MeasureText(ParsedResult& result) const {
    const json::Value output = root_["output"];
    if (rule_.type == "apply_patch_call_output") {
      result.is_error = root_["status"].equals("failed");
      if (IsAbsentOrNull(output)) return absl::OkStatus();
    }
    CLERESTORY_ASSIGN_OR_RETURN(const Measure measure,
                                MeasureAt(root_, "output", counter_));
    result.content = ToByteSpan(output.span());
    result.maskable = output.is_string() ? output.span().size > 2
                                         : !output.children().empty();
    result.token_count = measure.token_count;
    result.line_count = measure.line_count;
    result.image_count = measure.image_count;
    result.document_count = measure.document_count;
    return absl::OkStatus();
  }

  absl::Status MeasureShell(ParsedResult& result) const {
    return MeasureShellOutput(root_["output"], counter_, result);
  }

  absl::Status MeasureScreenshot(ParsedResult& result) const {
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(root_, "output", "", json::Kind::kObject));
    Measure measure;
    if (root_["output"].is_object()) {
      AddPart(root_["output"], counter_, measure);
    }
    result.token_count = measure.token_count;
    result.image_count = measure.image_count;
    return absl::OkStatus();
  }

  const json::Value root_;
  const ItemRule& rule_;
  const TokenCounter& counter_;
  ParsedMessage message_;
};

// Down to input[].content[].input_audio.data.
constexpr int kTreeDepth = 5;

}  // namespace

absl::StatusOr<ParsedMessage> OpenaiResponses::Parse(
    absl::string_view message, const TokenCounter& counter) const {
  CLERESTORY_ASSIGN_OR_RETURN(const json::Document document,
                              ParseObject(message, kTreeDepth));
  return Scan(document.root(), counter).Run();
}

std::vector<Replacement> OpenaiResponses::Mask(
    absl::string_view message, const ParsedResult& result,
    absl::string_view placeholder) const {
  const std::string text = json::Quote(placeholder);
  if (message[result.content.offset] == '"') {
    return {{.at = result.content, .value = text}};
  }
  const absl::StatusOr<json::Document> document =
      ParseObject(message, kTreeDepth);
  CLERESTORY_CHECK(document.ok());
  if (RuleOf(document->root()).item == Item::kShellOutput) {
    return MaskShellOutput(document->root()["output"], placeholder);
  }
  return {{.at = result.content, .value = text}};
}

}  // namespace clerestory
