// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/judge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "server/refetch/compare.h"
#include "server/refetch/lines.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// What several hold together must be more of it than what one holds, since
// lines recur by chance.
constexpr std::int64_t kTogetherPercent = 60;
constexpr std::int64_t kTogetherRangePercent = 45;  // Where ranges say so, too.
constexpr std::int64_t kTogetherLinesMin = 6;
// The same where something may have been written.
constexpr std::int64_t kDoubtfulPercent = 90;
// What is shorter than a placeholder is never masked.
constexpr std::int64_t kAnswerBytesMin = 40;

// Whether both asked the same question: of a tool, or of the same resource.
bool IsSameQuestion(const Excerpt& later, const Excerpt& earlier) {
  return later.access_class == earlier.access_class &&
         later.query_hash == earlier.query_hash &&
         (later.is_answer || later.access_class == AccessClass::kSearch);
}

// Whether `candidate` gave something to compare with.
bool IsGiven(Contender& candidate, LoadContent load) {
  if (candidate.content == nullptr) load(candidate);
  return candidate.content->kind == ContentKind::kGiven;
}

// What it is that `holder` holds most of `later`, or the other way.
Finding FindingOf(const Excerpt& later, const Contender& holder) {
  const bool is_stale =
      holder.is_stale ||
      (holder.is_doubtful && !IsUnchanged(later, holder.excerpt));
  return is_stale ? Finding::kWritten : Finding::kHeld;
}

// How many of `lines` are in any of `others`.
std::int64_t Covered(const LineRange& lines, std::vector<LineRange> others) {
  std::sort(others.begin(), others.end(),
            [](const LineRange& a, const LineRange& b) {
              return std::pair(a.first, a.last) < std::pair(b.first, b.last);
            });
  std::int64_t covered = 0;
  std::int64_t next = lines.first;
  for (const LineRange& other : others) {
    const std::int64_t first = std::max(next, other.first);
    const std::int64_t last = std::min(lines.last, other.last);
    if (last < first) continue;
    covered += last - first + 1;
    next = last + 1;
  }
  return covered;
}

// The candidate that holds most, if all that are not stale hold most of `later`
// together.
std::optional<std::size_t> HeldTogether(const Excerpt& later,
                                        absl::Span<Contender> candidates,
                                        LoadContent load) {
  const std::optional<LineRange> lines = ShownLines(later);
  std::vector<const ContentLines*> contents;
  std::vector<LineRange> ranges;
  std::optional<std::size_t> best;
  std::int64_t best_weight = 0;
  bool is_doubtful = false;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Contender& candidate = candidates[i];
    if (candidate.is_stale || AreApart(later, candidate.excerpt) ||
        !IsGiven(candidate, load)) {
      continue;
    }
    const std::optional<LineRange> range = ShownLines(candidate.excerpt);
    if (lines.has_value() && range.has_value()) ranges.push_back(*range);
    contents.push_back(candidate.content.get());
    is_doubtful = is_doubtful || candidate.is_doubtful;
    const std::int64_t weight =
        ShareOf(*later.content, {candidate.content.get()}).weight;
    if (weight > best_weight) {
      best_weight = weight;
      best = i;
    }
  }
  if (contents.size() < 2 || !best.has_value()) return std::nullopt;
  const Share share = ShareOf(*later.content, contents);
  if (share.line_count < kTogetherLinesMin) return std::nullopt;
  if (!lines.has_value() || ranges.size() < contents.size()) {
    if (share.IsAtLeast(is_doubtful ? kDoubtfulPercent : kTogetherPercent)) {
      return best;
    }
    return std::nullopt;
  }
  const std::int64_t covered = 100 * Covered(*lines, std::move(ranges)) /
                               (lines->last - lines->first + 1);
  if (covered < 50 ||
      !share.IsAtLeast(is_doubtful ? covered * kDoubtfulPercent / 100
                                   : kTogetherRangePercent)) {
    return std::nullopt;
  }
  return best;
}

}  // namespace

bool AreApart(const Excerpt& later, const Excerpt& earlier) {
  return later.access_class == AccessClass::kRead && later.is_single &&
         earlier.access_class == AccessClass::kRead && earlier.is_single &&
         later.lines.has_value() && earlier.lines.has_value() &&
         (later.lines->last < earlier.lines->first ||
          earlier.lines->last < later.lines->first);
}

Judgement Judge(const Excerpt& later, absl::Span<Contender> candidates,
                LoadContent load) {
  const bool is_tiny = IsTiny(*later.content);
  std::optional<std::size_t> changed;
  std::optional<std::size_t> inner;
  std::optional<std::size_t> written;
  std::optional<std::size_t> other;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Contender& candidate = candidates[i];
    if (is_tiny) {
      // How little it is does not matter if the same question was answered by
      // the same words.
      if (later.content->weight >= kAnswerBytesMin && candidate.is_same &&
          IsSameQuestion(later, candidate.excerpt) &&
          IsGiven(candidate, load) &&
          later.content->text_hash == candidate.content->text_hash) {
        return {.finding = FindingOf(later, candidate), .candidate = i};
      }
      continue;
    }
    if (AreApart(later, candidate.excerpt)) {
      if (!other.has_value()) other = i;
      continue;
    }
    if (!IsGiven(candidate, load)) continue;
    switch (Compare(later, candidate.excerpt)) {
      case Relation::kHolds:
        return {.finding = FindingOf(later, candidate), .candidate = i};
      case Relation::kChanged:
        // Unless an older one holds it: what says to show the same lines may
        // show something of them that nobody else does.
        if (!changed.has_value()) changed = i;
        break;
      case Relation::kIsHeld:
        if (!inner.has_value()) inner = i;
        break;
      case Relation::kOther:
        if (!other.has_value()) other = i;
        break;
      case Relation::kUnrelated:
        if (later.access_class != AccessClass::kRead ||
            candidate.excerpt.access_class != AccessClass::kRead) {
          break;
        }
        if (candidate.is_stale && !written.has_value()) written = i;
        if (!candidate.is_stale && !other.has_value()) other = i;
        break;
    }
  }
  if (is_tiny) return {};
  if (changed.has_value()) {
    return {.finding = Finding::kWritten, .candidate = *changed};
  }
  const std::optional<std::size_t> together =
      later.access_class == AccessClass::kRead
          ? HeldTogether(later, candidates, load)
          : std::nullopt;
  if (together.has_value()) {
    return {.finding = Finding::kHeld, .candidate = *together};
  }
  if (inner.has_value()) {
    return {.finding = FindingOf(later, candidates[*inner]),
            .candidate = *inner};
  }
  if (written.has_value() && (!other.has_value() || *written < *other)) {
    return {.finding = Finding::kWritten, .candidate = *written};
  }
  if (other.has_value()) {
    return {.finding = Finding::kOther, .candidate = *other};
  }
  return {};
}

}  // namespace clerestory
