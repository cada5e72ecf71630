// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_EXECUTOR_H_
#define CLERESTORY_SERVER_BASE_EXECUTOR_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace clerestory {

// A fixed number of threads that do what they are given, first come, first
// served. Safe from any thread.
class Executor {
 public:
  // Starts `thread_count` threads. REQUIRES: > 0.
  explicit Executor(int thread_count);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Does what is waiting, and ends the threads.
  ~Executor();

  void Run(std::function<void()> work) CLERESTORY_EXCLUDES(mutex_);

 private:
  void Loop() CLERESTORY_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> waiting_ CLERESTORY_GUARDED_BY(mutex_);
  bool stopping_ CLERESTORY_GUARDED_BY(mutex_) = false;

  // Constant after construction.
  std::vector<std::thread> threads_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_EXECUTOR_H_
