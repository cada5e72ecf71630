// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_ARGUMENTS_H_
#define CLERESTORY_SERVER_TOOLS_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/json/document.h"
#include "server/tools/access.h"

namespace clerestory {

// The arguments of a call. Names are given as lists, separated by blanks, of
// which the first that is there counts.
class Arguments {
 public:
  // Takes a JSON object, or a JSON string that holds one. Of a string that
  // holds none, its text is text(). Anything else is no argument.
  explicit Arguments(absl::string_view json);
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  absl::string_view text() const { return text_; }

  json::Value Find(absl::string_view names) const;
  bool Has(absl::string_view names) const { return Find(names).exists(); }
  // The member of that name, which may have any characters.
  json::Value Member(absl::string_view name) const { return root()[name]; }
  json::Value root() const {
    return document_.has_value() ? document_->root() : json::Value();
  }
  // A string that is not empty; "" if there is none.
  std::string Text(absl::string_view names) const;
  // A number, or a string that holds one.
  std::optional<std::int64_t> Integer(absl::string_view names) const;
  // A string, or those of a list.
  std::vector<std::string> Texts(absl::string_view names) const;

  // All of them in one form, but for those that do not say what is asked for,
  // as descriptions and time limits: equal calls have equal ones. A digest if
  // they are long.
  std::string Canonical() const;

 private:
  std::string text_;
  absl::string_view json_;
  std::optional<json::Document> document_;
};

// The strings of a value that is one, or a list of them, or of objects with a
// path each.
std::vector<std::string> TextsOf(json::Value value);

// The lines that the members of `object` ask for: `offset` and `limit`,
// `start_line` and `end_line`, `view_range`, `head`; nullopt if nobody can know
// which they are.
std::optional<LineRange> LinesOf(json::Value object, bool is_zero_based);

// The lines that `[FIRST, LAST]` or `"FIRST-LAST"` says; nullopt if `range` is
// neither.
std::optional<LineRange> RangeOf(json::Value range);

// The member of `object` by the first of `names` that it has.
json::Value MemberOf(json::Value object, absl::string_view names);

// The number that `value` is, or that its string holds.
std::optional<std::int64_t> IntegerOf(json::Value value);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_ARGUMENTS_H_
