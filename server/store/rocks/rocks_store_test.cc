// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/record.h"
#include "server/store/record_codec.h"
#include "server/store/rocks/rocks_keys.h"
#include "server/store/session_store.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace clerestory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const SessionKey kKey = {"tenant", "session"};
const SessionKey kOther = {"tenant", "other"};

const auto kCorrupt =
    FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt);
const auto kRefused =
    FailsWith(absl::StatusCode::kFailedPrecondition, Reason::kStoreUnavailable);

class RocksStoreTest : public testing::Test {
 protected:
  RocksStoreTest() { options_.path = directory_.path() + "/store"; }

  // Opens the store; closes it first if it is open.
  void Open() {
    store_.reset();
    auto store = RocksStore::Open(options_);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  void Create(const SessionKey& key, const std::vector<Record>& records) {
    ASSERT_THAT(store_->Create(OpenHeader(key)), IsOk());
    ASSERT_THAT(store_->Write(key, 0, records, Durability::kSynced), IsOk());
  }

  // The header of a session with those records.
  static SessionHeader Header(const SessionKey& key,
                              const std::vector<Record>& records) {
    SessionHeader header = OpenHeader(key);
    if (records.empty()) return header;
    if (const auto* closed = std::get_if<SessionClosed>(&records.back())) {
      header.outcome = closed->outcome;
      header.close_time = closed->time;
      header.totals = closed->totals;
    }
    return header;
  }

  void ExpectRecords(const SessionKey& key,
                     const std::vector<Record>& records) const {
    const auto session = store_->Read(key);
    ASSERT_THAT(session, IsOk());
    EXPECT_EQ(session->header, Header(key, records));
    EXPECT_THAT(session->records, SameRecords(records));
  }

  // The database under the store, which must be closed.
  std::unique_ptr<rocksdb::DB> Database() const {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* database = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(options, options_.path, &database);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::unique_ptr<rocksdb::DB>(database);
  }

  // The files of the store whose names contain `part`.
  std::vector<std::string> Files(const std::string& part) const {
    std::vector<std::string> files;
    for (const auto& file :
         std::filesystem::directory_iterator(options_.path)) {
      const std::string name = file.path().filename().string();
      if (absl::StrContains(name, part)) files.push_back(file.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  TempDirectory directory_;
  RocksOptions options_;
  std::unique_ptr<RocksStore> store_;
};

std::string Contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void Replace(const std::string& file, const std::string& contents) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << contents;
}

// `size` bytes that do not compress.
std::string Noise(std::size_t size) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same in every run.
  std::string noise;
  while (noise.size() < size) noise.push_back(static_cast<char>(random()));
  return noise;
}

TEST_F(RocksStoreTest, EverythingIsThereWhenItIsOpenedAgain) {
  Open();
  Create(kKey, FullRecords());
  Create(kOther, {MessageRecord("a")});
  ASSERT_THAT(
      store_->Write(kOther, 1, {MessageRecord("b")}, Durability::kBuffered),
      IsOk());
  Create({"tenant", "gone"}, FullRecords());
  ASSERT_THAT(store_->Delete({"tenant", "gone"}), IsOk());
  for (int i = 0; i < 2; ++i) {
    Open();
    ExpectRecords(kKey, FullRecords());
    ExpectRecords(kOther, {MessageRecord("a"), MessageRecord("b")});
    const auto listed = store_->List("tenant", "", 10);
    ASSERT_THAT(listed, IsOk());
    EXPECT_THAT(*listed,
                ElementsAre(OpenHeader(kOther), Header(kKey, FullRecords())));
  }
  ASSERT_THAT(
      store_->Write(kOther, 2, {MessageRecord("c")}, Durability::kSynced),
      IsOk());
  ExpectRecords(kOther,
                {MessageRecord("a"), MessageRecord("b"), MessageRecord("c")});
}

TEST_F(RocksStoreTest, ClosingLeavesNothingInTheLog) {
  Open();
  Create(kKey, {MessageRecord(Noise(100'000))});
  store_.reset();
  for (const std::string& log : Files(".log")) {
    EXPECT_LT(std::filesystem::file_size(log), 1000U);
  }
}

TEST_F(RocksStoreTest, ASecondServerIsRefused) {
  Open();
  Create(kKey, FullRecords());
  const auto second = RocksStore::Open(options_);
  EXPECT_THAT(second, kRefused);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("another server"));
  ExpectRecords(kKey, FullRecords());
}

TEST_F(RocksStoreTest, ANewerLayoutIsRefusedAndLeftAlone) {
  Open();
  Create(kKey, FullRecords());
  store_.reset();
  ASSERT_TRUE(Database()->Put({}, FormatKey(), "2").ok());
  const auto newer = RocksStore::Open(options_);
  EXPECT_THAT(newer, kRefused);
  EXPECT_THAT(std::string(newer.status().message()), HasSubstr("format 2"));
  ASSERT_TRUE(Database()->Put({}, FormatKey(), "1").ok());
  Open();
  ExpectRecords(kKey, FullRecords());
}

TEST_F(RocksStoreTest, ALayoutThatIsNoVersionIsDamage) {
  for (const char* const version : {"", "x", "0", "-1"}) {
    ASSERT_TRUE(Database()->Put({}, FormatKey(), version).ok());
    EXPECT_THAT(RocksStore::Open(options_), kCorrupt) << version;
  }
}

TEST_F(RocksStoreTest, ADatabaseOfAnotherProgramIsRefused) {
  ASSERT_TRUE(Database()->Put({}, "their key", "their value").ok());
  EXPECT_THAT(RocksStore::Open(options_), kRefused);
  std::string value;
  ASSERT_TRUE(Database()->Get({}, "their key", &value).ok());
  EXPECT_EQ(value, "their value");
}

TEST_F(RocksStoreTest, APlaceThatCannotBeMadeIsUnavailable) {
  options_.path = directory_.path() + "/missing/store";
  const auto store = RocksStore::Open(options_);
  EXPECT_THAT(store, FailsWith(absl::StatusCode::kUnavailable,
                               Reason::kStoreUnavailable));
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr("missing/store"));
}

TEST_F(RocksStoreTest, ADamagedRecordFailsItsSessionAndNoOther) {
  Open();
  Create(kKey, FullRecords());
  Create(kOther, FullRecords());
  store_.reset();
  {
    const std::unique_ptr<rocksdb::DB> database = Database();
    std::string value;
    ASSERT_TRUE(database->Get({}, RecordKey(kKey, 2), &value).ok());
    value.back() = static_cast<char>(value.back() ^ 1);
    ASSERT_TRUE(database->Put({}, RecordKey(kKey, 2), value).ok());
  }
  Open();
  const auto damaged = store_->Read(kKey);
  EXPECT_THAT(damaged, kCorrupt);
  EXPECT_EQ(MetadataOf(damaged.status(), "session_id"), "session");
  EXPECT_EQ(MetadataOf(damaged.status(), "record"), "2");
  ExpectRecords(kOther, FullRecords());
  EXPECT_EQ(store_->List("tenant", "", 10)->size(), 2U);
  EXPECT_THAT(store_->Delete(kKey), IsOk());
  Create(kKey, FullRecords());
  ExpectRecords(kKey, FullRecords());
}

TEST_F(RocksStoreTest, DocumentsOfPoliciesSurviveARestart) {
  const StoredPolicy policy = {
      .tenant = "tenant", .yaml = "mode: off\n", .update_time = 77};
  Open();
  ASSERT_THAT(store_->PutPolicy(policy, ""), IsOk());
  ASSERT_THAT(store_->PutPolicy({.tenant = "gone", .yaml = "a"}, ""), IsOk());
  ASSERT_THAT(store_->DeletePolicy("gone", PolicyEtag("a")), IsOk());
  store_.reset();
  Open();
  EXPECT_EQ(*store_->GetPolicy("tenant"), policy);
  EXPECT_THAT(store_->ListPolicyTenants()->names, ElementsAre("tenant"));
  EXPECT_THAT(store_->PutPolicy(policy, "other"),
              FailsWith(absl::StatusCode::kAborted, Reason::kPolicyConflict));
}

TEST_F(RocksStoreTest, ADamagedDocumentOfPoliciesCanBeReplaced) {
  const StoredPolicy policy = {.tenant = "tenant", .yaml = "mode: off\n"};
  Open();
  Create(kKey, FullRecords());
  ASSERT_THAT(store_->PutPolicy(policy, ""), IsOk());
  store_.reset();
  ASSERT_TRUE(Database()->Put({}, PolicyKey("tenant"), "damage").ok());
  Open();
  EXPECT_THAT(store_->GetPolicy("tenant"), kCorrupt);
  EXPECT_THAT(store_->PutPolicy(policy, PolicyEtag("a")), kCorrupt);
  EXPECT_EQ(store_->ListPolicyTenants()->names.size(), 1U);
  ExpectRecords(kKey, FullRecords());
  ASSERT_THAT(store_->PutPolicy(policy, std::nullopt), IsOk());
  EXPECT_EQ(*store_->GetPolicy("tenant"), policy);
}

TEST_F(RocksStoreTest, WhatWasLearnedOfTokensSurvivesARestart) {
  const StoredCalibration learned = {"tenant", "model", {0, 700}, 1};
  Open();
  ASSERT_THAT(store_->PutCalibration({"tenant", "model", {1}, 9}), IsOk());
  ASSERT_THAT(store_->PutCalibration(learned), IsOk());
  // As if the process were killed: the files as they are now.
  const std::string killed = directory_.path() + "/killed";
  std::filesystem::copy(options_.path, killed);
  Open();
  EXPECT_THAT(store_->ListCalibrations()->entries, ElementsAre(learned));
  store_.reset();
  options_.path = killed;
  Open();
  EXPECT_THAT(store_->ListCalibrations()->entries, ElementsAre(learned));
}

TEST_F(RocksStoreTest, WhatIsDamagedOfWhatWasLearnedIsPassedByAndCounted) {
  const StoredCalibration first = {"a", "m", {1}, 1};
  const StoredCalibration damaged = {"b", "m", {2}, 2};
  const StoredCalibration last = {"c", "m", {3}, 3};
  Open();
  for (const StoredCalibration& learned : {first, damaged, last}) {
    ASSERT_THAT(store_->PutCalibration(learned), IsOk());
  }
  store_.reset();
  {
    const auto database = Database();
    ASSERT_TRUE(database->Put({}, CalibrationKey("b", "m"), "damage").ok());
    // Of another model, and what is no name.
    ASSERT_TRUE(
        database->Put({}, CalibrationKey("b", "n"), EncodeCalibration(damaged))
            .ok());
    ASSERT_TRUE(database->Put({}, "c", EncodeCalibration(damaged)).ok());
  }
  Open();
  const auto all = store_->ListCalibrations();
  ASSERT_THAT(all, IsOk());
  EXPECT_THAT(all->entries, ElementsAre(first, last));
  EXPECT_EQ(all->skipped_count, 3);
  ASSERT_THAT(store_->PutCalibration(damaged), IsOk());
  EXPECT_THAT(store_->ListCalibrations()->entries,
              ElementsAre(first, damaged, last));
}

TEST_F(RocksStoreTest, ADamagedFileHidesWhatWasLearnedAndFailsNothing) {
  Open();
  // Too many to be in one block.
  for (int i = 0; i < 2'000; ++i) {
    std::vector<std::int64_t> weights;
    for (int n = 0; n < 70; ++n) weights.push_back(i * 7'919 + n * n * 104'729);
    ASSERT_THAT(store_->PutCalibration(
                    {"tenant", absl::StrCat("model", 10'000 + i), weights, i}),
                IsOk());
  }
  store_.reset();
  const std::vector<std::string> tables = Files(".sst");
  ASSERT_FALSE(tables.empty());
  std::string table = Contents(tables.back());
  ASSERT_GT(table.size(), 100'000U);
  table[60'000] = static_cast<char>(table[60'000] ^ 1);
  Replace(tables.back(), table);
  Open();
  const auto all = store_->ListCalibrations();
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->skipped_count, 1);
  EXPECT_GT(all->entries.size(), 10U);
  EXPECT_LT(all->entries.size(), 1'990U);
}

TEST_F(RocksStoreTest, ADamagedFileHidesDocumentsOfPoliciesAndFailsNothing) {
  Open();
  // Sessions on either side of the documents, in many blocks.
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    Create({"tenant", absl::StrCat(absl::Hex(random()), absl::Hex(random()))},
           {MessageAppended{.time = 1,
                            .message = std::make_shared<const std::string>(
                                absl::StrCat(random(), random()))}});
  }
  for (const char* tenant : {"a", "b", "c"}) {
    ASSERT_THAT(store_->PutPolicy({tenant, "mode: off\n", 1}, ""), IsOk());
  }
  store_.reset();
  const std::vector<std::string> tables = Files(".sst");
  ASSERT_FALSE(tables.empty());
  const std::string table = Contents(tables.back());
  int damaged_count = 0;
  for (std::size_t at = 8'000; at + 2'000 < table.size(); at += 2'000) {
    std::string damaged = table;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    Replace(tables.back(), damaged);
    Open();
    const auto tenants = store_->ListPolicyTenants();
    ASSERT_THAT(tenants, IsOk()) << at;
    EXPECT_LE(tenants->skipped_count, 1);
    if (tenants->skipped_count > 0) {
      ++damaged_count;
    } else {
      EXPECT_THAT(tenants->names, ElementsAre("a", "b", "c")) << at;
    }
    store_.reset();
  }
  EXPECT_GT(damaged_count, 0);
}

TEST_F(RocksStoreTest, AMissingRecordFailsItsSession) {
  Open();
  Create(kKey, FullRecords());
  store_.reset();
  ASSERT_TRUE(Database()->Delete({}, RecordKey(kKey, 0)).ok());
  Open();
  const auto damaged = store_->Read(kKey);
  EXPECT_THAT(damaged, kCorrupt);
  EXPECT_EQ(MetadataOf(damaged.status(), "record"), "0");
}

TEST_F(RocksStoreTest, ADamagedHeaderFailsItsSessionAndItsPage) {
  const SessionKey last = {"tenant", "zuletzt"};
  Open();
  for (const SessionKey& key : {kKey, kOther, last}) {
    Create(key, FullRecords());
  }
  store_.reset();
  ASSERT_TRUE(Database()->Put({}, HeaderKey(kKey), "damage").ok());
  Open();
  EXPECT_THAT(store_->Read(kKey), kCorrupt);
  const auto version = static_cast<std::int64_t>(FullRecords().size());
  EXPECT_THAT(
      store_->Write(kKey, version, {SessionClosed{}}, Durability::kSynced),
      kCorrupt);
  ExpectRecords(kOther, FullRecords());
  // A page with it fails and names it; the others are as they were.
  const absl::Status page = store_->List("tenant", "", 10).status();
  EXPECT_THAT(page, kCorrupt);
  EXPECT_EQ(MetadataOf(page, "session_id"), "session");
  EXPECT_EQ(store_->List("tenant", "", 1)->size(), 1U);
  EXPECT_EQ(store_->List("tenant", "session", 10)->size(), 1U);
  EXPECT_THAT(store_->Delete(kKey), IsOk());
  EXPECT_EQ(store_->List("tenant", "", 10)->size(), 2U);
}

// Damage below RocksDB: in its files. The sessions that it hit fail, the others
// do not, and neither does a write, though compactions meet it again and again.
TEST_F(RocksStoreTest, DamagedFilesFailTheSessionsInThem) {
  options_.write_buffer_bytes = 256 << 10;
  const std::string noise = Noise(40'000);
  Open();
  for (int i = 0; i < 5; ++i) {
    Create({"tenant", absl::StrCat(i)}, {MessageRecord(noise)});
  }
  store_.reset();
  const std::vector<std::string> tables = Files(".sst");
  ASSERT_FALSE(tables.empty());
  std::string table = Contents(tables.back());
  ASSERT_GT(table.size(), 150'000U);
  table[100'000] = static_cast<char>(table[100'000] ^ 1);
  Replace(tables.back(), table);

  Open();
  int damaged = 0;
  for (int i = 0; i < 5; ++i) {
    const auto session = store_->Read({"tenant", absl::StrCat(i)});
    if (session.ok()) {
      EXPECT_THAT(session->records,
                  SameRecords(std::vector<Record>{MessageRecord(noise)}));
    } else {
      EXPECT_THAT(session, kCorrupt);
      ++damaged;
    }
  }
  EXPECT_EQ(damaged, 1);
  EXPECT_EQ(store_->List("tenant", "", 10)->size(), 5U);
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  for (std::int64_t version = 0; version < 60; ++version) {
    ASSERT_THAT(store_->Write(kKey, version, {MessageRecord(noise)},
                              Durability::kBuffered),
                IsOk());
  }
  EXPECT_EQ(store_->Read(kKey)->records.size(), 60U);
}

TEST_F(RocksStoreTest, ATornEndOfTheLogIsNotThere) {
  Open();
  Create(kKey, {MessageRecord("a")});
  // As after a crash: the files as they are now, in another directory.
  const std::string crashed = directory_.path() + "/crashed";
  std::filesystem::copy(options_.path, crashed);
  store_.reset();
  options_.path = crashed;
  const std::vector<std::string> logs = Files(".log");
  ASSERT_FALSE(logs.empty());
  const std::string log = Contents(logs.back());
  ASSERT_GT(log.size(), 10U);
  Replace(logs.back(), log.substr(0, log.size() - 3));
  Open();
  ExpectRecords(kKey, {});
  ASSERT_THAT(store_->Write(kKey, 0, {MessageRecord("b")}, Durability::kSynced),
              IsOk());
  Open();
  ExpectRecords(kKey, {MessageRecord("b")});
}

TEST_F(RocksStoreTest, TheLogOfRocksdbHasNothingOfWhatIsStored) {
  options_.write_buffer_bytes = 64 << 10;
  Open();
  ASSERT_THAT(store_->Create(OpenHeader(kKey)), IsOk());
  for (std::int64_t version = 0; version < 100; ++version) {
    ASSERT_THAT(
        store_->Write(kKey, version,
                      {MessageRecord(absl::StrCat("secret", Noise(5000)))},
                      Durability::kBuffered),
        IsOk());
  }
  Open();
  const std::vector<std::string> logs = Files("LOG");
  ASSERT_FALSE(logs.empty());
  for (const std::string& log : logs) {
    EXPECT_THAT(Contents(log), HasSubstr("flush")) << log;
    EXPECT_THAT(Contents(log), Not(HasSubstr("secret"))) << log;
  }
}

}  // namespace
}  // namespace clerestory
