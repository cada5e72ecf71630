// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_LINES_H_
#define CLERESTORY_SERVER_REFETCH_LINES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/refetch/content_kind.h"
#include "server/tools/access.h"

namespace clerestory {

// The most different lines that are kept of an observation. Of more, those are
// kept whose hashes end in enough zeros: the same ones in every observation.
inline constexpr std::size_t kLinesMax = 4'096;

// A line of an observation as it can be told from others: without numbers, the
// path that a search puts before it, colours, timings and blanks at its ends.
struct LineDigest {
  std::uint64_t hash = 0;
  // Bytes of the line, of all that are equal together.
  std::uint32_t weight = 0;
  // How many are equal.
  std::uint32_t count = 0;

  friend bool operator==(const LineDigest&, const LineDigest&) = default;
};

// What an observation holds, as it is compared with others. Computed from the
// original when it is needed; nothing of it is stored.
struct ContentLines {
  ContentKind kind = ContentKind::kEmpty;
  // By hash, each once. Lines that say nothing - brackets, `else`, a bare
  // `return` - are none of them: they recur by chance.
  std::vector<LineDigest> lines;
  // Lines that are kept have a hash with so many zeros at its end.
  int sampling = 0;
  // Of those that are kept, together.
  std::int64_t weight = 0;
  std::int64_t line_count = 0;
  // All lines, and those of them that are not blank.
  std::int64_t all_line_count = 0;
  std::int64_t text_line_count = 0;
  // Of the text as a whole, blank lines left out.
  std::uint64_t text_hash = 0;
  // The numbers of its lines, if nearly all have one and they are in sequence.
  std::optional<LineRange> numbers;
  // Whether lines with numbers leave out others between them.
  bool has_gaps = false;

  // About how much memory it takes.
  std::int64_t memory_bytes() const {
    return static_cast<std::int64_t>(sizeof(*this) +
                                     lines.capacity() * sizeof(LineDigest));
  }
};

// Returns what the observation holds whose content is the JSON value `content`,
// which must be valid or empty. Pure; takes time linear in its size.
ContentLines LinesOf(absl::string_view content);

// How much of the lines of one stands in others.
struct Share {
  // Bytes and lines, of those that are compared.
  std::int64_t weight = 0;
  std::int64_t line_count = 0;
  std::int64_t weight_of = 0;
  std::int64_t line_count_of = 0;

  // Whether it is `percent` at least of the bytes.
  bool IsAtLeast(std::int64_t percent) const {
    return weight_of > 0 && weight * 100 >= weight_of * percent;
  }
};

// How much of `part` stands in any of `wholes`. Takes time linear in all.
Share ShareOf(const ContentLines& part,
              absl::Span<const ContentLines* const> wholes);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_LINES_H_
