// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
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

// Actions and observations that are not for the model: the agent's own state,
// and what it looked up to write into prompts.
constexpr std::array<absl::string_view, 5> kNotForTheModel = {
    "agent_state_changed", "change_agent_state", "null", "recall", "system"};

bool IsForTheModel(absl::string_view kind) {
  return std::ranges::find(kNotForTheModel, kind) == kNotForTheModel.end();
}

bool IsEvent(const json::Value& value) {
  return (value["action"].is_string() && value["args"].is_object()) ||
         (value["observation"].is_string() && value["content"].exists());
}

bool AnyEvent(const std::vector<json::Value>& values) {
  return std::ranges::any_of(values, [](const json::Value& value) {
    return IsEvent(value) ||
           // The oldest files hold pairs of an action and its observation.
           (value.is_array() && std::ranges::any_of(value.children(), IsEvent));
  });
}

struct Stream {
  std::size_t ordinal = 0;  // Among the instances of the file, from 1.
  std::vector<json::Value> events;
  std::string model;  // Named beside the events.
};

// The event streams of the file: itself, or one of each instance. Instances
// without events become issues if there is any stream at all.
std::vector<Stream> StreamsOf(const TranscriptFile& file,
                              std::vector<ReadIssue>& issues) {
  const std::vector<json::Value> elements = ElementsOf(file);
  if (AnyEvent(elements)) {
    return {{.ordinal = 1, .events = elements, .model = ""}};
  }
  std::vector<Stream> streams;
  std::vector<ReadIssue> strangers;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const json::Value& element = elements[i];
    std::vector<json::Value> events = element["history"].children();
    if (!AnyEvent(events)) {
      strangers.push_back({file.LineOf(element), "no events: skipped"});
      continue;
    }
    streams.push_back(
        {.ordinal = i + 1,
         .events = std::move(events),
         .model = element["metadata"]["llm_config"]["model"].string()});
  }
  if (!streams.empty()) {
    issues.insert(issues.end(), strangers.begin(), strangers.end());
  }
  return streams;
}

