// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/unwrap.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/json/document.h"
#include "server/json/literal.h"

namespace clerestory {
namespace {

// How many wrappers are opened one in the other.
constexpr int kDepthMax = 5;
// The most values of a JSON text inside a string that are looked at.
constexpr std::size_t kValuesMax = 20'000;

// The members that hold what a tool gave, beside what says how it went. The
// first that is there is taken, and a second stream with it.
constexpr absl::string_view kTextMembers[] = {
    "output", "stdout", "result",           "content",
    "text",   "stderr", "aggregated_output"};

// What stands beside them and says how it went.
constexpr absl::string_view kCompanions[] = {
    "_meta",       "annotations", "duration",  "duration_seconds",
    "error",       "exitCode",    "exit_code", "id",
    "interrupted", "isError",     "isImage",   "is_error",
    "metadata",    "meta",        "name",      "outcome",
    "query",       "returncode",  "role",      "signal",
    "status",      "success",     "tool",      "type",
};

std::string TextOf(const json::Value& value, int depth);
std::string Opened(std::string text, int depth);

// The string literal `literal`, or its beginning if it is very long.
std::string UnquotedStart(absl::string_view literal) {
  if (literal.size() <= kTextBytesMax) return json::Unquote(literal);
  // No escape, nor a pair of them, is longer than this.
  constexpr std::size_t kEscapesMax = 12;
  std::size_t end = kTextBytesMax;
  const std::size_t escape = literal.find('\\', end - kEscapesMax);
  end = std::min(end, escape);
  while (end > 1 && literal[end - 1] == '\\') --end;
  return json::Unquote(absl::StrCat(literal.substr(0, end), "\""));
}

void AppendPart(std::string part, std::string& text) {
  if (part.empty() || text.size() >= kTextBytesMax) return;
  if (!text.empty() && text.back() != '\n') text.push_back('\n');
  text.append(part, 0, kTextBytesMax - text.size());
}

std::string ObjectText(const json::Value& object, int depth) {
  std::string text;
  for (const absl::string_view name : kTextMembers) {
    const json::Value member = object[name];
    if (!member.exists() || member.is(json::Kind::kNull)) continue;
    if (!text.empty() && name != "stderr") continue;
    AppendPart(TextOf(member, depth), text);
  }
  return text;
}

bool IsAnyOf(absl::string_view name, const auto& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Whether it is an object that wraps a text, or an array of such.
bool IsWrapper(const json::Value& value) {
  if (value.is_array()) {
    const std::vector<json::Value> children = value.children();
    return !children.empty() && std::all_of(children.begin(), children.end(),
                                            [](const json::Value& child) {
                                              return child.is_object() &&
                                                     IsWrapper(child);
                                            });
  }
  if (!value.is_object()) return false;
  std::size_t text_size = 0;
  bool is_known = true;
  for (const json::Value& member : value.children()) {
    const std::string key = member.key();
    if (IsAnyOf(key, kTextMembers) &&
        (member.is_string() || IsWrapper(member))) {
      text_size += member.raw().size();
    } else {
      is_known =
          is_known && (IsAnyOf(key, kTextMembers) || IsAnyOf(key, kCompanions));
    }
  }
  // A document of its own may have such members, too.
  return text_size > 0 && (is_known || 2 * text_size >= value.raw().size());
}

std::string TextOf(const json::Value& value, int depth) {
  if (value.is_string()) return Opened(UnquotedStart(value.raw()), depth);
  if (depth > 0 && IsWrapper(value)) {
    if (value.is_object()) return ObjectText(value, depth - 1);
    std::string text;
    for (const json::Value& child : value.children()) {
      AppendPart(TextOf(child, depth - 1), text);
    }
    return text;
  }
  if (value.is_array()) {
    std::string text;
    for (const json::Value& child : value.children()) {
      // What is not text, as a picture, is no line.
      const json::Value inner = child["text"];
      if (inner.is_string()) {
        AppendPart(TextOf(inner, depth), text);
      } else if (child.is_string()) {
        AppendPart(UnquotedStart(child.raw()), text);
      } else if (!child["type"].is_string()) {
        AppendPart(std::string(child.raw().substr(0, kTextBytesMax)), text);
      }
    }
    return text;
  }
  return std::string(value.raw().substr(0, kTextBytesMax));
}

// Between the first `begin` in `text` and the last `end` behind it; all behind
// `begin` if there is no `end`.
absl::string_view Between(absl::string_view text, absl::string_view begin,
                          absl::string_view end) {
  const std::size_t at = text.find(begin);
  if (at == absl::string_view::npos) return text;
  text.remove_prefix(at + begin.size());
  const std::size_t stop = text.rfind(end);
  return text.substr(0, stop);
}

// The texts in Python's repr of an MCP result.
std::string PythonTexts(absl::string_view repr) {
  constexpr absl::string_view kMark = "TextContent(type='text', text=";
  std::string out;
  while (true) {
    const std::size_t at = repr.find(kMark);
    if (at == absl::string_view::npos || at + kMark.size() >= repr.size()) {
      return out;
    }
    repr.remove_prefix(at + kMark.size());
    const char quote = repr.front();
    std::size_t i = 1;
    std::string part;
    for (; i < repr.size() && repr[i] != quote; ++i) {
      if (repr[i] != '\\' || i + 1 == repr.size()) {
        part.push_back(repr[i]);
        continue;
      }
      ++i;
      part.push_back(repr[i] == 'n'   ? '\n'
                     : repr[i] == 't' ? '\t'
                     : repr[i] == 'r' ? '\r'
                                      : repr[i]);
    }
    repr.remove_prefix(std::min(i, repr.size()));
    AppendPart(std::move(part), out);
  }
}

// Takes out what stands between tags that a client adds for the model.
std::string WithoutReminders(std::string text) {
  constexpr absl::string_view kOpen = "<system-reminder>";
  constexpr absl::string_view kClose = "</system-reminder>";
  std::size_t at = text.find(kOpen.data(), 0, kOpen.size());
  if (at == std::string::npos) return text;
  std::string out;
  std::size_t from = 0;
  while (at != std::string::npos) {
    const std::size_t end = text.find(kClose.data(), at, kClose.size());
    out.append(text, from, at - from);
    if (end == std::string::npos) return out;
    from = end + kClose.size();
    at = text.find(kOpen.data(), from, kOpen.size());
  }
  out.append(text, from, std::string::npos);
  return out;
}

// Takes off the front of `text` what stands before the output in the reports of
// some agents, and what stands behind it.
absl::string_view WithoutReport(absl::string_view text) {
  absl::ConsumePrefix(&text, "OBSERVATION:\n");
  if (absl::StartsWith(text, "<returncode>") ||
      absl::StartsWith(text, "<output>")) {
    return Between(text, "<output>", "</output>");
  }
  if (absl::StartsWith(text, "Command: ") &&
      absl::StrContains(text, "\nOutput: ")) {
    return Between(text, "\nOutput: ", "\nError: ");
  }
  if (absl::StartsWith(text, "Output: ") &&
      absl::StrContains(text, "\nProcess Group PGID: ")) {
    return Between(text, "Output: ", "\nProcess Group PGID: ");
  }
  const bool is_timed = absl::StartsWith(text, "Exit code: ") ||
                        absl::StartsWith(text, "Chunk ID: ") ||
                        absl::StartsWith(text, "Wall time: ");
  if (is_timed && absl::StrContains(text.substr(0, 1'000), "\nOutput:\n")) {
    return text.substr(text.find("\nOutput:\n") + 9);
  }
  if (absl::StartsWith(text, "Here's the result of running `cat -n` on ")) {
    return Between(text, ":\n", absl::string_view());
  }
  return text;
}

std::string Opened(std::string text, int depth) {
  if (depth <= 0) return text;
  text = WithoutReminders(std::move(text));
  absl::string_view rest = text;
  while (!rest.empty() && (rest.front() == '\n' || rest.front() == '\r')) {
    rest.remove_prefix(1);
  }
  const absl::string_view inner = WithoutReport(rest);
  if (inner.size() < rest.size()) {
    return Opened(std::string(inner), depth - 1);
  }
  if (absl::StartsWith(rest, "meta=") || absl::StartsWith(rest, "[TextC")) {
    std::string texts = PythonTexts(rest);
    if (!texts.empty()) return Opened(std::move(texts), depth - 1);
  }
  const bool may_be_json =
      !rest.empty() && (rest.front() == '{' || rest.front() == '[');
  if (may_be_json) {
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(rest, {.tree_size_max = kValuesMax});
    if (document.ok() && IsWrapper(document->root())) {
      return TextOf(document->root(), depth - 1);
    }
  }
  return text;
}

}  // namespace

std::string UnwrappedText(absl::string_view content) {
  if (content.empty()) return "";
  if (content.front() == '"') {
    return Opened(UnquotedStart(content), kDepthMax);
  }
  if (content.front() != '{' && content.front() != '[') {
    return std::string(content.substr(0, kTextBytesMax));
  }
  const absl::StatusOr<json::Document> document =
      json::Document::Parse(content, {.tree_size_max = kValuesMax});
  if (!document.ok()) return std::string(content.substr(0, kTextBytesMax));
  return TextOf(document->root(), kDepthMax);
}

}  // namespace clerestory
