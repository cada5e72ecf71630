// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/reported_usage.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"

// A rollout of Codex holds what it sent and received as `response_item`s, whose
// payloads are items of the Responses API; members that are Codex's own are
// kept as they stand. What the user and the agent said stands there again as
// `event_msg`, which are left out, as are `turn_context` (repeated before each
// step of the model, and the only place that names it), `world_state` and
// `session_meta` (one for each session that this one was forked from). In files
// before September 2025 the items are the lines. A turn that was aborted may
// leave calls without results. Arguments are JSON in a string, or null in files
// that were cut down; outputs of newer versions may be objects.

namespace clerestory {
namespace {

enum class ItemKind {
  kMessage,    // Of the user, the developer or the system.
  kReasoning,  // Refused without the item of the model that it led to.
  kCall,       // Needs a result.
  kAnswer,     // Anything else from the model.
  kResult,
};

struct ItemType {
  absl::string_view name;
  ItemKind kind = ItemKind::kAnswer;
};

constexpr std::array<ItemType, 23> kItemTypes = {{
    {"message", ItemKind::kMessage},
    {"reasoning", ItemKind::kReasoning},
    {"function_call", ItemKind::kCall},
    {"custom_tool_call", ItemKind::kCall},
    {"local_shell_call", ItemKind::kCall},
    {"shell_call", ItemKind::kCall},
    {"apply_patch_call", ItemKind::kCall},
    {"computer_call", ItemKind::kCall},
    {"tool_search_call", ItemKind::kCall},
    {"function_call_output", ItemKind::kResult},
    {"custom_tool_call_output", ItemKind::kResult},
    {"local_shell_call_output", ItemKind::kResult},
    {"shell_call_output", ItemKind::kResult},
    {"apply_patch_call_output", ItemKind::kResult},
    {"computer_call_output", ItemKind::kResult},
    {"tool_search_output", ItemKind::kResult},
    {"web_search_call", ItemKind::kAnswer},
    {"file_search_call", ItemKind::kAnswer},
    {"image_generation_call", ItemKind::kAnswer},
    {"code_interpreter_call", ItemKind::kAnswer},
    {"mcp_call", ItemKind::kAnswer},
    {"mcp_list_tools", ItemKind::kAnswer},
    {"compaction", ItemKind::kAnswer},
}};

const ItemType* TypeOf(const json::Value& item) {
  const std::string name = item["type"].string();
  const auto* const type = std::ranges::find_if(
      kItemTypes, [&](const ItemType& known) { return known.name == name; });
  return type == kItemTypes.end() ? nullptr : type;
}

constexpr UsageNames kCodexUsage = {.input = "input_tokens",
                                    .cache_read = "cached_input_tokens",
                                    .output = "output_tokens",
                                    .reasoning = "reasoning_output_tokens",
                                    .is_input_whole = true};

// What a result of the type `result` answers. Codex answers the shell calls of
// the model with function outputs.
bool Answers(absl::string_view result, absl::string_view call) {
  if (result == "tool_search_output") return call == "tool_search_call";
  return result == absl::StrCat(call, "_output") ||
         (result == "function_call_output" && call == "local_shell_call");
}

// The id by which a call and its result know each other.
std::string CallIdOf(const json::Value& item) {
  const std::string id = item["call_id"].string();
  return id.empty() ? item["id"].string() : id;
}

// Whether the `output` of its items is a text or a list of inputs.
bool HasTextOutput(const ItemType& type) {
  return type.name == "function_call_output" ||
         type.name == "custom_tool_call_output" ||
         type.name == "local_shell_call_output";
}

// Whether the API takes `output` as it is.
bool IsOutput(const json::Value& output) {
  const std::vector<json::Value> parts = output.children();
  return output.is_string() ||
         (output.is_array() &&
          std::ranges::all_of(parts, [](const json::Value& part) {
            return part["type"].equals("input_text") ||
                   part["type"].equals("input_image") ||
                   part["type"].equals("input_file");
          }));
}

struct Item {
  std::int64_t line = 0;
  ItemKind kind = ItemKind::kMessage;
  absl::string_view type;
  std::string call_id;
  std::string bytes;
  TimeMicros time = 0;
  std::string model;
  std::optional<Usage> usage = {};
  bool is_answered = false;
  bool is_dropped = false;

