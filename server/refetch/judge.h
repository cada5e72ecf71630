// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_JUDGE_H_
#define CLERESTORY_SERVER_REFETCH_JUDGE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/refetch/compare.h"
#include "server/refetch/lines.h"

namespace clerestory {

// An earlier observation that shows something of what a later one asked for.
struct Contender {
  std::size_t observation = 0;
  Excerpt excerpt;
  // What `excerpt` points to; null until it is wanted.
  std::shared_ptr<const ContentLines> content;
  // Whether what it shows was written since; or something may have been, and
  // perhaps not this.
  bool is_stale = false;
  bool is_doubtful = false;
  // Whether it is of the very resource, not of a folder above.
  bool is_same = true;
};

// Whether the calls themselves say that the two have no line in common.
bool AreApart(const Excerpt& later, const Excerpt& earlier);

// What a later observation asked for again.
enum class Finding {
  kNothing,
  kHeld,     // What an earlier one shows.
  kWritten,  // What an earlier one shows, but it was written since.
  kOther,    // Another part of what an earlier one shows.
};

struct Judgement {
  Finding finding = Finding::kNothing;
  // Of the candidates, which decides it. Meaningless for kNothing.
  std::size_t candidate = 0;
};

// Sets the content of a candidate. Called only for those that are compared.
using LoadContent = absl::FunctionRef<void(Contender&)>;

// What `later` asked for again, of `candidates`, the newest first. The newest
// that holds most of it decides; then the newest that shows the same lines with
// other words; then of all that are not stale the one that
// holds most, if they hold most of it together; then the newest of which it
// holds most.
Judgement Judge(const Excerpt& later, absl::Span<Contender> candidates,
                LoadContent load);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_JUDGE_H_
