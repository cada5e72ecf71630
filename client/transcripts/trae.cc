// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/chat_parts.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/reported_usage.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// The result of a call as Trae sends it: the error stands in a field of its
// own.
std::string ResultText(const json::Value& result) {
  std::string text = result["result"].string();
  const std::string error = result["error"].string();
  if (!error.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "Error: ", error);
  }
  return text;
}

// Trae writes down what the provider says: only Anthropic leaves out of the
// input what was cached.
UsageNames UsageNamesOf(const std::string& model) {
  UsageNames names = kAnthropicUsage;
  names.is_input_whole = model.find("claude") == std::string::npos;
  return names;
}

// `llm_interactions` are the requests, each with what is new since the last,
// and the answers. `agent_steps` hold the same answers and results again, but
// neither the prompt nor what was said between steps: only the results of the
// last answer, which no request carries any more, are taken from there. Steps
// that failed before the model answered have nothing to read.
class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  void Read() {
    const json::Value root = file_.single();
    for (const json::Value& interaction : root["llm_interactions"].children()) {
      const TimeMicros time = TimeOfText(interaction["timestamp"].string());
      for (const json::Value& input :
           interaction["input_messages"].children()) {
        AddInput(input, time);
      }
      AddAnswer(interaction["response"], time, interaction["model"].string());
    }
    const std::vector<json::Value> steps = root["agent_steps"].children();
    for (const json::Value& step : steps) {
      for (const json::Value& result : step["tool_results"].children()) {
        if (open_.contains(result["call_id"].string())) {
          AddResult(result, TimeOfText(step["timestamp"].string()));
        }
      }
    }
    history_.Finish();
  }

 private:
  void AddInput(const json::Value& input, TimeMicros time) {
    const std::int64_t line = file_.LineOf(input);
    const std::string role = input["role"].string();
    if (input["tool_result"].is_object()) {
      AddResult(input["tool_result"], time);
    } else if (role == "user" || role == "system") {
      AddContent(history_, ContentFrom(role, input["content"]), role, "", line,
                 time, issues_);
    } else {
      issues_.push_back({line, "not a message of Trae: skipped"});
    }
  }

  void AddResult(const json::Value& result, TimeMicros time) {
    const std::string id = result["call_id"].string();
    open_.erase(id);
    AddContent(history_, ContentFromText(ResultText(result)), "tool", id,
               file_.LineOf(result), time, issues_);
  }

  void AddAnswer(const json::Value& response, TimeMicros time,
                 const std::string& model) {
    if (!response.is_object()) return;
    ChatAnswer answer;
    answer.line = file_.LineOf(response);
    answer.time = time;
    answer.model = response["model"].string();
    if (answer.model.empty()) answer.model = model;
    answer.usage = ReportedUsage(response["usage"], UsageNamesOf(answer.model));
    SetContent(answer, ContentFrom("assistant", response["content"]));
    open_.clear();
    for (const json::Value& call : response["tool_calls"].children()) {
      AddCall(answer, call["call_id"].string(), call["name"].string(),
              call["arguments"], issues_);
    }
    for (const ChatCall& call : answer.calls) open_.insert(call.id);
    history_.AddAnswer(std::move(answer));
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
  // The calls of the last answer that no result was seen for.
  std::set<std::string> open_;
};

bool IsTrae(const TranscriptFile& file) {
  const json::Value root = file.single();
  return root["llm_interactions"].is_array() && root["agent_steps"].is_array();
}

ReadResult ReadTrae(const TranscriptFile& file) {
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

const Importer kTraeImporter = {
    .source = "trae", .detect = IsTrae, .read = ReadTrae};

}  // namespace clerestory
