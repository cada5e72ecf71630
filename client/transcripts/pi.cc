// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/anthropic_history.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/reported_usage.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/time.h"
#include "server/json/document.h"
#include "server/model/message.h"

// A session of the coding agent pi has an entry per line. Messages are in a
// shape of its own, whatever the provider; results are messages. Answers that
// were aborted or failed may be empty or hold calls that were never made, and
// the session goes on. A compaction names the entry from which the next
// requests begin, by its index or id; its summary becomes a text of the user.
// `bashExecution` is a command that the user ran and showed to the model.
// Entries of newer files form a tree, and the last one ends the branch that
// counts. Other entries (`model_change`, `label`, ...) are no messages.

namespace clerestory {
namespace {

constexpr UsageNames kPiUsage = {.input = "input",
                                 .cache_read = "cacheRead",
                                 .cache_write = "cacheWrite",
                                 .output = "output"};

std::string TextBlock(absl::string_view literal) {
  return absl::StrCat(R"({"type":"text","text":)", literal, "}");
}

std::string ImageBlock(const json::Value& image) {
  return absl::StrCat(
      R"({"type":"image","source":{"type":"base64","media_type":)",
      image["mimeType"].raw(), R"(,"data":)", image["data"].raw(), "}}");
}

bool IsBlank(const json::Value& text) {
  return absl::StripAsciiWhitespace(text.string()).empty();
}

std::string ArrayOf(const std::vector<std::string>& elements) {
  return absl::StrCat("[", absl::StrJoin(elements, ","), "]");
}

// The ids of other providers hold characters that Anthropic refuses.
std::string LegalId(const json::Value& id) {
  std::string legal = id.string();
  for (char& c : legal) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') {
      c = '_';
    }
  }
  return json::Quote(legal);
}

// What the model was shown of a command that the user ran.
std::string TextOfCommand(const json::Value& message) {
  const std::string output = message["output"].string();
  std::string text = absl::StrCat(
      "Ran `", message["command"].string(), "`\n",
      output.empty() ? "(no output)" : absl::StrCat("```\n", output, "\n```"));
  if (message["cancelled"].is_true()) {
    absl::StrAppend(&text, "\n\n(command cancelled)");
  } else if (const auto code = message["exitCode"].integer();
             code.value_or(0) != 0) {
    absl::StrAppend(&text, "\n\nCommand exited with code ", *code);
  }
  if (message["truncated"].is_true() && message["fullOutputPath"].is_string()) {
    absl::StrAppend(&text, "\n\n[Output truncated. Full output: ",
                    message["fullOutputPath"].string(), "]");
  }
  return text;
}

// Something that is left out each time, and reported once.
struct Count {
  std::int64_t count = 0;
  std::int64_t first_line = 0;

  void Add(std::int64_t line) {
    if (count++ == 0) first_line = line;
  }
};

class Reader {
 public:
  Reader(const TranscriptFile& file, std::vector<ReadIssue>& issues)
      : file_(file), issues_(issues) {}

  void Read(Transcript& transcript) {
    for (const json::Value& entry : Branch()) AddEntry(entry);
    Report(wordless_, " answers that were aborted or failed before a word");
    Report(unsigned_, " thoughts without a signature");
    Report(hidden_, " commands that were not shown to the model");
    history_.Write(transcript, issues_);
  }

 private:
  // The entries that lead to the last one: all if they form no tree.
  std::vector<json::Value> Branch() {
    const std::vector<json::Value>& all = file_.values();
    std::map<std::string, std::string> parents;
    std::string leaf;
    for (const json::Value& entry : all) {
      if (!entry["parentId"].exists()) continue;
      leaf = entry["id"].string();
      parents.emplace(leaf, entry["parentId"].string());
    }
    if (parents.empty()) return all;
    std::set<std::string> path;
    for (auto at = parents.find(leaf);
         at != parents.end() && path.insert(at->first).second;) {
      at = parents.find(at->second);
    }
    std::vector<json::Value> branch;
    Count others;
    for (const json::Value& entry : all) {
      if (!entry["parentId"].exists() || path.contains(entry["id"].string())) {
        branch.push_back(entry);
      } else {
        others.Add(file_.LineOf(entry));
      }
    }
    Report(others, " entries of other branches");
    return branch;
  }

  void AddEntry(const json::Value& entry) {
    const json::Value type = entry["type"];
    const AnthropicHistory::Origin origin = {
        .line = file_.LineOf(entry), .time = TimeOf(entry["timestamp"])};
    if (type.equals("message")) {
      AddMessage(entry["message"], origin);
    } else if (type.equals("compaction")) {
      issues_.push_back(
          {origin.line, absl::StrCat("compaction ", ++compactions_,
                                     ": what it stands for is kept too")});
      AddSummary("The conversation before this was compacted into a summary:",
                 entry["summary"], origin);
    } else if (type.equals("branch_summary")) {
      AddSummary("A summary of the branch that the conversation came from:",
                 entry["summary"], origin);
    } else if (type.equals("custom_message")) {
      AddUser(BlocksOf(entry["content"]), origin);
    }
  }

