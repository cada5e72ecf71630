// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/reported_usage.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"

// A session of Gemini CLI is one object. A message of type `gemini` holds what
// the model said, the calls it made in the order of the array, and their
// results: `functionResponse` parts, also for calls that failed or were
// cancelled. `resultDisplay` and `description` show the same to the user, and
// `thoughts` are summaries whose signatures are lost: all left out, as are the
// messages of the CLI itself between the turns (`info`, `error`, `warning`).

namespace clerestory {
namespace {

struct Content {
  bool is_model = false;
  std::vector<std::string> parts;
  TimeMicros time = 0;
  std::string model;
  std::optional<Usage> usage = {};
};

constexpr UsageNames kGeminiCliUsage = {.input = "input",
                                        .cache_read = "cached",
                                        .output = "output",
                                        .reasoning = "thoughts",
                                        .is_input_whole = true,
                                        .is_reasoning_apart = true};

std::string TextPart(const json::Value& text) {
  return absl::StrCat(R"({"text":)", text.raw(), "}");
}

bool IsBlank(const json::Value& text) {
  return absl::StripAsciiWhitespace(text.string()).empty();
}

// What a call gave.
struct Result {
  // The part that answers the call; "" if none does.
  absl::string_view response;
  // Pictures and files.
  std::vector<absl::string_view> attachments;
};

bool Answers(const json::Value& response, const json::Value& call) {
  return response["name"].equals(call["name"].string()) &&
         (!response["id"].exists() ||
          response["id"].equals(call["id"].string())) &&
         response["response"].is_object();
}

Result ResultOf(const json::Value& call) {
  Result result;
  // Nested too deeply to be walked in the file: parts, their values, members.
  const absl::StatusOr<json::Document> document =
      json::Document::Parse(call["result"].raw(), {.tree_depth = 4});
  if (!document.ok()) return result;
  const json::Value root = document->root();
  std::vector<json::Value> parts = {root};
  if (root.is_array()) parts = root.children();
  for (const json::Value& part : parts) {
    if (part["inlineData"].exists() || part["fileData"].exists()) {
      result.attachments.push_back(part.raw());
    } else if (result.response.empty() &&
               Answers(part["functionResponse"], call)) {
      result.response = part.raw();
    }
  }
  return result;
}

class Reader {
 public:
  Reader(const TranscriptFile& file, std::vector<ReadIssue>& issues)
      : file_(file), issues_(issues) {}

  std::vector<TranscriptMessage> Read() {
    const std::vector<json::Value> all = file_.single()["messages"].children();
    std::vector<json::Value> messages;
    std::ranges::copy_if(
        all, std::back_inserter(messages), [](const json::Value& message) {
          return message["type"].equals("user") || IsOfModel(message);
        });
    for (std::size_t i = 0; i < messages.size(); ++i) {
      AddMessage(messages[i], i + 1 == messages.size());
    }
    std::vector<TranscriptMessage> result;
    for (Content& content : contents_) {
      result.push_back(
          {.bytes = absl::StrCat(
               R"({"role":")", content.is_model ? "model" : "user",
               R"(","parts":[)", absl::StrJoin(content.parts, ","), "]}"),
           .time = content.time,
           .model = std::move(content.model),
           .usage = content.usage});
    }
    return result;
  }

 private:
  static bool IsOfModel(const json::Value& message) {
    return message["type"].equals("gemini");
  }

