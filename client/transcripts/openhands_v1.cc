// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/chat_parts.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

bool IsEvent(const json::Value& value) {
  return value["source"].is_string() &&
         (absl::EndsWith(value["kind"].string(), "Event") ||
          value["kind"].equals("UserRejectObservation"));
}

// The first event holds the system prompt, in a fixed and a changing part, and
// tools, which are not part of a
// history. Parallel calls are an event each, with the same `llm_response_id`;
// their results may stand between them, and only the first has a thought. What
// a condensation stands for is kept. Reasoning has no place in Chat
// Completions.
class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  void Read() {
    const std::vector<json::Value> events = ElementsOf(file_);
    for (const json::Value& event : events) {
      const std::string response = event["llm_response_id"].string();
      if (event["kind"].equals("ActionEvent") && !response.empty()) {
        calls_of_[response].push_back(event);
      }
    }
    for (const json::Value& event : events) Add(event);
    history_.Finish();
  }

 private:
  void Add(const json::Value& event) {
    const std::string kind = event["kind"].string();
    const std::int64_t line = file_.LineOf(event);
    const TimeMicros time = TimeOfText(event["timestamp"].string());
    if (kind == "ActionEvent") {
      AddActions(event, line, time);
    } else if (kind == "ObservationEvent") {
      AddResult(event, ContentFrom("tool", event["observation"]["content"]),
                line, time);
    } else if (kind == "AgentErrorEvent") {
      AddResult(event, ContentFrom("tool", event["error"]), line, time);
    } else if (kind == "UserRejectObservation") {
      AddResult(event,
                ContentFromText(absl::StrCat(
                    "Action rejected: ", event["rejection_reason"].string())),
                line, time);
    } else if (kind == "MessageEvent") {
      AddMessage(event, line, time);
    } else if (kind == "SystemPromptEvent") {
      AddBlocks({event["system_prompt"], event["dynamic_context"]}, "system",
                line, time);
    } else if (absl::StartsWith(kind, "Condensation")) {
      if (kind == "Condensation") {
        issues_.push_back({line, "a condensation: what it stands for is kept"});
      }
    } else if (!IsEvent(event)) {
      issues_.push_back({line, "not an event of OpenHands: skipped"});
    }
    // Other events, such as of a pause or the state, are not for the model.
  }

  void AddResult(const json::Value& event, const ChatContent& content,
                 std::int64_t line, TimeMicros time) {
    AddContent(history_, content, "tool", event["tool_call_id"].string(), line,
               time, issues_);
  }

  void AddMessage(const json::Value& event, std::int64_t line,
                  TimeMicros time) {
    const json::Value message = event["llm_message"];
    const std::string role = message["role"].string();
    if (role == "assistant") {
      ChatAnswer answer;
      answer.line = line;
      answer.time = time;
      SetContent(answer, ContentFrom(role, message["content"]));
      history_.AddAnswer(std::move(answer));
    } else if (role == "user" || role == "system") {
      std::vector<json::Value> blocks = message["content"].children();
      if (message["content"].is_string()) blocks = {message["content"]};
      std::ranges::copy(event["extended_content"].children(),
                        std::back_inserter(blocks));
      AddBlocks(blocks, role, line, time);
    } else {
      issues_.push_back({line, "a message of no known role: skipped"});
    }
  }

  // Adds a message of blocks, those that there are.
  void AddBlocks(const std::vector<json::Value>& blocks,
                 const std::string& role, std::int64_t line, TimeMicros time) {
    std::vector<absl::string_view> raw;
    for (const json::Value& block : blocks) {
      if (block.exists()) raw.push_back(block.raw());
    }
    const std::string array = absl::StrCat("[", absl::StrJoin(raw, ","), "]");
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(array);
    AddContent(
        history_,
        document.ok() ? ContentFrom(role, document->root()) : ChatContent(),
        role, "", line, time, issues_);
  }

  // Adds the answer that the call `event` is in, unless it was added.
  void AddActions(const json::Value& event, std::int64_t line,
                  TimeMicros time) {
    std::vector<json::Value> actions = {event};
    const auto calls = calls_of_.find(event["llm_response_id"].string());
    if (calls != calls_of_.end()) {
      actions = std::exchange(calls->second, {});
      if (actions.empty()) return;
    }
    ChatAnswer answer;
    answer.line = line;
    answer.time = time;
    SetContent(answer, ContentFrom("assistant", event["thought"]));
    for (const json::Value& action : actions) {
      const json::Value call = action["tool_call"];
      AddCall(answer, action["tool_call_id"].string(),
              action["tool_name"].string(),
              call["arguments"].exists() ? call["arguments"]
                                         : call["function"]["arguments"],
              issues_);
    }
    history_.AddAnswer(std::move(answer));
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
  // The calls that are not added yet, by the id of their response.
  std::map<std::string, std::vector<json::Value>> calls_of_;
};

bool IsOpenhandsV1(const TranscriptFile& file) {
  return std::ranges::any_of(ElementsOf(file), IsEvent);
}

ReadResult ReadOpenhandsV1(const TranscriptFile& file) {
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

const Importer kOpenhandsV1Importer = {
    .source = "openhands-v1", .detect = IsOpenhandsV1, .read = ReadOpenhandsV1};

}  // namespace clerestory
