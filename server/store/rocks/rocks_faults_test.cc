// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What the store does when its disk is full or fails.

#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "server/base/reason.h"
#include "server/model/record.h"
#include "server/store/rocks/rocks_store.h"
#include "server/store/session_store.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace clerestory {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const SessionKey kKey = {"tenant", "session"};

const auto kFull =
    FailsWith(absl::StatusCode::kResourceExhausted, Reason::kStoreFull);
const auto kUnavailable =
    FailsWith(absl::StatusCode::kUnavailable, Reason::kStoreUnavailable);

bool IsFull(DiskFault fault) {
  return fault == DiskFault::kNoSpace || fault == DiskFault::kSyncNoSpace;
}

class RocksFaultsTest : public testing::TestWithParam<DiskFault> {
 protected:
  RocksFaultsTest()
      : disk_(std::make_shared<FaultyFileSystem>()),
        env_(rocksdb::NewCompositeEnv(disk_)) {
    options_.path = directory_.path() + "/store";
    options_.env = env_.get();
  }

  void Open() {
    store_.reset();
    auto store = RocksStore::Open(options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  absl::Status Append(const SessionKey& key, const std::string& message) {
    absl::Status status =
        store_->Write(key, static_cast<std::int64_t>(written_.size()),
                      {MessageRecord(message)}, Durability::kSynced);
    if (status.ok()) written_.push_back(MessageRecord(message));
    return status;
  }

  // The same when the disk is well again. What was refused first may have come
  // true meanwhile: its bytes were written, and only syncing them failed.
  void AppendAfterwards(const std::string& message) {
    absl::Status status = Append(kKey, message);
    if (absl::IsAborted(status)) {
      const auto session = store_->Read(kKey);
      ASSERT_THAT(session, IsOk());
      ASSERT_EQ(session->records.size(), written_.size() + 1);
      EXPECT_THAT(MessageOf(session->records.back()), StartsWith("refused"));
      written_.push_back(session->records.back());
      status = Append(kKey, message);
    }
    ASSERT_THAT(status, IsOk());
  }

  void ExpectRefused(const absl::Status& status) const {
    if (IsFull(GetParam())) {
      EXPECT_THAT(status, kFull);
    } else {
      EXPECT_THAT(status, kUnavailable);
    }
  }

  void ExpectWritten() const {
    const auto session = store_->Read(kKey);
    ASSERT_THAT(session, IsOk());
    EXPECT_THAT(session->records, SameRecords(written_));
  }

  TempDirectory directory_;
  std::shared_ptr<FaultyFileSystem> disk_;
  std::unique_ptr<rocksdb::Env> env_;
  RocksOptions options_;
  std::unique_ptr<RocksStore> store_;
  std::vector<Record> written_;  // To kKey, and acknowledged.
};

INSTANTIATE_TEST_SUITE_P(
    Faults, RocksFaultsTest,
    testing::Values(DiskFault::kNoSpace, DiskFault::kSyncNoSpace,
                    DiskFault::kIoError, DiskFault::kSyncIoError),
    [](const testing::TestParamInfo<DiskFault>& fault) -> std::string {
      switch (fault.param) {
        case DiskFault::kNone:
          break;
        case DiskFault::kNoSpace:
          return "NoSpace";
        case DiskFault::kSyncNoSpace:
          return "SyncNoSpace";
        case DiskFault::kIoError:
          return "IoError";
        case DiskFault::kSyncIoError:
          return "SyncIoError";
      }
      return "None";
    });

TEST_P(RocksFaultsTest, WritesFailReadsGoOnAndWritesGoOnWhenTheDiskIsWell) {
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(Append(kKey, absl::StrCat("before ", round)), IsOk());
    disk_->Set(GetParam());
    for (int i = 0; i < 3; ++i) {
      ExpectRefused(Append(kKey, "refused"));
      ExpectRefused(store_->Create(OpenHeader({"tenant", "refused"})));
      ExpectRefused(store_->Delete(kKey));
      ExpectWritten();
      EXPECT_EQ(store_->List("tenant", "", 10)->size(), 1U);
    }
    disk_->Set(DiskFault::kNone);
    AppendAfterwards(absl::StrCat("after ", round));
    ExpectWritten();
  }
  Open();
  ExpectWritten();
}

TEST_P(RocksFaultsTest, WhatIsLearnedOfTokensIsStoredWhenTheDiskIsWell) {
  const StoredCalibration refused = {"tenant", "model", {1}, 1};
  const StoredCalibration learned = {"tenant", "model", {2}, 2};
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  ASSERT_THAT(Append(kKey, "before"), IsOk());
  disk_->Set(GetParam());
  ExpectRefused(Append(kKey, "refused"));
  ExpectRefused(store_->PutCalibration(refused));
  EXPECT_THAT(store_->ListCalibrations(), IsOk());
  disk_->Set(DiskFault::kNone);
  ASSERT_THAT(store_->PutCalibration(learned), IsOk());
  Open();
  EXPECT_THAT(store_->ListCalibrations()->entries, ElementsAre(learned));
  AppendAfterwards("after");
  ExpectWritten();
}

TEST_P(RocksFaultsTest, RecoversWhenTheFirstWriteSinceOpeningFails) {
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  for (int round = 0; round < 3; ++round) {
    Open();
    disk_->Set(GetParam());
    ExpectRefused(Append(kKey, "refused"));
    ExpectRefused(Append(kKey, "refused"));
    disk_->Set(DiskFault::kNone);
    AppendAfterwards(absl::StrCat("after ", round));
    ASSERT_THAT(Append(kKey, absl::StrCat("later ", round)), IsOk());
    ExpectWritten();
  }
  Open();
  ExpectWritten();
}

// The disk fails at whatever the database does then: log, table or manifest.
TEST_P(RocksFaultsTest, LosesNothingWhenTheDiskFailsAtAnyMoment) {
  options_.write_buffer_bytes = 64 << 10;
  const std::string message(3000, 'x');
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  for (int round = 0; round < 6; ++round) {
    disk_->SetAfter(round * 29, GetParam());
    absl::Status status;
    for (int i = 0; i < 100 && status.ok(); ++i) {
      status = Append(kKey, absl::StrCat("refused ", i, message));
    }
    ExpectRefused(status);
    disk_->Set(DiskFault::kNone);
    AppendAfterwards("after");
    ExpectWritten();
    if (round % 3 == 2) Open();
    ExpectWritten();
  }
}

// It fails again while the database is opened anew.
TEST_P(RocksFaultsTest, ReadsGoOnWhenRecoveryFails) {
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  ASSERT_THAT(Append(kKey, "before"), IsOk());
  disk_->Set(GetParam());
  ExpectRefused(Append(kKey, "refused"));
  disk_->Set(GetParam(), "MANIFEST");
  for (int i = 0; i < 2; ++i) {
    ExpectRefused(Append(kKey, "refused"));
    const auto session = store_->Read(kKey);
    ASSERT_THAT(session, IsOk());
    ASSERT_GE(session->records.size(), 1U);
    EXPECT_EQ(MessageOf(session->records[0]), "before");
    EXPECT_EQ(store_->List("tenant", "", 10)->size(), 1U);
    EXPECT_THAT(RocksStore::Open(options_),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          Reason::kStoreUnavailable));
  }
  disk_->Set(DiskFault::kNone);
  AppendAfterwards("after");
  Open();
  ExpectWritten();
}

