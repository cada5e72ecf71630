// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/breaker_record.h"
#include "server/model/record.h"
#include "server/store/session_store.h"
#include "tests/contract/store_contract.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// All that is stored; fails the test if any of it is damaged.
std::vector<StoredTool> All(const SessionStore& store) {
  const auto all = store.ListTools();
  EXPECT_THAT(all, IsOk());
  if (!all.ok()) return {};
  EXPECT_EQ(all->skipped_count, 0);
  return all->entries;
}

StoredTool ToolOf(const std::string& tenant, const std::string& tool,
                  std::int64_t masked) {
  return {.tenant = tenant, .tool = tool, .record = {.masked = masked}};
}

TEST_P(SessionStoreContract, AtFirstNothingIsLearnedOfTools) {
  EXPECT_THAT(All(store()), IsEmpty());
}

TEST_P(SessionStoreContract, WhatWasLearnedOfAToolComesBackAndIsReplaced) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<BreakerRecord> records = {
      {},
      {.state = BreakerState::kUnmasked,
       .since = 1,
       .cool_off = 2,
       .probe_permille = 3,
       .relapse_count = 4,
       .epoch = 5,
       .masked = 6,
       .refetched = 7,
       .priced_masked = 8,
       .priced_refetched = 9,
       .saved = 10,
       .lost = 11,
       .decay_time = 12,
       .time = 13,
       .ripening = 14,
       .fresh = 15,
       .ripe_time = 16},
      {.state = BreakerState::kProbing,
       .since = kMax,
       .saved = -kMax - 1,
       .lost = kMax},
      {.state = BreakerState::kObserving}};
  for (const BreakerRecord& record : records) {
    const StoredTool tool = {.tenant = "t", .tool = "Read", .record = record};
    ASSERT_THAT(store().PutTool(tool), IsOk());
    EXPECT_THAT(All(store()), ElementsAre(tool));
  }
}

TEST_P(SessionStoreContract, ToolsOfTenantsAreApart) {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  const std::vector<std::string> names = {"",
                                          std::string("\0", 1),
                                          std::string("\0\x01", 2),
                                          every_byte,
                                          std::string("\0\xff", 2),
                                          "a",
                                          std::string("a\0b", 3),
                                          "a/b:c",
                                          "aa",
                                          std::string(100'000, 'x'),
                                          "\xff"};
  std::vector<StoredTool> expected;
  for (const std::string& tenant : names) {
    for (const std::string& tool : names) {
      expected.push_back(ToolOf(tenant, tool, std::ssize(expected)));
    }
  }
  for (auto it = expected.rbegin(); it != expected.rend(); ++it) {
    ASSERT_THAT(store().PutTool(*it), IsOk());
  }
  EXPECT_EQ(All(store()), expected);
  ASSERT_THAT(store().DeleteTool(expected[5].tenant, expected[5].tool), IsOk());
  expected.erase(expected.begin() + 5);
  EXPECT_EQ(All(store()), expected);
}

TEST_P(SessionStoreContract, AToolThatIsNotStoredCanBeRemoved) {
  EXPECT_THAT(store().DeleteTool("t", "Read"), IsOk());
  ASSERT_THAT(store().PutTool(ToolOf("t", "Read", 1)), IsOk());
  EXPECT_THAT(store().DeleteTool("t", "Read"), IsOk());
  EXPECT_THAT(store().DeleteTool("t", "Read"), IsOk());
  EXPECT_THAT(All(store()), IsEmpty());
}

TEST_P(SessionStoreContract, ToolsSessionsModelsAndDocumentsAreApart) {
  const SessionKey key = {"t", "m"};
  const StoredTool tool = ToolOf("t", "m", 1);
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  ASSERT_THAT(store().PutPolicy({.tenant = "t", .yaml = "a"}, ""), IsOk());
  ASSERT_THAT(store().PutCalibration({"t", "m", {1}, 1}), IsOk());
  ASSERT_THAT(store().PutTool(tool), IsOk());
  EXPECT_THAT(Ids("t", "", 10), ElementsAre("m"));
  ASSERT_THAT(store().Delete(key), IsOk());
  EXPECT_THAT(All(store()), ElementsAre(tool));
  ASSERT_THAT(store().DeleteTool("t", "m"), IsOk());
  EXPECT_THAT(All(store()), IsEmpty());
  EXPECT_EQ(store().ListCalibrations()->entries.size(), 1U);
  EXPECT_THAT(store().ListPolicyTenants()->names, ElementsAre("t"));
}

TEST_P(SessionStoreContract, WhatWritersOfManyToolsLearnedIsAllThere) {
  constexpr int kWriters = 4;
  constexpr std::int64_t kEach = 50;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] {
      for (std::int64_t count = 1; count <= kEach; ++count) {
        EXPECT_THAT(store().PutTool(ToolOf("t", absl::StrCat(i), count)),
                    IsOk());
        EXPECT_THAT(store().ListTools(), IsOk());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_THAT(All(store()),
              ElementsAre(ToolOf("t", "0", kEach), ToolOf("t", "1", kEach),
                          ToolOf("t", "2", kEach), ToolOf("t", "3", kEach)));
}

}  // namespace
}  // namespace clerestory
