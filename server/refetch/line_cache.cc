// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/line_cache.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/refetch/lines.h"

namespace clerestory {

std::shared_ptr<const ContentLines> LineCache::Get(std::size_t observation) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [observation](const Entry& entry) {
                                    return entry.observation == observation;
                                  });
  if (found == entries_.end()) return nullptr;
  std::rotate(found, found + 1, entries_.end());
  return entries_.back().lines;
}

std::shared_ptr<const ContentLines> LineCache::Add(std::size_t observation,
                                                   absl::string_view content) {
  auto lines = std::make_shared<const ContentLines>(LinesOf(content));
  bytes_ += lines->memory_bytes();
  entries_.push_back({.observation = observation, .lines = lines});
  while (entries_.size() > 1 &&
         (entries_.size() > kEntriesMax || bytes_ > kBytesMax)) {
    bytes_ -= entries_.front().lines->memory_bytes();
    entries_.erase(entries_.begin());
  }
  return lines;
}

}  // namespace clerestory
