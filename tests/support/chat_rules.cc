// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "tests/support/history_rules.h"

namespace clerestory {
namespace {

// The rules of OpenAI's Chat Completions.
class ChatRules final : public HistoryRules {
 public:
  absl::Status Add(const json::Value& message, std::size_t index) override {
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

  absl::Status End() const override { return CheckAnswered("messages"); }

 private:
  absl::Status CheckAnswered(absl::string_view path) const {
    if (!unanswered_.empty()) {
      return Refused(
          path,
          absl::StrCat(
              "An assistant message with 'tool_calls' must be followed by tool "
              "messages responding to each 'tool_call_id'. The following "
              "tool_call_ids did not have response messages: ",
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
      return Refused(path,
                     "messages with role 'tool' must be a response to a "
                     "preceeding message "
                     "with 'tool_calls'");
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

}  // namespace

std::unique_ptr<HistoryRules> NewChatRules() {
  return std::make_unique<ChatRules>();
}

}  // namespace clerestory
