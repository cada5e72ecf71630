// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_CHAT_PARTS_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_CHAT_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/transcripts/chat_history.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"

namespace clerestory {

// What importers need that turn an agent's own records into messages of the
// Chat Completions format. All pure.

// The elements of the array that the file is, or else its values.
std::vector<json::Value> ElementsOf(const TranscriptFile& file);

// Reads a time such as 2025-01-20T20:29:13.5, with a zone or in UTC; 0 if it is
// none.
TimeMicros TimeOfText(absl::string_view text);

// The content of a message.
struct ChatContent {
  // A JSON string or an array of parts; "" if nothing is in it.
  std::string json;
  // Whether there is more than blanks in it.
  bool has_words = false;
  // How many blocks have no place in such a message. Calls and reasoning, which
  // are left out too, do not count.
  std::int64_t left_out = 0;
};

// Makes content for a message of `role` from a string, which keeps its bytes,
// or an array of blocks of any provider. Text becomes text; in messages of the
// user pictures become `image_url` parts.
ChatContent ContentFrom(absl::string_view role, const json::Value& content);
// The same of plain text.
ChatContent ContentFromText(absl::string_view text);

// A whole message; a result if `call_id` is given.
std::string ChatMessage(absl::string_view role, absl::string_view content,
                        absl::string_view call_id = "");

// Makes `content` what `answer` says; null if it has no words.
void SetContent(ChatAnswer& answer, const ChatContent& content);

// Adds a call to `answer`. `arguments` is an object, which is written as agents
// in Python send it, or a string that holds one, which keeps its bytes;
// anything else becomes the only member of an object, `input`. A call without
// id or name, and one whose id `answer` has already, is dropped with an issue.
void AddCall(ChatAnswer& answer, const std::string& id, const std::string& name,
             const json::Value& arguments, std::vector<ReadIssue>& issues);

// Adds a message of `role`, or the result of `call_id` if `role` is "tool", to
// `history`. Blocks that have no place in it become an issue; a message of
// which nothing is left, too, unless it is a result.
void AddContent(ChatHistory& history, const ChatContent& content,
                absl::string_view role, const std::string& call_id,
                std::int64_t line, TimeMicros time,
                std::vector<ReadIssue>& issues);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_CHAT_PARTS_H_
