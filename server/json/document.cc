// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/json/document.h"

// No exception is to leave the library: without them its calls that could throw
// do not compile.
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/utf8.h"
#include "server/json/literal.h"

namespace clerestory::json {
namespace {

namespace od = simdjson::ondemand;

absl::string_view Trimmed(std::string_view token) {
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n' ||
                            token.back() == '\r' || token.back() == '\t')) {
    token.remove_suffix(1);
  }
  return {token.data(), token.size()};
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether `text` is a number by RFC 8259, of any size. simdjson would refuse
// integers of more than 64 bits, which are legal and which clients send.
bool IsNumber(absl::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i > start;
  };
  if (i < text.size() && text[i] == '-') ++i;
  if (i < text.size() && text[i] == '0') {
    ++i;
  } else if (!digits()) {
    return false;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == text.size();
}

absl::Status Invalid(absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kMessageInvalid,
                   what);
}

absl::Status Invalid(absl::string_view what, std::size_t offset) {
  return Invalid(absl::StrFormat("%s at byte %d", what, offset));
}

// Whether the string literal `literal` is one of `text`.
bool Spells(absl::string_view literal, absl::string_view text) {
  const absl::string_view body = literal.substr(1, literal.size() - 2);
  if (absl::StrContains(body, '\\')) return Unquote(literal) == text;
  return body == text;
}

// What simdjson's error means in the words of this API.
absl::string_view Describe(simdjson::error_code error) {
  switch (static_cast<int>(error)) {
    case simdjson::EMPTY:
      return "empty, expected a JSON object";
    case simdjson::UTF8_ERROR:
      return "not valid UTF-8";
    case simdjson::UNESCAPED_CHARS:
      return "a control character that is not escaped in a string";
    case simdjson::UNCLOSED_STRING:
      return "a string that is not closed";
    case simdjson::STRING_ERROR:
      return "a string with a bad escape or a lone surrogate";
    case simdjson::DEPTH_ERROR:
      return "nested too deeply";
    default:
      return "not valid JSON";
  }
}

// Where in `text` a string holds a control character, or where the one that is
// not closed begins: simdjson tells of them in a first pass that knows no
// places.
std::size_t StringErrorOffset(absl::string_view text, bool control_character) {
  bool in_string = false;
  bool escaped = false;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && control_character &&
        static_cast<unsigned char>(text[i]) < 0x20) {
      return i;
    }
    if (escaped) {
      escaped = false;
    } else if (text[i] == '\\') {
      escaped = true;
    } else if (text[i] == '"') {
      in_string = !in_string;
      start = i;
    }
  }
  return start;
}

// The status for an error of simdjson's first pass over `text`.
absl::Status FirstPassError(simdjson::error_code error,
                            absl::string_view text) {
  switch (static_cast<int>(error)) {
    case simdjson::UTF8_ERROR:
      return Invalid(Describe(error), Utf8PrefixSize(text));
    case simdjson::UNESCAPED_CHARS:
    case simdjson::UNCLOSED_STRING:
      return Invalid(
          Describe(error),
          StringErrorOffset(text, error == simdjson::UNESCAPED_CHARS));
    default:
      return Invalid(Describe(error));
  }
}

}  // namespace

// Walks a text once, checks every value of it, and keeps the outer levels.
class TreeBuilder {
 public:
  TreeBuilder(Document& document, const ParseOptions& options)
      : document_(document),
        options_(options),
        padded_(document.text_.data(), document.text_.size()) {}

  absl::Status Build() {
    if (const auto error = parser_.allocate(
            padded_.size(), static_cast<std::size_t>(options_.depth_max) + 1)) {
      return Invalid(Describe(error));
    }
    od::document root;
    if (const auto error = parser_.iterate(padded_).get(root)) {
      return FirstPassError(error, document_.text_);
    }
    od::value value;
    if (const auto error = root.get_value().get(value)) {
      if (absl::StartsWith(document_.text_, "\xEF\xBB\xBF")) {
        return Invalid("a byte order mark", 0);
      }
      // A scalar at the root has no value; it is no message either.
      return Invalid(error == simdjson::SCALAR_DOCUMENT_AS_VALUE
                         ? "expected a JSON object"
                         : Describe(error));
    }
    CLERESTORY_RETURN_IF_ERROR(Visit(value, {}, 1).status());
    // Behind the last value there is no location.
    if (root.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      return Invalid("more text after the JSON value", value_end_);
    }
    return absl::OkStatus();
  }

 private:
  std::size_t OffsetOf(const char* at) const {
    return static_cast<std::size_t>(at - padded_.data());
  }

