// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/chat_parts.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// What `message` is made by: `HumanMessage` and so on; "" if it is not a
// constructor object of a message.
std::string ClassOf(const json::Value& message) {
  const std::vector<json::Value> id = message["id"].children();
  if (!message["lc"].exists() || !message["type"].equals("constructor") ||
      !message["kwargs"].is_object() || id.empty()) {
    return "";
  }
  const std::string name = id.back().string();
  return absl::StrContains(name, "Message") ? name : "";
}

// The messages of the file: its elements, or those of its member `messages`.
std::vector<json::Value> MessagesOf(const TranscriptFile& file) {
  const json::Value held = file.single()["messages"];
  return held.is_array() ? held.children() : ElementsOf(file);
}

// Blocks of content that repeat a call, as Anthropic's do, are left out for the
// call in `tool_calls`. Calls whose arguments LangChain could not read stand in
// `invalid_tool_calls`; they are sent like the others.
class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  void Read() {
    for (const json::Value& message : MessagesOf(file_)) Add(message);
    history_.Finish();
  }

 private:
  void Add(const json::Value& message) {
    const std::int64_t line = file_.LineOf(message);
    const std::string name = ClassOf(message);
    const json::Value kwargs = message["kwargs"];
    // Also the chunks of a stream: AIMessageChunk.
    if (absl::StartsWith(name, "AIMessage")) {
      AddAnswer(kwargs, line);
      return;
    }
    absl::string_view role;
    if (absl::StartsWith(name, "HumanMessage")) role = "user";
    if (absl::StartsWith(name, "SystemMessage")) role = "system";
    if (absl::StartsWith(name, "ToolMessage")) role = "tool";
    if (role.empty()) {
      issues_.push_back({line, "not a message of LangChain: skipped"});
      return;
    }
    AddContent(history_, ContentFrom(role, kwargs["content"]), role,
               kwargs["tool_call_id"].string(), line, /*time=*/0, issues_);
  }

  void AddAnswer(const json::Value& kwargs, std::int64_t line) {
    const json::Value metadata = kwargs["response_metadata"];
    ChatAnswer answer;
    answer.line = line;
    answer.model = metadata["model_name"].string();
    if (answer.model.empty()) answer.model = metadata["model"].string();
    SetContent(answer, ContentFrom("assistant", kwargs["content"]));
    for (const absl::string_view key : {"tool_calls", "invalid_tool_calls"}) {
      for (const json::Value& call : kwargs[key].children()) {
        AddCall(answer, call["id"].string(), call["name"].string(),
                call["args"], issues_);
      }
    }
    history_.AddAnswer(std::move(answer));
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
};

bool IsLangchain(const TranscriptFile& file) {
  for (const json::Value& message : MessagesOf(file)) {
    if (!ClassOf(message).empty()) return true;
  }
  return false;
}

ReadResult ReadLangchain(const TranscriptFile& file) {
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

const Importer kLangchainImporter = {
    .source = "langchain", .detect = IsLangchain, .read = ReadLangchain};

}  // namespace clerestory