TEST_P(RocksFaultsTest, ReadersAndWritersOfAllSessionsSurviveRecoveries) {
  Open();
  std::atomic<bool> stop = false;
  std::atomic<int> written = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    const SessionKey key = {"tenant", absl::StrCat(i)};
    ASSERT_THAT(store_->Create(OpenHeader(key)), IsOk());
    threads.emplace_back([this, key, &stop, &written, &refused] {
      std::size_t acknowledged = 0;
      while (!stop) {
        const auto session = store_->Read(key);
        ASSERT_THAT(session, IsOk());
        ASSERT_GE(session->records.size(), acknowledged);
        acknowledged = session->records.size();
        const absl::Status status =
            store_->Write(key, static_cast<std::int64_t>(acknowledged),
                          {MessageRecord("x")}, Durability::kSynced);
        if (status.ok()) {
          ++acknowledged;
          ++written;
        } else if (!absl::IsAborted(status)) {
          ExpectRefused(status);
          ++refused;
        }
      }
    });
  }
  const auto wait_for_more = [](const std::atomic<int>& count) {
    const int before = count;
    while (count < before + 5) std::this_thread::yield();
  };
  for (int round = 0; round < 10; ++round) {
    wait_for_more(written);
    disk_->Set(GetParam());
    wait_for_more(refused);
    disk_->Set(DiskFault::kNone);
  }
  wait_for_more(written);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_P(RocksFaultsTest, NothingThatWasAcknowledgedIsLostByACrashMeanwhile) {
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  ASSERT_THAT(Append(kKey, "before"), IsOk());
  disk_->Set(GetParam());
  ExpectRefused(Append(kKey, "refused"));
  ExpectRefused(Append(kKey, "refused"));
  // As a crash now would leave it.
  const std::string crashed = directory_.path() + "/crashed";
  std::filesystem::copy(options_.path, crashed);
  disk_->Set(DiskFault::kNone);
  store_.reset();
  options_.path = crashed;
  Open();
  const auto session = store_->Read(kKey);
  ASSERT_THAT(session, IsOk());
  // What was refused may be there, in its place, or not.
  ASSERT_GE(session->records.size(), 1U);
  ASSERT_LE(session->records.size(), 2U);
  EXPECT_EQ(MessageOf(session->records[0]), "before");
  if (session->records.size() == 2) {
    EXPECT_EQ(MessageOf(session->records[1]), "refused");
  }
}