// The arguments of an action without what it keeps beside them.
std::string ArgumentsOf(const json::Value& args) {
  constexpr std::array<absl::string_view, 4> kNotArguments = {
      "blocking", "confirmation_state", "hidden", "thought"};
  std::vector<std::string> members;
  for (const json::Value& member : args.children()) {
    const std::string key = member.key();
    if (std::ranges::find(kNotArguments, key) == kNotArguments.end()) {
      members.push_back(absl::StrCat(json::Quote(key), ":", member.raw()));
    }
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

// An action of the agent is a call; the observation whose `cause` is its id is
// the result. The call is taken as the model wrote it from the response that
// newer files keep with it, and else made from the action. Files of 2024 have
// neither ids nor causes: there an observation answers the first open call.
//
// An error that answers no call stands for an answer that OpenHands could not
// read and did not record; the model was told as a user. Instances that failed
// end with an open call, and a `finish` has no result. What OpenHands writes
// around an observation in the prompt, such as the exit code, is not recorded.
class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  void Read(const Stream& stream) {
    model_ = stream.model;
    for (const json::Value& element : stream.events) {
      if (!element.is_array()) {
        Add(element);
        continue;
      }
      for (const json::Value& event : element.children()) Add(event);
    }
    history_.Finish();
  }

 private:
  void Add(const json::Value& event) {
    const std::int64_t line = file_.LineOf(event);
    const TimeMicros time = TimeOfText(event["timestamp"].string());
    const std::string action = event["action"].string();
    if (!IsEvent(event)) {
      issues_.push_back({line, "not an event of OpenHands: skipped"});
    } else if (action == "message") {
      AddMessage(event, line, time);
    } else if (action == "system") {
      AddContent(history_, ContentFrom("system", event["args"]["content"]),
                 "system", "", line, time, issues_);
    } else if (action == "condensation") {
      issues_.push_back({line, "a condensation: what it stands for is kept"});
    } else if (action.empty()) {
      AddObservation(event, line, time);
    } else if (IsForTheModel(action)) {
      AddAction(event, action, line, time);
    }
  }

  void AddMessage(const json::Value& event, std::int64_t line,
                  TimeMicros time) {
    const json::Value text = event["args"]["content"];
    if (event["source"].equals("agent")) {
      ChatAnswer answer;
      answer.line = line;
      answer.time = time;
      answer.model = model_;
      SetContent(answer, ContentFrom("assistant", text));
      open_.clear();
      history_.AddAnswer(std::move(answer));
      return;
    }
    open_.clear();
    AddContent(history_, ContentFrom("user", text), "user", "", line, time,
               issues_);
  }

  void AddAction(const json::Value& event, const std::string& action,
                 std::int64_t line, TimeMicros time) {
    const json::Value metadata = event["tool_call_metadata"];
    std::string id = metadata["tool_call_id"].string();
    if (id.empty()) id = absl::StrCat("call_", ++call_count_);
    const json::Value number = event["id"];
    if (number.exists()) call_of_event_[std::string(number.raw())] = id;
    if (event["source"].equals("user")) {
      issues_.push_back({line, "an action of the user: skipped"});
      return;
    }
    const absl::StatusOr<json::Document> response =
        json::Document::Parse(metadata["model_response"].is_object()
                                  ? metadata["model_response"].raw()
                                  : absl::string_view("{}"),
                              {.tree_depth = 8});
    const json::Value root = response.ok() ? response->root() : json::Value();
    const std::string response_id = root["id"].string();
    // Further calls of an answer that is there already.
    if (!response_id.empty() && response_id == response_id_ &&
        std::ranges::find(open_, id) != open_.end()) {
      return;
    }
    ChatAnswer answer;
    answer.line = line;
    answer.time = time;
    answer.model = root["model"].string();
    if (answer.model.empty()) answer.model = model_;
    answer.usage = ReportedUsage(root["usage"], kChatUsage);
    response_id_ = response_id;
    json::Value message;
    for (const json::Value& choice : root["choices"].children()) {
      if (!message.exists()) message = choice["message"];
    }
    SetContent(
        answer,
        ContentFrom("assistant", message.exists() ? message["content"]
                                                  : event["args"]["thought"]));
    for (const json::Value& call : message["tool_calls"].children()) {
      AddCall(answer, call["id"].string(), call["function"]["name"].string(),
              call["function"]["arguments"], issues_);
    }
    if (std::ranges::none_of(answer.calls, [&id](const ChatCall& call) {
          return call.id == id;
        })) {
      AddOwnCall(answer, id, event, action);
    }
    open_.clear();
    for (const ChatCall& call : answer.calls) open_.push_back(call.id);
    history_.AddAnswer(std::move(answer));
  }

  // Adds the call that the action itself tells.
  void AddOwnCall(ChatAnswer& answer, const std::string& id,
                  const json::Value& event, const std::string& action) {
    const std::string name =
        event["tool_call_metadata"]["function_name"].string();
    const std::string arguments = ArgumentsOf(event["args"]);
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(arguments);
    AddCall(answer, id, name.empty() ? action : name,
            document.ok() ? document->root() : json::Value(), issues_);
  }

  void AddObservation(const json::Value& event, std::int64_t line,
                      TimeMicros time) {
    const std::string kind = event["observation"].string();
    if (!IsForTheModel(kind)) return;
    const std::optional<std::string> id = CallOf(event);
    if (!id && kind == "error") {
      open_.clear();
      AddContent(history_, ContentFrom("user", event["content"]), "user", "",
                 line, time, issues_);
      return;
    }
    if (!id) {
      issues_.push_back({line, "an observation of no call: dropped"});
      return;
    }
    std::erase(open_, *id);
    AddContent(history_, ContentFrom("tool", event["content"]), "tool", *id,
               line, time, issues_);
  }

  // The call that an observation answers, if any.
  std::optional<std::string> CallOf(const json::Value& event) const {
    const json::Value id = event["tool_call_metadata"]["tool_call_id"];
    if (id.is_string()) return id.string();
    const json::Value cause = event["cause"];
    if (cause.exists() && !cause.is(json::Kind::kNull)) {
      const auto found = call_of_event_.find(std::string(cause.raw()));
      if (found == call_of_event_.end()) return std::nullopt;
      return found->second;
    }
    if (open_.empty()) return std::nullopt;
    return open_.front();
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
  std::string model_;
  std::int64_t call_count_ = 0;
  // The response that the last answer came from.
  std::string response_id_;
  // The calls by the ids of their events.
  std::map<std::string, std::string> call_of_event_;
  // The calls of the last answer without a result.
  std::vector<std::string> open_;
};

bool IsOpenhandsV0(const TranscriptFile& file) {
  std::vector<ReadIssue> ignored;
  return !StreamsOf(file, ignored).empty();
}

ReadResult ReadOpenhandsV0(const TranscriptFile& file) {
  ReadResult result;
  const std::vector<Stream> streams = StreamsOf(file, result.issues);
  for (const Stream& stream : streams) {
    Transcript transcript;
    transcript.format = Format::kOpenaiChat;
    if (streams.size() > 1) {
      transcript.name = absl::StrCat("#", stream.ordinal);
    }
    Reader(file, result, transcript).Read(stream);
    if (!transcript.messages.empty()) {
      result.transcripts.push_back(std::move(transcript));
    }
  }
  return result;
}

}  // namespace

const Importer kOpenhandsV0Importer = {
    .source = "openhands-v0", .detect = IsOpenhandsV0, .read = ReadOpenhandsV0};

}  // namespace clerestory
