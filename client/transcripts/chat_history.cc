// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/chat_history.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/base/time.h"
#include "server/json/document.h"

namespace clerestory {

ChatCall CommandCall(const std::string& id, absl::string_view tool,
                     absl::string_view command) {
  const std::string arguments =
      absl::StrCat(R"({"command":)", json::Quote(command), "}");
  return {.id = id,
          .json = absl::StrCat(R"({"id":)", json::Quote(id),
                               R"(,"type":"function","function":{"name":)",
                               json::Quote(tool), R"(,"arguments":)",
                               json::Quote(arguments), "}}")};
}

void ChatHistory::AddMessage(std::string bytes, TimeMicros time) {
  Flush(/*keep_open_calls=*/false);
  transcript_.messages.push_back(
      {.bytes = std::move(bytes), .time = time, .model = ""});
}

void ChatHistory::AddAnswer(ChatAnswer answer) {
  Flush(/*keep_open_calls=*/false);
  waiting_ = std::move(answer);
  is_answered_.assign(waiting_->calls.size(), false);
  for (std::size_t i = 0; i < waiting_->calls.size(); ++i) {
    open_calls_.emplace(waiting_->calls[i].id, i);
  }
}

void ChatHistory::AddResult(std::int64_t line, const std::string& id,
                            std::string bytes, TimeMicros time) {
  const auto call = open_calls_.find(id);
  if (call == open_calls_.end()) {
    issues_.push_back({line, absl::StrCat("a result for ", id,
                                          ", which is no open call: dropped")});
    return;
  }
  is_answered_[call->second] = true;
  open_calls_.erase(call);
  results_.push_back({.bytes = std::move(bytes), .time = time, .model = ""});
}

void ChatHistory::Finish() { Flush(/*keep_open_calls=*/results_.empty()); }

void ChatHistory::Flush(bool keep_open_calls) {
  if (!waiting_) return;
  std::vector<std::string> calls;
  for (std::size_t i = 0; i < waiting_->calls.size(); ++i) {
    const ChatCall& call = waiting_->calls[i];
    if (is_answered_[i] || keep_open_calls) {
      calls.push_back(call.json);
    } else {
      issues_.push_back({waiting_->line, absl::StrCat("call ", call.id,
                                                      " has no result: "
                                                      "dropped")});
    }
  }
  if (calls.empty() && !waiting_->has_content) {
    issues_.push_back(
        {waiting_->line, "an assistant message without content: dropped"});
  } else {
    std::string bytes = absl::StrCat("{", waiting_->members);
    if (!calls.empty()) {
      absl::StrAppend(&bytes, R"(,"tool_calls":[)", absl::StrJoin(calls, ","),
                      "]");
    }
    bytes.push_back('}');
    transcript_.messages.push_back({.bytes = std::move(bytes),
                                    .time = waiting_->time,
                                    .model = waiting_->model,
                                    .usage = waiting_->usage});
  }
  for (TranscriptMessage& result : results_) {
    transcript_.messages.push_back(std::move(result));
  }
  results_.clear();
  open_calls_.clear();
  waiting_.reset();
}

}  // namespace clerestory