  void AddMessage(const json::Value& message, AnthropicHistory::Origin origin) {
    const json::Value role = message["role"];
    if (role.equals("assistant")) {
      AddAssistant(message, origin);
    } else if (role.equals("toolResult")) {
      AddResult(message, origin);
    } else if (role.equals("user") || role.equals("custom")) {
      AddUser(BlocksOf(message["content"]), origin);
    } else if (!role.equals("bashExecution")) {
      issues_.push_back({origin.line, "not a message of pi: skipped"});
    } else if (message["excludeFromContext"].is_true()) {
      hidden_.Add(origin.line);
    } else {
      AddUser({TextBlock(json::Quote(TextOfCommand(message)))}, origin);
    }
  }

  void AddAssistant(const json::Value& message,
                    AnthropicHistory::Origin origin) {
    const json::Value api = message["api"];
    const bool is_signed = !api.exists() || api.equals("anthropic-messages");
    const std::vector<json::Value> content = message["content"].children();
    std::vector<std::string> blocks;
    for (const json::Value& block : content) {
      const json::Value type = block["type"];
      if (type.equals("text")) {
        blocks.push_back(TextBlock(block["text"].raw()));
      } else if (type.equals("toolCall")) {
        const json::Value input = block["arguments"];
        blocks.push_back(absl::StrCat(
            R"({"type":"tool_use","id":)", LegalId(block["id"]), R"(,"name":)",
            json::Quote(block["name"].string()), R"(,"input":)",
            input.is_object() ? input.raw() : "{}", "}"));
      } else if (type.equals("thinking")) {
        const json::Value signature = block["thinkingSignature"];
        if (!is_signed || signature.string().empty()) {
          unsigned_.Add(origin.line);
        } else if (block["redacted"].is_true()) {
          blocks.push_back(absl::StrCat(
              R"({"type":"redacted_thinking","data":)", signature.raw(), "}"));
        } else {
          blocks.push_back(absl::StrCat(
              R"({"type":"thinking","thinking":)", block["thinking"].raw(),
              R"(,"signature":)", signature.raw(), "}"));
        }
      }
    }
    if (content.empty()) {
      wordless_.Add(origin.line);
      return;
    }
    history_.AddAssistant(absl::StrCat("line ", origin.line),
                          message["model"].string(), origin,
                          history_.Own(ArrayOf(blocks)),
                          ReportedUsage(message["usage"], kPiUsage));
  }

  void AddResult(const json::Value& message, AnthropicHistory::Origin origin) {
    const std::vector<std::string> blocks = BlocksOf(message["content"]);
    std::string bytes = absl::StrCat(R"({"type":"tool_result","tool_use_id":)",
                                     LegalId(message["toolCallId"]));
    if (message["isError"].is_true()) {
      absl::StrAppend(&bytes, R"(,"is_error":true)");
    }
    if (!blocks.empty()) {
      absl::StrAppend(&bytes, R"(,"content":)", ArrayOf(blocks));
    }
    bytes.push_back('}');
    AddUser({bytes}, origin);
  }

  void AddSummary(absl::string_view heading, const json::Value& summary,
                  AnthropicHistory::Origin origin) {
    if (IsBlank(summary)) return;
    AddUser({TextBlock(
                json::Quote(absl::StrCat(heading, "\n\n", summary.string())))},
            origin);
  }

  void AddUser(const std::vector<std::string>& blocks,
               AnthropicHistory::Origin origin) {
    history_.AddUser(origin, history_.Own(ArrayOf(blocks)));
  }

  // The texts with a word and the pictures in `content`.
  static std::vector<std::string> BlocksOf(const json::Value& content) {
    std::vector<std::string> blocks;
    if (content.is_string() && !IsBlank(content)) {
      blocks.push_back(TextBlock(content.raw()));
    }
    for (const json::Value& block : content.children()) {
      if (block["type"].equals("text") && !IsBlank(block["text"])) {
        blocks.push_back(TextBlock(block["text"].raw()));
      } else if (block["type"].equals("image") && block["data"].is_string() &&
                 block["mimeType"].is_string()) {
        blocks.push_back(ImageBlock(block));
      }
    }
    return blocks;
  }

  void Report(const Count& count, absl::string_view what) {
    if (count.count == 0) return;
    issues_.push_back(
        {count.first_line, absl::StrCat(count.count, what, ": dropped")});
  }

  const TranscriptFile& file_;
  std::vector<ReadIssue>& issues_;
  AnthropicHistory history_;
  std::int64_t compactions_ = 0;
  Count wordless_;
  Count unsigned_;
  Count hidden_;
};

bool IsPi(const TranscriptFile& file) {
  return std::ranges::any_of(file.values(), [](const json::Value& value) {
    return value["type"].equals("message") &&
           value["message"]["role"].is_string();
  });
}

ReadResult ReadPi(const TranscriptFile& file) {
  ReadResult result;
  Transcript transcript;
  transcript.format = Format::kAnthropicMessages;
  Reader(file, result.issues).Read(transcript);
  if (!transcript.messages.empty()) {
    result.transcripts.push_back(std::move(transcript));
  }
  return result;
}

}  // namespace

const Importer kPiImporter = {.source = "pi", .detect = IsPi, .read = ReadPi};

}  // namespace clerestory
