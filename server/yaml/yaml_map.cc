// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/yaml/node.h"
#include "server/yaml/problem.h"
#include "server/yaml/reader.h"
#include "server/yaml/scalar.h"

namespace clerestory {
namespace {

using yaml::Kind;
using yaml::Member;
using yaml::Node;

// What there is instead of what was expected: "a list", "abc".
std::string Show(const Node& node) {
  switch (node.kind) {
    case Kind::kBroken:
    case Kind::kNull:
      break;
    case Kind::kWord:
      return absl::StrCat("not ", QuoteForError(node.text));
    case Kind::kText:
      return absl::StrCat("not the text ", QuoteForError(node.text));
    case Kind::kList:
      return "not a list";
    case Kind::kMap:
      return "not a mapping";
  }
  return "which is missing behind the colon";
}

// A name as it stands in a path.
std::string Segment(absl::string_view key) {
  if (key.empty() || key.size() > 60) return QuoteForError(key);
  for (const char c : key) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' &&
        c != '-') {
      return QuoteForError(key);
    }
  }
  return std::string(key);
}

}  // namespace

std::optional<YamlMap> YamlMap::Load(absl::string_view file,
                                     absl::string_view text,
                                     std::vector<Problem>& problems) {
  std::shared_ptr<const Node> root = yaml::ParseDocument(file, text, problems);
  if (root == nullptr) return std::nullopt;
  const Node& node = *root;
  return YamlMap(std::string(file), std::move(root), node, "", problems);
}

YamlMap::YamlMap(std::string file, std::shared_ptr<const Node> root,
                 const Node& node, std::string path,
                 std::vector<Problem>& problems)
    : file_(std::move(file)),
      root_(std::move(root)),
      node_(&node),
      path_(std::move(path)),
      problems_(&problems) {}

const Member* YamlMap::Find(absl::string_view key) const {
  const auto found = node_->places.find(std::string(key));
  return found == node_->places.end() ? nullptr
                                      : &node_->members[found->second];
}

std::string YamlMap::PathOf(absl::string_view key) const {
  return absl::StrCat(path_, path_.empty() ? "" : ".", Segment(key));
}

YamlMap YamlMap::Child(const Node& node, std::string path) const {
  return YamlMap(file_, root_, node, std::move(path), *problems_);
}

void YamlMap::AddAt(const Node& node, std::string path,
                    absl::string_view what) {
  problems_->push_back({.file = file_,
                        .line = node.line,
                        .column = node.column,
                        .path = std::move(path),
                        .what = std::string(what)});
}

void YamlMap::AddExpected(const Node& node, std::string path,
                          absl::string_view expected) {
  if (node.kind == Kind::kBroken) return;
  AddAt(node, std::move(path),
        absl::StrCat("expected ", expected, ", ", Show(node)));
}

const Node* YamlMap::Value(absl::string_view key, absl::string_view expected) {
  known_.insert(std::string(key));
  const Member* member = Find(key);
  if (member == nullptr || member->value.kind == Kind::kBroken) return nullptr;
  if (member->value.kind == Kind::kNull) {
    AddExpected(member->value, PathOf(key), expected);
    return nullptr;
  }
  return &member->value;
}

const Node* YamlMap::Word(absl::string_view key, absl::string_view expected) {
  const Node* value = Value(key, expected);
  if (value == nullptr || value->kind == Kind::kWord) return value;
  if (value->kind == Kind::kText) {
    AddAt(*value, PathOf(key),
          absl::StrCat("expected ", expected, ", not a text; leave out the ",
                       "quotes around ", QuoteForError(value->text)));
  } else {
    AddExpected(*value, PathOf(key), expected);
  }
  return nullptr;
}

std::optional<std::string> YamlMap::TextOf(const Node& node, std::string path) {
  if (node.kind == Kind::kWord || node.kind == Kind::kText) return node.text;
  AddExpected(node, std::move(path), "a text");
  return std::nullopt;
}

bool YamlMap::Has(absl::string_view key) {
  known_.insert(std::string(key));
  return Find(key) != nullptr;
}

std::vector<std::string> YamlMap::Keys() {
  std::vector<std::string> keys;
  keys.reserve(node_->members.size());
  for (const Member& member : node_->members) {
    keys.push_back(member.name);
    known_.insert(member.name);
  }
  return keys;
}

