// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/history_checker.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

bool HasWord(const json::Value& text) {
  return text.string().find_first_not_of(" \t\r\n\f\v") != std::string::npos;
}

class AnthropicRules {
 public:
  explicit AnthropicRules(bool blank_is_valid)
      : blank_is_valid_(blank_is_valid) {}

  std::string Next(const json::Value& message) {
    const json::Value content = message["content"];
    is_user_ = message["role"].equals("user");
    if (!is_user_ && !message["role"].equals("assistant")) return "role";
    asked_ = std::move(calls_);
    calls_.clear();
    answered_.clear();
    results_over_ = false;
    std::string fault;
    for (const json::Value& block : content.children()) {
      fault = Block(block);
      if (!fault.empty()) return fault;
    }
    if (answered_ != asked_) return "call without result";
    if (content.is_string()) return Text(content);
    if (!content.is_array() || content.children().empty()) return "no content";
    return !is_user_ && content.children().back()["type"].equals("thinking")
               ? "ends in thinking"
               : "";
  }

 private:
  std::string Block(const json::Value& block) {
    const json::Value type = block["type"];
    if (!type.is_string()) return "block without type";
    if (type.equals("tool_result")) {
      return Result(block["tool_use_id"].string());
    }
    results_over_ = true;
    if (type.equals("tool_use")) return Call(block);
    return type.equals("text") ? Text(block["text"]) : "";
  }

  std::string Result(const std::string& id) {
    if (!is_user_) return "result of an assistant";
    if (results_over_) return "result behind other blocks";
    if (!asked_.contains(id)) return absl::StrCat("orphan result ", id);
    return answered_.insert(id).second ? "" : "two results for a call";
  }

  std::string Call(const json::Value& block) {
    if (is_user_) return "call of a user";
    if (!block["input"].is_object()) return "call without input";
    return calls_.insert(block["id"].string()).second ? "" : "id twice";
  }

  std::string Text(const json::Value& text) const {
    return HasWord(text) || blank_is_valid_ ? "" : "blank text";
  }

  const bool blank_is_valid_;
  // Of the last message.
  std::set<std::string> calls_;
  // Of the message in hand.
  bool is_user_ = false;
  bool results_over_ = false;
  std::set<std::string> asked_;
  std::set<std::string> answered_;
};

class ChatRules {
 public:
  std::string Next(const json::Value& message) {
    const json::Value role = message["role"];
    const json::Value content = message["content"];
    const bool has_content = content.is_string() || content.is_array();
    if (role.equals("tool")) {
      partly_answered_ = true;
      if (!has_content) return "result without content";
      return calls_.erase(message["tool_call_id"].string()) == 1
                 ? ""
                 : "orphan result";
    }
    partly_answered_ = false;
    if (!calls_.empty()) return "call without result";
    if (role.equals("user") || role.equals("system")) {
      return has_content ? "" : "no content";
    }
    if (!role.equals("assistant")) return "role";
    const std::vector<json::Value> calls = message["tool_calls"].children();
    if (!has_content && calls.empty()) return "no content";
    for (const json::Value& call : calls) {
      const json::Value function = call["function"];
      if (!call["type"].equals("function")) return "call without type";
      if (function["name"].string().empty()) return "call without name";
      const std::string arguments = function["arguments"].string();
      if (!json::Document::Parse(arguments).ok()) return "arguments";
      if (!calls_.insert(call["id"].string()).second) return "id twice";
    }
    return "";
  }

  std::string End() const {
    return partly_answered_ && !calls_.empty() ? "call without result" : "";
  }

 private:
  std::set<std::string> calls_;
  bool partly_answered_ = false;
};

}  // namespace

std::string FaultOf(const Transcript& transcript, bool blank_is_valid) {
  AnthropicRules anthropic(blank_is_valid);
  ChatRules chat;
  for (std::size_t i = 0; i < transcript.messages.size(); ++i) {
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(transcript.messages[i].bytes);
    std::string fault = "not JSON";
    if (document.ok()) {
      fault = transcript.format == Format::kAnthropicMessages
                  ? anthropic.Next(document->root())
                  : chat.Next(document->root());
    }
    if (!fault.empty()) return absl::StrCat("message ", i, ": ", fault);
  }
  return chat.End();
}

HistoryCounts CountsOf(const std::vector<Transcript>& transcripts) {
  HistoryCounts counts;
  for (const Transcript& transcript : transcripts) {
    for (const TranscriptMessage& message : transcript.messages) {
      ++counts.messages;
      const absl::StatusOr<json::Document> document =
          json::Document::Parse(message.bytes);
      if (!document.ok()) continue;
      const json::Value root = document->root();
      if (root["role"].equals("assistant")) ++counts.answers;
      if (root["role"].equals("tool")) ++counts.results;
      counts.calls +=
          static_cast<std::int64_t>(root["tool_calls"].children().size());
      for (const json::Value& block : root["content"].children()) {
        if (block["type"].equals("tool_use")) ++counts.calls;
        if (block["type"].equals("tool_result")) ++counts.results;
      }
    }
  }
  return counts;
}

std::vector<std::string> BytesOf(const Transcript& transcript) {
  std::vector<std::string> bytes;
  bytes.reserve(transcript.messages.size());
  for (const TranscriptMessage& message : transcript.messages) {
    bytes.push_back(message.bytes);
  }
  return bytes;
}

std::string TextOf(const std::vector<ReadIssue>& issues) {
  return absl::StrJoin(issues, "; ",
                       [](std::string* out, const ReadIssue& issue) {
                         absl::StrAppend(out, issue.line, " ", issue.what);
                       });
}

}  // namespace clerestory
