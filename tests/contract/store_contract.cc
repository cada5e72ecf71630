// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/contract/store_contract.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/record.h"
#include "server/store/session_store.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
constexpr absl::StatusCode kAlreadyExists = absl::StatusCode::kAlreadyExists;

// Ids that a careless encoding of keys would order wrongly or mix up, in the
// order of their bytes.
std::vector<std::string> NastyIds() {
  return {std::string("\0", 1),
          std::string("\0\0", 2),
          std::string("\0\1", 2),
          std::string("\0\xff", 2),
          "\x01",
          "A",
          "a",
          std::string("a\0", 2),
          std::string("a\0\1", 3),
          std::string("a\0b", 3),
          std::string("a\0\xff", 3),
          "a\x01",
          "a/b",
          "aa",
          "ab",
          std::string(128, 'b'),
          "\xc3\xa4",
          "\xff",
          "\xff\xff"};
}

TEST_P(SessionStoreContract, ACreatedSessionHasItsHeaderAndNoRecords) {
  SessionHeader header = OpenHeader({"tenant", "session"});
  ASSERT_THAT(store().Create(header), IsOk());
  const auto session = store().Read(header.key);
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ(session->header, header);
  EXPECT_THAT(session->records, IsEmpty());

  SessionHeader defaults;
  defaults.key = {"tenant", "other"};
  ASSERT_THAT(store().Create(defaults), IsOk());
  const auto other = store().Read(defaults.key);
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(other->header, defaults);
}

TEST_P(SessionStoreContract, CreateDoesNotReplaceASession) {
  const SessionHeader header = OpenHeader({"tenant", "session"});
  ASSERT_THAT(store().Create(header), IsOk());
  ASSERT_THAT(store().Write(header.key, 0, {MessageRecord("first")},
                            Durability::kSynced),
              IsOk());
  SessionHeader other = header;
  other.model = "another";
  const absl::Status refused = store().Create(other);
  EXPECT_THAT(refused, FailsWith(kAlreadyExists, Reason::kSessionExists));
  EXPECT_EQ(MetadataOf(refused, "session_id"), "session");
  const auto session = store().Read(header.key);
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ(session->header, header);
  EXPECT_EQ(session->records.size(), 1U);
}

TEST_P(SessionStoreContract, WhatIsNotThereIsNotFound) {
  const SessionKey key = {"tenant", "session"};
  const auto missing = FailsWith(kNotFound, Reason::kSessionNotFound);
  EXPECT_THAT(store().Read(key), missing);
  EXPECT_THAT(
      store().Write(key, 0, {MessageRecord("first")}, Durability::kSynced),
      missing);
  EXPECT_THAT(
      store().Write(key, 3, {MessageRecord("first")}, Durability::kBuffered),
      missing);
  EXPECT_THAT(store().Delete(key), missing);
  EXPECT_EQ(MetadataOf(store().Delete(key), "session_id"), "session");
  EXPECT_THAT(Ids("tenant", "", 10), IsEmpty());
}

TEST_P(SessionStoreContract, RecordsComeBackInTheOrderOfWriting) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  std::vector<Record> written;
  // Past 256, so that the numbers need more than one byte.
  for (int batch = 0; batch < 40; ++batch) {
    std::vector<Record> records;
    for (int i = 0; i <= batch % 16; ++i) {
      records.push_back(MessageRecord(absl::StrCat(batch, ".", i)));
    }
    const auto version = static_cast<std::int64_t>(written.size());
    ASSERT_THAT(store().Write(key, version, records,
                              batch % 2 == 0 ? Durability::kSynced
                                             : Durability::kBuffered),
                IsOk());
    written.insert(written.end(), records.begin(), records.end());
    const auto session = store().Read(key);
    ASSERT_THAT(session, IsOk());
    ASSERT_THAT(session->records, SameRecords(written));
  }
}

TEST_P(SessionStoreContract, EveryFieldOfEveryRecordComesBack) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  std::vector<Record> records = DefaultRecords();
  const std::vector<Record> full = FullRecords();
  records.insert(records.end(), full.begin(), full.end());
  ASSERT_THAT(store().Write(key, 0, records, Durability::kSynced), IsOk());
  const auto session = store().Read(key);
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT(session->records, SameRecords(records));
}

