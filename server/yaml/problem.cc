// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/yaml/problem.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/utf8.h"

namespace clerestory {
namespace {

constexpr std::size_t kDistanceMax = 2;
constexpr std::size_t kQuotedBytesMax = 60;

// How many letters have to be put in, left out or changed to make `b` of `a`.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  // Of the letters of `a` so far, to each start of `b`.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Describe(const Problem& problem) {
  return absl::StrCat(problem.file, ":", problem.line, ":", problem.column,
                      ": ", problem.path, problem.path.empty() ? "" : ": ",
                      problem.what);
}

std::string Describe(std::span<const Problem> problems) {
  std::vector<const Problem*> sorted;
  sorted.reserve(problems.size());
  for (const Problem& problem : problems) sorted.push_back(&problem);
  // Of one place, in the order in which they were found.
  std::sort(sorted.begin(), sorted.end(),
            [](const Problem* a, const Problem* b) {
              return std::tie(a->file, a->line, a->column, a) <
                     std::tie(b->file, b->line, b->column, b);
            });
  constexpr std::size_t kMost = kProblemsMax;
  std::string out;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMost); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : "\n", Describe(*sorted[i]));
  }
  if (sorted.size() > kMost) {
    absl::StrAppend(&out, "\nand ", sorted.size() - kMost, " more");
  }
  return out;
}

std::string QuoteForError(absl::string_view text) {
  const absl::string_view start = text.substr(0, kQuotedBytesMax);
  const bool is_cut = start.size() < text.size();
  return absl::StrCat(
      "\"",
      absl::Utf8SafeCEscape(is_cut ? start.substr(0, Utf8PrefixSize(start))
                                   : start),
      is_cut ? "..." : "", "\"");
}

std::string DidYouMean(absl::string_view text,
                       std::span<const absl::string_view> names) {
  std::size_t least = kDistanceMax + 1;
  absl::string_view nearest;
  for (const absl::string_view name : names) {
    // A short name is near to everything that is short.
    if (name.size() <= kDistanceMax ||
        name.size() > text.size() + kDistanceMax ||
        text.size() > name.size() + kDistanceMax) {
      continue;
    }
    const std::size_t distance = EditDistance(text, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  if (nearest.empty()) return "";
  return absl::StrCat(" (did you mean \"", nearest, "\"?)");
}

}  // namespace clerestory
