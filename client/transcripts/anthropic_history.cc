// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/anthropic_history.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

std::string ArrayOf(const std::vector<absl::string_view>& elements) {
  return absl::StrCat("[", absl::StrJoin(elements, ","), "]");
}

TranscriptMessage UserMessage(absl::string_view content, TimeMicros time) {
  return {.bytes = absl::StrCat(R"({"role":"user","content":)", content, "}"),
          .time = time,
          .model = ""};
}

bool IsThinking(const json::Value& block) {
  return block["type"].equals("thinking") ||
         block["type"].equals("redacted_thinking");
}

}  // namespace

void AnthropicHistory::Note(std::int64_t line, std::string what) {
  issues_.push_back({.line = line, .what = std::move(what)});
}

// Whether `block`, a text block or a message that is a string, has no text,
// which the provider refuses. Counts it.
bool AnthropicHistory::IsBlank(const json::Value& block, std::int64_t line) {
  json::Value text = block;
  if (!block.is_string() && block["type"].equals("text")) text = block["text"];
  if (!text.is_string() || !absl::StripAsciiWhitespace(text.string()).empty()) {
    return false;
  }
  if (blank_count_++ == 0) first_blank_line_ = line;
  return true;
}

json::Value AnthropicHistory::Own(std::string json) {
  // Down to the blocks of a result; what is below was checked in the file.
  constexpr json::ParseOptions kOptions = {.tree_depth = 4};
  texts_.push_back(std::move(json));
  absl::StatusOr<json::Document> document =
      json::Document::Parse(texts_.back(), kOptions);
  if (!document.ok()) return {};
  documents_.push_back(*std::move(document));
  return documents_.back().root();
}

void AnthropicHistory::AddAssistant(const std::string& id,
                                    const std::string& model, Origin origin,
                                    const json::Value& content,
                                    const std::optional<Usage>& usage) {
  const auto [found, is_new] =
      draft_of_message_.try_emplace(id, drafts_.size());
  if (is_new) {
    Draft& draft = drafts_.emplace_back();
    draft.is_assistant = true;
    draft.origin = origin;
    draft.model = model;
  }
  if (usage) drafts_[found->second].usage = usage;
  if (content.is_string()) {
    AddBlock(found->second, content, origin.line);
    return;
  }
  for (const json::Value& block : content.children()) {
    AddBlock(found->second, block, origin.line);
  }
}

void AnthropicHistory::AddBlock(std::size_t draft, const json::Value& block,
                                std::int64_t line) {
  if (IsBlank(block, line)) return;
  std::vector<Block>& blocks = drafts_[draft].blocks;
  std::string call_id;
  if (block["type"].equals("tool_use")) {
    call_id = block["id"].string();
    const Place place = {.draft = draft, .block = blocks.size()};
    if (!calls_.try_emplace(call_id, place).second) {
      Note(line, absl::StrCat("call ", call_id, " stands here again: dropped"));
      return;
    }
  }
  blocks.push_back({.bytes = block.is_string()
                                 ? absl::StrCat(R"({"type":"text","text":)",
                                                block.raw(), "}")
                                 : std::string(block.raw()),
                    .line = line,
                    .is_thinking = IsThinking(block),
                    .call_id = std::move(call_id)});
}

void AnthropicHistory::AddUser(Origin origin, const json::Value& content) {
  ResultRecord record;
  record.draft = drafts_.size();
  record.origin = origin;
  Draft& draft = drafts_.emplace_back();
  draft.origin = origin;
  if (content.is_string()) {
    if (!IsBlank(content, origin.line)) {
      draft.content = std::string(content.raw());
    }
    return;
  }
  bool is_whole = true;
  for (const json::Value& block : content.children()) {
    if (block["type"].equals("tool_result")) {
      record.results.push_back(block);
    } else if (IsBlank(block, origin.line)) {
      is_whole = false;
    } else {
      record.others.push_back(block.raw());
    }
  }
  if (!record.results.empty()) {
    result_records_.push_back(std::move(record));
  } else if (!record.others.empty()) {
    draft.content =
        is_whole ? std::string(content.raw()) : ArrayOf(record.others);
  }
}