TEST_P(SessionStoreContract, EveryByteOfAMessageComesBack) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  std::string large;
  while (large.size() < (std::size_t{8} << 20)) {
    large += every_byte;
    large += absl::StrCat(large.size());
  }
  const std::vector<Record> records = {MessageRecord(every_byte),
                                       MessageRecord(large), MessageRecord("")};
  ASSERT_THAT(store().Write(key, 0, records, Durability::kSynced), IsOk());
  const auto session = store().Read(key);
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT(session->records, SameRecords(records));
}

TEST_P(SessionStoreContract, AWriteToAnotherVersionIsRefusedWhole) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  const std::vector<Record> records = {MessageRecord("0"), MessageRecord("1"),
                                       MessageRecord("2")};
  const std::vector<Record> late = {MessageRecord("late"), SessionClosed{}};
  EXPECT_THAT(store().Write(key, 1, late, Durability::kSynced),
              FailsWith(kAborted, Reason::kAppendConflict));
  ASSERT_THAT(store().Write(key, 0, records, Durability::kSynced), IsOk());
  for (const std::int64_t version : {-1, 0, 1, 2, 4, 5, 1000}) {
    const absl::Status refused =
        store().Write(key, version, late, Durability::kSynced);
    EXPECT_THAT(refused, FailsWith(kAborted, Reason::kAppendConflict))
        << version;
    EXPECT_EQ(MetadataOf(refused, "session_id"), "session");
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("late")));
  }
  const auto session = store().Read(key);
  ASSERT_THAT(session, IsOk());
  EXPECT_THAT(session->records, SameRecords(records));
  EXPECT_EQ(session->header, OpenHeader(key));
}

TEST_P(SessionStoreContract, ClosingGivesTheHeaderOutcomeTimeAndTotals) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  ASSERT_THAT(store().Write(key, 0,
                            {MessageRecord("last"),
                             SessionClosed{.time = 77,
                                           .outcome = Outcome::kFailed,
                                           .totals = FullTotals()}},
                            Durability::kSynced),
              IsOk());
  SessionHeader closed = OpenHeader(key);
  closed.outcome = Outcome::kFailed;
  closed.close_time = 77;
  closed.totals = FullTotals();
  const auto session = store().Read(key);
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ(session->header, closed);
  EXPECT_EQ(session->records.size(), 2U);
  const auto listed = store().List("tenant", "", 10);
  ASSERT_THAT(listed, IsOk());
  EXPECT_THAT(*listed, ElementsAre(closed));
}

TEST_P(SessionStoreContract, OnlyTheLastRecordClosesASession) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  ASSERT_THAT(store().Write(key, 0, {SessionClosed{}, MessageRecord("last")},
                            Durability::kSynced),
              IsOk());
  const auto session = store().Read(key);
  ASSERT_THAT(session, IsOk());
  EXPECT_EQ(session->header, OpenHeader(key));
}

TEST_P(SessionStoreContract, ADeletedSessionIsGoneAndCanBeCreatedAnew) {
  const SessionKey key = {"tenant", "session"};
  const SessionKey before = {"tenant", "sessio"};
  const SessionKey after = {"tenant", "session0"};
  const std::vector<Record> records = FullRecords();
  for (const SessionKey& each : {before, key, after}) {
    ASSERT_THAT(store().Create(OpenHeader(each)), IsOk());
    ASSERT_THAT(store().Write(each, 0, records, Durability::kSynced), IsOk());
  }
  ASSERT_THAT(store().Delete(key), IsOk());
  EXPECT_THAT(store().Read(key),
              FailsWith(kNotFound, Reason::kSessionNotFound));
  EXPECT_THAT(store().Delete(key),
              FailsWith(kNotFound, Reason::kSessionNotFound));
  EXPECT_THAT(Ids("tenant", "", 10), ElementsAre("sessio", "session0"));
  for (const SessionKey& each : {before, after}) {
    const auto session = store().Read(each);
    ASSERT_THAT(session, IsOk());
    EXPECT_THAT(session->records, SameRecords(records));
  }

  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  const auto anew = store().Read(key);
  ASSERT_THAT(anew, IsOk());
  EXPECT_EQ(anew->header, OpenHeader(key));
  EXPECT_THAT(anew->records, IsEmpty());
  EXPECT_THAT(
      store().Write(key, 4, {MessageRecord("late")}, Durability::kSynced),
      FailsWith(kAborted, Reason::kAppendConflict));
  ASSERT_THAT(
      store().Write(key, 0, {MessageRecord("new")}, Durability::kSynced),
      IsOk());
  const auto written = store().Read(key);
  ASSERT_THAT(written, IsOk());
  ASSERT_EQ(written->records.size(), 1U);
  EXPECT_EQ(MessageOf(written->records[0]), "new");
}