  bool is_of_model() const {
    return kind == ItemKind::kReasoning || kind == ItemKind::kCall ||
           kind == ItemKind::kAnswer;
  }
};

class Reader {
 public:
  Reader(const TranscriptFile& file, std::vector<ReadIssue>& issues)
      : file_(file), issues_(issues) {}

  std::vector<TranscriptMessage> Read() {
    for (const json::Value& record : file_.values()) AddRecord(record);
    Pair();
    DropOpenCalls();
    DropIdleReasoning();
    std::vector<TranscriptMessage> messages;
    for (Item& item : items_) {
      if (item.is_dropped) continue;
      messages.push_back({.bytes = std::move(item.bytes),
                          .time = item.time,
                          .model = std::move(item.model),
                          .usage = item.usage});
    }
    return messages;
  }

 private:
  void AddRecord(const json::Value& record) {
    const json::Value type = record["type"];
    const json::Value payload = record["payload"];
    if (type.equals("response_item")) {
      AddItem(record, payload);
    } else if (type.equals("turn_context")) {
      model_ = payload["model"].string();
    } else if (payload["type"].equals("token_count")) {
      AddUsage(payload["info"]["last_token_usage"]);
    } else if (type.equals("compacted")) {
      AddCompaction(record);
    } else if (payload["type"].equals("thread_rolled_back")) {
      Note(file_.LineOf(record), "the user went back, which is not followed");
    } else if (!payload.exists() && TypeOf(record) != nullptr) {
      AddItem(record, record);
    }
  }

  void AddItem(const json::Value& record, const json::Value& payload) {
    const std::int64_t line = file_.LineOf(record);
    const ItemType* const type = TypeOf(payload);
    if (type == nullptr) {
      Note(line, "not an item of the Responses API: skipped");
      return;
    }
    if (HasTextOutput(*type) && !payload["output"].exists()) {
      Note(line, "a result without output: skipped");
      return;
    }
    Item item = {.line = line,
                 .kind = type->kind,
                 .type = type->name,
                 .call_id = CallIdOf(payload),
                 .bytes = LegalBytes(*type, payload),
                 .time = TimeOf(record["timestamp"]),
                 .model = ""};
    if (payload["role"].equals("assistant")) item.kind = ItemKind::kAnswer;
    // Searches for tools that the API makes itself are not answered by clients,
    // and have no call id.
    if (item.type.find("tool_search") == 0 && !payload["call_id"].is_string()) {
      item.kind = ItemKind::kAnswer;
    }
    if (item.is_of_model()) {
      item.model = model_;
      item.usage = std::exchange(waiting_usage_, std::nullopt);
    }
    items_.push_back(std::move(item));
  }

  // Older versions write the usage before what the model answered, newer ones
  // behind it.
  void AddUsage(const json::Value& tokens) {
    const std::optional<Usage> usage = ReportedUsage(tokens, kCodexUsage);
    Item* first = nullptr;
    for (std::size_t i = items_.size(); i-- > 0 && items_[i].is_of_model();) {
      first = &items_[i];
      if (first->usage) break;
    }
    if (first == nullptr || first->usage) {
      waiting_usage_ = usage;
    } else {
      first->usage = usage;
    }
  }

  // The later requests held the summary, or the items of `replacement_history`,
  // instead of what stands before it.
  void AddCompaction(const json::Value& record) {
    const std::int64_t line = file_.LineOf(record);
    Note(line, absl::StrCat("compaction ", ++compactions_,
                            ": what it stands for is kept too"));
    const json::Value summary = record["payload"]["message"];
    if (summary.string().empty()) return;
    items_.push_back(
        {.line = line,
         .type = "message",
         .call_id = "",
         .bytes = absl::StrCat(R"({"type":"message","role":"user","content":[)"
                               R"({"type":"input_text","text":)",
                               summary.raw(), "}]}"),
         .time = TimeOf(record["timestamp"]),
         .model = ""});
  }