std::optional<std::int64_t> YamlMap::Integer(absl::string_view key,
                                             std::int64_t min,
                                             std::int64_t max) {
  const std::string expected =
      absl::StrCat("a whole number from ", min, " to ", max);
  const Node* word = Word(key, expected);
  if (word == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = ParseInteger(word->text);
  if (value.has_value() && *value >= min && *value <= max) return value;
  AddExpected(*word, PathOf(key), expected);
  return std::nullopt;
}

std::optional<std::int64_t> YamlMap::Decimal(absl::string_view key, int places,
                                             std::int64_t min,
                                             std::int64_t max) {
  const std::string expected =
      absl::StrCat("a number from ", FormatDecimal(min, places), " to ",
                   FormatDecimal(max, places), " with at most ", places,
                   " digits behind the point");
  const Node* word = Word(key, expected);
  if (word == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = ParseDecimal(word->text, places);
  if (value.has_value() && *value >= min && *value <= max) return value;
  AddExpected(*word, PathOf(key), expected);
  return std::nullopt;
}

std::optional<std::string> YamlMap::Text(absl::string_view key) {
  const Node* value = Value(key, "a text");
  if (value == nullptr) return std::nullopt;
  return TextOf(*value, PathOf(key));
}

std::optional<bool> YamlMap::Boolean(absl::string_view key) {
  const Node* word = Word(key, "true or false");
  if (word == nullptr) return std::nullopt;
  if (word->text == "true") return true;
  if (word->text == "false") return false;
  AddExpected(*word, PathOf(key), "true or false");
  return std::nullopt;
}

std::optional<std::size_t> YamlMap::Choice(
    absl::string_view key, std::span<const absl::string_view> names) {
  const std::string expected =
      absl::StrCat("one of ", absl::StrJoin(names, ", "));
  const Node* value = Value(key, expected);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Kind::kWord && value->kind != Kind::kText) {
    AddExpected(*value, PathOf(key), expected);
    return std::nullopt;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == value->text) return i;
  }
  AddAt(
      *value, PathOf(key),
      absl::StrCat("expected ", expected, ", not ", QuoteForError(value->text),
                   DidYouMean(value->text, names)));
  return std::nullopt;
}

std::optional<TimeMicros> YamlMap::Date(absl::string_view key) {
  constexpr absl::string_view kExpected = "a day that exists, as 2026-11-30";
  const Node* value = Value(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->kind == Kind::kWord || value->kind == Kind::kText) {
    const std::optional<TimeMicros> date = ParseDate(value->text);
    if (date.has_value()) return date;
  }
  AddExpected(*value, PathOf(key), kExpected);
  return std::nullopt;
}

std::optional<YamlMap> YamlMap::Map(absl::string_view key) {
  const Node* value = Value(key, "a mapping");
  if (value == nullptr) return std::nullopt;
  if (value->kind == Kind::kMap) return Child(*value, PathOf(key));
  AddExpected(*value, PathOf(key), "a mapping");
  return std::nullopt;
}

std::vector<YamlMap> YamlMap::Maps(absl::string_view key) {
  std::vector<YamlMap> maps;
  const Node* value = Value(key, "a list of mappings");
  if (value == nullptr) return maps;
  if (value->kind != Kind::kList) {
    AddExpected(*value, PathOf(key), "a list of mappings");
    return maps;
  }
  maps.reserve(value->items.size());
  std::size_t index = 0;
  for (const Node& item : value->items) {
    std::string path = absl::StrCat(PathOf(key), "[", index++, "]");
    if (item.kind == Kind::kMap) {
      maps.push_back(Child(item, std::move(path)));
    } else {
      AddExpected(item, std::move(path), "a mapping");
    }
  }
  return maps;
}

std::optional<std::vector<std::string>> YamlMap::Texts(absl::string_view key) {
  const Node* value = Value(key, "a text or a list of texts");
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  if (value->kind == Kind::kMap) {
    AddExpected(*value, PathOf(key), "a text or a list of texts");
    return std::nullopt;
  }
  if (value->kind != Kind::kList) return std::vector{value->text};
  texts.reserve(value->items.size());
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    std::optional<std::string> text =
        TextOf(value->items[i], absl::StrCat(PathOf(key), "[", i, "]"));
    if (text.has_value()) texts.push_back(*std::move(text));
  }
  // An index into them is one into the file.
  if (texts.size() < value->items.size()) return std::nullopt;
  return texts;
}

std::optional<std::map<std::string, std::string>> YamlMap::TextMap(
    absl::string_view key) {
  std::optional<YamlMap> map = Map(key);
  if (!map.has_value()) return std::nullopt;
  std::map<std::string, std::string> texts;
  for (const Member& member : map->node_->members) {
    std::optional<std::string> text =
        map->TextOf(member.value, map->PathOf(member.name));
    if (text.has_value()) texts.emplace(member.name, *std::move(text));
  }
  return texts;
}

void YamlMap::Add(absl::string_view key, absl::string_view what) {
  const Member* member = Find(key);
  AddAt(member == nullptr ? *node_ : member->value, PathOf(key), what);
}

void YamlMap::AddItem(absl::string_view key, std::size_t index,
                      absl::string_view what) {
  const Member* member = Find(key);
  if (member == nullptr || index >= member->value.items.size()) {
    return Add(key, what);
  }
  AddAt(member->value.items[index], absl::StrCat(PathOf(key), "[", index, "]"),
        what);
}

void YamlMap::Add(absl::string_view what) { AddAt(*node_, path_, what); }

void YamlMap::Finish() {
  std::vector<absl::string_view> names(known_.begin(), known_.end());
  for (const Member& member : node_->members) {
    if (known_.count(member.name) > 0) continue;
    problems_->push_back(
        {.file = file_,
         .line = member.line,
         .column = member.column,
         .path = path_,
         .what = absl::StrCat("unknown name ", QuoteForError(member.name),
                              DidYouMean(member.name, names), "; use ",
                              absl::StrJoin(names, ", "))});
  }
}

}  // namespace clerestory
