// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/reported_usage.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// A fenced block of shell commands, and what stands around it.
struct Fence {
  std::string command;
  std::string around;
};

// Returns the block of `text` if there is exactly one: then mini-swe-agent runs
// it. It looks for "```bash", blanks with a line break, and the next line that
// begins with "```".
std::optional<Fence> OnlyFence(absl::string_view text) {
  constexpr absl::string_view kOpen = "```bash";
  constexpr absl::string_view kClose = "\n```";
  std::optional<Fence> fence;
  std::size_t at = 0;
  while ((at = text.find(kOpen, at)) != absl::string_view::npos) {
    const std::size_t open = at;
    at += kOpen.size();
    const std::size_t word =
        std::min(text.size(), text.find_first_not_of(" \t\r\n\f\v", at));
    const std::size_t line_end = text.substr(at, word - at).rfind('\n');
    if (line_end == absl::string_view::npos) continue;
    const std::size_t start = at + line_end + 1;
    const std::size_t close = text.find(kClose, start);
    if (close == absl::string_view::npos) break;
    if (fence) return std::nullopt;
    at = close + kClose.size();
    const absl::string_view before =
        absl::StripTrailingAsciiWhitespace(text.substr(0, open));
    const absl::string_view after = absl::StripAsciiWhitespace(text.substr(at));
    fence = Fence{
        .command = std::string(
            absl::StripAsciiWhitespace(text.substr(start, close - start))),
        .around = absl::StrCat(
            before, before.empty() || after.empty() ? "" : "\n\n", after)};
  }
  return fence;
}

// The text of a message's content, a string or an array of parts.
std::string TextOf(const json::Value& content) {
  if (content.is_string()) return content.string();
  std::vector<std::string> texts;
  for (const json::Value& part : content.children()) {
    texts.push_back(part["text"].string());
  }
  return absl::StrJoin(texts, "\n");
}

// The members of an object but for those named, as JSON without braces.
std::string MembersWithout(const json::Value& object,
                           const std::vector<std::string>& names) {
  std::vector<absl::string_view> members;
  const absl::string_view raw = object.raw();
  std::size_t start = 1;
  for (const json::Value& member : object.children()) {
    const std::size_t end = static_cast<std::size_t>(
        member.raw().data() + member.raw().size() - raw.data());
    if (std::ranges::find(names, member.key()) == names.end()) {
      absl::string_view text = raw.substr(start, end - start);
      text.remove_prefix(std::min(text.size(), text.find('"')));
      members.push_back(text);
    }
    start = end;
  }
  return absl::StrJoin(members, ",");
}

// When the answer `message` was written, in whole seconds.
TimeMicros TimeOf(const json::Value& message) {
  const json::Value extra = message["extra"];
  for (const json::Value& value :
       {extra["response"]["created"], extra["timestamp"]}) {
    const absl::string_view number = value.raw();
    std::int64_t seconds = 0;
    if (value.is(json::Kind::kNumber) &&
        number.find_first_of("eE") == absl::string_view::npos &&
        absl::SimpleAtoi(number.substr(0, number.find('.')), &seconds)) {
      return clerestory::TimeOf(seconds, kMicrosPerSecond);
    }
  }
  return 0;
}

class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result, Transcript& transcript)
      : file_(file),
        issues_(result.issues),
        history_(transcript, result.issues) {}

  void Read() {
    const json::Value root = file_.single();
    model_ = root["info"]["config"]["model"]["model_name"].string();
    const std::vector<json::Value> messages = root["messages"].children();
    // In files with tool calls a fence is only text.
    has_tool_calls_ =
        std::ranges::any_of(messages, [](const json::Value& message) {
          return message["tool_calls"].is_array();
        });
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const bool is_last = i + 1 == messages.size();
      const bool user_follows =
          !is_last && messages[i + 1]["role"].equals("user");
      Add(messages[i], is_last || user_follows);
    }
    history_.Finish();
  }

 private:
  void Add(const json::Value& message, bool may_act) {
    const std::string role = message["role"].string();
    const std::int64_t line = file_.LineOf(message);
    const json::Value content = message["content"];
    const bool is_observation = std::exchange(awaits_observation_, false);
    if (role == "exit") return;  // How the run ended; not sent to the model.
    if (role == "assistant") {
      AddAssistant(message, line, may_act);
    } else if (!content.is_string() && !content.is_array()) {
      issues_.push_back({line, "a message without content: skipped"});
    } else if (role == "user" && is_observation) {
      history_.AddResult(line, CallId(),
                         absl::StrCat(R"({"role":"tool","tool_call_id":)",
                                      json::Quote(CallId()), R"(,"content":)",
                                      content.raw(), "}"));
    } else if (role == "tool") {
      history_.AddResult(line, message["tool_call_id"].string(), Bare(message));
    } else if (role == "user" || role == "system") {
      history_.AddMessage(Bare(message));
    } else {
      issues_.push_back({line, "not a message of mini-swe-agent: skipped"});
    }
  }

  void AddAssistant(const json::Value& message, std::int64_t line,
                    bool may_act) {
    const std::string text = TextOf(message["content"]);
    ChatAnswer answer;
    answer.line = line;
    answer.time = TimeOf(message);
    answer.model = model_;
    answer.usage =
        ReportedUsage(message["extra"]["response"]["usage"], kChatUsage);
    answer.members = MembersWithout(message, {"extra", "tool_calls"});
    answer.has_content = !absl::StripAsciiWhitespace(text).empty();
    for (const json::Value& call : message["tool_calls"].children()) {
      answer.calls.push_back(
          {.id = call["id"].string(), .json = std::string(call.raw())});
    }
    if (may_act && !has_tool_calls_) {
      if (const std::optional<Fence> fence = OnlyFence(text)) {
        ++call_count_;
        awaits_observation_ = true;
        answer.has_content = !fence->around.empty();
        answer.members = absl::StrCat(
            R"("role":"assistant","content":)",
            answer.has_content ? json::Quote(fence->around) : "null");
        answer.calls.push_back(CommandCall(CallId(), "bash", fence->command));
      }
    }
    history_.AddAnswer(std::move(answer));
  }

  // The message as it was sent: without the agent's own notes.
  static std::string Bare(const json::Value& message) {
    return absl::StrCat("{", MembersWithout(message, {"extra"}), "}");
  }

  std::string CallId() const { return absl::StrCat("call_", call_count_); }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  ChatHistory history_;
  std::string model_;
  bool has_tool_calls_ = false;
  std::int64_t call_count_ = 0;
  // Whether a user message that comes next is the result of the last call. One
  // that corrects the form of an answer is not.
  bool awaits_observation_ = false;
};

bool IsMiniSweAgent(const TranscriptFile& file) {
  const json::Value root = file.single();
  return root["messages"].is_array() &&
         (absl::StartsWith(root["trajectory_format"].string(),
                           "mini-swe-agent") ||
          root["info"]["mini_version"].is_string());
}

ReadResult ReadMiniSweAgent(const TranscriptFile& file) {
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

const Importer kMiniSweAgentImporter = {.source = "mini-swe-agent",
                                        .detect = IsMiniSweAgent,
                                        .read = ReadMiniSweAgent};

}  // namespace clerestory
