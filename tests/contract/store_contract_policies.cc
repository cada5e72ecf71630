// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/store/session_store.h"
#include "tests/contract/store_contract.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const auto kMissing =
    FailsWith(absl::StatusCode::kNotFound, Reason::kPolicyNotFound);
const auto kConflict =
    FailsWith(absl::StatusCode::kAborted, Reason::kPolicyConflict);

StoredPolicy PolicyOf(const std::string& tenant, const std::string& yaml) {
  return {.tenant = tenant, .yaml = yaml, .update_time = 1'790'000'000'000'001};
}

TEST_P(SessionStoreContract, ADocumentOfPoliciesComesBackByteForByte) {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  for (const std::string& yaml : {every_byte, std::string(1 << 20, '#'),
                                  std::string("mode: off\n"), std::string()}) {
    const StoredPolicy policy = PolicyOf("tenant", yaml);
    ASSERT_THAT(store().PutPolicy(policy, std::nullopt), IsOk());
    const auto there = store().GetPolicy("tenant");
    ASSERT_THAT(there, IsOk());
    EXPECT_EQ(*there, policy);
  }
}

TEST_P(SessionStoreContract, ADocumentThatIsNotThereIsNotFound) {
  EXPECT_THAT(store().GetPolicy("tenant"), kMissing);
  EXPECT_THAT(store().DeletePolicy("tenant", std::nullopt), kMissing);
  EXPECT_THAT(store().DeletePolicy("tenant", PolicyEtag("a")), kMissing);
  EXPECT_THAT(store().ListPolicyTenants()->names, IsEmpty());
}

TEST_P(SessionStoreContract, ADocumentIsReplacedOnlyWhereItIsTheExpectedOne) {
  const std::string first = PolicyEtag("first");
  const std::string second = PolicyEtag("second");
  // None is there.
  const absl::Status none = store().PutPolicy(PolicyOf("t", "first"), first);
  EXPECT_THAT(none, kConflict);
  EXPECT_EQ(MetadataOf(none, "etag"), "");
  EXPECT_THAT(store().GetPolicy("t"), kMissing);
  ASSERT_THAT(store().PutPolicy(PolicyOf("t", "first"), ""), IsOk());
  // One is.
  for (const std::string& wrong : {std::string(), second, std::string("x")}) {
    const absl::Status refused =
        store().PutPolicy(PolicyOf("t", "second"), wrong);
    EXPECT_THAT(refused, kConflict);
    EXPECT_EQ(MetadataOf(refused, "etag"), first);
    EXPECT_THAT(store().DeletePolicy("t", wrong), kConflict);
  }
  EXPECT_EQ(store().GetPolicy("t")->yaml, "first");
  ASSERT_THAT(store().PutPolicy(PolicyOf("t", "second"), first), IsOk());
  EXPECT_THAT(store().DeletePolicy("t", first), kConflict);
  ASSERT_THAT(store().DeletePolicy("t", second), IsOk());
  EXPECT_THAT(store().GetPolicy("t"), kMissing);
}

TEST_P(SessionStoreContract, DocumentsOfTenantsAreApart) {
  const std::vector<std::string> tenants = {std::string("\0", 1),
                                            std::string("\0\xff", 2),
                                            "a",
                                            std::string("a\0b", 3),
                                            "aa",
                                            "\xff"};
  for (const char* const tenant : {"aa", "a", "\xff"}) {
    ASSERT_THAT(store().PutPolicy(PolicyOf(tenant, tenant), ""), IsOk());
  }
  for (const std::string& tenant : tenants) {
    ASSERT_THAT(store().PutPolicy(PolicyOf(tenant, absl::StrCat("of ", tenant)),
                                  std::nullopt),
                IsOk());
  }
  EXPECT_EQ(store().ListPolicyTenants()->names, tenants);
  ASSERT_THAT(store().DeletePolicy("a", std::nullopt), IsOk());
  for (const std::string& tenant : tenants) {
    if (tenant == "a") continue;
    const auto policy = store().GetPolicy(tenant);
    ASSERT_THAT(policy, IsOk());
    EXPECT_EQ(policy->yaml, absl::StrCat("of ", tenant));
  }
  EXPECT_THAT(store().GetPolicy("a"), kMissing);
}

TEST_P(SessionStoreContract, DocumentsAndSessionsAreApart) {
  const SessionKey key = {"tenant", "session"};
  ASSERT_THAT(store().Create(OpenHeader(key)), IsOk());
  ASSERT_THAT(store().PutPolicy(PolicyOf("tenant", "a"), ""), IsOk());
  EXPECT_THAT(Ids("tenant", "", 10), ElementsAre("session"));
  EXPECT_THAT(store().ListPolicyTenants()->names, ElementsAre("tenant"));
  ASSERT_THAT(store().Delete(key), IsOk());
  EXPECT_EQ(store().GetPolicy("tenant")->yaml, "a");
}

// Each writer adds one to the number that it read, if it is still there.
TEST_P(SessionStoreContract, WritersOfADocumentLoseNothingOfEachOthers) {
  constexpr int kWriters = 4;
  constexpr int kEach = 10;
  ASSERT_THAT(store().PutPolicy(PolicyOf("t", "0"), ""), IsOk());
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this] {
      for (int done = 0; done < kEach;) {
        const auto there = store().GetPolicy("t");
        ASSERT_THAT(there, IsOk());
        int number = 0;
        ASSERT_TRUE(absl::SimpleAtoi(there->yaml, &number));
        const absl::Status put = store().PutPolicy(
            PolicyOf("t", absl::StrCat(number + 1)), PolicyEtag(there->yaml));
        if (put.ok()) {
          ++done;
        } else {
          ASSERT_THAT(put, kConflict);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(store().GetPolicy("t")->yaml, absl::StrCat(kWriters * kEach));
}

}  // namespace
}  // namespace clerestory
