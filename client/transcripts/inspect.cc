// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

// How many times the size of its file the attachments may add to the messages.
// A small file can name a large one many times.
constexpr std::size_t kAttachedPerByte = 64;

// Each sample is a session. Its `events`, which hold the raw requests, are not
// read. Long strings are kept aside under `attachments` and stand in messages
// as `attachment://ID`; one that is not there stays a reference, with an issue.
class Reader {
 public:
  Reader(const TranscriptFile& file, ReadResult& result)
      : file_(file), result_(result) {
    model_ = file_.single()["eval"]["model"].string();
    left_ = kAttachedPerByte * file_.single().raw().size();
  }

  void Read() {
    const std::vector<json::Value> samples =
        file_.single()["samples"].children();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      Transcript transcript;
      transcript.format = Format::kOpenaiChat;
      if (samples.size() > 1) transcript.name = absl::StrCat("#", i + 1);
      ReadSample(samples[i], transcript);
      if (transcript.messages.empty()) {
        result_.issues.push_back(
            {file_.LineOf(samples[i]), "a sample without messages: skipped"});
      } else {
        result_.transcripts.push_back(std::move(transcript));
      }
    }
  }

 private:
  // JSON strings by their id.
  using Attachments = std::map<std::string, absl::string_view>;

  void ReadSample(const json::Value& sample, Transcript& transcript) {
    ChatHistory history(transcript, result_.issues);
    Attachments attachments;
    for (const json::Value& attachment : sample["attachments"].children()) {
      if (attachment.is_string()) {
        attachments.emplace(attachment.key(), attachment.raw());
      }
    }
    for (const json::Value& message : sample["messages"].children()) {
      const std::int64_t line = file_.LineOf(message);
      const std::string text = Resolved(message.raw(), attachments, line);
      const absl::StatusOr<json::Document> document =
          json::Document::Parse(text);
      if (!document.ok()) {
        result_.issues.push_back({line, "not a message: skipped"});
        continue;
      }
      Add(document->root(), line, history);
    }
    history.Finish();
  }

  void Add(const json::Value& message, std::int64_t line,
           ChatHistory& history) {
    std::vector<ReadIssue>& issues = result_.issues;
    const std::string role = message["role"].string();
    if (role == "assistant") {
      ChatAnswer answer;
      answer.line = line;
      answer.model = message["model"].string();
      if (answer.model.empty()) answer.model = model_;
      SetContent(answer, ContentFrom(role, message["content"]));
      for (const json::Value& call : message["tool_calls"].children()) {
        AddCall(answer, call["id"].string(), call["function"].string(),
                call["arguments"], issues);
      }
      history.AddAnswer(std::move(answer));
      return;
    }
    if (role != "user" && role != "system" && role != "tool") {
      issues.push_back({line, "not a message of Inspect: skipped"});
      return;
    }
    // Inspect sends an error in place of the content.
    const json::Value error = message["error"]["message"];
    const ChatContent content =
        role == "tool" && error.is_string()
            ? ContentFromText(absl::StrCat("Error: ", error.string()))
            : ContentFrom(role, message["content"]);
    AddContent(history, content, role, message["tool_call_id"].string(), line,
               /*time=*/0, issues);
  }

  // Returns `json` with the strings that are a reference replaced.
  std::string Resolved(absl::string_view json, const Attachments& attachments,
                       std::int64_t line) {
    constexpr absl::string_view kReference = "\"attachment://";
    std::string out;
    std::size_t copied = 0;
    std::size_t at = 0;
    while ((at = json.find(kReference, at)) != absl::string_view::npos) {
      const std::size_t start = at;
      at += kReference.size();
      const std::size_t end = json.find('"', at);
      // Behind a backslash it is a quote inside a text.
      if (end == absl::string_view::npos || json[start - 1] == '\\') continue;
      const auto found =
          attachments.find(std::string(json.substr(at, end - at)));
      if (found == attachments.end() || found->second.size() > left_) {
        result_.issues.push_back(
            {line,
             "an attachment that is missing or too large: its reference "
             "stays"});
        continue;
      }
      left_ -= found->second.size();
      absl::StrAppend(&out, json.substr(copied, start - copied), found->second);
      copied = at = end + 1;
    }
    absl::StrAppend(&out, json.substr(copied));
    return out;
  }

  const TranscriptFile& file_;
  ReadResult& result_;
  std::string model_;
  // How many bytes of attachments may still be added.
  std::size_t left_ = 0;
};

bool IsInspect(const TranscriptFile& file) {
  const json::Value root = file.single();
  return root["eval"].is_object() && root["samples"].is_array();
}

ReadResult ReadInspect(const TranscriptFile& file) {
  ReadResult result;
  Reader(file, result).Read();
  return result;
}

}  // namespace

const Importer kInspectImporter = {
    .source = "inspect", .detect = IsInspect, .read = ReadInspect};

}  // namespace clerestory
