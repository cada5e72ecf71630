// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/valid_history.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

absl::Status Refused(absl::string_view path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

std::string MessagePath(std::size_t index) {
  return absl::StrCat("messages.", index);
}

absl::Status CheckText(const json::Value& text, absl::string_view path) {
  if (!text.is_string()) return Refused(path, "text is no string");
  if (text.string().find_first_not_of(" \t\r\n") == std::string::npos) {
    return Refused(path, "text must contain non-whitespace text");
  }
  return absl::OkStatus();
}

// The rules of Anthropic's Messages API. Messages in a row with one role are
// one turn.
class AnthropicRules {
 public:
  absl::Status Add(const json::Value& message, std::size_t index) {
    const std::string path = MessagePath(index);
    const std::string role = message["role"].string();
    const json::Value content = message["content"];
    if (role == "system") return CheckSystem(content, index, path);
    if (role != "user" && role != "assistant") return Refused(path, "role");
    if (role != role_) CLERESTORY_RETURN_IF_ERROR(EndTurn(role, path));
    if (content.is_string()) {
      results_ended_ = true;
      return CheckText(content, path);
    }
    if (!content.is_array() || content.children().empty()) {
      return Refused(path, "content is neither a string nor blocks");
    }
    std::size_t at = 0;
    for (const json::Value& block : content.children()) {
      CLERESTORY_RETURN_IF_ERROR(
          AddBlock(block, absl::StrCat(path, ".content.", at++)));
    }
    return absl::OkStatus();
  }

  absl::Status End() const {
    if (role_ == "assistant" && !calls_.empty()) {
      return Refused("messages", "tool_use ids without tool_result at the end");
    }
    return CheckAnswered("messages");
  }

 private:
  absl::Status CheckSystem(const json::Value& content, std::size_t index,
                           absl::string_view path) const {
    if (index == 0) return Refused(path, "a system message comes first");
    if (role_ == "assistant" && !calls_.empty()) {
      return Refused(path, "a system message between a call and its result");
    }
    if (content.is_string()) return CheckText(content, path);
    return content.is_array() ? absl::OkStatus() : Refused(path, "content");
  }

  // The next message begins a turn of `role`.
  absl::Status EndTurn(absl::string_view role, absl::string_view path) {
    CLERESTORY_RETURN_IF_ERROR(CheckAnswered(path));
    if (role == "assistant") {
      calls_.clear();
    } else {
      unanswered_ = calls_;
    }
    role_ = std::string(role);
    results_ended_ = false;
    server_calls_.clear();
    return absl::OkStatus();
  }

  absl::Status CheckAnswered(absl::string_view path) const {
    if (role_ == "user" && !unanswered_.empty()) {
      return Refused(path, absl::StrCat("tool_use ids without tool_result: ",
                                        *unanswered_.begin()));
    }
    if (role_ == "assistant" && !server_calls_.empty()) {
      return Refused(path, absl::StrCat("server_tool_use without its result: ",
                                        *server_calls_.begin()));
    }
    return absl::OkStatus();
  }

  absl::Status AddBlock(const json::Value& block, absl::string_view path) {
    const std::string type = block["type"].string();
    if (type.empty()) return Refused(path, "no type");
    if (type == "tool_result") return AddResult(block, path);
    results_ended_ = true;
    if (type == "text") return CheckText(block["text"], path);
    if (type == "tool_use") return AddCall(block, path);
    if (type == "server_tool_use" || type == "mcp_tool_use") {
      server_calls_.insert(block["id"].string());
    } else if (absl::EndsWith(type, "_tool_result") &&
               server_calls_.erase(block["tool_use_id"].string()) == 0) {
      return Refused(path, "a server tool's result without its call");
    }
    const bool thinks = type == "thinking" || type == "redacted_thinking";
    if (thinks && role_ != "assistant") return Refused(path, type);
    if (type == "thinking" && !block["signature"].is_string()) {
      return Refused(path, "thinking without a signature");
    }
    return absl::OkStatus();
  }

  absl::Status AddCall(const json::Value& block, absl::string_view path) {
    if (role_ != "assistant") return Refused(path, "tool_use of the user");
    if (block["name"].string().empty() || !block["input"].is_object()) {
      return Refused(path, "tool_use without name or input");
    }
    const std::string id = block["id"].string();
    if (id.empty()) return Refused(path, "tool_use without id");
    if (!calls_.insert(id).second) {
      return Refused(path, absl::StrCat("tool_use ids must be unique: ", id));
    }
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& block, absl::string_view path) {
    if (role_ != "user") return Refused(path, "tool_result of the assistant");
    if (results_ended_) return Refused(path, "results must come first");
    const std::string id = block["tool_use_id"].string();
    if (!calls_.contains(id)) {
      return Refused(path, absl::StrCat("unexpected tool_use_id: ", id));
    }
    if (unanswered_.erase(id) == 0) {
      return Refused(path, "each tool_use must have a single result");
    }
    const json::Value content = block["content"];
    if (!content.exists() || content.is_string()) return absl::OkStatus();
    if (!content.is_array()) return Refused(path, "content");
    std::size_t searches = 0;
    for (const json::Value& part : content.children()) {
      const std::string type = part["type"].string();
      if (type.empty()) return Refused(path, "content without type");
      if (type == "text") {
        CLERESTORY_RETURN_IF_ERROR(CheckText(part["text"], path));
      }
      if (type == "search_result") ++searches;
    }
    if (searches != 0 && searches != content.children().size()) {
      return Refused(path, "search results stand alone");
    }
    return absl::OkStatus();
  }

  std::string role_;  // Of the turn.
  bool results_ended_ = false;
  std::set<std::string> calls_;  // Of the last assistant turn.
  std::set<std::string> unanswered_;
  std::set<std::string> server_calls_;
};

// The rules of OpenAI's Chat Completions.
class ChatRules {
 public:
  absl::Status Add(const json::Value& message, std::size_t index) {
    const std::string path = MessagePath(index);
    const std::string role = message["role"].string();
    const json::Value content = message["content"];
    if (role == "tool") return AddResult(message, path);
    if (role == "function") {
      if (message["name"].string() != function_ || function_.empty()) {
        return Refused(path, "a function result without its call");
      }
      function_.clear();
      return content.is_string() ? absl::OkStatus() : Refused(path, "content");
    }
    CLERESTORY_RETURN_IF_ERROR(CheckAnswered(path));
    answered_.clear();
    if (role == "assistant") return AddAssistant(message, path);
    if (role != "user" && role != "system" && role != "developer") {
      return Refused(path, "role");
    }
    if (content.is_string()) return absl::OkStatus();
    return CheckParts(content, path);
  }

  absl::Status End() const { return CheckAnswered("messages"); }

 private:
  absl::Status CheckAnswered(absl::string_view path) const {
    if (!unanswered_.empty()) {
      return Refused(path, absl::StrCat("tool_call_ids without response: ",
                                        *unanswered_.begin()));
    }
    if (!function_.empty()) return Refused(path, "function_call unanswered");
    return absl::OkStatus();
  }

  static absl::Status CheckParts(const json::Value& content,
                                 absl::string_view path) {
    if (!content.is_array() || content.children().empty()) {
      return Refused(path, "content is neither a string nor parts");
    }
    for (const json::Value& part : content.children()) {
      if (part["type"].string().empty()) return Refused(path, "part type");
      if (part["type"].equals("text") && !part["text"].is_string()) {
        return Refused(path, "a text part without text");
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddAssistant(const json::Value& message,
                            absl::string_view path) {
    const json::Value calls = message["tool_calls"];
    if (calls.is_array() && calls.children().empty()) {
      return Refused(path, "tool_calls is empty");
    }
    for (const json::Value& call : calls.children()) {
      const bool custom = call["type"].equals("custom");
      const json::Value body = call[custom ? "custom" : "function"];
      if (body["name"].string().empty() ||
          !body[custom ? "input" : "arguments"].is_string()) {
        return Refused(path, "a call without name or arguments");
      }
      const std::string id = call["id"].string();
      if (id.empty() || !unanswered_.insert(id).second) {
        return Refused(path, absl::StrCat("call id missing or repeated: ", id));
      }
    }
    function_ = message["function_call"]["name"].string();
    const bool speaks =
        message["content"].is_string() || message["content"].is_array();
    if (!speaks && unanswered_.empty() && function_.empty() &&
        !message["refusal"].is_string()) {
      return Refused(path, "an assistant message with nothing in it");
    }
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& message, absl::string_view path) {
    const std::string id = message["tool_call_id"].string();
    if (answered_.contains(id)) return Refused(path, "answered before");
    if (unanswered_.erase(id) == 0) {
      return Refused(path, "a response to no preceding tool_calls");
    }
    answered_.insert(id);
    const json::Value content = message["content"];
    if (content.is_string()) return absl::OkStatus();
    CLERESTORY_RETURN_IF_ERROR(CheckParts(content, path));
    for (const json::Value& part : content.children()) {
      if (!part["type"].equals("text")) return Refused(path, "not a text part");
    }
    return absl::OkStatus();
  }

  std::set<std::string> unanswered_;  // Of the last assistant message.
  std::set<std::string> answered_;
  std::string function_;
};

template <typename Rules>
absl::Status Check(Rules rules, const std::vector<std::string>& messages) {
  if (messages.empty()) return Refused("messages", "at least one is required");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(messages[i], {.tree_depth = 8});
    if (!document.ok()) {
      return Refused(MessagePath(i), document.status().message());
    }
    if (!document->root().is_object()) return Refused(MessagePath(i), "object");
    CLERESTORY_RETURN_IF_ERROR(rules.Add(document->root(), i));
  }
  return rules.End();
}

}  // namespace

absl::Status CheckValidHistory(Format format,
                               const std::vector<std::string>& messages) {
  if (format == Format::kAnthropicMessages) {
    return Check(AnthropicRules(), messages);
  }
  return Check(ChatRules(), messages);
}

}  // namespace clerestory
