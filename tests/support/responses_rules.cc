// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "tests/support/history_rules.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

constexpr std::size_t kCallIdSizeMax = 64;
constexpr std::size_t kOutputSizeMax = 10'485'760;

// A kind of call that the client answers.
struct CallKind {
  absl::string_view call;
  absl::string_view output;
  absl::string_view id_prefix;  // Of the call's own id; empty if any will do.
  absl::string_view body;       // The string it must have; empty if none.
};

constexpr std::array<CallKind, 6> kCallKinds = {{
    {"function_call", "function_call_output", "fc", "arguments"},
    {"custom_tool_call", "custom_tool_call_output", "ctc", "input"},
    {"computer_call", "computer_call_output", "", ""},
    {"local_shell_call", "local_shell_call_output", "", ""},
    {"shell_call", "shell_call_output", "", ""},
    {"apply_patch_call", "apply_patch_call_output", "", ""},
}};

// Items that only the model makes, and that reasoning may stand before.
bool IsOfTheModel(const json::Value& item, absl::string_view type) {
  if (type == "message") return item["role"].equals("assistant");
  return type == "reasoning" || absl::EndsWith(type, "_call");
}

absl::Status CheckParts(const json::Value& content, absl::string_view prefix,
                        absl::string_view path) {
  if (!content.is_array() || content.children().empty()) {
    return Refused(path, "neither a string nor parts");
  }
  for (const json::Value& part : content.children()) {
    const std::string type = part["type"].string();
    if (!absl::StartsWith(type, prefix) &&
        (prefix != "output_" || type != "refusal")) {
      return Refused(path, absl::StrCat("Invalid value: '", type, "'"));
    }
    if (absl::EndsWith(type, "_text") && !part["text"].is_string()) {
      return Refused(path, "a text part without text");
    }
    if (type == "input_image" && !HasText(part["image_url"]) &&
        !HasText(part["file_id"])) {
      return Refused(path, "an image without image_url or file_id");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const json::Value& item, absl::string_view path) {
  const std::string role = item["role"].string();
  const json::Value content = item["content"];
  if (role != "user" && role != "assistant" && role != "system" &&
      role != "developer") {
    return Refused(path, "role");
  }
  if (content.is_string()) return absl::OkStatus();
  return CheckParts(content, role == "assistant" ? "output_" : "input_", path);
}

absl::Status CheckShellOutput(const json::Value& output,
                              absl::string_view path) {
  if (!output.is_array() || output.children().empty()) {
    return Refused(path, "output is no list");
  }
  for (const json::Value& chunk : output.children()) {
    const json::Value outcome = chunk["outcome"];
    const bool exits =
        outcome["type"].equals("exit") && outcome["exit_code"].exists();
    if (!chunk["stdout"].is_string() || !chunk["stderr"].is_string() ||
        (!exits && !outcome["type"].equals("timeout"))) {
      return Refused(path, "output without stdout, stderr or outcome");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const json::Value& item, absl::string_view type,
                         absl::string_view path) {
  const json::Value output = item["output"];
  if (type == "shell_call_output") return CheckShellOutput(output, path);
  if (type == "computer_call_output") {
    if (!output["type"].equals("computer_screenshot") ||
        (!HasText(output["image_url"]) && !HasText(output["file_id"]))) {
      return Refused(path, "output is no computer_screenshot");
    }
    return absl::OkStatus();
  }
  if (type == "apply_patch_call_output") {
    const json::Value status = item["status"];
    if (!status.equals("completed") && !status.equals("failed")) {
      return Refused(path, "status");
    }
    if (!output.exists()) return absl::OkStatus();
  }
  if (output.is_string()) {
    return output.string().size() <= kOutputSizeMax
               ? absl::OkStatus()
               : Refused(path, "string too long");
  }
  if (type != "function_call_output" && type != "custom_tool_call_output") {
    return Refused(path, "output is no string");
  }
  return CheckParts(output, "input_", path);
}

// The rules of OpenAI's Responses, for an input that is sent whole.
class ResponsesRules final : public HistoryRules {
 public:
  absl::Status Add(const json::Value& item, std::size_t index) override {
    const std::string path = MessagePath(index);
    const json::Value type_value = item["type"];
    const std::string type =
        type_value.exists() ? type_value.string() : "message";
    if (type.empty()) return Refused(path, "type");
    if (!IsOfTheModel(item, type)) {
      CLERESTORY_RETURN_IF_ERROR(CheckFollowed(path));
    }
    reasoning_.clear();
    if (type == "message") return CheckMessage(item, path);
    if (type == "reasoning") return AddReasoning(item, path);
    for (const CallKind& kind : kCallKinds) {
      if (type == kind.call) return AddCall(item, kind, path);
      if (type == kind.output) return AddOutput(item, kind, path);
    }
    if (type == "tool_search_output" && !item["tools"].is_array()) {
      return Refused(path, "tools");
    }
    if (type == "compaction" && !HasText(item["encrypted_content"])) {
      return Refused(path, "encrypted_content");
    }
    return absl::OkStatus();
  }

  absl::Status End() const override {
    CLERESTORY_RETURN_IF_ERROR(CheckFollowed("messages"));
    if (unanswered_.empty()) return absl::OkStatus();
    return Refused("messages",
                   absl::StrCat("No tool output found for function call ",
                                unanswered_.begin()->first, "."));
  }

 private:
  absl::Status CheckFollowed(absl::string_view path) const {
    if (reasoning_.empty()) return absl::OkStatus();
    return Refused(path, absl::StrCat("Item '", reasoning_,
                                      "' of type 'reasoning' was provided "
                                      "without its required following item."));
  }

  absl::Status AddReasoning(const json::Value& item, absl::string_view path) {
    const json::Value encrypted = item["encrypted_content"];
    if (!item["summary"].is_array()) return Refused(path, "summary");
    // Clients that store nothing may leave the id out, as Codex does.
    if (item["id"].is_string() &&
        !absl::StartsWith(item["id"].string(), "rs")) {
      return Refused(path, "Expected an ID that begins with 'rs'");
    }
    // Nothing is stored, so that an id alone says nothing.
    if (!HasText(encrypted)) {
      return Refused(path, absl::StrCat("Item with id '", item["id"].string(),
                                        "' not found. Items are not persisted "
                                        "when store is set to false."));
    }
    reasoning_ = item["id"].is_string() ? item["id"].string() : "without id";
    return absl::OkStatus();
  }

  absl::Status AddCall(const json::Value& item, const CallKind& kind,
                       absl::string_view path) {
    const std::string call_id = item["call_id"].string();
    const json::Value id = item["id"];
    if (call_id.empty() || call_id.size() > kCallIdSizeMax) {
      return Refused(path, "call_id has 1 to 64 characters");
    }
    if (id.is_string() && !absl::StartsWith(id.string(), kind.id_prefix)) {
      return Refused(path, absl::StrCat("Expected an ID that begins with '",
                                        kind.id_prefix, "'"));
    }
    if (!kind.body.empty() &&
        (!HasText(item["name"]) || !item[kind.body].is_string())) {
      return Refused(path, absl::StrCat("a call without name or ", kind.body));
    }
    if (!unanswered_.emplace(call_id, kind.call).second) {
      return Refused(path, absl::StrCat("call_id is repeated: ", call_id));
    }
    return absl::OkStatus();
  }

  absl::Status AddOutput(const json::Value& item, const CallKind& kind,
                         absl::string_view path) {
    const absl::string_view field =
        kind.call == "local_shell_call" ? "id" : "call_id";
    const std::string call_id = item[field].string();
    const auto call = unanswered_.find(call_id);
    if (call == unanswered_.end() || call->second != kind.call) {
      return Refused(path, absl::StrCat("No tool call found for function call "
                                        "output with call_id ",
                                        call_id, "."));
    }
    unanswered_.erase(call);
    return CheckOutput(item, kind.output, path);
  }

  std::string reasoning_;  // The id, if the last item was one.
  std::map<std::string, std::string> unanswered_;  // The types of calls by id.
};

// By the ids of items: the id of the reasoning just before.
absl::StatusOr<std::map<std::string, std::string>> ReasoningOf(
    const std::vector<std::string>& items) {
  std::map<std::string, std::string> reasoning_of;
  std::string reasoning;
  for (const std::string& item : items) {
    const absl::StatusOr<json::Document> document = json::Document::Parse(item);
    if (!document.ok()) return document.status();
    const json::Value root = document->root();
    const std::string id = root["id"].string();
    if (!id.empty()) reasoning_of[id] = reasoning;
    reasoning = root["type"].equals("reasoning") ? id : "";
  }
  return reasoning_of;
}

}  // namespace

absl::Status CheckReasoningKept(const std::vector<std::string>& history,
                                const std::vector<std::string>& view) {
  const absl::StatusOr<std::map<std::string, std::string>> before =
      ReasoningOf(history);
  CLERESTORY_RETURN_IF_ERROR(before.status());
  const absl::StatusOr<std::map<std::string, std::string>> now =
      ReasoningOf(view);
  CLERESTORY_RETURN_IF_ERROR(now.status());
  for (const auto& [id, reasoning] : *now) {
    const auto item = before->find(id);
    if (item != before->end() && item->second != reasoning) {
      return Refused("messages",
                     absl::StrCat("Item '", id,
                                  "' was provided without its required "
                                  "'reasoning' item: '",
                                  item->second, "'."));
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<HistoryRules> NewResponsesRules() {
  return std::make_unique<ResponsesRules>();
}

}  // namespace clerestory
