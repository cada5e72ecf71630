// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/file_watch.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/mutex.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace clerestory {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kQuietMicros =
    std::int64_t{FileWatch::kQuietMillis} * 1000;

// Counts the calls of a watch.
class Calls {
 public:
  void Add() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.SignalAll();
  }

  // Waits, for long if need be, until there were `count`.
  bool Reach(int count) {
    const MutexLock lock(mutex_);
    for (int i = 0; i < 1000 && count_ < count; ++i) {
      changed_.WaitFor(mutex_, 10'000);
    }
    return count_ >= count;
  }

  int count() {
    const MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ CLERESTORY_GUARDED_BY(mutex_) = 0;
};

void Sleep(std::int64_t micros) {
  Mutex mutex;
  const MutexLock lock(mutex);
  CondVar().WaitFor(mutex, micros);
}

class FileWatchTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return absl::StrCat(directory_.path(), "/", name);
  }

  std::unique_ptr<FileWatch> Start() {
    auto watch =
        FileWatch::Start({directory_.path()}, [this] { calls_.Add(); });
    EXPECT_THAT(watch, IsOk());
    return *std::move(watch);
  }

  TempDirectory directory_;
  Calls calls_;
};

TEST_F(FileWatchTest, WritingRenamingAndRemovingAreSeen) {
  const auto watch = Start();
  std::ofstream(Path("a")) << "1";
  EXPECT_TRUE(calls_.Reach(1));
  int seen = calls_.count();
  fs::rename(Path("a"), Path("b"));
  EXPECT_TRUE(calls_.Reach(seen + 1));
  seen = calls_.count();
  fs::remove(Path("b"));
  EXPECT_TRUE(calls_.Reach(seen + 1));
}

TEST_F(FileWatchTest, TheSwapOfALinkIsSeen) {
  fs::create_directory(Path("..1"));
  fs::create_symlink("..1", Path("..data"));
  const auto watch = Start();
  fs::create_symlink("..2", Path("..data_tmp"));
  fs::rename(Path("..data_tmp"), Path("..data"));
  EXPECT_TRUE(calls_.Reach(1));
}

TEST_F(FileWatchTest, ChangesThatFollowOneAnotherAreOne) {
  const auto watch = Start();
  for (int i = 0; i < 20; ++i) {
    std::ofstream(Path(absl::StrCat(i))) << "1";
    Sleep(kQuietMicros / 20);
  }
  EXPECT_TRUE(calls_.Reach(1));
  Sleep(3 * kQuietMicros);
  // A slow machine may pause between two of them.
  EXPECT_LT(calls_.count(), 10);
}

TEST_F(FileWatchTest, ATriggerNeedsNoChange) {
  const auto watch = Start();
  watch->Trigger();
  EXPECT_TRUE(calls_.Reach(1));
}

TEST_F(FileWatchTest, ADirectoryThatComesLaterIsWatchedFromATriggerOn) {
  auto watch = FileWatch::Start({Path("later")}, [this] { calls_.Add(); });
  ASSERT_THAT(watch, IsOk());
  fs::create_directory(Path("later"));
  (*watch)->Trigger();
  ASSERT_TRUE(calls_.Reach(1));
  std::ofstream(Path("later/a")) << "1";
  EXPECT_TRUE(calls_.Reach(2));
}

TEST_F(FileWatchTest, NothingIsCalledAfterItsEnd) {
  auto watch = Start();
  watch->Trigger();
  watch.reset();
  const int count = calls_.count();
  std::ofstream(Path("a")) << "1";
  Sleep(3 * kQuietMicros);
  EXPECT_EQ(calls_.count(), count);
}

TEST(DirectoryOfTest, IsWhatStandsBeforeTheName) {
  EXPECT_EQ(DirectoryOf("a/b/c.yaml"), "a/b");
  EXPECT_EQ(DirectoryOf("/c.yaml"), "/");
  EXPECT_EQ(DirectoryOf("c.yaml"), ".");
}

}  // namespace
}  // namespace clerestory
