// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "tests/support/history_rules.h"

namespace clerestory {
namespace {

constexpr int kMarksMax = 4;

constexpr std::array<absl::string_view, 6> kResultPartTypes = {
    "text",          "image",          "document",
    "search_result", "tool_reference", "browser_state"};

absl::Status CheckText(const json::Value& text, absl::string_view path) {
  if (!text.is_string()) return Refused(path, "text is no string");
  if (IsBlank(text.string())) {
    return Refused(path,
                   "text content blocks must contain non-whitespace text");
  }
  return absl::OkStatus();
}

// The rules of Anthropic's Messages API. Messages in a row with one role are
// one turn.
class AnthropicRules final : public HistoryRules {
 public:
  absl::Status Add(const json::Value& message, std::size_t index) override {
    const std::string path = MessagePath(index);
    const std::string role = message["role"].string();
    const json::Value content = message["content"];
    if (role == "system") return AddSystem(message, index, path);
    if (role != "user" && role != "assistant") return Refused(path, "role");
    if (role != role_) CLERESTORY_RETURN_IF_ERROR(EndTurn(role, path));
    if (content.is_string()) {
      CLERESTORY_RETURN_IF_ERROR(EndResults(path));
      return CheckText(content, path);
    }
    if (!content.is_array() || content.children().empty()) {
      return Refused(path, "content is neither a string nor blocks");
    }
    std::size_t at = 0;
    for (const json::Value& block : content.children()) {
      const std::string block_path = absl::StrCat(path, ".content.", at++);
      CLERESTORY_RETURN_IF_ERROR(CountMark(block, block_path));
      CLERESTORY_RETURN_IF_ERROR(AddBlock(block, block_path));
    }
    return absl::OkStatus();
  }

  absl::Status End() const override {
    if (role_ == "assistant" && !calls_.empty()) {
      return Unanswered("messages", *calls_.begin());
    }
    return CheckAnswered("messages");
  }

 private:
  static absl::Status Unanswered(absl::string_view path, absl::string_view id) {
    return Refused(path, absl::StrCat("`tool_use` ids were found without "
                                      "`tool_result` blocks immediately after"
                                      ": ",
                                      id));
  }

  absl::Status AddSystem(const json::Value& message, std::size_t index,
                         absl::string_view path) {
    const json::Value content = message["content"];
    if (index == 0) return Refused(path, "a system message comes first");
    if ((role_ == "assistant" && !calls_.empty()) ||
        (role_ == "user" && !unanswered_.empty())) {
      return Refused(path, "a system message between a call and its result");
    }
    if (role_ == "assistant" && !ends_in_server_result_) {
      return Refused(path, "a system message follows a user turn");
    }
    results_ended_ = true;
    if (content.is_string()) return CheckText(content, path);
    if (!content.is_array() || content.children().empty()) {
      return Refused(path, "content");
    }
    for (const json::Value& block : content.children()) {
      CLERESTORY_RETURN_IF_ERROR(CountMark(block, path));
      if (message["clear_at"].exists() &&
          (!block["type"].equals("text") || block["cache_control"].exists())) {
        return Refused(path, "clear_at allows text without cache_control");
      }
      if (block["type"].equals("text")) {
        CLERESTORY_RETURN_IF_ERROR(CheckText(block["text"], path));
      }
    }
    return absl::OkStatus();
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
    ends_in_server_result_ = false;
    return absl::OkStatus();
  }

  // A server's tool may run on while the client's calls of its turn wait.
  absl::Status CheckAnswered(absl::string_view path) const {
    if (role_ == "user" && !unanswered_.empty()) {
      return Unanswered(path, *unanswered_.begin());
    }
    if (role_ == "assistant" && calls_.empty() && !server_calls_.empty()) {
      const auto& [id, name] = *server_calls_.begin();
      return Refused(path, absl::StrCat(name, " tool use with id ", id,
                                        " was found without a corresponding "
                                        "result block"));
    }
    return absl::OkStatus();
  }

  // What comes now is no result.
  absl::Status EndResults(absl::string_view path) {
    results_ended_ = true;
    ends_in_server_result_ = false;
    if (role_ == "user" && !server_calls_.empty()) {
      return Refused(path, "only tool_result blocks while a server tool runs");
    }
    return absl::OkStatus();
  }

  absl::Status CountMark(const json::Value& block, absl::string_view path) {
    const json::Value mark = block["cache_control"];
    if (!mark.is_object()) return absl::OkStatus();
    if (!mark["type"].equals("ephemeral"))
      return Refused(path, "cache_control");
    const std::string type = block["type"].string();
    if (type == "thinking" || type == "redacted_thinking") {
      return Refused(path, "cache_control of thinking");
    }
    if (++mark_count_ > kMarksMax) {
      return Refused(path, absl::StrCat("A maximum of 4 blocks with "
                                        "cache_control may be provided. Found ",
                                        mark_count_));
    }
    return absl::OkStatus();
  }

