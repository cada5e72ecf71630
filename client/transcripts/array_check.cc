// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/array_check.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/json/document.h"

namespace clerestory {
namespace {

bool IsText(const json::Value& value) {
  return value.is_string() || value.is_array();
}

std::string BlockFault(const json::Value& block) {
  if (!block["type"].is_string()) return "a block without a type";
  if (block["type"].equals("tool_use") &&
      (!block["id"].is_string() || !block["name"].is_string() ||
       !block["input"].is_object())) {
    return "a tool_use block without id, name or input";
  }
  if (block["type"].equals("tool_result") &&
      !block["tool_use_id"].is_string()) {
    return "a tool_result block without tool_use_id";
  }
  return "";
}

bool IsFunctionCall(const json::Value& function) {
  return function["name"].is_string() && function["arguments"].is_string();
}

bool IsChatCall(const json::Value& call) {
  const json::Value custom = call["custom"];
  return call["id"].is_string() &&
         (IsFunctionCall(call["function"]) ||
          (custom["name"].is_string() && custom["input"].is_string()));
}

std::string ChatAnswerFault(const json::Value& message) {
  const std::vector<json::Value> calls = message["tool_calls"].children();
  for (const json::Value& call : calls) {
    if (!IsChatCall(call)) return "a tool call without id, name or arguments";
  }
  return IsText(message["content"]) || !calls.empty() ||
                 IsFunctionCall(message["function_call"])
             ? ""
             : "an assistant message without content";
}

// The calls that wait for a result, and what is wrong with those that do not
// get one.
class OpenCalls {
 public:
  explicit OpenCalls(std::vector<ReadIssue>& issues) : issues_(issues) {}

  void Add(const json::Value& id, std::int64_t line) {
    ids_.insert(id.string());
    line_ = line;
    any_answered_ = false;
  }

  void Answer(const json::Value& id, std::int64_t line) {
    any_answered_ = true;
    if (ids_.erase(id.string()) == 0) {
      issues_.push_back({line, absl::StrCat("a result for ", id.string(),
                                            ", which is no open call")});
    }
  }

  // Something else is said: calls that are open now are never answered.
  void Close() {
    for (const std::string& id : ids_) {
      issues_.push_back({line_, absl::StrCat("call ", id, " has no result")});
    }
    ids_.clear();
  }

  // The history ends: calls of its last message may be open.
  void End() {
    if (any_answered_) Close();
  }

 private:
  std::vector<ReadIssue>& issues_;
  std::set<std::string> ids_;
  std::int64_t line_ = 0;
  bool any_answered_ = false;
};

bool IsBlank(const json::Value& text) {
  return text.is_string() && absl::StripAsciiWhitespace(text.string()).empty();
}

}  // namespace

std::string AnthropicFault(const json::Value& message) {
  const json::Value role = message["role"];
  if (!role.equals("user") && !role.equals("assistant") &&
      !role.equals("system")) {
    return "not a message of Anthropic's format";
  }
  const json::Value content = message["content"];
  if (!IsText(content)) return "a message without content";
  if (content.is_string()) return "";
  for (const json::Value& block : content.children()) {
    if (std::string fault = BlockFault(block); !fault.empty()) return fault;
  }
  return "";
}

std::string ChatFault(const json::Value& message) {
  const json::Value role = message["role"];
  if (role.equals("assistant")) return ChatAnswerFault(message);
  if (role.equals("tool")) {
    return message["tool_call_id"].is_string() && IsText(message["content"])
               ? ""
               : "a tool message without tool_call_id or content";
  }
  if (!role.equals("user") && !role.equals("system") &&
      !role.equals("developer") && !role.equals("function")) {
    return "not a message of the Chat Completions format";
  }
  return IsText(message["content"]) ? "" : "a message without content";
}

void CheckAnthropicPairs(const std::vector<ArrayMessage>& messages,
                         std::vector<ReadIssue>& issues) {
  OpenCalls open(issues);
  for (const ArrayMessage& message : messages) {
    const json::Value content = message.value["content"];
    const bool is_user = message.value["role"].equals("user");
    if (!is_user) open.Close();
    std::int64_t blank_count = IsBlank(content) ? 1 : 0;
    bool other_seen = false;
    for (const json::Value& block : content.children()) {
      if (block["type"].equals("tool_result")) {
        if (other_seen) {
          issues.push_back({message.line, "a result behind other blocks"});
        }
        open.Answer(block["tool_use_id"], message.line);
        continue;
      }
      other_seen = true;
      if (block["type"].equals("tool_use")) {
        open.Add(block["id"], message.line);
      } else if (block["type"].equals("text") && IsBlank(block["text"])) {
        ++blank_count;
      }
    }
    if (is_user) open.Close();
    if (blank_count > 0) {
      issues.push_back({message.line, "a text without a word"});
    }
  }
  open.End();
}

void CheckChatPairs(const std::vector<ArrayMessage>& messages,
                    std::vector<ReadIssue>& issues) {
  OpenCalls open(issues);
  for (const ArrayMessage& message : messages) {
    if (message.value["role"].equals("tool")) {
      open.Answer(message.value["tool_call_id"], message.line);
      continue;
    }
    open.Close();
    for (const json::Value& call : message.value["tool_calls"].children()) {
      open.Add(call["id"], message.line);
    }
  }
  open.End();
}

}  // namespace clerestory
