// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/compare.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "server/refetch/lines.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// Lines or bytes below which nothing is told from what two excerpts share.
constexpr std::int64_t kLinesMin = 4;
constexpr std::int64_t kBytesMin = 400;
// "About half": of the lines that are asked for, or of those that were had.
constexpr std::int64_t kRangePercent = 45;
constexpr std::int64_t kContentPercent = 50;
// To go on from what was had with a part of it again is paging: only who asks
// for more than half of it again has lost it.
constexpr std::int64_t kIsHeldPercent = 51;
// Lines that were found are a smaller part of what is read then, unless those
// around them were shown, too.
constexpr std::int64_t kLocatedPercent = 25;
// Of two questions, if the answers are this much the same.
constexpr std::int64_t kOtherQueryPercent = 80;
// Where what else is shown stands among the lines.
constexpr std::int64_t kBesidePercent = 25;
// As good as all of it, but for how a tool prints it.
constexpr std::int64_t kAllPercent = 95;
// The same, of bytes where lines were counted.
constexpr std::int64_t kNearlyAllPercent = 90;

std::int64_t CountOf(const LineRange& range) {
  return range.last - range.first + 1;
}

std::int64_t CommonLines(const LineRange& a, const LineRange& b) {
  return std::max<std::int64_t>(
      0, std::min(a.last, b.last) - std::max(a.first, b.first) + 1);
}

bool IsEnough(const Share& share) {
  return share.line_count >= kLinesMin || share.weight >= kBytesMin;
}

// Whether it shows only the lines that answer a query, and not those around.
bool IsScattered(const Excerpt& excerpt) {
  return excerpt.access_class == AccessClass::kSearch &&
         !ShownLines(excerpt).has_value();
}

Relation CompareRanges(const Excerpt& later, const LineRange& later_lines,
                       const Excerpt& earlier, const LineRange& earlier_lines) {
  const std::int64_t common = CommonLines(later_lines, earlier_lines);
  const bool holds = common * 100 >= CountOf(later_lines) * kRangePercent;
  const bool is_held = common * 100 >= CountOf(earlier_lines) * kIsHeldPercent;
  if (common < kLinesMin || (!holds && !is_held)) return Relation::kOther;
  const Relation relation = holds ? Relation::kHolds : Relation::kIsHeld;
  // What is in a range that was read before is all there, or something has
  // changed it. Of two that overlap it is not known which lines are common.
  const Excerpt& part =
      CountOf(later_lines) <= CountOf(earlier_lines) ? later : earlier;
  const Excerpt& whole = &part == &later ? earlier : later;
  const std::int64_t count =
      std::min(CountOf(later_lines), CountOf(earlier_lines));
  const Share share = ShareOf(*part.content, {whole.content});
  if (share.weight_of == 0) return relation;
  std::int64_t percent =
      common == count ? kAllPercent : kContentPercent * common / count;
  if (!part.is_alone) percent = kBesidePercent * common / count;
  return share.IsAtLeast(percent) ? relation : Relation::kChanged;
}

}  // namespace

std::optional<LineRange> ShownLines(const Excerpt& excerpt) {
  const ContentLines& content = *excerpt.content;
  if (!excerpt.is_single) return std::nullopt;
  if (excerpt.is_alone && content.numbers.has_value()) {
    if (content.has_gaps) return std::nullopt;
    return content.numbers;
  }
  if (excerpt.access_class != AccessClass::kRead ||
      !excerpt.lines.has_value()) {
    return std::nullopt;
  }
  LineRange lines = *excerpt.lines;
  // The call may ask for more than there is.
  if (content.text_line_count > 0 && lines.first >= 1) {
    lines.last = std::min(lines.last, lines.first + content.all_line_count - 1);
  }
  if (lines.last < lines.first) return std::nullopt;
  return lines;
}

bool IsUnchanged(const Excerpt& later, const Excerpt& earlier) {
  if (later.content->text_hash == earlier.content->text_hash) return true;
  const std::optional<LineRange> later_lines = ShownLines(later);
  const std::optional<LineRange> earlier_lines = ShownLines(earlier);
  // The same lines in another order are a change, too.
  if (later_lines.has_value() && later_lines == earlier_lines) return false;
  const Share of_later = ShareOf(*later.content, {earlier.content});
  if (of_later.IsAtLeast(100) ||
      ShareOf(*earlier.content, {later.content}).IsAtLeast(100)) {
    return true;
  }
  return later_lines.has_value() && earlier_lines.has_value() &&
         of_later.IsAtLeast(kNearlyAllPercent *
                            CommonLines(*later_lines, *earlier_lines) /
                            CountOf(*later_lines));
}

bool IsTiny(const ContentLines& content) {
  return content.text_line_count < kLinesMin && content.weight < kBytesMin;
}

Relation Compare(const Excerpt& later, const Excerpt& earlier) {
  const std::optional<LineRange> later_lines = ShownLines(later);
  const std::optional<LineRange> earlier_lines = ShownLines(earlier);
  if (later_lines.has_value() && earlier_lines.has_value()) {
    return CompareRanges(later, *later_lines, earlier, *earlier_lines);
  }
  const Share of_later = ShareOf(*later.content, {earlier.content});
  // A question about what was read is another need, even if its answer stands
  // there, unless it asks for a part of it.
  if (IsScattered(later) && earlier.access_class == AccessClass::kRead) {
    return Relation::kUnrelated;
  }
  const bool are_questions = later.access_class == AccessClass::kSearch &&
                             earlier.access_class == AccessClass::kSearch &&
                             later.query_hash != earlier.query_hash;
  if (of_later.IsAtLeast(are_questions ? kOtherQueryPercent
                                       : kContentPercent) &&
      IsEnough(of_later)) {
    return Relation::kHolds;
  }
  if (are_questions) return Relation::kUnrelated;
  // To locate something and then to read it is no repetition.
  if (IsScattered(earlier) && !of_later.IsAtLeast(kLocatedPercent)) {
    return Relation::kUnrelated;
  }
  const Share of_earlier = ShareOf(*earlier.content, {later.content});
  return of_earlier.IsAtLeast(kContentPercent) && IsEnough(of_earlier)
             ? Relation::kIsHeld
             : Relation::kUnrelated;
}

}  // namespace clerestory