TEST_P(SessionStoreContract, SessionsAreListedInTheOrderOfTheirBytes) {
  std::vector<std::string> ids = NastyIds();
  ASSERT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  // Neither in order nor in its reverse.
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const SessionKey key = {"tenant", ids[(i * 7) % ids.size()]};
    ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
    ASSERT_THAT(store().Write(key, 0, {MessageRecord(key.session)},
                              Durability::kSynced),
                IsOk());
  }
  EXPECT_THAT(Ids("tenant", "", 100), ElementsAreArray(ids));
  for (const std::string& id : ids) {
    const auto session = store().Read({"tenant", id});
    ASSERT_THAT(session, IsOk());
    ASSERT_EQ(session->records.size(), 1U);
    EXPECT_EQ(MessageOf(session->records[0]), id);
  }
}

TEST_P(SessionStoreContract, PagesGiveEverySessionOnce) {
  const std::vector<std::string> ids = NastyIds();
  for (const std::string& id : ids) {
    ASSERT_THAT(store().Create(OpenHeader({"tenant", id})), IsOk());
  }
  for (const std::size_t limit : {1U, 2U, 5U, 18U, 19U, 20U}) {
    std::vector<std::string> listed;
    std::string after;
    while (true) {
      const std::vector<std::string> page =
          Ids("tenant", after, static_cast<std::int64_t>(limit));
      listed.insert(listed.end(), page.begin(), page.end());
      ASSERT_LE(page.size(), limit);
      if (page.size() < limit) break;
      after = page.back();
    }
    EXPECT_EQ(listed, ids) << "in pages of " << limit;
  }
  // After an id that is not there.
  EXPECT_THAT(Ids("tenant", "aaa", 2),
              ElementsAre("ab", std::string(128, 'b')));
  EXPECT_THAT(Ids("tenant", "\xff\xff", 2), IsEmpty());
}

TEST_P(SessionStoreContract, TenantsHaveNothingInCommon) {
  const std::vector<std::string> tenants = NastyIds();
  for (const std::string& tenant : tenants) {
    for (const std::string& id : {std::string("s"), tenant}) {
      const SessionKey key = {tenant, id};
      ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
      ASSERT_THAT(store().Write(key, 0, {MessageRecord(tenant + id)},
                                Durability::kSynced),
                  IsOk());
    }
  }
  // One tenant's deletion is not another's.
  const std::string gone = "a";
  ASSERT_THAT(store().Delete({gone, "s"}), IsOk());
  ASSERT_THAT(store().Delete({gone, gone}), IsOk());
  for (const std::string& tenant : tenants) {
    const auto listed = store().List(tenant, "", 100);
    ASSERT_THAT(listed, IsOk());
    if (tenant == gone) {
      EXPECT_THAT(*listed, IsEmpty());
      continue;
    }
    ASSERT_EQ(listed->size(), 2U);
    for (const SessionHeader& header : *listed) {
      EXPECT_EQ(header, OpenHeader({tenant, header.key.session}));
      const auto session = store().Read(header.key);
      ASSERT_THAT(session, IsOk());
      ASSERT_EQ(session->records.size(), 1U);
      EXPECT_EQ(MessageOf(session->records[0]), tenant + header.key.session);
    }
  }
  EXPECT_THAT(Ids("", "", 100), IsEmpty());
  EXPECT_THAT(Ids("nobody", "", 100), IsEmpty());
}

}  // namespace
}  // namespace clerestory
