// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/executor.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/mutex.h"

namespace clerestory {
namespace {

// Lets through those that wait as soon as there are `count` of them.
class Gate {
 public:
  explicit Gate(int count) : count_(count) {}

  void Pass() {
    const MutexLock lock(mutex_);
    if (--count_ == 0) changed_.SignalAll();
    while (count_ > 0) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ CLERESTORY_GUARDED_BY(mutex_);
};

TEST(ExecutorTest, WithoutWorkItEnds) { const Executor executor(3); }

TEST(ExecutorTest, DestructionWaitsForAllThatWasGiven) {
  std::atomic<int> done = 0;
  {
    Executor executor(2);
    for (int i = 0; i < 1000; ++i) {
      executor.Run([&done] { ++done; });
    }
  }
  EXPECT_EQ(done, 1000);
}

TEST(ExecutorTest, DestructionWaitsForWorkThatIsUnderWay) {
  Gate started(2);
  Gate end(2);
  std::atomic<bool> done = false;
  std::thread other;
  {
    Executor executor(1);
    executor.Run([&] {
      started.Pass();
      end.Pass();
      done = true;
    });
    started.Pass();
    other = std::thread([&end] { end.Pass(); });
  }
  EXPECT_TRUE(done);
  other.join();
}

TEST(ExecutorTest, OneThreadDoesItsWorkFirstComeFirstServed) {
  std::vector<int> order;
  {
    Executor executor(1);
    for (int i = 0; i < 100; ++i) {
      executor.Run([&order, i] { order.push_back(i); });
    }
  }
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST(ExecutorTest, AsManyWorksAsThreadsGoOnAtOnce) {
  constexpr int kThreads = 4;
  Gate all(kThreads);
  std::atomic<int> done = 0;
  {
    Executor executor(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      // None ends before all have begun.
      executor.Run([&all, &done] {
        all.Pass();
        ++done;
      });
    }
  }
  EXPECT_EQ(done, kThreads);
}

TEST(ExecutorTest, WorkMayComeFromManyThreads) {
  std::atomic<int> done = 0;
  {
    Executor executor(2);
    std::vector<std::thread> givers;
    for (int i = 0; i < 4; ++i) {
      givers.emplace_back([&executor, &done] {
        for (int n = 0; n < 250; ++n) executor.Run([&done] { ++done; });
      });
    }
    for (std::thread& giver : givers) giver.join();
  }
  EXPECT_EQ(done, 1000);
}

TEST(ExecutorTest, WorkGivenByWorkIsDoneEvenWhileItIsDestroyed) {
  std::atomic<int> done = 0;
  // Outlives the executor, whose destructor still calls it.
  std::function<void(Executor&, int)> descend = [&](Executor& executor,
                                                    int depth) {
    ++done;
    if (depth == 0) return;
    executor.Run(
        [&descend, &executor, depth] { descend(executor, depth - 1); });
  };
  {
    Executor executor(2);
    executor.Run([&descend, &executor] { descend(executor, 99); });
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace clerestory
