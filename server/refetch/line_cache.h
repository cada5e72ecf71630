// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_LINE_CACHE_H_
#define CLERESTORY_SERVER_REFETCH_LINE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/refetch/lines.h"

namespace clerestory {

// The lines of the observations that were compared last. What is no longer
// there is computed again from the original. Copyable.
class LineCache {
 public:
  // About how much memory it takes at most, but for a single observation.
  static constexpr std::int64_t kBytesMax = 256 << 10;
  static constexpr std::size_t kEntriesMax = 64;

  // The lines of `observation`; null if they are not there.
  std::shared_ptr<const ContentLines> Get(std::size_t observation);

  // Keeps the lines of `observation`, whose content is `content`, and returns
  // them.
  std::shared_ptr<const ContentLines> Add(std::size_t observation,
                                          absl::string_view content);

  std::int64_t memory_bytes() const { return bytes_; }

 private:
  struct Entry {
    std::size_t observation = 0;
    std::shared_ptr<const ContentLines> lines;
  };

  // Those used last are at the end.
  std::vector<Entry> entries_;
  std::int64_t bytes_ = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_LINE_CACHE_H_
