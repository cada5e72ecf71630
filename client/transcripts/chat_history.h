// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_CHAT_HISTORY_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_CHAT_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/base/time.h"
#include "server/model/record.h"

namespace clerestory {

// A call in an assistant message of the Chat Completions format.
struct ChatCall {
  std::string id;
  std::string json;
};

// Returns the call `id` of the function `tool` with the one argument `command`.
ChatCall CommandCall(const std::string& id, absl::string_view tool,
                     absl::string_view command);

// An assistant message of the Chat Completions format.
struct ChatAnswer {
  std::int64_t line = 0;
  TimeMicros time = 0;
  std::string model;
  // Its members but for the calls, as JSON without braces.
  std::string members;
  // Whether it says anything beside its calls.
  bool has_content = false;
  std::vector<ChatCall> calls;
  std::optional<Usage> usage = {};
};

// Makes a history that OpenAI's Chat Completions API accepts: each call is
// answered before anything else is said. Dropped, with an issue each, are calls
// without a result (unless they end the history), results without a call, and
// answers of which nothing is left.
class ChatHistory {
 public:
  // Appends to `transcript` and `issues`, which must outlive it.
  ChatHistory(Transcript& transcript, std::vector<ReadIssue>& issues)
      : transcript_(transcript), issues_(issues) {}

  // Adds a message that is neither an answer with calls nor a result.
  void AddMessage(std::string bytes, TimeMicros time = 0);
  void AddAnswer(ChatAnswer answer);
  // Adds the tool message `bytes` as the result of the call `id`.
  void AddResult(std::int64_t line, const std::string& id, std::string bytes,
                 TimeMicros time = 0);
  // To be called once, at the end.
  void Finish();

 private:
  // Writes the answer that waits for results, without the calls that got none
  // unless `keep_open_calls`.
  void Flush(bool keep_open_calls);

  Transcript& transcript_;
  std::vector<ReadIssue>& issues_;
  std::optional<ChatAnswer> waiting_;
  // Of the answer that waits; as they came.
  std::vector<TranscriptMessage> results_;
  std::vector<bool> is_answered_;
  std::multimap<std::string, std::size_t> open_calls_;
};

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_CHAT_HISTORY_H_