  // The bytes of `item`, with what the API would not take as a JSON text.
  static std::string LegalBytes(const ItemType& type, const json::Value& item) {
    json::Value part;
    std::string legal;
    if (type.name == "function_call" && !item["arguments"].is_string()) {
      part = item["arguments"];
      legal = json::Quote(part.is_object() ? part.raw() : "{}");
    } else if (HasTextOutput(type) && !IsOutput(item["output"])) {
      part = item["output"];
      legal = json::Quote(part.raw());
    }
    const absl::string_view raw = item.raw();
    if (!part.exists()) return std::string(raw);
    const auto at = static_cast<std::size_t>(part.raw().data() - raw.data());
    return absl::StrCat(raw.substr(0, at), legal,
                        raw.substr(at + part.raw().size()));
  }

  // Finds for each result the last call with its id that has none yet.
  void Pair() {
    std::map<std::string, std::vector<Item*>> open;
    for (Item& item : items_) {
      if (item.kind == ItemKind::kCall) open[item.call_id].push_back(&item);
      if (item.kind != ItemKind::kResult) continue;
      std::vector<Item*>& calls = open[item.call_id];
      const auto call = std::find_if(
          calls.rbegin(), calls.rend(),
          [&](const Item* c) { return Answers(item.type, c->type); });
      if (call == calls.rend()) {
        item.is_dropped = true;
        Note(item.line, absl::StrCat("a result for ", item.call_id,
                                     ", which is no open call: dropped"));
        continue;
      }
      (*call)->is_answered = true;
      calls.erase(std::next(call).base());
    }
  }

  // Calls without a result are refused. Those at the end may still get one.
  void DropOpenCalls() {
    bool at_end = true;
    for (std::size_t i = items_.size(); i-- > 0;) {
      Item& item = items_[i];
      if (!item.is_of_model() && !item.is_dropped) at_end = false;
      if (item.kind != ItemKind::kCall || item.is_answered || at_end) continue;
      item.is_dropped = true;
      Note(item.line,
           absl::StrCat("call ", item.call_id, " has no result: dropped"));
    }
  }

  // Drops reasoning that is not followed by anything that the model made of it.
  void DropIdleReasoning() {
    bool is_used = false;
    bool is_behind_reasoning = false;
    for (std::size_t i = items_.size(); i-- > 0;) {
      Item& item = items_[i];
      if (item.kind == ItemKind::kResult && item.is_dropped) continue;
      if (item.kind == ItemKind::kReasoning) {
        is_behind_reasoning = true;
        if (is_used) continue;
        item.is_dropped = true;
        Note(item.line, "reasoning that led to nothing: dropped");
      } else if (item.is_of_model()) {
        is_used = (is_used && !is_behind_reasoning) || !item.is_dropped;
        is_behind_reasoning = false;
      } else {
        is_used = false;
        is_behind_reasoning = false;
      }
    }
  }

  void Note(std::int64_t line, std::string what) {
    issues_.push_back({.line = line, .what = std::move(what)});
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  std::vector<Item> items_;
  std::string model_;
  // Of an answer that has not begun.
  std::optional<Usage> waiting_usage_;
  std::int64_t compactions_ = 0;
};

bool IsCodex(const TranscriptFile& file) {
  const std::vector<json::Value>& values = file.values();
  const json::Value& first = values.front();
  // Before the records had a wrapper.
  if (first["id"].is_string() && first["timestamp"].is_string() &&
      !first["type"].exists()) {
    return std::ranges::any_of(
        values, [](const json::Value& value) { return TypeOf(value); });
  }
  return std::ranges::any_of(values, [](const json::Value& value) {
    return value["type"].equals("response_item") &&
           value["payload"]["type"].is_string();
  });
}

ReadResult ReadCodex(const TranscriptFile& file) {
  ReadResult result;
  Transcript transcript;
  transcript.format = Format::kOpenaiResponses;
  transcript.messages = Reader(file, result.issues).Read();
  if (!transcript.messages.empty()) {
    result.transcripts.push_back(std::move(transcript));
  }
  return result;
}

}  // namespace

const Importer kCodexImporter = {
    .source = "codex", .detect = IsCodex, .read = ReadCodex};

}  // namespace clerestory
