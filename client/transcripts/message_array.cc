// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/array_check.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// A messages array of the file.
struct MessageList {
  std::size_t ordinal = 0;  // Among the sessions of the file, from 1.
  std::string model;        // Named beside the array.
  std::vector<json::Value> messages;
};

bool IsMessage(const json::Value& value) {
  return value["role"].is_string() &&
         (value["content"].exists() || value["tool_calls"].is_array() ||
          value["function_call"].is_object());
}

// The messages that the object `value` holds, if any.
std::vector<json::Value> HeldMessages(const json::Value& value) {
  for (const absl::string_view key : {"messages", "traj"}) {
    std::vector<json::Value> elements = value[key].children();
    if (value[key].is_array() && std::ranges::any_of(elements, IsMessage)) {
      return elements;
    }
  }
  return {};
}

// The messages arrays of `file`. What is neither a message nor holds messages
// becomes an issue if there is any at all.
std::vector<MessageList> FindLists(const TranscriptFile& file,
                                   std::vector<ReadIssue>& issues) {
  const json::Value single = file.single();
  const std::vector<json::Value> elements =
      single.is_array() ? single.children() : file.values();
  if (std::ranges::any_of(elements, IsMessage)) {
    return {{.ordinal = 1, .model = "", .messages = elements}};
  }
  std::vector<MessageList> lists;
  std::vector<ReadIssue> strangers;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const json::Value& element = elements[i];
    std::vector<json::Value> messages = HeldMessages(element);
    if (messages.empty()) {
      strangers.push_back({file.LineOf(element), "no session: skipped"});
    } else {
      lists.push_back({.ordinal = i + 1,
                       .model = element["model"].string(),
                       .messages = std::move(messages)});
    }
  }
  if (!lists.empty()) {
    issues.insert(issues.end(), strangers.begin(), strangers.end());
  }
  return lists;
}

bool AnyBlock(const json::Value& message,
              std::initializer_list<absl::string_view> types) {
  if (!message["content"].is_array()) return false;
  for (const json::Value& block : message["content"].children()) {
    for (const absl::string_view type : types) {
      if (block["type"].equals(type)) return true;
    }
  }
  return false;
}

// Whose format the messages are in. Calls and results tell; without any, the
// other roles and blocks that only one provider has. Plain conversations are
// the same in both.
Format FormatOf(const std::vector<MessageList>& lists) {
  Format weak = Format::kUnspecified;
  for (const MessageList& list : lists) {
    for (const json::Value& message : list.messages) {
      const json::Value role = message["role"];
      if (message["tool_calls"].is_array() || role.equals("tool") ||
          message["function_call"].is_object() || role.equals("function")) {
        return Format::kOpenaiChat;
      }
      if (AnyBlock(message, {"tool_use", "tool_result", "thinking",
                             "redacted_thinking", "server_tool_use"})) {
        return Format::kAnthropicMessages;
      }
      if (weak != Format::kUnspecified) continue;
      if (role.equals("system") || role.equals("developer") ||
          AnyBlock(message, {"image_url", "input_audio", "refusal"})) {
        weak = Format::kOpenaiChat;
      } else if (AnyBlock(message, {"image", "document", "search_result"})) {
        weak = Format::kAnthropicMessages;
      }
    }
  }
  return weak == Format::kUnspecified && !lists.empty() ? Format::kOpenaiChat
                                                        : weak;
}

bool IsArrayOf(const TranscriptFile& file, Format format) {
  std::vector<ReadIssue> ignored;
  return FormatOf(FindLists(file, ignored)) == format;
}

ReadResult ReadArraysAs(const TranscriptFile& file, Format format) {
  ReadResult result;
  const std::vector<MessageList> lists = FindLists(file, result.issues);
  for (const MessageList& list : lists) {
    Transcript transcript;
    transcript.format = format;
    if (lists.size() > 1) transcript.name = absl::StrCat("#", list.ordinal);
    std::vector<ArrayMessage> kept;
    for (const json::Value& message : list.messages) {
      const std::int64_t line = file.LineOf(message);
      const std::string fault = format == Format::kAnthropicMessages
                                    ? AnthropicFault(message)
                                    : ChatFault(message);
      if (!fault.empty()) {
        result.issues.push_back({line, absl::StrCat(fault, ": skipped")});
        continue;
      }
      kept.push_back({.value = message, .line = line});
      TranscriptMessage& out = transcript.messages.emplace_back();
      out.bytes = std::string(message.raw());
      if (!message["role"].equals("assistant")) continue;
      out.model = message["model"].string();
      if (out.model.empty()) out.model = list.model;
    }
    if (format == Format::kAnthropicMessages) {
      CheckAnthropicPairs(kept, result.issues);
    } else {
      CheckChatPairs(kept, result.issues);
    }
    if (!transcript.messages.empty()) {
      result.transcripts.push_back(std::move(transcript));
    }
  }
  return result;
}

}  // namespace

const Importer kAnthropicImporter = {
    .source = "anthropic",
    .detect =
        [](const TranscriptFile& file) {
          return IsArrayOf(file, Format::kAnthropicMessages);
        },
    .read =
        [](const TranscriptFile& file) {
          return ReadArraysAs(file, Format::kAnthropicMessages);
        }};

const Importer kOpenaiChatImporter = {
    .source = "openai-chat",
    .detect =
        [](const TranscriptFile& file) {
          return IsArrayOf(file, Format::kOpenaiChat);
        },
    .read =
        [](const TranscriptFile& file) {
          return ReadArraysAs(file, Format::kOpenaiChat);
        }};

}  // namespace clerestory
