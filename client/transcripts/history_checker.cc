// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/history_checker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

class Rules {
 public:
  Rules() = default;
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;
  virtual ~Rules() = default;

  // What is wrong with the next message, or "".
  virtual std::string Next(const json::Value& message) = 0;
  // What is wrong with the history if it ends here, or "".
  virtual std::string End() const { return ""; }
};

class AnthropicRules : public Rules {
 public:
  explicit AnthropicRules(bool blank_is_valid)
      : blank_is_valid_(blank_is_valid) {}

  std::string Next(const json::Value& message) override {
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

class ChatRules : public Rules {
 public:
  std::string Next(const json::Value& message) override {
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

  std::string End() const override {
    return partly_answered_ && !calls_.empty() ? "call without result" : "";
  }

 private:
  std::set<std::string> calls_;
  bool partly_answered_ = false;
};

// Of the Responses API: whose output each type of result is.
const std::map<std::string, std::set<std::string>>& CallsByResult() {
  static const std::map<std::string, std::set<std::string>> calls = {
      {"function_call_output", {"function_call", "local_shell_call"}},
      {"custom_tool_call_output", {"custom_tool_call"}},
      {"local_shell_call_output", {"local_shell_call"}},
      {"shell_call_output", {"shell_call"}},
      {"apply_patch_call_output", {"apply_patch_call"}},
      {"computer_call_output", {"computer_call"}},
      {"tool_search_output", {"tool_search_call"}}};
  return calls;
}

bool IsClientCall(const json::Value& item) {
  if (item["type"].equals("tool_search_call")) {
    return item["call_id"].is_string();
  }
  return std::ranges::any_of(CallsByResult(), [&](const auto& entry) {
    return entry.second.contains(item["type"].string());
  });
}

bool IsClientResult(const json::Value& item) {
  if (item["type"].equals("tool_search_output")) {
    return item["call_id"].is_string();
  }
  return CallsByResult().contains(item["type"].string());
}

class ResponsesRules : public Rules {
 public:
  std::string Next(const json::Value& item) override {
    ++count_;
    const std::string type = item["type"].string();
    const bool is_reasoning = type == "reasoning";
    const bool is_of_user =
        IsClientResult(item) ||
        (type == "message" && !item["role"].equals("assistant"));
    if (is_of_user && reasoning_waits_) return "reasoning without its item";
    reasoning_waits_ = is_reasoning;
    if (is_of_user) last_of_user_ = count_;
    if (IsClientResult(item)) return Result(type, item);
    if (IsClientCall(item)) return Call(type, item);
    if (type == "message") return Message(item);
    static const std::set<std::string> others = {
        "reasoning", "web_search_call", "image_generation_call",
        "tool_search_call", "tool_search_output"};
    if (!others.contains(type)) return absl::StrCat("type ", type);
    return is_reasoning && !item["summary"].is_array() ? "no summary" : "";
  }

  std::string End() const override {
    if (reasoning_waits_) return "reasoning without its item";
    for (const auto& [id, call] : open_) {
      if (call.at < last_of_user_) return "call without result";
    }
    return "";
  }

 private:
  struct Open {
    std::string type;
    std::int64_t at = 0;
  };

  static std::string Message(const json::Value& item) {
    const json::Value role = item["role"];
    const json::Value content = item["content"];
    if (!role.equals("user") && !role.equals("assistant") &&
        !role.equals("system") && !role.equals("developer")) {
      return "role";
    }
    for (const json::Value& part : content.children()) {
      if (!part["type"].is_string()) return "part without type";
    }
    return content.is_string() || !content.children().empty() ? ""
                                                              : "no content";
  }

  static std::string IdOf(const json::Value& item) {
    return item["call_id"].is_string() ? item["call_id"].string()
                                       : item["id"].string();
  }

  std::string Call(const std::string& type, const json::Value& item) {
    const std::string id = IdOf(item);
    if (id.empty()) return "call without id";
    if (type == "function_call") {
      const std::string arguments = item["arguments"].string();
      if (item["name"].string().empty()) return "call without name";
      if (!json::Document::Parse(arguments).ok()) return "arguments";
    }
    if (type == "custom_tool_call" && !item["input"].is_string()) {
      return "input";
    }
    if (open_.contains(id)) return "id twice";
    open_[id] = {.type = type, .at = count_};
    return "";
  }

  std::string Result(const std::string& type, const json::Value& item) {
    const auto call = open_.find(IdOf(item));
    if (call == open_.end() ||
        !CallsByResult().at(type).contains(call->second.type)) {
      return "orphan result";
    }
    open_.erase(call);
    if (type != "function_call_output" && type != "custom_tool_call_output") {
      return "";
    }
    const json::Value output = item["output"];
    for (const json::Value& part : output.children()) {
      if (!part["type"].string().starts_with("input_")) return "output";
    }
    return output.is_string() || output.is_array() ? "" : "output";
  }

  std::map<std::string, Open> open_;
  std::int64_t count_ = 0;
  std::int64_t last_of_user_ = 0;
  bool reasoning_waits_ = false;
};

class GeminiRules : public Rules {
 public:
  std::string Next(const json::Value& content) override {
    const bool is_model = content["role"].equals("model");
    const std::vector<json::Value> parts = content["parts"].children();
    if (!is_model && !content["role"].equals("user")) return "role";
    if (parts.empty()) return "no parts";
    const std::vector<std::string> asked = std::move(calls_);
    calls_.clear();
    std::vector<std::string> answered;
    for (const json::Value& part : parts) {
      const json::Value call = part["functionCall"];
      const json::Value response = part["functionResponse"];
      if (part["text"].exists() && !HasWord(part["text"])) return "blank text";
      if (call.exists()) {
        if (!is_model) return "call of a user";
        if (!call["args"].is_object()) return "call without args";
        calls_.push_back(NameOf(call));
      } else if (response.exists()) {
        if (is_model) return "result of a model";
        if (!response["response"].is_object()) return "response";
        answered.push_back(NameOf(response));
      } else if (!part["text"].is_string() && !part["inlineData"].is_object() &&
                 !part["fileData"].is_object()) {
        return "a part of nothing";
      }
    }
    if (!calls_.empty() && !user_was_last_) return "call behind no user";
    user_was_last_ = !is_model;
    return answered == asked ? "" : "not the results of the calls";
  }

 private:
  static std::string NameOf(const json::Value& part) {
    return absl::StrCat(part["id"].string(), " ", part["name"].string());
  }

  std::vector<std::string> calls_;
  bool user_was_last_ = false;
};

std::unique_ptr<Rules> RulesOf(Format format, bool blank_is_valid) {
  switch (format) {
    case Format::kAnthropicMessages:
      return std::make_unique<AnthropicRules>(blank_is_valid);
    case Format::kOpenaiChat:
      return std::make_unique<ChatRules>();
    case Format::kOpenaiResponses:
      return std::make_unique<ResponsesRules>();
    case Format::kGemini:
      return std::make_unique<GeminiRules>();
    case Format::kUnspecified:
    case Format::kBedrockConverse:
      break;
  }
  return nullptr;
}

}  // namespace

std::string FaultOf(const Transcript& transcript, bool blank_is_valid) {
  const std::unique_ptr<Rules> rules =
      RulesOf(transcript.format, blank_is_valid);
  if (rules == nullptr) return "format";
  for (std::size_t i = 0; i < transcript.messages.size(); ++i) {
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(transcript.messages[i].bytes);
    const std::string fault =
        document.ok() ? rules->Next(document->root()) : "not JSON";
    if (!fault.empty()) return absl::StrCat("message ", i, ": ", fault);
  }
  return rules->End();
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
      if (root["role"].equals("assistant") || root["role"].equals("model")) {
        ++counts.answers;
      }
      if (IsClientCall(root)) ++counts.calls;
      if (IsClientResult(root)) ++counts.results;
      if (root["role"].equals("tool")) ++counts.results;
      counts.calls +=
          static_cast<std::int64_t>(root["tool_calls"].children().size());
      for (const json::Value& block : root["content"].children()) {
        if (block["type"].equals("tool_use")) ++counts.calls;
        if (block["type"].equals("tool_result")) ++counts.results;
      }
      for (const json::Value& part : root["parts"].children()) {
        if (part["functionCall"].exists()) ++counts.calls;
        if (part["functionResponse"].exists()) ++counts.results;
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
