// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_CONTRACT_STORE_CONTRACT_H_
#define CLERESTORY_TESTS_CONTRACT_STORE_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/model/record.h"
#include "server/store/session_store.h"

namespace clerestory {

// An empty store, with what it needs to exist.
class StoreUnderTest {
 public:
  StoreUnderTest() = default;
  StoreUnderTest(const StoreUnderTest&) = delete;
  StoreUnderTest& operator=(const StoreUnderTest&) = delete;
  virtual ~StoreUnderTest() = default;

  virtual SessionStore& store() = 0;
};

// One kind of store.
struct StoreKind {
  std::string name;  // Letters and digits.
  // Makes one; fails the test and returns null if it cannot.
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

// What SessionStore promises, as tests. A program that has store_contract.cc,
// store_contract_calibrations.cc, store_contract_policies.cc,
// store_contract_threads.cc and store_contract_tools.cc among its sources runs
// them for each kind that it instantiates this suite with.
class SessionStoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    under_test_ = GetParam().make();
    ASSERT_NE(under_test_, nullptr);
  }

  SessionStore& store() { return under_test_->store(); }

  // The ids of a page of sessions.
  std::vector<std::string> Ids(const std::string& tenant,
                               const std::string& after, std::int64_t limit) {
    const auto headers = store().List(tenant, after, limit);
    EXPECT_TRUE(headers.ok()) << headers.status();
    std::vector<std::string> ids;
    if (!headers.ok()) return ids;
    for (const SessionHeader& header : *headers) {
      EXPECT_EQ(header.key.tenant, tenant);
      ids.push_back(header.key.session);
    }
    return ids;
  }

 private:
  std::unique_ptr<StoreUnderTest> under_test_;
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_CONTRACT_STORE_CONTRACT_H_
