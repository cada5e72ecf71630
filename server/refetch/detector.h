// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_DETECTOR_H_
#define CLERESTORY_SERVER_REFETCH_DETECTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/model/repeat.h"
#include "server/refetch/line_cache.h"
#include "server/refetch/lines.h"
#include "server/refetch/resource_index.h"
#include "server/tools/access.h"

namespace clerestory {

// What was found of an observation.
struct Repeat {
  RepeatKind kind = RepeatKind::kNone;
  // The earlier observation that it repeats, by its index: the newest one that
  // holds what is asked for. Meaningless for kNone.
  std::size_t earlier = 0;

  friend bool operator==(const Repeat&, const Repeat&) = default;
};

// An observation and its call, as they stand in the history.
struct SeenObservation {
  absl::string_view tool;
  absl::string_view arguments;  // The JSON value, as in ParsedCall.
  absl::string_view content;    // The JSON value, as in ParsedResult.
  bool is_error = false;
  std::int64_t token_count = 0;
  // The turn of its call, from 1.
  std::int64_t turn = 0;
};

// Tells what the newest observation of a session repeats, by class, resource,
// range and content.
//
// Follows the observations in the order of the history; what was not looked at
// yet is caught up with in the next call. Deterministic. Copyable. Not safe to
// use from two threads at once.
class RepeatDetector {
 public:
  // The observation of an index; what it returns must stay valid during the
  // call.
  using At = absl::FunctionRef<SeenObservation(std::size_t)>;
  // Whether the view shows the observation of an index no longer.
  using IsMasked = absl::FunctionRef<bool(std::size_t)>;
  // What the policy says of a tool.
  using RuleOf = absl::FunctionRef<ToolAccess(absl::string_view tool)>;

  // Looks at the observations up to `index`, and returns what the one at
  // `index` repeats. REQUIRES: it is behind what was looked at before.
  Repeat Look(std::size_t index, At at, IsMasked is_masked, RuleOf rule_of);

  // About how much memory it takes. Bounded, however long the session is.
  std::int64_t memory_bytes() const;

 private:
  // What the call of an observation does, and whether it shows anything.
  struct Noted;

  // Takes over what the call of the observation at `index` does, and returns it
  // with what showed the same before.
  Noted Note(std::size_t index, const SeenObservation& seen,
             const ToolAccess& rule);
  Repeat JudgeNoted(std::size_t index, const SeenObservation& seen,
                    const Noted& noted, At at, IsMasked is_masked);
  // The lines of the observation at `index`.
  std::shared_ptr<const ContentLines> LinesAt(std::size_t index,
                                              absl::string_view content);
  // Notes that the run `key` is made, and returns when it was before.
  std::optional<std::size_t> NoteRun(std::uint64_t key, std::size_t index);

  std::size_t next_ = 0;
  ResourceIndex resources_;
  LineCache lines_;
  // By what was run, the last observation of it.
  absl::flat_hash_map<std::uint64_t, std::size_t> runs_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_DETECTOR_H_
