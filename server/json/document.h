// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_JSON_DOCUMENT_H_
#define CLERESTORY_SERVER_JSON_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/json/literal.h"  // IWYU pragma: export

namespace clerestory::json {

enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull };

// A part of a text: `size` bytes from `offset`.
struct Span {
  std::size_t offset = 0;
  std::size_t size = 0;

  std::size_t end() const { return offset + size; }
  friend bool operator==(const Span&, const Span&) = default;
};

class Document;

// A value inside a Document, or the absence of one: looking up what is not
// there gives a Value that does not exist, and of which all else is empty.
// Valid as long as the Document is.
class Value {
 public:
  Value() = default;

  bool exists() const { return document_ != nullptr; }
  bool is(Kind kind) const;
  bool is_object() const { return is(Kind::kObject); }
  bool is_array() const { return is(Kind::kArray); }
  bool is_string() const { return is(Kind::kString); }

  // Where the value stands in the text, quotes and brackets included.
  Span span() const;
  // Its bytes, as they were written.
  absl::string_view raw() const;

  // The member `key` of an object.
  Value operator[](absl::string_view key) const;
  // The elements of an array or the values of an object, in order. Empty when
  // nested deeper than the document's tree.
  std::vector<Value> children() const;
  // The name of a member of an object, unescaped.
  std::string key() const;

  // The string, unescaped; "" unless it is one. Cheap when there is no escape.
  std::string string() const;
  // Whether it is a string equal to `text`.
  bool equals(absl::string_view text) const;
  // Whether it is `true`.
  bool is_true() const;
  // The number, if it is one that fits.
  std::optional<std::int64_t> integer() const;

 private:
  friend class Document;
  Value(const Document* document, std::size_t node)
      : document_(document), node_(node) {}

  const Document* document_ = nullptr;
  std::size_t node_ = 0;
};

struct ParseOptions {
  // How many levels of values are accepted. The root is the first.
  int depth_max = 512;
  // How many of them can be walked. Below them values are checked, and seen
  // only as a whole.
  int tree_depth = 6;
  // The most values that can be walked: each takes 56 bytes, and may be written
  // in two.
  std::size_t tree_size_max = std::numeric_limits<std::size_t>::max();
};

// A JSON text that was checked completely, with the spans of its outer levels.
//
// The text is RFC 8259 JSON in UTF-8, an object or an array without a byte
// order mark: numbers may have any size and precision (they are never
// converted), strings have no lone surrogates. Names are unique in every object
// of which the values can be walked.
//
// Does not own the text, which must outlive it. Safe to read from any thread.
class Document {
 public:
  // Returns INVALID_ARGUMENT with kMessageInvalid if `text` is not such a text
  // or exceeds `options`, saying what is wrong and, unless it is the text as a
  // whole, at which byte, without quoting it. Takes time linear in the size of
  // the text, but for the sorting of names.
  static absl::StatusOr<Document> Parse(absl::string_view text,
                                        const ParseOptions& options = {});

  Value root() const { return nodes_.empty() ? Value() : Value(this, 0); }

 private:
  friend class Value;
  friend class TreeBuilder;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Node {
    Kind kind = Kind::kNull;
    Span span;
    Span key;  // With quotes; empty for an element of an array.
    std::size_t first_child = kNone;
    std::size_t next_sibling = kNone;
  };

  absl::string_view text_;
  std::vector<Node> nodes_;
};

}  // namespace clerestory::json

#endif  // CLERESTORY_SERVER_JSON_DOCUMENT_H_
