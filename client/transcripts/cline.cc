// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/anthropic_history.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"

// Cline keeps messages in Anthropic's shape, whatever the model, with members
// and blocks of its own: `file` blocks, which become texts; results with the
// name of their tool, which is left out, and with a content that is a JSON text
// or a list of {query, result, success}, of which the list becomes its JSON
// text. The ids of messages grow by a suffix each time the session is taken up
// and are not used.

namespace clerestory {
namespace {

constexpr std::array<absl::string_view, 5> kResultBlocks = {
    "text", "image", "document", "search_result", "tool_reference"};

// `value` as JSON text without the white space between its members.
std::string CompactJson(const json::Value& value) {
  if (!value.is_object() && !value.is_array()) return std::string(value.raw());
  const std::vector<json::Value> children = value.children();
  const bool is_object = value.is_object();
  if (children.empty()) return std::string(value.raw());
  const std::string inner = absl::StrJoin(
      children, ",", [&](std::string* out, const json::Value& child) {
        if (is_object) absl::StrAppend(out, json::Quote(child.key()), ":");
        absl::StrAppend(out, CompactJson(child));
      });
  return is_object ? absl::StrCat("{", inner, "}")
                   : absl::StrCat("[", inner, "]");
}

bool IsResultBlock(const json::Value& block) {
  const std::string type = block["type"].string();
  return std::ranges::find(kResultBlocks, type) != kResultBlocks.end();
}

std::string ResultBlock(const json::Value& block) {
  const json::Value content = block["content"];
  const std::vector<json::Value> parts = content.children();
  std::string bytes = absl::StrCat(R"({"type":"tool_result","tool_use_id":)",
                                   json::Quote(block["tool_use_id"].string()));
  if (block["is_error"].is_true())
    absl::StrAppend(&bytes, R"(,"is_error":true)");
  if (content.is_string() ||
      (content.is_array() && std::ranges::all_of(parts, IsResultBlock))) {
    absl::StrAppend(&bytes, R"(,"content":)", content.raw());
  } else if (content.exists()) {
    absl::StrAppend(&bytes, R"(,"content":)",
                    json::Quote(CompactJson(content)));
  }
  return absl::StrCat(bytes, "}");
}

std::string FileBlock(const json::Value& block) {
  const std::string text =
      absl::StrCat("<file_content path=\"", block["path"].string(), "\">\n",
                   block["content"].string(), "\n</file_content>");
  return absl::StrCat(R"({"type":"text","text":)", json::Quote(text), "}");
}

// Thinking of models that do not sign it, which Anthropic refuses.
bool IsUnsigned(const json::Value& block) {
  return block["type"].equals("thinking") &&
         block["signature"].string().empty();
}

std::string LegalBlock(const json::Value& block) {
  const json::Value type = block["type"];
  if (type.equals("file")) return FileBlock(block);
  if (type.equals("tool_result")) return ResultBlock(block);
  return std::string(block.raw());
}

TimeMicros TimeIn(const json::Value& message) {
  return TimeOf(message["ts"].integer().value_or(0), 1'000);
}

bool IsCline(const TranscriptFile& file) {
  const json::Value root = file.single();
  const std::vector<json::Value> messages = root["messages"].children();
  return root["sessionId"].is_string() &&
         std::ranges::any_of(messages, [](const json::Value& message) {
           return message["role"].is_string() && message["ts"].integer();
         });
}

ReadResult ReadCline(const TranscriptFile& file) {
  ReadResult result;
  AnthropicHistory history;
  const std::vector<json::Value> messages =
      file.single()["messages"].children();
  for (const json::Value& message : messages) {
    const json::Value role = message["role"];
    json::Value content = message["content"];
    const std::int64_t line = file.LineOf(message);
    const AnthropicHistory::Origin origin = {.line = line,
                                             .time = TimeIn(message)};
    if ((!role.equals("user") && !role.equals("assistant")) ||
        (!content.is_string() && !content.is_array())) {
      result.issues.push_back({line, "not a message of Cline: skipped"});
      continue;
    }
    if (content.is_array()) {
      std::vector<std::string> blocks;
      for (const json::Value& block : content.children()) {
        if (IsUnsigned(block)) {
          result.issues.push_back(
              {line, "thinking without a signature: dropped"});
        } else {
          blocks.push_back(LegalBlock(block));
        }
      }
      content = history.Own(absl::StrCat("[", absl::StrJoin(blocks, ","), "]"));
    }
    if (role.equals("user")) {
      history.AddUser(origin, content);
    } else {
      history.AddAssistant(absl::StrCat("line ", line),
                           message["modelInfo"]["id"].string(), origin,
                           content);
    }
  }
  Transcript transcript;
  transcript.format = Format::kAnthropicMessages;
  history.Write(transcript, result.issues);
  if (!transcript.messages.empty()) {
    result.transcripts.push_back(std::move(transcript));
  }
  return result;
}

}  // namespace

const Importer kClineImporter = {
    .source = "cline", .detect = IsCline, .read = ReadCline};

}  // namespace clerestory
