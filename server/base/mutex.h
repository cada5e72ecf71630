// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_MUTEX_H_
#define CLERESTORY_SERVER_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define CLERESTORY_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define CLERESTORY_THREAD_ATTRIBUTE(x)
#endif

#define CLERESTORY_GUARDED_BY(x) CLERESTORY_THREAD_ATTRIBUTE(guarded_by(x))
#define CLERESTORY_REQUIRES(...) \
  CLERESTORY_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define CLERESTORY_EXCLUDES(...) \
  CLERESTORY_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace clerestory {

// std::mutex with clang's capability attributes. Not absl::Mutex: Debian's
// library is not instrumented, so ThreadSanitizer reports races on it that are
// none.
class CLERESTORY_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() CLERESTORY_THREAD_ATTRIBUTE(acquire_capability()) {
    mutex_.lock();
  }
  void Unlock() CLERESTORY_THREAD_ATTRIBUTE(release_capability()) {
    mutex_.unlock();
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds `mutex` while in scope.
class CLERESTORY_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex)
      CLERESTORY_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() CLERESTORY_THREAD_ATTRIBUTE(release_capability()) {
    mutex_.Unlock();
  }

 private:
  Mutex& mutex_;
};

// Waits for a condition guarded by a Mutex.
class CondVar {
 public:
  // Releases `mutex`, waits for a signal, and takes it again. May wake without
  // one. REQUIRES: the caller holds `mutex`.
  void Wait(Mutex& mutex) CLERESTORY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // As Wait, for `micros` at most.
  void WaitFor(Mutex& mutex, std::int64_t micros) CLERESTORY_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, std::chrono::microseconds(micros));
    lock.release();
  }
  void SignalOne() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_MUTEX_H_
