// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_LINE_SCRIPT_H_
#define CLERESTORY_SERVER_TOOLS_LINE_SCRIPT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {

// Returns which lines a script of sed prints: `5,10p`, `5p;9,$p`, `10q`;
// nullopt if that depends on what the lines hold, or if it changes them.
// `is_quiet` is whether only what it prints is printed (-n).
std::optional<std::vector<LineRange>> SedLines(absl::string_view script,
                                               bool is_quiet);

// Likewise of a program of awk: `NR>=5 && NR<=10`, `NR==5,NR==10 {print}`, with
// NR or FNR. The second argument is not looked at.
std::optional<std::vector<LineRange>> AwkLines(absl::string_view program,
                                               bool is_quiet);

// The range `FIRST:LAST`, either of which may be left out, or one line; nullopt
// if it is none.
std::optional<LineRange> ColonRange(absl::string_view text);

// Reads a number of digits only, and returns whether it is one that fits.
bool ReadNumber(absl::string_view text, std::int64_t& number);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_LINE_SCRIPT_H_
