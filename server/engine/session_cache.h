// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_SESSION_CACHE_H_
#define CLERESTORY_SERVER_ENGINE_SESSION_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "server/base/mutex.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {

// Sessions in memory, up to a number of bytes. They are a cache: each can be
// derived from the store again.
//
// Safe from any thread.
class SessionCache {
 public:
  // A place for one session, which one thread at a time works on.
  struct Entry {
    explicit Entry(SessionKey entry_key) : key(std::move(entry_key)) {}

    const SessionKey key;
    Mutex mutex;
    // Empty until it is loaded, and again when it may differ from the store.
    std::unique_ptr<Session> session CLERESTORY_GUARDED_BY(mutex);
    // What it takes; written by whoever worked on it, read without the lock.
    std::atomic<std::int64_t> session_bytes = 0;

    // Below: guarded by the cache's mutex.
    std::int64_t bytes = 0;
    std::int64_t lease_count = 0;
    std::list<Entry*>::iterator position;
  };

  // Keeps an entry in memory while in scope. Not the entry's lock.
  class Lease {
   public:
    Lease(SessionCache& cache, std::shared_ptr<Entry> entry)
        : cache_(cache), entry_(std::move(entry)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { cache_.Release(*entry_); }

    Entry& entry() const { return *entry_; }

   private:
    SessionCache& cache_;
    std::shared_ptr<Entry> entry_;
  };

  // Keeps sessions of up to `bytes_max` in memory, beside those in use.
  explicit SessionCache(std::int64_t bytes_max) : bytes_max_(bytes_max) {}
  SessionCache(const SessionCache&) = delete;
  SessionCache& operator=(const SessionCache&) = delete;

  // The entry of `key`: while anyone has a lease on it, the only one.
  Lease Take(const SessionKey& key) CLERESTORY_EXCLUDES(mutex_);

  // Sessions in memory, and the bytes that they take.
  std::size_t size() const CLERESTORY_EXCLUDES(mutex_);
  std::int64_t bytes() const CLERESTORY_EXCLUDES(mutex_);

 private:
  void Release(Entry& entry) CLERESTORY_EXCLUDES(mutex_);
  void Evict() CLERESTORY_REQUIRES(mutex_);
  void Remove(Entry& entry) CLERESTORY_REQUIRES(mutex_);

  const std::int64_t bytes_max_;

  mutable Mutex mutex_;
  std::map<SessionKey, std::shared_ptr<Entry>> entries_
      CLERESTORY_GUARDED_BY(mutex_);
  // From the least to the most recently used.
  std::list<Entry*> by_use_ CLERESTORY_GUARDED_BY(mutex_);
  std::int64_t bytes_ CLERESTORY_GUARDED_BY(mutex_) = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_SESSION_CACHE_H_
