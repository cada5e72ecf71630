// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/yaml/reader.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/base/utf8.h"
#include "server/yaml/node.h"
#include "server/yaml/problem.h"

namespace clerestory::yaml {
namespace {

// What yaml-cpp gives for a value without a tag, unquoted and quoted.
bool IsOrdinaryTag(const std::string& tag) {
  return tag.empty() || tag == "?" || tag == "!";
}

// Makes nodes of a document's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(absl::string_view file, Node& root, std::vector<Problem>& problems)
      : file_(file), root_(root), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node* node = Next(mark, anchor, "");
    if (node == nullptr) return;
    node->kind = Kind::kNull;
    // yaml-cpp says where the next thing is.
    if (frames_.empty() || frames_.back().node->kind != Kind::kMap) return;
    node->line = frames_.back().node->members.back().line;
    node->column = frames_.back().node->members.back().column;
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    if (skipped_ > 0) return;
    Add(mark, "aliases are not read; write the value out");
    Next(mark, YAML::NullAnchor, "");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    last_scalar_ = mark;
    if (skipped_ == 0 && ExpectsName()) {
      Check(mark, anchor, tag);
      return AddMember(mark, value);
    }
    Node* node = Next(mark, anchor, tag);
    if (node == nullptr) return;
    node->kind = tag == "!" ? Kind::kText : Kind::kWord;
    node->text = value;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Kind::kList, mark, anchor, tag);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(Kind::kMap, mark, anchor, tag);
  }
  void OnMapEnd() override { Close(); }

  // Where the last scalar started; null if there was none.
  const YAML::Mark& last_scalar() const { return last_scalar_; }

 private:
  struct Frame {
    Node* node;
    // Of a map whose next value belongs to a name that was read: where it
    // goes, or null if it is passed over.
    bool has_name = false;
    Node* value = nullptr;
  };

  void Add(const YAML::Mark& mark, std::string what) {
    problems_.push_back({.file = std::string(file_),
                         .line = mark.line + 1,
                         .column = mark.column + 1,
                         .path = "",
                         .what = std::move(what)});
  }

  void Check(const YAML::Mark& mark, YAML::anchor_t anchor,
             const std::string& tag) {
    if (anchor != YAML::NullAnchor) {
      Add(mark, "anchors are not read; write the value out where it is needed");
    }
    if (!IsOrdinaryTag(tag)) {
      Add(mark,
          absl::StrCat("tags are not read; leave out ", QuoteForError(tag)));
    }
  }

  bool ExpectsName() const {
    return !frames_.empty() && frames_.back().node->kind == Kind::kMap &&
           !frames_.back().has_name;
  }

  // The node for the next value, or null for one that is passed over.
  Node* Next(const YAML::Mark& mark, YAML::anchor_t anchor,
             const std::string& tag) {
    if (skipped_ > 0) return nullptr;
    Check(mark, anchor, tag);
    Node* node = &root_;
    if (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (frame.node->kind == Kind::kList) {
        node = &frame.node->items.emplace_back();
      } else if (frame.has_name) {
        frame.has_name = false;
        node = std::exchange(frame.value, nullptr);
        if (node == nullptr) return nullptr;
      } else {
        Add(mark, "expected a name");
        frame.has_name = true;
        return nullptr;
      }
    }
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    return node;
  }

  void AddMember(const YAML::Mark& mark, const std::string& name) {
    Frame& frame = frames_.back();
    frame.has_name = true;
    const std::size_t place = frame.node->members.size();
    if (!frame.node->places.emplace(name, place).second) {
      Add(mark, absl::StrCat(QuoteForError(name),
                             " stands twice; leave one of them out"));
      return;
    }
    Member& member = frame.node->members.emplace_back();
    member.name = name;
    member.line = mark.line + 1;
    member.column = mark.column + 1;
    frame.value = &member.value;
  }

  void Open(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor,
            const std::string& tag) {
    Node* node = Next(mark, anchor, tag);
    if (node != nullptr && frames_.size() >= kYamlDepthMax) {
      Add(mark, absl::StrCat("nested more than ", kYamlDepthMax, " deep"));
      node = nullptr;
    }
    if (node == nullptr) {
      ++skipped_;
      return;
    }
    node->kind = kind;
    frames_.push_back({.node = node});
  }

  void Close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      frames_.pop_back();
    }
  }

  const absl::string_view file_;
  Node& root_;
  std::vector<Problem>& problems_;
  // The lists and maps around the next value. Only the innermost one grows, so
  // that the others stay where they are.
  std::vector<Frame> frames_;
  // How many lists and maps have been opened since one was passed over.
  int skipped_ = 0;
  YAML::Mark last_scalar_ = YAML::Mark::null_mark();
};

