// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/executor.h"

#include <pthread.h>

#include <functional>
#include <thread>
#include <utility>

#include "server/base/check.h"
#include "server/base/mutex.h"

namespace clerestory {

Executor::Executor(int thread_count) {
  CLERESTORY_CHECK(thread_count > 0);
  for (int i = 0; i < thread_count; ++i) {
    threads_.emplace_back([this] { Loop(); });
    pthread_setname_np(threads_.back().native_handle(), "worker");
  }
}

Executor::~Executor() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
}

void Executor::Run(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.SignalOne();
}

void Executor::Loop() {
  while (true) {
    std::function<void()> work;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !stopping_) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace clerestory
