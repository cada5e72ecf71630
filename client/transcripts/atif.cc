// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

bool IsTrajectory(const json::Value& root) {
  return absl::StartsWith(root["schema_version"].string(), "ATIF-v1.") &&
         root["steps"].is_array();
}

// A step of the agent is an answer with its calls, and the results stand in the
// same step. A call without one, such as of a `finish` tool, is dropped unless
// it is the last. A result that names no call answers the first call of its
// step that has none yet; where there is no such call, it is something that the
// environment said, to the model as a user.
class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  void Read(const json::Value& root) {
    const std::string model = root["agent"]["model_name"].string();
    for (const json::Value& step : root["steps"].children()) {
      AddStep(step, model);
    }
    history_.Finish();
  }

 private:
  void AddStep(const json::Value& step, const std::string& model) {
    const std::int64_t line = file_.LineOf(step);
    const std::string role = step["source"].string();
    const TimeMicros time = TimeOfText(step["timestamp"].string());
    std::vector<std::string> calls;
    if (role == "agent") {
      calls = AddAnswer(step, line, time, model);
    } else if (role == "user" || role == "system") {
      AddContent(history_, ContentFrom(role, step["message"]), role, "", line,
                 time, issues_);
    } else {
      issues_.push_back({line, "not a step of ATIF: skipped"});
      return;
    }
    std::size_t next = 0;
    for (const json::Value& result :
         step["observation"]["results"].children()) {
      std::string id = result["source_call_id"].string();
      if (id.empty() && next < calls.size()) id = calls[next];
      ++next;
      const std::string receiver = id.empty() ? "user" : "tool";
      AddContent(history_, ContentFrom(receiver, result["content"]), receiver,
                 id, file_.LineOf(result), time, issues_);
    }
  }

  // Returns the ids of the calls.
  std::vector<std::string> AddAnswer(const json::Value& step, std::int64_t line,
                                     TimeMicros time,
                                     const std::string& model) {
    ChatAnswer answer;
    answer.line = line;
    answer.time = time;
    answer.model = step["model_name"].string();
    if (answer.model.empty()) answer.model = model;
    SetContent(answer, ContentFrom("assistant", step["message"]));
    for (const json::Value& call : step["tool_calls"].children()) {
      AddCall(answer, call["tool_call_id"].string(),
              call["function_name"].string(), call["arguments"], issues_);
    }
    std::vector<std::string> ids;
    ids.reserve(answer.calls.size());
    for (const ChatCall& call : answer.calls) ids.push_back(call.id);
    history_.AddAnswer(std::move(answer));
    return ids;
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
};

bool IsAtif(const TranscriptFile& file) {
  for (const json::Value& root : ElementsOf(file)) {
    if (IsTrajectory(root)) return true;
  }
  return false;
}

ReadResult ReadAtif(const TranscriptFile& file) {
  ReadResult result;
  const std::vector<json::Value> roots = ElementsOf(file);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (!IsTrajectory(roots[i])) {
      result.issues.push_back(
          {file.LineOf(roots[i]), "not a trajectory: skipped"});
      continue;
    }
    Transcript transcript;
    transcript.format = Format::kOpenaiChat;
    if (roots.size() > 1) transcript.name = absl::StrCat("#", i + 1);
    Reader(file, result, transcript).Read(roots[i]);
    if (!transcript.messages.empty()) {
      result.transcripts.push_back(std::move(transcript));
    }
  }
  return result;
}

}  // namespace

const Importer kAtifImporter = {
    .source = "atif", .detect = IsAtif, .read = ReadAtif};

}  // namespace clerestory
