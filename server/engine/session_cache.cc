// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_cache.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/base/mutex.h"
#include "server/model/record.h"

namespace clerestory {

SessionCache::Lease SessionCache::Take(const SessionKey& key) {
  const MutexLock lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) {
    entry = std::make_shared<Entry>(key);
    entry->position = by_use_.insert(by_use_.end(), entry.get());
  }
  ++entry->lease_count;
  return {*this, entry};
}

std::size_t SessionCache::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

std::int64_t SessionCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

void SessionCache::Release(Entry& entry) {
  const MutexLock lock(mutex_);
  // Under the lock, so that the last one to release sees what it is now.
  const std::int64_t bytes = entry.session_bytes;
  bytes_ += bytes - entry.bytes;
  entry.bytes = bytes;
  by_use_.splice(by_use_.end(), by_use_, entry.position);
  if (--entry.lease_count == 0 && bytes == 0) {
    Remove(entry);
    return;
  }
  Evict();
}

void SessionCache::Evict() {
  for (auto it = by_use_.begin(); it != by_use_.end() && bytes_ > bytes_max_;) {
    Entry& entry = **it;
    ++it;
    if (entry.lease_count == 0) Remove(entry);
  }
}

void SessionCache::Remove(Entry& entry) {
  bytes_ -= entry.bytes;
  by_use_.erase(entry.position);
  entries_.erase(entries_.find(entry.key));
}

}  // namespace clerestory
