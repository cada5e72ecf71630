// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_YAML_PROBLEM_H_
#define CLERESTORY_SERVER_YAML_PROBLEM_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// Something that is wrong with a file that an operator wrote.
struct Problem {
  std::string file;
  // From 1; the column is in bytes.
  int line = 1;
  int column = 1;
  // What it is about, as in `policies[0].keep.turns`; "" for the file itself.
  std::string path;
  // What was wrong, and what to write instead.
  std::string what;

  friend bool operator==(const Problem&, const Problem&) = default;
};

// The most problems that Describe lists.
inline constexpr int kProblemsMax = 50;

// `file:line:column: path: what`.
std::string Describe(const Problem& problem);

// The same of each, one a line without a newline at the end, sorted by place.
// Beyond kProblemsMax there is a last line that says how many more there are.
std::string Describe(std::span<const Problem> problems);

// `text` in double quotes, for an error: cut if it is long, escaped where it is
// not printable. Pure.
std::string QuoteForError(absl::string_view text);

// ` (did you mean "x"?)` with the first of the `names` that is nearest to
// `text`, if no more than two letters have to be put in, left out or changed;
// "" if none is so near. Pure.
std::string DidYouMean(absl::string_view text,
                       std::span<const absl::string_view> names);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_YAML_PROBLEM_H_
