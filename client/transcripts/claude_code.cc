// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/anthropic_history.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/record_tree.h"
#include "client/transcripts/reported_usage.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// The model that Claude Code names for messages of its own: errors, and "No
// response requested."
constexpr absl::string_view kNoModel = "<synthetic>";

struct Record {
  json::Value value;
  std::int64_t line = 0;
  bool is_assistant = false;
  // Whether it is part of the conversation. Others have a place in the tree.
  bool is_message = false;
};

bool IsOfNoModel(const Record& record) {
  return record.is_assistant &&
         record.value["message"]["model"].equals(kNoModel);
}

bool HasResult(const json::Value& content) {
  if (!content.is_array()) return false;
  const std::vector<json::Value> blocks = content.children();
  return std::ranges::any_of(blocks, [](const json::Value& b) {
    return b["type"].equals("tool_result");
  });
}

std::vector<Record> RecordsOf(const TranscriptFile& file,
                              std::vector<ReadIssue>& issues) {
  std::vector<Record> records;
  std::set<std::string> ids;
  for (const json::Value& value : file.values()) {
    Record record = {.value = value, .line = file.LineOf(value)};
    const std::string id = value["uuid"].string();
    if (!id.empty() && !ids.insert(id).second) {
      issues.push_back({record.line, "a record that stood before: skipped"});
      continue;
    }
    record.is_assistant = value["type"].equals("assistant");
    record.is_message = record.is_assistant || value["type"].equals("user");
    const json::Value content = value["message"]["content"];
    if (record.is_message && !content.is_string() && !content.is_array()) {
      issues.push_back({record.line, "a message without content: skipped"});
      record.is_message = false;
    }
    records.push_back(record);
  }
  return records;
}

// The file of a sub-agent consists of side chains, and is a session. In any
// other file they are parts of other sessions.
void DropSidechains(std::vector<Record>& records,
                    std::vector<ReadIssue>& issues) {
  const auto is_side = [](const Record& record) {
    return record.value["isSidechain"].is_true();
  };
  if (std::ranges::none_of(records, [&](const Record& record) {
        return record.is_message && !is_side(record);
      })) {
    return;
  }
  std::int64_t count = 0;
  std::int64_t first_line = 0;
  for (const Record& record : records) {
    if (record.is_message && is_side(record) && count++ == 0) {
      first_line = record.line;
    }
  }
  std::erase_if(records, is_side);
  if (count > 0) {
    issues.push_back(
        {first_line, absl::StrCat(count, " records of sub-agents: skipped")});
  }
}

TreeRecord TreeRecordOf(const Record& record) {
  TreeRecord result = {.id = record.value["uuid"].string(),
                       .parent = record.value["parentUuid"].string(),
                       .kind = RecordKind::kNote,
                       .message = ""};
  const json::Value message = record.value["message"];
  if (IsOfNoModel(record)) {
    result.kind = RecordKind::kOther;
  } else if (record.is_assistant) {
    result.kind = RecordKind::kReply;
    result.message = message["id"].string();
  } else if (record.is_message && !record.value["isMeta"].is_true()) {
    result.kind = record.value["isCompactSummary"].is_true() ||
                          HasResult(message["content"])
                      ? RecordKind::kOther
                      : RecordKind::kPrompt;
  }
  return result;
}

void DropAbandoned(std::vector<Record>& records,
                   std::vector<ReadIssue>& issues) {
  std::vector<TreeRecord> nodes;
  nodes.reserve(records.size());
  for (const Record& record : records) nodes.push_back(TreeRecordOf(record));
  const RecordTree tree = FindRewinds(nodes);

  std::vector<std::int64_t> counts(tree.rewinds.size());
  std::vector<Record> kept;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (const auto rewind = tree.abandoned_by[i]) {
      counts[*rewind] += records[i].is_message ? 1 : 0;
    } else {
      kept.push_back(records[i]);
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;  // Inside another abandoned branch.
    const Rewind& rewind = tree.rewinds[i];
    issues.push_back(
        {records[rewind.abandoned].line,
         absl::StrCat("a branch of ", counts[i],
                      " records that was abandoned for the one at "
                      "line ",
                      records[rewind.replacement].line, ": dropped")});
  }
  records = std::move(kept);
}

bool IsClaudeCode(const TranscriptFile& file) {
  return std::ranges::any_of(file.values(), [](const json::Value& value) {
    return (value["type"].equals("user") ||
            value["type"].equals("assistant")) &&
           value["message"].is_object() && value["sessionId"].is_string();
  });
}

ReadResult ReadClaudeCode(const TranscriptFile& file) {
  ReadResult result;
  std::vector<Record> records = RecordsOf(file, result.issues);
  DropSidechains(records, result.issues);
  DropAbandoned(records, result.issues);

  AnthropicHistory history;
  std::int64_t compactions = 0;
  std::int64_t without_model = 0;
  std::int64_t first_without_model = 0;
  for (const Record& record : records) {
    if (!record.is_message) continue;
    const json::Value message = record.value["message"];
    const AnthropicHistory::Origin origin = {
        .line = record.line, .time = TimeOf(record.value["timestamp"])};
    if (!record.is_assistant) {
      if (record.value["isCompactSummary"].is_true()) {
        result.issues.push_back(
            {record.line, absl::StrCat("compaction ", ++compactions,
                                       ": what it stands for is kept too")});
      }
      history.AddUser(origin, message["content"]);
      continue;
    }
    if (IsOfNoModel(record)) {
      if (without_model++ == 0) first_without_model = record.line;
      continue;
    }
    const std::string id = message["id"].string();
    history.AddAssistant(id.empty() ? absl::StrCat("line ", record.line) : id,
                         message["model"].string(), origin, message["content"],
                         ReportedUsage(message["usage"], kAnthropicUsage));
  }
  if (without_model > 0) {
    result.issues.push_back(
        {first_without_model,
         absl::StrCat(without_model, " messages of no model (", kNoModel,
                      "): dropped")});
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

const Importer kClaudeCodeImporter = {
    .source = "claude-code", .detect = IsClaudeCode, .read = ReadClaudeCode};

}  // namespace clerestory