  absl::Status AddBlock(const json::Value& block, absl::string_view path) {
    const std::string type = block["type"].string();
    if (type.empty()) return Refused(path, "no type");
    if (type == "tool_result") return AddResult(block, path);
    CLERESTORY_RETURN_IF_ERROR(EndResults(path));
    if (type == "text") return CheckText(block["text"], path);
    if (type == "tool_use") return AddCall(block, path);
    if (type == "server_tool_use" || type == "mcp_tool_use") {
      if (role_ != "assistant") return Refused(path, type);
      if (!HasText(block["id"])) return Refused(path, "id");
      server_calls_[block["id"].string()] =
          type == "mcp_tool_use" ? "mcp" : block["name"].string();
    } else if (absl::EndsWith(type, "_tool_result")) {
      return AddServerResult(block, type, path);
    } else if (type == "image" || type == "document") {
      if (!block["source"].is_object()) return Refused(path, "source");
      if (role_ != "user") return Refused(path, type);
    } else if (type == "compaction") {
      return CheckText(block["content"], path);
    } else if (type == "thinking" || type == "redacted_thinking") {
      return CheckThinking(block, type, path);
    }
    return absl::OkStatus();
  }

  absl::Status CheckThinking(const json::Value& block, absl::string_view type,
                             absl::string_view path) const {
    if (role_ != "assistant") return Refused(path, type);
    if (type == "redacted_thinking") {
      return HasText(block["data"]) ? absl::OkStatus() : Refused(path, "data");
    }
    if (!block["thinking"].is_string()) return Refused(path, "thinking");
    if (!block["signature"].is_string()) {
      return Refused(path, "thinking without a signature");
    }
    return absl::OkStatus();
  }

  absl::Status AddServerResult(const json::Value& block, absl::string_view type,
                               absl::string_view path) {
    if (role_ != "assistant") return Refused(path, type);
    const auto call = server_calls_.find(block["tool_use_id"].string());
    if (call == server_calls_.end() ||
        !absl::StartsWith(call->second,
                          absl::StripSuffix(type, "_tool_result"))) {
      return Refused(path,
                     "must have a corresponding `server_tool_use` block "
                     "before it");
    }
    if (!block["content"].exists()) return Refused(path, "content");
    server_calls_.erase(call);
    ends_in_server_result_ = true;
    return absl::OkStatus();
  }

  absl::Status AddCall(const json::Value& block, absl::string_view path) {
    if (role_ != "assistant") return Refused(path, "tool_use of the user");
    if (!HasText(block["name"]) || !block["input"].is_object()) {
      return Refused(path, "tool_use without name or input");
    }
    const std::string id = block["id"].string();
    if (id.empty()) return Refused(path, "tool_use without id");
    if (!calls_.insert(id).second) {
      return Refused(path, absl::StrCat("`tool_use` ids must be unique: ", id));
    }
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& block, absl::string_view path) {
    if (role_ != "user") return Refused(path, "tool_result of the assistant");
    if (results_ended_) return Refused(path, "results must come first");
    const std::string id = block["tool_use_id"].string();
    if (!calls_.contains(id)) {
      return Refused(path, absl::StrCat("unexpected `tool_use_id` found in "
                                        "`tool_result` blocks: ",
                                        id));
    }
    if (unanswered_.erase(id) == 0) {
      return Refused(path, "each tool_use must have a single result");
    }
    const json::Value content = block["content"];
    if (!content.exists() || content.is_string()) return absl::OkStatus();
    if (!content.is_array()) return Refused(path, "content");
    return CheckParts(content.children(), path);
  }

  absl::Status CheckParts(const std::vector<json::Value>& parts,
                          absl::string_view path) {
    std::size_t searches = 0;
    std::size_t states = 0;
    for (const json::Value& part : parts) {
      const std::string type = part["type"].string();
      if (std::find(kResultPartTypes.begin(), kResultPartTypes.end(), type) ==
          kResultPartTypes.end()) {
        return Refused(path, absl::StrCat("a result of type: ", type));
      }
      CLERESTORY_RETURN_IF_ERROR(CountMark(part, path));
      if (type == "text") {
        CLERESTORY_RETURN_IF_ERROR(CheckText(part["text"], path));
      }
      if ((type == "image" || type == "document") &&
          !part["source"].is_object()) {
        return Refused(path, "source");
      }
      if (type == "tool_reference" && !HasText(part["tool_name"])) {
        return Refused(path, "tool_name");
      }
      if (type == "search_result") ++searches;
      if (type == "browser_state") ++states;
    }
    if (searches != 0 && searches != parts.size()) {
      return Refused(path, "search results stand alone");
    }
    if (states != 0 && parts.size() != 1) {
      return Refused(path, "a browser_state stands alone");
    }
    return absl::OkStatus();
  }

  std::string role_;  // Of the turn.
  bool results_ended_ = false;
  bool ends_in_server_result_ = false;
  int mark_count_ = 0;
  std::set<std::string> calls_;  // Of the last assistant turn.
  std::set<std::string> unanswered_;
  std::map<std::string, std::string> server_calls_;  // Their tools by id.
};

}  // namespace

std::unique_ptr<HistoryRules> NewAnthropicRules() {
  return std::make_unique<AnthropicRules>();
}

}  // namespace clerestory
