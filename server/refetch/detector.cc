// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/detector.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/refetch/compare.h"
#include "server/refetch/content_kind.h"
#include "server/refetch/judge.h"
#include "server/refetch/line_text.h"
#include "server/refetch/lines.h"
#include "server/refetch/resource_index.h"
#include "server/refetch/unwrap.h"
#include "server/tools/access.h"
#include "server/tools/paths.h"

namespace clerestory {
namespace {

// The most earlier observations, and bytes of them, that one is compared with.
constexpr std::size_t kCandidatesMax = 12;
// At least so many of each resource, if a call shows several.
constexpr std::size_t kCandidatesOfOneMin = 3;
constexpr std::size_t kCandidateBytesMax = std::size_t{4} << 20;
// The most runs that are remembered.
constexpr std::size_t kRunsMax = 4'096;
// A message that nothing was done is no longer than this, with what it quotes.
constexpr std::size_t kMessageBytesMax = std::size_t{32} << 10;

bool Writes(AccessClass access_class) {
  return access_class == AccessClass::kWrite ||
         access_class == AccessClass::kUnknown;
}

// Whether the writes of a call with these accesses were not made, since it
// failed before it began. What writes beside other things may have come to it.
bool IsUndone(const SeenObservation& seen,
              const std::vector<Access>& accesses) {
  const bool has_write = std::any_of(
      accesses.begin(), accesses.end(),
      [](const Access& access) { return Writes(access.access_class); });
  if (!has_write) return false;
  const ContentKind kind = seen.content.size() > kMessageBytesMax
                               ? ContentKind::kGiven
                               : ContentKindOf(UnwrappedText(seen.content));
  if (kind == ContentKind::kRefused) return true;
  if (!seen.is_error && kind != ContentKind::kFailed) return false;
  return std::all_of(accesses.begin(), accesses.end(),
                     [](const Access& access) {
                       return access.access_class == AccessClass::kWrite &&
                              !access.resource.empty() && !access.is_tree;
                     });
}

Excerpt ExcerptOf(const Holder& holder, bool is_answer,
                  const ContentLines* content) {
  return {.access_class = holder.access_class,
          .is_answer = is_answer,
          .is_single = holder.is_single,
          .is_alone = holder.is_alone,
          .lines = holder.lines,
          .query_hash = holder.query_hash,
          .content = content};
}

// Whether it asks for what is there now, which only the same content answers:
// the last lines of a file that may grow, a page.
bool IsLive(const Access& access) {
  return (access.access_class == AccessClass::kRead &&
          !access.lines.has_value()) ||
         IsUrl(access.resource);
}

// Of other parts of what `later` reads, leaves only the newest in `found`: who
// reads a file in many parts must not push out of sight that it was read whole
// before.
void KeepNewestApart(const Holder& later, std::vector<FoundHolder>& found) {
  const auto is_apart = [&](const FoundHolder& entry) {
    return AreApart(ExcerptOf(later, /*is_answer=*/false, nullptr),
                    ExcerptOf(entry.holder, /*is_answer=*/false, nullptr));
  };
  const auto newest = std::find_if(found.begin(), found.end(), is_apart);
  if (newest == found.end()) return;
  found.erase(std::remove_if(newest + 1, found.end(), is_apart), found.end());
}

// The observations of `found` that can hold most of one of `size` bytes, the
// newest first, each once.
std::vector<Contender> CandidatesOf(std::vector<FoundHolder> found,
                                    bool is_answer, std::size_t size,
                                    RepeatDetector::At at) {
  std::sort(found.begin(), found.end(),
            [](const FoundHolder& a, const FoundHolder& b) {
              return a.holder.time > b.holder.time;
            });
  std::vector<Contender> candidates;
  for (const FoundHolder& entry : found) {
    const std::size_t observation = entry.holder.observation;
    if (candidates.size() >= kCandidatesMax) break;
    if (!candidates.empty() && candidates.back().observation == observation) {
      continue;
    }
    const SeenObservation earlier = at(observation);
    if (earlier.is_error) continue;
    // What little a search of a folder shows of a file that is read then is no
    // reason to look at both.
    if (!entry.is_same && 3 * earlier.content.size() < size) continue;
    Contender& candidate = candidates.emplace_back();
    candidate.observation = observation;
    candidate.is_stale = entry.is_stale;
    candidate.is_doubtful = entry.is_doubtful;
    candidate.is_same = entry.is_same;
    candidate.excerpt = ExcerptOf(entry.holder, is_answer, nullptr);
  }
  return candidates;
}

RepeatKind KindOf(Finding finding, bool is_masked) {
  switch (finding) {
    case Finding::kNothing:
      return RepeatKind::kNone;
    case Finding::kHeld:
      return is_masked ? RepeatKind::kRefetch : RepeatKind::kDuplicate;
    case Finding::kWritten:
      return RepeatKind::kRefresh;
    case Finding::kOther:
      return RepeatKind::kPaging;
  }
  return RepeatKind::kNone;
}

}  // namespace

struct RepeatDetector::Noted {
  // Of a run.
  bool is_run = false;
  std::optional<std::size_t> run_before;
  // Of what shows something.
  bool shows = false;
  bool is_answer = false;
  Holder shown;
  std::vector<FoundHolder> found;
};

std::optional<std::size_t> RepeatDetector::NoteRun(std::uint64_t key,
                                                   std::size_t index) {
  const auto found = runs_.find(key);
  if (found != runs_.end()) return std::exchange(found->second, index);
  if (runs_.size() >= kRunsMax) runs_.clear();
  runs_.emplace(key, index);
  return std::nullopt;
}

RepeatDetector::Noted RepeatDetector::Note(std::size_t index,
                                           const SeenObservation& seen,
                                           const ToolAccess& rule) {
  Noted noted;
  // Where a command runs is only known if the call says so: some agents keep
  // the folder of the call before, and some begin each in the same one.
  const CallAccesses call = AccessesOf(seen.tool, seen.arguments, "", rule);
  const std::vector<Access>& accesses = call.accesses;
  const bool is_undone = IsUndone(seen, accesses);
  const auto count_of = [&accesses](AccessClass access_class) {
    return std::count_if(accesses.begin(), accesses.end(),
                         [access_class](const Access& access) {
                           return access.access_class == access_class;
                         });
  };
  const auto read_count = count_of(AccessClass::kRead);
  const auto search_count = count_of(AccessClass::kSearch);
  // What is read outweighs what is searched beside it.
  const AccessClass main_class =
      read_count > 0 ? AccessClass::kRead : AccessClass::kSearch;
  const auto main_count = read_count > 0 ? read_count : search_count;
  const std::size_t found_max = std::max(
      kCandidatesMax /
          static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, main_count)),
      kCandidatesOfOneMin);
  for (const Access& access : accesses) {
    if (access.access_class == AccessClass::kRun) {
      if (!noted.is_run) {
        const std::uint64_t key =
            access.resource.empty() && access.query.empty()
                ? HashOfLine(seen.arguments) ^ HashOfLine(seen.tool)
                : HashOfLine(access.resource) ^ 31 * HashOfLine(access.query);
        noted.run_before = NoteRun(key, index);
      }
      noted.is_run = true;
      resources_.AddRun();
      continue;
    }
    if (Writes(access.access_class)) {
      if (is_undone) continue;
      if (access.access_class == AccessClass::kUnknown) {
        resources_.AddUnknownWrite();
      } else if (access.resource.empty() &&
                 absl::StartsWith(call.directory, "/")) {
        // As git writes: what is in its folder, and perhaps beside it.
        resources_.AddWrite(call.directory, /*is_tree=*/true);
        resources_.AddUnknownWrite();
      } else {
        resources_.AddWrite(access.resource, access.is_tree);
      }
      continue;
    }
    const bool is_main = access.access_class == main_class;
    Holder holder = {
        .observation = index,
        .access_class = access.access_class,
        .is_tree = access.is_tree,
        .is_single = is_main && main_count == 1 && !access.resource.empty(),
        .is_alone = read_count + search_count == 1,
        .lines = access.lines};
    if (!access.query.empty()) holder.query_hash = HashOfLine(access.query);
    if (is_main) {
      noted.shows = true;
      noted.is_answer = IsAnswer(access.resource);
      noted.shown = holder;
      std::vector<FoundHolder> found =
          resources_.Find(access.resource, access.is_tree);
      std::erase_if(found, [index](const FoundHolder& entry) {
        return entry.holder.observation == index;
      });
      KeepNewestApart(holder, found);
      if (found.size() > found_max) found.resize(found_max);
      if (IsLive(access)) {
        for (FoundHolder& entry : found) entry.is_doubtful = true;
      }
      noted.found.insert(noted.found.end(), found.begin(), found.end());
    }
    resources_.AddHolder(access.resource, holder);
  }
  return noted;
}