  bool keeps(int depth) const { return depth <= options_.tree_depth; }

  // Adds a node if `depth` is kept. The caller links it.
  std::size_t AddNode(Kind kind, Span span, Span key, int depth) {
    if (!keeps(depth)) return Document::kNone;
    document_.nodes_.push_back({.kind = kind, .span = span, .key = key});
    return document_.nodes_.size() - 1;
  }

  void Link(std::size_t parent, std::size_t& last, std::size_t child) {
    if (parent == Document::kNone || child == Document::kNone) return;
    std::size_t& link = last == Document::kNone
                            ? document_.nodes_[parent].first_child
                            : document_.nodes_[last].next_sibling;
    link = child;
    last = child;
  }

  // Returns the node of `value`, or kNone if it lies too deep to keep.
  absl::StatusOr<std::size_t> Visit(od::value value, Span key, int depth) {
    if (depth > options_.depth_max) {
      return Invalid(
          absl::StrCat("nested deeper than ", options_.depth_max, " levels"),
          OffsetOf(value.raw_json_token().data()));
    }
    if (keeps(depth) && document_.nodes_.size() >= options_.tree_size_max) {
      return Invalid(
          absl::StrCat("more than ", options_.tree_size_max, " values"),
          OffsetOf(value.raw_json_token().data()));
    }
    od::json_type type{};
    if (const auto error = value.type().get(type)) {
      return Invalid(Describe(error), OffsetOf(value.raw_json_token().data()));
    }
    if (type == od::json_type::object) return VisitObject(value, key, depth);
    if (type == od::json_type::array) return VisitArray(value, key, depth);
    return VisitScalar(value, type, key, depth);
  }

  absl::StatusOr<std::size_t> VisitObject(od::value value, Span key,
                                          int depth) {
    const std::size_t start = OffsetOf(value.raw_json_token().data());
    od::object object;
    if (const auto error = value.get_object().get(object)) {
      return Invalid(Describe(error), start);
    }
    const std::size_t node =
        AddNode(Kind::kObject, {.offset = start, .size = 0}, key, depth);
    const std::size_t first_name = names_.size();
    std::size_t last = Document::kNone;
    std::size_t end = start + 1;
    for (auto field_or : object) {
      od::field field;
      if (const auto error = std::move(field_or).get(field)) {
        return Invalid(Describe(error), end);
      }
      // The raw key starts after its quote and ends at the next bare one.
      const std::size_t key_start = OffsetOf(field.key().raw()) - 1;
      std::string_view name;
      if (const auto error = field.unescaped_key().get(name)) {
        return Invalid(Describe(error), key_start);
      }
      const Span key_span = LiteralAt(key_start);
      if (keeps(depth + 1)) names_.push_back({.text = name, .at = key_start});
      CLERESTORY_ASSIGN_OR_RETURN(
          const std::size_t child,
          Visit(std::move(field).value(), key_span, depth + 1));
      Link(node, last, child);
      end = value_end_;
    }
    CLERESTORY_RETURN_IF_ERROR(CheckNames(first_name));
    return Close(node, end, '}');
  }

