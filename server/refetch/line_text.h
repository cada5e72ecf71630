// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_LINE_TEXT_H_
#define CLERESTORY_SERVER_REFETCH_LINE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// `text` without the sequences that colour a terminal or move its cursor, and
// without what a carriage return or a backspace has overwritten at the ends.
std::string WithoutTerminalCodes(absl::string_view text);

// A line of a tool's output, taken apart.
struct LineParts {
  // Without numbers, path and blanks at its ends.
  absl::string_view text;
  // The number that stood before it, if no path did.
  std::optional<std::int64_t> number;
};

// Takes off `line` what tools put before a line of a file: its number (`12:`,
// `12-`, `12|`, `12→` or a tab behind it), its path (`a/b.cc:12:`,
// `a/b.cc-12-`, `a/b.cc:`), or both.
LineParts PartsOf(absl::string_view line);

// What tells a line from others.
struct LineSignature {
  // In which how long something took is left out. The same on every machine.
  std::uint64_t hash = 0;
  // Whether lines equal to it stand in so many texts that they say nothing
  // about where they are from.
  bool says_nothing = false;
};

LineSignature SignatureOf(absl::string_view text);

// The hash of SignatureOf(text).
std::uint64_t HashOfLine(absl::string_view text);

// Whether it is a line that an agent or its client adds to what a tool gives:
// the open file, the directory, the exit code, how much was left out.
bool IsAddedLine(absl::string_view text);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_LINE_TEXT_H_
