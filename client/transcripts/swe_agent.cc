// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// The commands of SWE-agent's own interface, which are tools in files with
// function calling. Any other command is one for the shell.
constexpr std::array<absl::string_view, 12> kCommands = {
    "create",     "edit",        "find_file",          "goto",
    "insert",     "open",        "scroll_down",        "scroll_up",
    "search_dir", "search_file", "str_replace_editor", "submit"};

absl::string_view ToolOf(absl::string_view command) {
  command = absl::StripLeadingAsciiWhitespace(command);
  const absl::string_view word = command.substr(
      0, std::min(command.size(), command.find_first_of(" \t\r\n")));
  return std::ranges::find(kCommands, word) != kCommands.end() ? word : "bash";
}

bool IsBlank(absl::string_view text) {
  return absl::StripAsciiWhitespace(text).empty();
}

std::string Members(absl::string_view role, absl::string_view content) {
  return absl::StrCat(R"("role":)", json::Quote(role), R"(,"content":)",
                      content);
}

std::string Message(absl::string_view role, absl::string_view content) {
  return absl::StrCat("{", Members(role, content), "}");
}

std::string ToolMessage(const std::string& id, absl::string_view content) {
  return absl::StrCat(R"({"role":"tool","tool_call_id":)", json::Quote(id),
                      R"(,"content":)", content, "}");
}

class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  // `history` is the conversation as it was held. `trajectory` holds the same
  // steps without what was said before the first; what newer files repeat in it
  // under `messages` was cut down by history processors.
  void Read() {
    const json::Value root = file_.single();
    model_ = ModelOf(root);
    const std::vector<json::Value> history = root["history"].children();
    for (std::size_t i = 0; i < history.size(); ++i) {
      AddEntry(history[i],
               i + 1 < history.size() ? history[i + 1] : json::Value());
    }
    if (history.empty()) {
      for (const json::Value& step : root["trajectory"].children()) {
        AddStep(step);
      }
    }
    history_.Finish();
  }

 private:
  static std::string ModelOf(const json::Value& root) {
    const json::Value config = root["replay_config"];
    std::string name = config["agent"]["model"]["name"].string();
    if (config.is_string()) {
      const std::string text = config.string();
      if (const auto inner = json::Document::Parse(text); inner.ok()) {
        name = inner->root()["agent"]["model"]["name"].string();
      }
    }
    // What SWE-agent calls the playing of a recorded session.
    return name == "replay" ? "" : name;
  }

  void AddEntry(const json::Value& entry, const json::Value& next) {
    const std::string role = entry["role"].string();
    const json::Value content = entry["content"];
    const bool has_content = content.is_string() || content.is_array();
    const std::int64_t line = file_.LineOf(entry);
    const bool is_observation =
        std::exchange(awaits_observation_, false) && role == "user";
    if (role == "assistant") {
      AddAssistant(entry, next, line);
    } else if (!has_content) {
      issues_.push_back({line, "a message without content: skipped"});
    } else if (is_observation) {
      history_.AddResult(line, CallId(), ToolMessage(CallId(), content.raw()));
    } else if (role == "tool") {
      // An observation answers the first of its ids only: that is what
      // SWE-agent sends.
      const std::vector<json::Value> ids = entry["tool_call_ids"].children();
      const std::string id =
          ids.empty() ? entry["tool_call_id"].string() : ids.front().string();
      history_.AddResult(line, id, ToolMessage(id, content.raw()));
    } else if (role == "user" || role == "system") {
      history_.AddMessage(Message(role, content.raw()));
    } else {
      issues_.push_back({line, "not a message of SWE-agent: skipped"});
    }
  }

  void AddAssistant(const json::Value& entry, const json::Value& next,
                    std::int64_t line) {
    const json::Value content = entry["content"];
    const std::string action = entry["action"].string();
    const std::vector<json::Value> calls = entry["tool_calls"].children();
    ChatAnswer answer;
    answer.line = line;
    answer.model = model_;
    // Demonstrations were shown to the model, which did not act on them.
    const bool acts = calls.empty() && !IsBlank(action) &&
                      !entry["is_demo"].is_true() &&
                      (!next.exists() || next["role"].equals("user")) &&
                      !next["is_demo"].is_true();
    const json::Value said =
        acts && entry["thought"].is_string() ? entry["thought"] : content;
    SetContent(answer, said);
    for (const json::Value& call : calls) {
      if (call["id"].is_string() && call["function"].is_object()) {
        answer.calls.push_back(
            {.id = call["id"].string(), .json = CallJson(call)});
      } else {
        issues_.push_back({line, "not a tool call: dropped"});
      }
    }
    if (acts) answer.calls.push_back(NextCall(action));
    awaits_observation_ = acts;
    history_.AddAnswer(std::move(answer));
  }

  void AddStep(const json::Value& step) {
    const std::int64_t line = file_.LineOf(step);
    const std::string action = step["action"].string();
    const json::Value observation = step["observation"];
    ChatAnswer answer;
    answer.line = line;
    answer.model = model_;
    SetContent(answer, step["thought"]);
    if (!IsBlank(action)) answer.calls.push_back(NextCall(action));
    history_.AddAnswer(std::move(answer));
    if (!IsBlank(action) && observation.is_string()) {
      history_.AddResult(line, CallId(),
                         ToolMessage(CallId(), observation.raw()));
    }
  }

  // Makes `content` what the answer says; nothing if it is blank.
  static void SetContent(ChatAnswer& answer, const json::Value& content) {
    answer.has_content = content.is_array() ||
                         (content.is_string() && !IsBlank(content.string()));
    answer.members =
        Members("assistant", answer.has_content ? content.raw() : "null");
  }

  ChatCall NextCall(absl::string_view command) {
    ++call_count_;
    return CommandCall(CallId(), ToolOf(command), command);
  }

  // A call as it stands, with the type that Chat Completions require.
  static std::string CallJson(const json::Value& call) {
    if (call["type"].exists()) return std::string(call.raw());
    return absl::StrCat(R"({"type":"function",)", call.raw().substr(1));
  }

  std::string CallId() const { return absl::StrCat("call_", call_count_); }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
  std::string model_;
  std::int64_t call_count_ = 0;
  // Whether a user message that comes next is the result of the last call.
  bool awaits_observation_ = false;
};

bool IsSweAgent(const TranscriptFile& file) {
  const json::Value root = file.single();
  const std::vector<json::Value> steps = root["trajectory"].children();
  const std::vector<json::Value> history = root["history"].children();
  return (!steps.empty() && steps.front()["action"].exists() &&
          steps.front()["observation"].exists()) ||
         (!history.empty() && history.front()["role"].is_string() &&
          root["trajectory"].is_array());
}

ReadResult ReadSweAgent(const TranscriptFile& file) {
  ReadResult result;
  Transcript transcript;
  transcript.format = Format::kOpenaiChat;
  Reader(file, result, transcript).Read();
  if (!transcript.messages.empty()) {
    result.transcripts.push_back(std::move(transcript));
  }
  return result;
}

}  // namespace

const Importer kSweAgentImporter = {
    .source = "swe-agent", .detect = IsSweAgent, .read = ReadSweAgent};

}  // namespace clerestory
