// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_ANTHROPIC_HISTORY_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_ANTHROPIC_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/record.h"

namespace clerestory {

// Makes a history that Anthropic's Messages API accepts out of blocks that come
// in pieces: the results of a message's calls become one user message behind
// it, results first. Blocks keep their bytes. Dropped, with an issue each, are
// calls without a result (unless they end the history), results without a call,
// and what is left of a message that would be nothing or nothing but thinking.
//
// The values given must live until Write.
class AnthropicHistory {
 public:
  // Where something stands in the file, and when it was written.
  struct Origin {
    std::int64_t line = 0;
    TimeMicros time = 0;
  };

  AnthropicHistory() = default;
  AnthropicHistory(const AnthropicHistory&) = delete;
  AnthropicHistory& operator=(const AnthropicHistory&) = delete;

  // Keeps `json`, an array of blocks that is not in the file, and returns it
  // to be added. Does not exist if it is no JSON.
  json::Value Own(std::string json);

  // Adds `content`, a string or an array of blocks, to the assistant message
  // `id`, which begins here unless it has begun before. Of its `usage` the last
  // that there is counts.
  void AddAssistant(const std::string& id, const std::string& model,
                    Origin origin, const json::Value& content,
                    const std::optional<Usage>& usage = {});

  // Adds a user message, or results, wherever their calls are.
  void AddUser(Origin origin, const json::Value& content);

  // Appends the messages to `transcript` and what was dropped to `issues`. To
  // be called once, at the end.
  void Write(Transcript& transcript, std::vector<ReadIssue>& issues);

 private:
  struct Block {
    std::string bytes;
    std::int64_t line = 0;
    bool is_thinking = false;
    std::string call_id;  // "" unless it is a call.
    bool is_answered = false;
  };

  // A message, and what answers its calls.
  struct Draft {
    bool is_assistant = false;
    Origin origin;
    std::string model;
    std::optional<Usage> usage;
    std::vector<Block> blocks;
    std::string content;  // Of a user message; "" if it has none.
    std::vector<absl::string_view> results;
    std::vector<absl::string_view> after_results;
    TimeMicros results_time = 0;
  };

  struct Place {
    std::size_t draft = 0;
    std::size_t block = 0;
  };

  // Results that came together, and what stood beside them.
  struct ResultRecord {
    std::size_t draft = 0;  // Holds the place of text whose calls are gone.
    Origin origin;
    std::vector<json::Value> results;
    std::vector<absl::string_view> others;
  };

  void Note(std::int64_t line, std::string what);
  bool IsBlank(const json::Value& block, std::int64_t line);
  void AddBlock(std::size_t draft, const json::Value& block, std::int64_t line);
  void Attach(const ResultRecord& record);
  // The last message if it is the assistant's and nothing answers it: its calls
  // may be open, for the session ended there. Else null.
  const Draft* OpenEnd() const;
  void WriteAssistant(const Draft& draft, bool keep_open_calls,
                      Transcript& transcript);

  // Neither moves, for values point to their document and it to its text.
  std::deque<std::string> texts_;
  std::deque<json::Document> documents_;
  std::vector<Draft> drafts_;
  std::map<std::string, std::size_t> draft_of_message_;
  std::map<std::string, Place> calls_;
  std::vector<ResultRecord> result_records_;
  std::vector<ReadIssue> issues_;
  std::int64_t blank_count_ = 0;
  std::int64_t first_blank_line_ = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_ANTHROPIC_HISTORY_H_
