// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/arguments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/digest.h"
#include "server/json/document.h"
#include "server/tools/access.h"
#include "server/tools/command_line.h"

namespace clerestory {
namespace {

constexpr std::size_t kValuesMax = 10'000;
constexpr std::size_t kCanonicalBytesMax = 512;

// What does not say what is asked for.
constexpr absl::string_view kIdle =
    "description explanation summary security_risk timeout timeout_ms "
    "requires_approval is_background toolSummary toolAction thought reason";

std::optional<json::Document> Parse(absl::string_view text) {
  absl::StatusOr<json::Document> document =
      json::Document::Parse(text, {.tree_size_max = kValuesMax});
  if (!document.ok()) return std::nullopt;
  return *std::move(document);
}

// Without the blanks between values.
void AppendCompact(absl::string_view raw, std::string& out) {
  bool is_string = false;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (is_string && c == '\\' && i + 1 < raw.size()) {
      out.append({c, raw[++i]});
      continue;
    }
    if (c == '"') is_string = !is_string;
    if (!is_string && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      continue;
    }
    out.push_back(c);
  }
}

LineRange FromTo(std::int64_t first, std::int64_t last) {
  LineRange range;
  range.first = std::max<std::int64_t>(first, 1);
  range.last = last < 0 ? INT64_MAX : std::max(range.first, last);
  return range;
}

LineRange FromCount(std::int64_t first, std::int64_t count) {
  first = std::max<std::int64_t>(first, 1);
  if (count <= 0 || count > INT64_MAX - first) return {.first = first};
  return {.first = first, .last = first + count - 1};
}

}  // namespace

json::Value MemberOf(json::Value object, absl::string_view names) {
  for (const absl::string_view name : absl::StrSplit(names, ' ')) {
    const json::Value value = object[name];
    if (value.exists() && !value.is(json::Kind::kNull)) return value;
  }
  return {};
}

std::optional<std::int64_t> IntegerOf(json::Value value) {
  if (value.is(json::Kind::kNumber)) return value.integer();
  std::int64_t number = 0;
  if (value.is_string() && absl::SimpleAtoi(value.string(), &number)) {
    return number;
  }
  return std::nullopt;
}

std::vector<std::string> TextsOf(json::Value value) {
  std::vector<std::string> texts;
  if (value.is_string()) {
    texts.push_back(value.string());
  } else if (value.is_array()) {
    for (const json::Value item : value.children()) {
      const json::Value text =
          item.is_object() ? MemberOf(item, "path file_path filePath file")
                           : item;
      if (text.is_string()) texts.push_back(text.string());
    }
  }
  std::erase(texts, "");
  return texts;
}

std::optional<LineRange> RangeOf(json::Value range) {
  if (range.is_array()) {
    const std::vector<json::Value> ends = range.children();
    if (ends.size() != 2) return std::nullopt;
    const auto first = IntegerOf(ends[0]);
    const auto last = IntegerOf(ends[1]);
    if (!first.has_value() || !last.has_value() || *last == 0) {
      return std::nullopt;
    }
    return FromTo(*first, *last);
  }
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(range.string(), absl::MaxSplits('-', 1));
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (!absl::SimpleAtoi(ends.first, &first) ||
      !absl::SimpleAtoi(ends.second, &last)) {
    return std::nullopt;
  }
  return FromTo(first, last);
}

std::optional<LineRange> LinesOf(json::Value object, bool is_zero_based) {
  const json::Value range =
      MemberOf(object, "view_range read_range line_range lines");
  if (range.is_array()) return RangeOf(range).value_or(LineRange());
  const auto number = [&](absl::string_view names) {
    return IntegerOf(MemberOf(object, names));
  };
  const auto first = number(
      "start_line startLine line_start start_line_one_indexed from_line "
      "StartLine");
  const auto last = number(
      "end_line endLine line_end end_line_one_indexed "
      "end_line_one_indexed_inclusive to_line EndLine");
  if (first.has_value() || last.has_value()) {
    // Counted from the end.
    if (first.value_or(1) < 0) return std::nullopt;
    return FromTo(first.value_or(1), last.value_or(-1));
  }
  const auto first_of_zero = number("startLineNumberBaseZero");
  const auto last_of_zero = number("endLineNumberBaseZero");
  if (first_of_zero.has_value() || last_of_zero.has_value()) {
    return FromTo(
        std::clamp<std::int64_t>(first_of_zero.value_or(0), 0, INT64_MAX - 1) +
            1,
        std::min(last_of_zero.value_or(-2), INT64_MAX - 1) + 1);
  }
  const auto offset = number("offset");
  const auto limit = number("limit max_lines num_lines");
  if (offset.has_value() || limit.has_value()) {
    if (offset.value_or(0) < 0) return std::nullopt;
    const std::int64_t base = is_zero_based ? 1 : 0;
    const std::int64_t begin =
        std::min<std::int64_t>(offset.value_or(0), INT64_MAX - 1) + base;
    return FromCount(begin, limit.value_or(0));
  }
  if (const auto head = number("head")) return FromCount(1, *head);
  if (MemberOf(object,
               "tail start_index max_length page pages line_number "
               "cursor byte_offset length")
          .exists()) {
    return std::nullopt;
  }
  return LineRange();
}

Arguments::Arguments(absl::string_view json) : json_(json) {
  json = absl::StripAsciiWhitespace(json);
  if (json.empty()) return;
  if (json[0] == '{') {
    document_ = Parse(json);
  } else if (json[0] == '"') {
    const std::string list = absl::StrCat("[", json, "]");
    const std::optional<json::Document> document = Parse(list);
    if (!document.has_value()) return;
    text_ = document->root().children()[0].string();
    json_ = absl::StripAsciiWhitespace(text_);
    if (!json_.empty() && json_[0] == '{') document_ = Parse(json_);
    if (document_.has_value() && !document_->root().is_object()) {
      document_.reset();
    }
  }
}

json::Value Arguments::Find(absl::string_view names) const {
  if (!document_.has_value()) return {};
  return MemberOf(document_->root(), names);
}

std::string Arguments::Text(absl::string_view names) const {
  for (const absl::string_view name : absl::StrSplit(names, ' ')) {
    const json::Value value = Find(name);
    if (value.is_string() && value.raw().size() > 2) return value.string();
  }
  return "";
}

std::optional<std::int64_t> Arguments::Integer(absl::string_view names) const {
  return IntegerOf(Find(names));
}

std::vector<std::string> Arguments::Texts(absl::string_view names) const {
  for (const absl::string_view name : absl::StrSplit(names, ' ')) {
    std::vector<std::string> texts = TextsOf(Find(name));
    if (!texts.empty()) return texts;
  }
  return {};
}

std::string Arguments::Canonical() const {
  std::string text;
  if (!document_.has_value()) {
    text = std::string(json_);
  } else {
    std::vector<std::pair<std::string, json::Value>> members;
    for (const json::Value value : document_->root().children()) {
      std::string key = value.key();
      if (IsOneOfWords(key, kIdle)) continue;
      if (value.is(json::Kind::kNull)) continue;
      members.emplace_back(std::move(key), value);
    }
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, value] : members) {
      absl::StrAppend(&text, text.empty() ? "" : ",", key, "=");
      AppendCompact(value.raw(), text);
    }
  }
  if (text.size() <= kCanonicalBytesMax) return text;
  return absl::StrCat("sha256=", Digest::Of(text).ToHex());
}

}  // namespace clerestory
