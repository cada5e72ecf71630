// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_COMPARE_H_
#define CLERESTORY_SERVER_REFETCH_COMPARE_H_

#include <cstdint>
#include <optional>

#include "server/refetch/lines.h"
#include "server/tools/access.h"

namespace clerestory {

// What an observation shows of a resource.
struct Excerpt {
  AccessClass access_class = AccessClass::kRead;
  // Whether it is what a tool answers, and no file or folder.
  bool is_answer = false;
  // Whether it is of one resource: then ranges are those of it. And whether
  // the observation shows nothing else: then numbers before lines are, too.
  bool is_single = false;
  bool is_alone = false;
  // As the call asked for, where it says so.
  std::optional<LineRange> lines;
  std::uint64_t query_hash = 0;
  const ContentLines* content = nullptr;
};

// How a later excerpt of a resource stands to an earlier one.
enum class Relation {
  kUnrelated,  // Little of one is in the other.
  kOther,      // They are other ranges of it.
  kChanged,    // They are the same range, and not the same lines.
  kHolds,      // The earlier one holds most of the later.
  kIsHeld,     // It does not, but the later holds most of the earlier one.
};

// How `later` stands to `earlier`, both of the same resource or of one in the
// other: by ranges where both are known, else by lines. Pure.
Relation Compare(const Excerpt& later, const Excerpt& earlier);

// Whether what both show is the same: one is in the other, or as much of it as
// their ranges have in common. Pure.
bool IsUnchanged(const Excerpt& later, const Excerpt& earlier);

// The lines of its resource that `excerpt` shows: by the numbers in it, or as
// the call asked for; nothing if it cannot be known.
std::optional<LineRange> ShownLines(const Excerpt& excerpt);

// Whether `content` is so little that it says nothing that others hold it: a
// line that is read so that an edit tool takes the file, a single hit.
bool IsTiny(const ContentLines& content);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_COMPARE_H_
