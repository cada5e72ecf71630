// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/chat_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"

namespace clerestory {
namespace {

// Blocks that stand elsewhere in the Chat Completions format, or nowhere.
constexpr std::array<absl::string_view, 5> kNotContent = {
    "reasoning", "redacted_thinking", "thinking", "tool_call", "tool_use"};

bool HasWords(absl::string_view text) {
  return !absl::StripAsciiWhitespace(text).empty();
}

// `json` with the blanks that Python's `json.dumps` writes, and no others:
// agents send arguments so, however they are indented in a file.
std::string Respaced(absl::string_view json) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\') {
      out.push_back(c);
      out.push_back(json[++i]);
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      continue;
    }
    out.push_back(c);
    if (!in_string && (c == ',' || c == ':')) out.push_back(' ');
  }
  return out;
}

// The pictures of a block, as URLs.
std::vector<std::string> PicturesOf(const json::Value& block) {
  std::vector<std::string> urls;
  for (const json::Value& url :
       {block["image_url"]["url"], block["image_url"], block["image"]}) {
    if (url.is_string()) urls.push_back(url.string());
  }
  for (const json::Value& url : block["image_urls"].children()) {
    if (url.is_string()) urls.push_back(url.string());
  }
  const json::Value source = block["source"];
  if (source["media_type"].is_string() && source["data"].is_string()) {
    urls.push_back(absl::StrCat("data:", source["media_type"].string(),
                                ";base64,", source["data"].string()));
  }
  return urls;
}

// Adds what `block` gives to `parts`.
void AddBlock(absl::string_view role, const json::Value& block,
              ChatContent& content, std::vector<std::string>& parts) {
  const json::Value text = block.is_string() ? block : block["text"];
  if (text.is_string()) {
    if (text.string().empty()) return;
    content.has_words = content.has_words || HasWords(text.string());
    parts.push_back(absl::StrCat(R"({"type":"text","text":)", text.raw(), "}"));
    return;
  }
  const std::string type = block["type"].string();
  if (std::ranges::find(kNotContent, type) != kNotContent.end()) return;
  const std::vector<std::string> urls = PicturesOf(block);
  if (role != "user" || urls.empty()) {
    ++content.left_out;
    return;
  }
  content.has_words = true;
  for (const std::string& url : urls) {
    parts.push_back(absl::StrCat(R"({"type":"image_url","image_url":{"url":)",
                                 json::Quote(url), "}}"));
  }
}

}  // namespace

std::vector<json::Value> ElementsOf(const TranscriptFile& file) {
  const json::Value single = file.single();
  return single.is_array() ? single.children() : file.values();
}

TimeMicros TimeOfText(absl::string_view text) {
  absl::Time time;
  std::string error;
  for (const absl::string_view format :
       {absl::string_view(absl::RFC3339_full),
        absl::string_view("%Y-%m-%d%ET%H:%M:%E*S")}) {
    if (absl::ParseTime(format, text, &time, &error)) {
      return absl::ToUnixMicros(time);
    }
  }
  return 0;
}

ChatContent ContentFromText(absl::string_view text) {
  return {.json = json::Quote(text), .has_words = HasWords(text)};
}

ChatContent ContentFrom(absl::string_view role, const json::Value& content) {
  ChatContent out;
  if (content.is_string()) {
    out.json = std::string(content.raw());
    out.has_words = HasWords(content.string());
    return out;
  }
  if (!content.is_array()) return out;
  // Its parts may be deeper than what can be walked of the file.
  const absl::StatusOr<json::Document> blocks =
      json::Document::Parse(content.raw());
  if (!blocks.ok()) return out;
  std::vector<std::string> parts;
  for (const json::Value& block : blocks->root().children()) {
    AddBlock(role, block, out, parts);
  }
  if (!parts.empty()) {
    out.json = absl::StrCat("[", absl::StrJoin(parts, ","), "]");
  }
  return out;
}

std::string ChatMessage(absl::string_view role, absl::string_view content,
                        absl::string_view call_id) {
  std::string message = absl::StrCat(R"({"role":)", json::Quote(role));
  if (!call_id.empty()) {
    absl::StrAppend(&message, R"(,"tool_call_id":)", json::Quote(call_id));
  }
  absl::StrAppend(&message, R"(,"content":)", content, "}");
  return message;
}

void SetContent(ChatAnswer& answer, const ChatContent& content) {
  answer.has_content = content.has_words;
  answer.members = absl::StrCat(R"("role":"assistant","content":)",
                                content.has_words ? content.json : "null");
}

void AddCall(ChatAnswer& answer, const std::string& id, const std::string& name,
             const json::Value& arguments, std::vector<ReadIssue>& issues) {
  if (id.empty() || name.empty()) {
    issues.push_back({answer.line, "a tool call without id or name: dropped"});
    return;
  }
  if (std::ranges::any_of(answer.calls, [&id](const ChatCall& call) {
        return call.id == id;
      })) {
    issues.push_back({answer.line, absl::StrCat("call ", id,
                                                " twice in a message: the "
                                                "second is dropped")});
    return;
  }
  std::string text = "{}";
  if (arguments.is_object()) {
    text = Respaced(arguments.raw());
  } else if (arguments.is_string()) {
    text = arguments.string();
    const absl::StatusOr<json::Document> inner = json::Document::Parse(text);
    if (!inner.ok() || !inner->root().is_object()) {
      text = text.empty() ? "{}"
                          : absl::StrCat(R"({"input": )", arguments.raw(), "}");
    }
  } else if (arguments.exists() && !arguments.is(json::Kind::kNull)) {
    text = absl::StrCat(R"({"input": )", arguments.raw(), "}");
  }
  answer.calls.push_back(
      {.id = id,
       .json = absl::StrCat(R"({"id":)", json::Quote(id),
                            R"(,"type":"function","function":{"name":)",
                            json::Quote(name), R"(,"arguments":)",
                            json::Quote(text), "}}")});
}

void AddContent(ChatHistory& history, const ChatContent& content,
                absl::string_view role, const std::string& call_id,
                std::int64_t line, TimeMicros time,
                std::vector<ReadIssue>& issues) {
  if (content.left_out > 0) {
    issues.push_back(
        {line, absl::StrCat(content.left_out, " blocks that are neither text ",
                            "nor a picture of the user: left out")});
  }
  if (role == "tool") {
    history.AddResult(
        line, call_id,
        ChatMessage(role, content.json.empty() ? R"("")" : content.json,
                    call_id),
        time);
  } else if (content.has_words) {
    history.AddMessage(ChatMessage(role, content.json), time);
  } else {
    issues.push_back({line, "a message without content: skipped"});
  }
}

}  // namespace clerestory
