// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/line_script.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// A script with more parts is not looked into.
constexpr std::size_t kRangesMax = 16;
constexpr std::size_t kScriptBytesMax = 256;

// The digits in front of `text`, taken off it; empty if there are none.
absl::string_view TakeDigits(absl::string_view& text) {
  const std::size_t end =
      std::min(text.find_first_not_of("0123456789"), text.size());
  const absl::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

// The lines of an address of sed, taken off `text`: `A`, `A,B`, `A,$`, `A,+N`.
std::optional<LineRange> TakeAddress(absl::string_view& text) {
  LineRange range;
  if (!ReadNumber(TakeDigits(text), range.first)) return std::nullopt;
  if (range.first == 0) return std::nullopt;
  range.last = range.first;
  if (!absl::ConsumePrefix(&text, ",")) return range;
  if (absl::ConsumePrefix(&text, "$")) {
    range.last = INT64_MAX;
    return range;
  }
  const bool is_count = absl::ConsumePrefix(&text, "+");
  std::int64_t number = 0;
  if (!ReadNumber(TakeDigits(text), number)) return std::nullopt;
  if (is_count && number > INT64_MAX - range.first) return std::nullopt;
  // An end in front of the begin is one line.
  range.last = is_count ? range.first + number : std::max(range.first, number);
  return range;
}

struct Comparison {
  absl::string_view sign;
  std::int64_t number = 0;
};

// `NR` and what it is compared with, taken off `text`.
std::optional<Comparison> TakeComparison(absl::string_view& text) {
  absl::ConsumePrefix(&text, "F");
  if (!absl::ConsumePrefix(&text, "NR")) return std::nullopt;
  Comparison comparison;
  for (const absl::string_view sign : {">=", "<=", "==", ">", "<"}) {
    if (!absl::ConsumePrefix(&text, sign)) continue;
    comparison.sign = sign;
    if (!ReadNumber(TakeDigits(text), comparison.number)) return std::nullopt;
    return comparison;
  }
  return std::nullopt;
}

void Narrow(const Comparison& comparison, LineRange& range) {
  const std::int64_t number = comparison.number;
  if (comparison.sign[0] != '<') {
    const bool is_above = comparison.sign == ">";
    range.first = std::max(range.first, number + (is_above ? 1 : 0));
  }
  if (comparison.sign[0] != '>') {
    const bool is_below = comparison.sign == "<";
    range.last = std::min(range.last, number - (is_below ? 1 : 0));
  }
}

}  // namespace

bool ReadNumber(absl::string_view text, std::int64_t& number) {
  constexpr std::size_t kDigitsMax = 15;
  return !text.empty() && text.size() <= kDigitsMax &&
         text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, &number);
}

std::optional<LineRange> ColonRange(absl::string_view text) {
  const std::size_t colon = text.find(':');
  LineRange range;
  const absl::string_view first = text.substr(0, colon);
  if (!first.empty() && !ReadNumber(first, range.first)) return std::nullopt;
  if (range.first == 0) return std::nullopt;
  if (colon == absl::string_view::npos) {
    range.last = range.first;
    return range;
  }
  const absl::string_view last = text.substr(colon + 1);
  if (!last.empty() && !ReadNumber(last, range.last)) return std::nullopt;
  range.last = std::max(range.first, range.last);
  return range;
}

std::optional<std::vector<LineRange>> SedLines(absl::string_view script,
                                               bool is_quiet) {
  if (script.size() > kScriptBytesMax) return std::nullopt;
  const std::string text = absl::StrReplaceAll(script, {{" ", ""}});
  std::vector<LineRange> ranges;
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(";\n"))) {
    if (part.empty()) continue;
    if (is_quiet && part == "$p") return std::nullopt;
    const std::optional<LineRange> range = TakeAddress(part);
    if (!range.has_value()) return std::nullopt;
    if (part == "q" && range->first == range->last) {
      // Prints up to there; with -n it only stops what others print.
      if (!is_quiet) ranges.push_back({.last = range->last});
      continue;
    }
    if (!is_quiet || (part != "p" && part != "{p}" && part != "{p")) {
      if (part == "}") continue;
      return std::nullopt;
    }
    ranges.push_back(*range);
  }
  if (ranges.empty() || ranges.size() > kRangesMax) return std::nullopt;
  return ranges;
}

std::optional<std::vector<LineRange>> AwkLines(absl::string_view program,
                                               bool /*is_quiet*/) {
  if (program.size() > kScriptBytesMax) return std::nullopt;
  const std::string all = absl::StrReplaceAll(
      program, {{" ", ""}, {"\n", ""}, {"(", ""}, {")", ""}});
  absl::string_view text = all;
  LineRange range;
  std::optional<Comparison> comparison = TakeComparison(text);
  if (!comparison.has_value()) return std::nullopt;
  Narrow(*comparison, range);
  if (absl::ConsumePrefix(&text, "&&")) {
    comparison = TakeComparison(text);
    if (!comparison.has_value()) return std::nullopt;
    Narrow(*comparison, range);
  } else if (absl::ConsumePrefix(&text, ",")) {
    if (comparison->sign != "==") return std::nullopt;
    comparison = TakeComparison(text);
    if (!comparison.has_value() || comparison->sign != "==")
      return std::nullopt;
    range.last = std::max(range.first, comparison->number);
  }
  // What is done to the lines: printed, maybe with their numbers.
  if (!text.empty() && !absl::StartsWith(text, "{print") &&
      !absl::StartsWith(text, "{printf")) {
    return std::nullopt;
  }
  // A part of a line is not the line.
  for (std::size_t at = text.find('$'); at != absl::string_view::npos;
       at = text.find('$', at + 1)) {
    if (text.substr(at, 2) != "$0") return std::nullopt;
  }
  if (range.last < range.first) return std::nullopt;
  return std::vector<LineRange>{range};
}

}  // namespace clerestory
