// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What SessionStore promises to callers in several threads.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/model/record.h"
#include "server/store/session_store.h"
#include "tests/contract/store_contract.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kAborted = absl::StatusCode::kAborted;
constexpr absl::StatusCode kAlreadyExists = absl::StatusCode::kAlreadyExists;

// Runs `body` in `count` threads that begin together, with 0, 1, ...
void InThreads(int count, const std::function<void(int)>& body) {
  std::latch begin(count);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&begin, &body, i] {
      begin.arrive_and_wait();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(SessionStoreContract, OneOfManyCreatorsWins) {
  for (int round = 0; round < 20; ++round) {
    const SessionKey key = {"tenant", absl::StrCat("session", round)};
    std::vector<absl::Status> created(8);
    InThreads(8, [&](int i) {
      SessionHeader header = OpenHeader(key);
      header.model = absl::StrCat(i);
      created[static_cast<std::size_t>(i)] = store().Create(header);
    });
    std::optional<std::string> winner;
    for (std::size_t i = 0; i < created.size(); ++i) {
      if (created[i].ok()) {
        EXPECT_FALSE(winner) << "two won";
        winner = absl::StrCat(i);
      } else {
        EXPECT_THAT(created[i],
                    FailsWith(kAlreadyExists, Reason::kSessionExists));
      }
    }
    const auto session = store().Read(key);
    ASSERT_THAT(session, IsOk());
    EXPECT_EQ(session->header.model, winner);
  }
}

TEST_P(SessionStoreContract, OneOfManyWritersOfAVersionWins) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  std::vector<std::string> expected;
  for (std::int64_t round = 0; round < 30; ++round) {
    std::vector<absl::Status> written(8);
    InThreads(8, [&](int i) {
      written[static_cast<std::size_t>(i)] = store().Write(
          key, round, {MessageRecord(absl::StrCat(round, ".", i))},
          i % 2 == 0 ? Durability::kSynced : Durability::kBuffered);
    });
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (written[i].ok()) {
        expected.push_back(absl::StrCat(round, ".", i));
      } else {
        EXPECT_THAT(written[i], FailsWith(kAborted, Reason::kAppendConflict));
      }
    }
    ASSERT_EQ(expected.size(), static_cast<std::size_t>(round) + 1);
  }
  const auto session = store().Read(key);
  ASSERT_THAT(session, IsOk());
  std::vector<std::string> stored;
  for (const Record& record : session->records) {
    stored.push_back(MessageOf(record));
  }
  EXPECT_EQ(stored, expected);
}

TEST_P(SessionStoreContract, WritersOfDifferentSessionsAllWin) {
  InThreads(8, [&](int i) {
    const SessionKey key = {"tenant", absl::StrCat(i)};
    EXPECT_THAT(store().Create(OpenHeader(key)), IsOk());
    for (std::int64_t version = 0; version < 50; ++version) {
      EXPECT_THAT(
          store().Write(key, version, {MessageRecord(absl::StrCat(version))},
                        Durability::kSynced),
          IsOk());
    }
  });
  EXPECT_THAT(Ids("tenant", "", 100),
              ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  for (int i = 0; i < 8; ++i) {
    const auto session = store().Read({"tenant", absl::StrCat(i)});
    ASSERT_THAT(session, IsOk());
    ASSERT_EQ(session->records.size(), 50U);
    EXPECT_EQ(MessageOf(session->records[49]), "49");
  }
}

// A write is there whole or not at all, and never goes again.
TEST_P(SessionStoreContract, ReadersSeeWholeWritesOnly) {
  const SessionKey key = {"tenant", "session"};
  constexpr std::int64_t kBatch = 7;
  constexpr std::int64_t kBatches = 60;
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  std::atomic<std::int64_t> acknowledged = 0;
  InThreads(3, [&](int i) {
    if (i == 0) {
      for (std::int64_t batch = 0; batch < kBatches; ++batch) {
        std::vector<Record> records(kBatch, MessageRecord("x"));
        if (batch + 1 == kBatches) records.back() = SessionClosed{.time = 9};
        EXPECT_THAT(
            store().Write(key, batch * kBatch, records, Durability::kBuffered),
            IsOk());
        acknowledged = (batch + 1) * kBatch;
      }
      return;
    }
    std::int64_t seen = 0;
    while (seen < kBatch * kBatches) {
      const std::int64_t at_least = acknowledged;
      const auto session = store().Read(key);
      ASSERT_THAT(session, IsOk());
      seen = static_cast<std::int64_t>(session->records.size());
      ASSERT_EQ(seen % kBatch, 0);
      ASSERT_GE(seen, at_least);
      ASSERT_EQ(session->header.close_time, seen == kBatch * kBatches ? 9 : 0);
    }
  });
}

TEST_P(SessionStoreContract, ADeletionAndAWriteHappenOneAfterTheOther) {
  const SessionKey key = {"tenant", "session"};
  for (int round = 0; round < 30; ++round) {
    ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
    std::vector<absl::Status> done(4);
    InThreads(4, [&](int i) {
      absl::Status& status = done[static_cast<std::size_t>(i)];
      if (i == 0) {
        status = store().Delete(key);
      } else if (i == 1) {
        status = store().Read(key).status();
      } else {
        status =
            store().Write(key, 0, {MessageRecord("x")}, Durability::kBuffered);
      }
    });
    EXPECT_THAT(done[0], IsOk());
    EXPECT_TRUE(done[1].ok() || absl::IsNotFound(done[1])) << done[1];
    EXPECT_FALSE(done[2].ok() && done[3].ok());
    for (const absl::Status& written : {done[2], done[3]}) {
      EXPECT_TRUE(written.ok() || absl::IsNotFound(written) ||
                  absl::IsAborted(written))
          << written;
    }
    EXPECT_THAT(store().Read(key),
                FailsWith(kNotFound, Reason::kSessionNotFound));
    EXPECT_THAT(Ids("tenant", "", 10), IsEmpty());
  }
}

TEST_P(SessionStoreContract, ListingGoesOnWhileSessionsComeAndGo) {
  for (const char* const id : {"b", "d", "f"}) {
    ASSERT_THAT(store().Create(OpenHeader({"tenant", id})), IsOk());
  }
  std::atomic<bool> stop = false;
  InThreads(2, [&](int i) {
    if (i == 0) {
      for (int round = 0; round < 50; ++round) {
        EXPECT_THAT(store().Create(OpenHeader({"tenant", "c"})), IsOk());
        EXPECT_THAT(store().Delete({"tenant", "c"}), IsOk());
      }
      stop = true;
      return;
    }
    while (!stop) {
      std::vector<std::string> ids = Ids("tenant", "", 10);
      std::erase(ids, "c");
      ASSERT_THAT(ids, ElementsAre("b", "d", "f"));
    }
  });
}

}  // namespace
}  // namespace clerestory