std::shared_ptr<const ContentLines> RepeatDetector::LinesAt(
    std::size_t index, absl::string_view content) {
  std::shared_ptr<const ContentLines> lines = lines_.Get(index);
  return lines != nullptr ? lines : lines_.Add(index, content);
}

Repeat RepeatDetector::JudgeNoted(std::size_t index,
                                  const SeenObservation& seen,
                                  const Noted& noted, At at,
                                  IsMasked is_masked) {
  if (noted.is_run) {
    if (!noted.run_before.has_value()) return {};
    return {.kind = RepeatKind::kPoll, .earlier = *noted.run_before};
  }
  if (!noted.shows || noted.found.empty() || seen.is_error) return {};
  std::vector<Contender> candidates =
      CandidatesOf(noted.found, noted.is_answer, seen.content.size(), at);
  if (candidates.empty()) return {};
  const std::shared_ptr<const ContentLines> content =
      LinesAt(index, seen.content);
  if (content->kind != ContentKind::kGiven) return {};
  const Excerpt later = ExcerptOf(noted.shown, noted.is_answer, content.get());
  std::size_t bytes = 0;
  const auto load = [&](Contender& candidate) {
    // What is too much to compare with counts as nothing.
    const absl::string_view text = at(candidate.observation).content;
    const bool is_too_much = bytes > kCandidateBytesMax;
    bytes += text.size();
    candidate.content = is_too_much ? std::make_shared<const ContentLines>()
                                    : LinesAt(candidate.observation, text);
    candidate.excerpt.content = candidate.content.get();
  };
  const Judgement judgement = Judge(later, absl::MakeSpan(candidates), load);
  if (judgement.finding == Finding::kNothing) return {};
  const std::size_t decides = candidates[judgement.candidate].observation;
  return {.kind = KindOf(judgement.finding, is_masked(decides)),
          .earlier = decides};
}

Repeat RepeatDetector::Look(std::size_t index, At at, IsMasked is_masked,
                            RuleOf rule_of) {
  for (; next_ < index; ++next_) {
    const SeenObservation seen = at(next_);
    Note(next_, seen, rule_of(seen.tool));
  }
  const SeenObservation seen = at(index);
  const Noted noted = Note(index, seen, rule_of(seen.tool));
  next_ = index + 1;
  return JudgeNoted(index, seen, noted, at, is_masked);
}

std::int64_t RepeatDetector::memory_bytes() const {
  return static_cast<std::int64_t>(sizeof(*this) + runs_.capacity() * 24) +
         resources_.memory_bytes() + lines_.memory_bytes();
}

}  // namespace clerestory
