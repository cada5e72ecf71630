// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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
std::vector<StoredCalibration> All(const SessionStore& store) {
  const auto all = store.ListCalibrations();
  EXPECT_THAT(all, IsOk());
  if (!all.ok()) return {};
  EXPECT_EQ(all->skipped_count, 0);
  return all->entries;
}

TEST_P(SessionStoreContract, AtFirstNothingIsLearnedOfTokens) {
  EXPECT_THAT(All(store()), IsEmpty());
}

TEST_P(SessionStoreContract, WhatWasLearnedOfTokensComesBackAndIsReplaced) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<StoredCalibration> values = {
      {"t", "m", {0, 0, 8'000, 1, 0, 500}, 12},
      {"t", "m", {}, 0},
      {"t", "m", {-1, kMax, -kMax - 1}, kMax},
      {"t", "m", std::vector<std::int64_t>(70, 1'000'000), 7}};
  for (const StoredCalibration& value : values) {
    ASSERT_THAT(store().PutCalibration(value), IsOk());
    EXPECT_THAT(All(store()), ElementsAre(value));
  }
}

TEST_P(SessionStoreContract, WhatWasLearnedOfTenantsAndModelsIsApart) {
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
  std::vector<StoredCalibration> expected;
  std::int64_t count = 0;
  for (const std::string& tenant : names) {
    for (const std::string& model : names) {
      expected.push_back({tenant, model, {++count}, count});
    }
  }
  for (auto it = expected.rbegin(); it != expected.rend(); ++it) {
    ASSERT_THAT(store().PutCalibration(*it), IsOk());
  }
  EXPECT_EQ(All(store()), expected);
  expected[5].sample_count = 1'000;
  ASSERT_THAT(store().PutCalibration(expected[5]), IsOk());
  EXPECT_EQ(All(store()), expected);
}

TEST_P(SessionStoreContract, WhatWasLearnedSessionsAndDocumentsAreApart) {
  const SessionKey key = {"t", "m"};
  const StoredCalibration learned = {"t", "m", {1}, 1};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  ASSERT_THAT(store().PutPolicy({.tenant = "t", .yaml = "a"}, ""), IsOk());
  ASSERT_THAT(store().PutCalibration(learned), IsOk());
  EXPECT_THAT(Ids("t", "", 10), ElementsAre("m"));
  EXPECT_THAT(store().ListPolicyTenants()->names, ElementsAre("t"));
  ASSERT_THAT(store().Delete(key), IsOk());
  ASSERT_THAT(store().DeletePolicy("t", std::nullopt), IsOk());
  EXPECT_THAT(All(store()), ElementsAre(learned));
}

TEST_P(SessionStoreContract, WhatWritersOfManyModelsLearnedIsAllThere) {
  constexpr int kWriters = 4;
  constexpr std::int64_t kEach = 50;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] {
      for (std::int64_t count = 1; count <= kEach; ++count) {
        EXPECT_THAT(
            store().PutCalibration({"t", absl::StrCat(i), {count}, count}),
            IsOk());
        EXPECT_THAT(store().ListCalibrations(), IsOk());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::vector<std::int64_t> last = {kEach};
  EXPECT_THAT(All(store()),
              ElementsAre(StoredCalibration{"t", "0", last, kEach},
                          StoredCalibration{"t", "1", last, kEach},
                          StoredCalibration{"t", "2", last, kEach},
                          StoredCalibration{"t", "3", last, kEach}));
}

}  // namespace
}  // namespace clerestory
