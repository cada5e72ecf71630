// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "server/base/status.h"
#include "server/store/rocks/rocks_keys.h"
#include "server/store/rocks/rocks_store.h"
#include "server/store/session_store.h"
#include "server/store/tool_codec.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace clerestory {
namespace {

using testing::ElementsAre;

StoredTool ToolOf(const std::string& tenant) {
  return {.tenant = tenant, .tool = "Read", .record = {.masked = 1}};
}

TEST(RocksToolsTest, WhatWasLearnedOfToolsSurvivesAndDamageIsPassedBy) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/store";
  {
    const auto store = RocksStore::Open({.path = path});
    ASSERT_THAT(store, IsOk());
    for (const std::string tenant : {"a", "b", "c", "d"}) {
      ASSERT_THAT((*store)->PutTool(ToolOf(tenant)), IsOk());
    }
    ASSERT_THAT((*store)->DeleteTool("d", "Read"), IsOk());
  }
  {
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), path, &opened).ok());
    const std::unique_ptr<rocksdb::DB> database(opened);
    ASSERT_TRUE(database->Put({}, ToolKey("b", "Read"), "damage").ok());
    // Of another tool, and what is no name.
    const std::string value = EncodeTool(ToolOf("b"));
    ASSERT_TRUE(database->Put({}, ToolKey("b", "Edit"), value).ok());
    ASSERT_TRUE(database->Put({}, "t", value).ok());
  }
  const auto store = RocksStore::Open({.path = path});
  ASSERT_THAT(store, IsOk());
  const auto all = (*store)->ListTools();
  ASSERT_THAT(all, IsOk());
  EXPECT_THAT(all->entries, ElementsAre(ToolOf("a"), ToolOf("c")));
  EXPECT_EQ(all->skipped_count, 3);
  ASSERT_THAT((*store)->DeleteTool("b", "Read"), IsOk());
  EXPECT_EQ((*store)->ListTools()->skipped_count, 2);
}

}  // namespace
}  // namespace clerestory
