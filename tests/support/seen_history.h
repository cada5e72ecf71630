// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_SEEN_HISTORY_H_
#define CLERESTORY_TESTS_SUPPORT_SEEN_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/json/literal.h"
#include "server/refetch/detector.h"
#include "server/tools/access.h"

namespace clerestory {

// Calls and what came of them, shown to a detector one after the other.
class SeenHistory {
 public:
  // All but the newest `keep` observations are masked.
  explicit SeenHistory(std::size_t keep = 0) : keep_(keep) {}

  // Adds a call of `tool` with the JSON object `arguments`, and the text that
  // it gave; returns what it repeats.
  Repeat Add(absl::string_view tool, absl::string_view arguments,
             absl::string_view text, bool is_error = false) {
    return AddRaw(tool, arguments, json::Quote(text), is_error);
  }

  // The same with the JSON value of the content.
  Repeat AddRaw(absl::string_view tool, absl::string_view arguments,
                std::string content, bool is_error = false) {
    entries_.push_back({.tool = std::string(tool),
                        .arguments = std::string(arguments),
                        .content = std::move(content),
                        .is_error = is_error});
    const std::size_t index = entries_.size() - 1;
    return detector_.Look(
        index,
        [this](std::size_t i) {
          const Entry& entry = entries_[i];
          return SeenObservation{.tool = entry.tool,
                                 .arguments = entry.arguments,
                                 .content = entry.content,
                                 .is_error = entry.is_error,
                                 .token_count = static_cast<std::int64_t>(
                                     entry.content.size() / 4),
                                 .turn = static_cast<std::int64_t>(i + 1)};
        },
        [this, index](std::size_t i) { return i + keep_ < index; },
        [this](absl::string_view) { return rule_; });
  }

  // A shell command and what it printed.
  Repeat Shell(absl::string_view command, absl::string_view text,
               bool is_error = false) {
    return Add("Bash",
               absl::StrCat("{\"command\": ", json::Quote(command), "}"), text,
               is_error);
  }

  // A read of a file, or of `limit` lines of it from `offset`, with numbers.
  Repeat Read(absl::string_view path, absl::string_view text, int offset = 0,
              int limit = 0) {
    std::string arguments = absl::StrCat("{\"file_path\": ", json::Quote(path));
    if (limit > 0) {
      absl::StrAppend(&arguments, ", \"offset\": ", offset,
                      ", \"limit\": ", limit);
    }
    return Add("Read", absl::StrCat(arguments, "}"), text);
  }

  // An edit of a file.
  Repeat Edit(absl::string_view path, absl::string_view result,
              bool is_error = false) {
    return Add("Edit",
               absl::StrCat("{\"file_path\": ", json::Quote(path),
                            ", \"old_string\": \"a\", \"new_string\": \"b\"}"),
               result, is_error);
  }

  RepeatDetector& detector() { return detector_; }
  // What a policy says of every tool.
  void set_rule(ToolAccess rule) { rule_ = std::move(rule); }

 private:
  struct Entry {
    std::string tool;
    std::string arguments;
    std::string content;
    bool is_error = false;
  };

  std::size_t keep_;
  std::deque<Entry> entries_;
  RepeatDetector detector_;
  ToolAccess rule_;
};

// The lines `first` to `last` of a file called `name`, as `cat` prints them:
// each has other words, and every fifth is a bracket.
inline std::string FileLines(absl::string_view name, int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) {
    if (i % 5 == 0) {
      absl::StrAppend(&text, "}\n");
    } else {
      absl::StrAppend(&text, "  const value_", std::int64_t{i} * 7919 % 10'007,
                      " = ", name, ".Compute(",
                      std::int64_t{i} * 104'729 % 99'991, ");\n");
    }
  }
  return text;
}

// The same with the numbers of the lines before them, parted by `mark`.
inline std::string NumberedLines(absl::string_view name, int first, int last,
                                 absl::string_view mark = "\t") {
  std::string text;
  for (int i = first; i <= last; ++i) {
    absl::StrAppend(&text, i, mark, FileLines(name, i, i));
  }
  return text;
}

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_SEEN_HISTORY_H_