  void AddMessage(const json::Value& message, bool is_last) {
    const std::int64_t line = file_.LineOf(message);
    Content content = {.is_model = IsOfModel(message),
                       .parts = PartsOf(message["content"], line),
                       .time = TimeOf(message["timestamp"]),
                       .model = ""};
    if (!content.is_model) {
      Add(std::move(content), line);
      return;
    }
    content.model = message["model"].string();
    content.usage = ReportedUsage(message["tokens"], kGeminiCliUsage);
    Content answer = {.parts = {}, .time = content.time, .model = ""};
    const std::vector<json::Value> calls = message["toolCalls"].children();
    std::vector<Result> results;
    results.reserve(calls.size());
    for (const json::Value& call : calls) results.push_back(ResultOf(call));
    // The session ended there.
    const bool keep_open =
        is_last && std::ranges::all_of(results, [](const Result& result) {
          return result.response.empty();
        });
    std::vector<absl::string_view> attachments;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const json::Value& call = calls[i];
      const Result& result = results[i];
      if (!IsCall(call) || (result.response.empty() && !keep_open)) {
        Note(file_.LineOf(call), absl::StrCat("call ", call["id"].string(),
                                              " has no result: dropped"));
        continue;
      }
      content.parts.push_back(CallPart(call));
      if (result.response.empty()) continue;
      const TimeMicros time = TimeOf(call["timestamp"]);
      if (answer.parts.empty() && time != 0) answer.time = time;
      answer.parts.emplace_back(result.response);
      attachments.insert(attachments.end(), result.attachments.begin(),
                         result.attachments.end());
    }
    // Behind the results, of which there must be as many as calls.
    for (const absl::string_view attachment : attachments) {
      answer.parts.emplace_back(attachment);
    }
    if (contents_.empty()) {
      Note(line, "an answer before anything was asked: dropped");
      return;
    }
    Add(std::move(content), line);
    if (!answer.parts.empty()) contents_.push_back(std::move(answer));
  }

  // Adds `content`. An answer that continues another is a part of it, for calls
  // must follow a turn of the user.
  void Add(Content content, std::int64_t line) {
    if (content.parts.empty()) {
      Note(line, "a message without content: dropped");
      return;
    }
    if (content.is_model && contents_.back().is_model) {
      std::ranges::move(content.parts,
                        std::back_inserter(contents_.back().parts));
      return;
    }
    contents_.push_back(std::move(content));
  }

  // What was said: a text, or in newer files a part or a list of them.
  std::vector<std::string> PartsOf(const json::Value& content,
                                   std::int64_t line) {
    std::vector<json::Value> pieces = {content};
    if (content.is_array()) pieces = content.children();
    std::vector<std::string> parts;
    for (const json::Value& piece : pieces) {
      const json::Value text = piece.is_string() ? piece : piece["text"];
      if (!piece.is_string() && !piece.is_object()) continue;
      if (text.is_string() && IsBlank(text)) continue;
      if (piece["thought"].is_true()) continue;
      if (piece.is_string()) {
        parts.push_back(TextPart(piece));
      } else if (text.is_string() || piece["inlineData"].exists() ||
                 piece["fileData"].exists()) {
        parts.emplace_back(piece.raw());
      } else {
        Note(line, "not a part that can be said: dropped");
      }
    }
    return parts;
  }

  static bool IsCall(const json::Value& call) {
    return call["id"].is_string() && call["name"].is_string();
  }

  static std::string CallPart(const json::Value& call) {
    const json::Value args = call["args"];
    return absl::StrCat(R"({"functionCall":{"id":)", call["id"].raw(),
                        R"(,"name":)", call["name"].raw(), R"(,"args":)",
                        args.is_object() ? args.raw() : "{}", "}}");
  }

  void Note(std::int64_t line, std::string what) {
    issues_.push_back({.line = line, .what = std::move(what)});
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  std::vector<Content> contents_;
};

bool IsGemini(const TranscriptFile& file) {
  const json::Value root = file.single();
  const std::vector<json::Value> messages = root["messages"].children();
  return root["sessionId"].is_string() && root["projectHash"].is_string() &&
         std::ranges::any_of(messages, [](const json::Value& message) {
           return message["type"].is_string() && message["content"].exists();
         });
}

ReadResult ReadGemini(const TranscriptFile& file) {
  ReadResult result;
  Transcript transcript;
  transcript.format = Format::kGemini;
  transcript.messages = Reader(file, result.issues).Read();
  if (!transcript.messages.empty()) {
    result.transcripts.push_back(std::move(transcript));
  }
  return result;
}

}  // namespace

const Importer kGeminiImporter = {
    .source = "gemini", .detect = IsGemini, .read = ReadGemini};

}  // namespace clerestory