  // Checks that the names from `first` on, those of one object, are unique, and
  // forgets them. Sorted, since a hash table can be made to take for ever.
  absl::Status CheckNames(std::size_t first) {
    const auto begin = names_.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, names_.end(), [](const Name& a, const Name& b) {
      return a.text != b.text ? a.text < b.text : a.at < b.at;
    });
    std::size_t repeated = Document::kNone;
    for (std::size_t i = first + 1; i < names_.size(); ++i) {
      if (names_[i].text == names_[i - 1].text) {
        repeated = std::min(repeated, names_[i].at);
      }
    }
    if (repeated != Document::kNone) {
      return Invalid("a name that occurs twice in an object", repeated);
    }
    names_.erase(begin, names_.end());
    return absl::OkStatus();
  }

  absl::StatusOr<std::size_t> VisitArray(od::value value, Span key, int depth) {
    const std::size_t start = OffsetOf(value.raw_json_token().data());
    od::array array;
    if (const auto error = value.get_array().get(array)) {
      return Invalid(Describe(error), start);
    }
    const std::size_t node =
        AddNode(Kind::kArray, {.offset = start, .size = 0}, key, depth);
    std::size_t last = Document::kNone;
    std::size_t end = start + 1;
    for (auto element_or : array) {
      od::value element;
      if (const auto error = std::move(element_or).get(element)) {
        return Invalid(Describe(error), end);
      }
      CLERESTORY_ASSIGN_OR_RETURN(const std::size_t child,
                                  Visit(element, {}, depth + 1));
      Link(node, last, child);
      end = value_end_;
    }
    return Close(node, end, ']');
  }

  absl::StatusOr<std::size_t> VisitScalar(od::value value, od::json_type type,
                                          Span key, int depth) {
    const std::string_view token = value.raw_json_token();
    const std::size_t start = OffsetOf(token.data());
    absl::string_view text = Trimmed(token);
    Kind kind = Kind::kNull;
    bool valid = false;
    if (type == od::json_type::string) {
      kind = Kind::kString;
      std::string_view unescaped;
      if (const auto error = value.get_string().get(unescaped)) {
        return Invalid(Describe(error), start);
      }
      valid = text.size() >= 2 && text.back() == '"';
    } else if (type == od::json_type::number) {
      kind = Kind::kNumber;
      valid = IsNumber(text);
      // Only to move the walk behind it: what it says of the size is no matter.
      static_cast<void>(value.get_double().error());
    } else if (type == od::json_type::boolean) {
      kind = Kind::kBool;
      valid = value.get_bool().error() == simdjson::SUCCESS;
    } else {
      valid = text == "null";
      static_cast<void>(value.is_null().error());
    }
    if (!valid) return Invalid("not valid JSON", start);
    value_end_ = start + text.size();
    return AddNode(kind, {.offset = start, .size = text.size()}, key, depth);
  }

  // The string literal that begins at `start` and that simdjson has checked.
  Span LiteralAt(std::size_t start) const {
    std::size_t i = start + 1;
    while (document_.text_[i] != '"') {
      i += document_.text_[i] == '\\' ? 2U : 1U;
    }
    return {.offset = start, .size = i + 1 - start};
  }

  // Ends a container of which the last value ended at `end`.
  absl::StatusOr<std::size_t> Close(std::size_t node, std::size_t end,
                                    char bracket) {
    const std::size_t close = document_.text_.find(bracket, end);
    if (close == absl::string_view::npos) return Invalid("not valid JSON", end);
    value_end_ = close + 1;
    if (node != Document::kNone) {
      Span& span = document_.nodes_[node].span;
      span.size = value_end_ - span.offset;
    }
    return node;
  }

  // A name in an object, unescaped into a buffer of the parser's, and where it
  // stands.
  struct Name {
    std::string_view text;
    std::size_t at = 0;
  };

  Document& document_;
  const ParseOptions& options_;
  const simdjson::padded_string padded_;
  od::parser parser_;
  // The names so far of the objects that are being walked, the outer ones
  // first.
  std::vector<Name> names_;
  // The end of the value that was visited last.
  std::size_t value_end_ = 0;
};

absl::StatusOr<Document> Document::Parse(absl::string_view text,
                                         const ParseOptions& options) {
  Document document;
  document.text_ = text;
  CLERESTORY_RETURN_IF_ERROR(TreeBuilder(document, options).Build());
  return document;
}

bool Value::is(Kind kind) const {
  return exists() && document_->nodes_[node_].kind == kind;
}

Span Value::span() const {
  return exists() ? document_->nodes_[node_].span : Span{};
}

absl::string_view Value::raw() const {
  if (!exists()) return "";
  const Span at = span();
  return document_->text_.substr(at.offset, at.size);
}

Value Value::operator[](absl::string_view key) const {
  if (!is_object()) return {};
  for (std::size_t child = document_->nodes_[node_].first_child;
       child != Document::kNone;
       child = document_->nodes_[child].next_sibling) {
    const Span at = document_->nodes_[child].key;
    if (Spells(document_->text_.substr(at.offset, at.size), key)) {
      return {document_, child};
    }
  }
  return {};
}

std::vector<Value> Value::children() const {
  std::vector<Value> result;
  if (!exists()) return result;
  for (std::size_t child = document_->nodes_[node_].first_child;
       child != Document::kNone;
       child = document_->nodes_[child].next_sibling) {
    result.push_back(Value(document_, child));
  }
  return result;
}

std::string Value::key() const {
  if (!exists() || document_->nodes_[node_].key.size == 0) return "";
  const Span at = document_->nodes_[node_].key;
  return Unquote(document_->text_.substr(at.offset, at.size));
}

std::string Value::string() const {
  return is_string() ? Unquote(raw()) : std::string();
}

bool Value::equals(absl::string_view text) const {
  return is_string() && Spells(raw(), text);
}

bool Value::is_true() const { return is(Kind::kBool) && raw() == "true"; }

std::optional<std::int64_t> Value::integer() const {
  std::int64_t result = 0;
  if (is(Kind::kNumber) && absl::SimpleAtoi(raw(), &result)) return result;
  return std::nullopt;
}

}  // namespace clerestory::json