void AnthropicHistory::Attach(const ResultRecord& record) {
  Draft* answered = nullptr;
  for (const json::Value& result : record.results) {
    const std::string id = result["tool_use_id"].string();
    const auto call = calls_.find(id);
    if (call == calls_.end()) {
      Note(record.origin.line,
           absl::StrCat("a result for ", id, ", which is no call: dropped"));
      continue;
    }
    Draft& draft = drafts_[call->second.draft];
    if (std::exchange(draft.blocks[call->second.block].is_answered, true)) {
      Note(record.origin.line,
           absl::StrCat("another result for call ", id, ": dropped"));
      continue;
    }
    if (draft.results.empty()) draft.results_time = record.origin.time;
    draft.results.push_back(result.raw());
    if (answered == nullptr) answered = &draft;
  }
  if (record.others.empty()) return;
  if (answered == nullptr) {
    drafts_[record.draft].content = ArrayOf(record.others);
    return;
  }
  answered->after_results.insert(answered->after_results.end(),
                                 record.others.begin(), record.others.end());
}

const AnthropicHistory::Draft* AnthropicHistory::OpenEnd() const {
  for (std::size_t i = drafts_.size(); i-- > 0;) {
    const Draft& draft = drafts_[i];
    if (!draft.content.empty() || !draft.results.empty()) return nullptr;
    if (!draft.blocks.empty()) return &draft;
  }
  return nullptr;
}

void AnthropicHistory::WriteAssistant(const Draft& draft, bool keep_open_calls,
                                      Transcript& transcript) {
  std::vector<const Block*> kept;
  for (const Block& block : draft.blocks) {
    if (block.call_id.empty() || block.is_answered || keep_open_calls) {
      kept.push_back(&block);
    } else {
      Note(block.line,
           absl::StrCat("call ", block.call_id, " has no result: dropped"));
    }
  }
  // The provider refuses a message that ends in thinking.
  while (!kept.empty() && kept.back()->is_thinking) {
    Note(kept.back()->line, "thinking that led to nothing: dropped");
    kept.pop_back();
  }
  if (kept.empty()) {
    Note(draft.origin.line, "an assistant message without content: dropped");
    return;
  }
  const std::string blocks = absl::StrJoin(
      kept, ",",
      [](std::string* out, const Block* block) { out->append(block->bytes); });
  transcript.messages.push_back(
      {.bytes =
           absl::StrCat(R"({"role":"assistant","content":[)", blocks, "]}"),
       .time = draft.origin.time,
       .model = draft.model,
       .usage = draft.usage});
}

void AnthropicHistory::Write(Transcript& transcript,
                             std::vector<ReadIssue>& issues) {
  for (const ResultRecord& record : result_records_) Attach(record);
  const Draft* const open_end = OpenEnd();
  for (const Draft& draft : drafts_) {
    if (!draft.is_assistant) {
      if (draft.content.empty()) continue;
      transcript.messages.push_back(
          UserMessage(draft.content, draft.origin.time));
      continue;
    }
    WriteAssistant(draft, &draft == open_end, transcript);
    if (draft.results.empty()) continue;
    std::vector<absl::string_view> blocks = draft.results;
    blocks.insert(blocks.end(), draft.after_results.begin(),
                  draft.after_results.end());
    transcript.messages.push_back(
        UserMessage(ArrayOf(blocks), draft.results_time));
  }
  if (blank_count_ > 0) {
    Note(first_blank_line_,
         absl::StrCat(blank_count_,
                      " texts without a word, which the provider refuses: "
                      "dropped"));
  }
  issues.insert(issues.end(), issues_.begin(), issues_.end());
}

}  // namespace clerestory
