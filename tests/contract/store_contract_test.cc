// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/contract/store_contract.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "server/store/memory/memory_store.h"
#include "server/store/rocks/rocks_store.h"
#include "server/store/session_store.h"
#include "tests/support/temp_directory.h"

namespace clerestory {
namespace {

class MemoryUnderTest final : public StoreUnderTest {
 public:
  SessionStore& store() override { return store_; }

 private:
  MemoryStore store_;
};

class RocksUnderTest final : public StoreUnderTest {
 public:
  // On the disk, or in memory.
  static std::unique_ptr<StoreUnderTest> Make(bool in_memory) {
    std::unique_ptr<RocksUnderTest> made(new RocksUnderTest());
    RocksOptions options;
    options.path = made->directory_.path() + "/store";
    if (in_memory) {
      made->env_.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
      options.env = made->env_.get();
    }
    auto store = RocksStore::Open(options);
    if (!store.ok()) {
      ADD_FAILURE() << store.status();
      return nullptr;
    }
    made->store_ = *std::move(store);
    return made;
  }

  SessionStore& store() override { return *store_; }

 private:
  RocksUnderTest() = default;

  TempDirectory directory_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<RocksStore> store_;
};

INSTANTIATE_TEST_SUITE_P(
    Stores, SessionStoreContract,
    testing::Values(
        StoreKind{.name = "Memory",
                  .make = [] { return std::make_unique<MemoryUnderTest>(); }},
        StoreKind{.name = "Rocks",
                  .make = [] { return RocksUnderTest::Make(false); }},
        StoreKind{.name = "RocksInMemory",
                  .make = [] { return RocksUnderTest::Make(true); }}),
    [](const testing::TestParamInfo<StoreKind>& kind) {
      return kind.param.name;
    });

}  // namespace
}  // namespace clerestory