// Whether the scalar that starts at `mark` is in quotes that are never closed,
// which yaml-cpp takes to be closed at the end of the text.
bool IsUnclosed(absl::string_view text, const YAML::Mark& mark) {
  if (mark.is_null() || static_cast<std::size_t>(mark.pos) >= text.size()) {
    return false;
  }
  std::size_t at = static_cast<std::size_t>(mark.pos);
  const char quote = text[at];
  if (quote != '"' && quote != '\'') return false;
  // Two single quotes inside of single ones close and open again.
  bool is_open = true;
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == quote) {
      is_open = false;
      if (quote == '"' || at + 1 == text.size() || text[at + 1] != quote) break;
      is_open = true;
      ++at;
    }
  }
  return is_open;
}

// Whether `text` is one; a problem at the first byte that no text has.
bool IsText(absl::string_view file, absl::string_view text,
            std::vector<Problem>& problems) {
  std::size_t end = Utf8PrefixSize(text);
  const char* what = "not UTF-8";
  for (std::size_t i = 0; i < end; ++i) {
    const char c = text[i];
    const bool is_space = c == '\n' || c == '\r' || c == '\t';
    if ((c >= 0 && c < ' ' && !is_space) || c == 0x7F) {
      end = i;
      what = "a control character; leave it out";
    }
  }
  if (end == text.size()) return true;
  const absl::string_view before = text.substr(0, end);
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start =
      newline == absl::string_view::npos ? 0 : newline + 1;
  problems.push_back({.file = std::string(file),
                      .line = 1 + static_cast<int>(std::count(
                                      before.begin(), before.end(), '\n')),
                      .column = 1 + static_cast<int>(end - line_start),
                      .path = "",
                      .what = what});
  return false;
}

}  // namespace

std::shared_ptr<const Node> ParseDocument(absl::string_view file,
                                          absl::string_view text,
                                          std::vector<Problem>& problems) {
  const auto fail = [&](const YAML::Mark& mark, std::string what) {
    problems.push_back({.file = std::string(file),
                        .line = std::max(mark.line, 0) + 1,
                        .column = std::max(mark.column, 0) + 1,
                        .path = "",
                        .what = std::move(what)});
    return nullptr;
  };
  if (text.size() > kYamlBytesMax) {
    return fail(YAML::Mark(),
                absl::StrCat("has ", text.size(), " bytes; at most ",
                             kYamlBytesMax, " are read"));
  }
  if (!IsText(file, text, problems)) return nullptr;
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // The mark of UTF-8.
  const auto root = std::make_shared<Node>();
  root->kind = Kind::kNull;
  // yaml-cpp reports by exceptions, all of them derived from this.
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(file, *root, problems);
    parser.HandleNextDocument(builder);
    if (IsUnclosed(text, builder.last_scalar())) {
      return fail(builder.last_scalar(),
                  "not YAML: quotes that are not closed");
    }
    Node second;
    std::vector<Problem> ignored;
    Builder next(file, second, ignored);
    if (parser.HandleNextDocument(next)) {
      YAML::Mark mark;
      mark.line = second.line - 1;
      mark.column = second.column - 1;
      return fail(mark, "a second document; write one to a file");
    }
  } catch (const YAML::DeepRecursion& error) {
    return fail(error.mark,
                absl::StrCat("nested more than ", kYamlDepthMax, " deep"));
  } catch (const YAML::Exception& error) {
    return fail(error.mark, absl::StrCat("not YAML: ", error.msg));
  }
  if (root->kind == Kind::kNull) {
    root->kind = Kind::kMap;  // Nothing, or nothing but comments.
  } else if (root->kind != Kind::kMap) {
    YAML::Mark mark;
    mark.line = root->line - 1;
    mark.column = root->column - 1;
    return fail(mark, "expected `name: value` lines");
  }
  return root;
}

}  // namespace clerestory::yaml
