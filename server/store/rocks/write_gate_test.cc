// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/write_gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

const SessionKey kA = {"tenant", "a"};
const SessionKey kB = {"tenant", "b"};

TEST(WriteGateTest, WritersOfDifferentSessionsAreInsideTogether) {
  WriteGate gate([] { return false; }, [] { return absl::OkStatus(); });
  EXPECT_TRUE(gate.Enter(kA).ok());
  EXPECT_TRUE(gate.Enter(kB).ok());
  gate.Leave(kA);
  EXPECT_TRUE(gate.Enter(kA).ok());
  gate.Leave(kA);
  gate.Leave(kB);
}

TEST(WriteGateTest, WritersOfOneSessionAreInsideOneAtATime) {
  WriteGate gate([] { return false; }, [] { return absl::OkStatus(); });
  std::atomic<int> inside = 0;
  int entered = 0;  // Guarded by the gate.
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        ASSERT_TRUE(gate.Enter(kA).ok());
        EXPECT_EQ(++inside, 1);
        ++entered;
        --inside;
        gate.Leave(kA);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered, 1600);
}

TEST(WriteGateTest, RecoversOnceBeforeTheNextWriterWhenItHasStopped) {
  bool stopped = false;
  int recoveries = 0;
  WriteGate gate([&] { return stopped; },
                 [&] {
                   ++recoveries;
                   stopped = false;
                   return absl::OkStatus();
                 });
  ASSERT_TRUE(gate.Enter(kA).ok());
  stopped = true;
  gate.Leave(kA);
  EXPECT_EQ(recoveries, 0);
  ASSERT_TRUE(gate.Enter(kB).ok());
  EXPECT_EQ(recoveries, 1);
  ASSERT_TRUE(gate.Enter(kA).ok());
  EXPECT_EQ(recoveries, 1);
}

TEST(WriteGateTest, LetsNobodyInUntilRecoverySucceeds) {
  bool stopped = true;
  int failures = 2;
  WriteGate gate([&] { return stopped; },
                 [&] {
                   if (failures-- > 0) return absl::UnavailableError("broken");
                   stopped = false;
                   return absl::OkStatus();
                 });
  EXPECT_EQ(gate.Enter(kA).message(), "broken");
  EXPECT_EQ(gate.Enter(kB).message(), "broken");
  EXPECT_TRUE(gate.Enter(kA).ok());
  EXPECT_TRUE(gate.Enter(kB).ok());
}

TEST(WriteGateTest, NobodyIsInsideWhileItRecovers) {
  std::atomic<bool> stopped = false;
  std::atomic<int> inside = 0;
  std::atomic<int> recoveries = 0;
  WriteGate gate([&] { return stopped.load(); },
                 [&] {
                   EXPECT_EQ(inside, 0);
                   if (++recoveries % 2 != 0) {
                     return absl::UnavailableError("broken");
                   }
                   stopped = false;
                   return absl::OkStatus();
                 });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&gate, &stopped, &inside, i] {
      const SessionKey key = {"tenant", absl::StrCat(i % 4)};
      for (int n = 0; n < 200; ++n) {
        if (!gate.Enter(key).ok()) continue;
        ++inside;
        if (n % 5 == 0) stopped = true;
        std::this_thread::yield();
        --inside;
        gate.Leave(key);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(recoveries, 0);
}

}  // namespace
}  // namespace clerestory