// A file system of a few megabytes, where the machine lets us have one.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directory(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=24m") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }

  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(RocksFullDiskTest, ARealFullDiskStopsWritesUntilThereIsSpace) {
  const TempDirectory directory;
  const SmallDisk disk(directory.path() + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount a tmpfs here";
  RocksOptions options;
  options.path = directory.path() + "/disk/store";
  options.write_buffer_bytes = 1 << 20;
  const std::string ballast = directory.path() + "/disk/ballast";
  const std::string message(100'000, 'x');
  auto opened = RocksStore::Open(options);
  ASSERT_THAT(opened, IsOk());
  std::unique_ptr<RocksStore> store = *std::move(opened);
  ASSERT_THAT(store->Create(OpenHeader(kKey)), IsOk());
  std::vector<Record> written;
  for (int round = 0; round < 3; ++round) {
    // Another file takes what space there is, then some of it is freed.
    std::ofstream(ballast) << std::string(std::size_t{32} << 20, 'b');
    absl::Status status;
    for (int i = 0; i < 1000 && status.ok(); ++i) {
      status = store->Write(kKey, static_cast<std::int64_t>(written.size()),
                            {MessageRecord(message)}, Durability::kSynced);
      if (status.ok()) written.push_back(MessageRecord(message));
    }
    ASSERT_THAT(status, kFull);
    auto session = store->Read(kKey);
    ASSERT_THAT(session, IsOk());
    EXPECT_THAT(session->records, SameRecords(written));

    std::filesystem::remove(ballast);
    for (int i = 0; i < 5; ++i) {
      ASSERT_THAT(store->Write(kKey, static_cast<std::int64_t>(written.size()),
                               {MessageRecord(message)}, Durability::kSynced),
                  IsOk());
      written.push_back(MessageRecord(message));
    }
  }
  store.reset();
  opened = RocksStore::Open(options);
  ASSERT_THAT(opened, IsOk());
  const auto session = (*opened)->Read(kKey);
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT(session->records, SameRecords(written));
}

}  // namespace
}  // namespace clerestory
