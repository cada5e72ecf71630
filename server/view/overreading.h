// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_VIEW_OVERREADING_H_
#define CLERESTORY_SERVER_VIEW_OVERREADING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/view/session.h"

namespace clerestory {

// What an agent read for nothing, as far as its own words tell: advice to whom
// its tools belong, and no reason to mask anything.
//
// A *word* is a run of at least kWordBytesMin ASCII letters, digits and `_`, or
// a path: such a run with `/`, `.` and `-` inside. It is taken from the JSON of
// the messages, escapes being gaps. A word is *new* in an observation if it
// occurs nowhere before. An observation is *judged* if it has at least
// kNewWordsMin new words and kJudgedTokensMin tokens, is no error, and an
// assistant message follows it; it is *unreferenced* if none of its new words
// occurs in a later assistant message: what the model says and thinks, and the
// names and arguments of its calls.
//
// So it misses, calling unreferenced what was of use: what the model took in
// and did not name ("all tests pass", a listing in which the file was not
// there), and what it named in other words. It calls referenced what shares a
// common word with later text by chance: the larger an observation, the more
// often. It says nothing of text without ASCII words, of a second reading of
// the same (no word is new), and of histories above
// kOverreadingBytesMax. It keeps the first kSpokenWordsMax
// words of the assistant; behind the last of its messages that has no other
// word it judges nothing.
inline constexpr std::size_t kWordBytesMin = 5;
inline constexpr std::int64_t kNewWordsMin = 5;
inline constexpr std::int64_t kJudgedTokensMin = 50;
inline constexpr std::size_t kSpokenWordsMax = std::size_t{1} << 20;
inline constexpr std::int64_t kOverreadingBytesMax = 64LL << 20;

struct Overreading {
  enum class Verdict : std::uint8_t { kNotJudged, kReferenced, kUnreferenced };
  // Of each of the session's observations.
  std::vector<Verdict> observations;
  // Of each of its calls: whether an earlier one is of the same tool and has
  // the same bytes as arguments.
  std::vector<bool> identical_calls;
};

// Reads the whole history twice; keeps a word that the assistant says in some
// 30 bytes, and any other in less than two bits of a table of at most 8 MiB.
// Two words that share a place in the table make one of them not new, which
// may leave an observation unjudged, and never unreferenced. Deterministic and
// pure.
Overreading FindOverreading(const Session& session);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_VIEW_OVERREADING_H_
