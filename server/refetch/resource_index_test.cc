// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/resource_index.h"

#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

Holder ReadOf(std::size_t observation) {
  Holder holder;
  holder.observation = observation;
  return holder;
}

Holder SearchOf(std::size_t observation) {
  Holder holder = ReadOf(observation);
  holder.access_class = AccessClass::kSearch;
  holder.is_tree = true;
  return holder;
}

// Whether the newest observation that shows `resource` is stale. There must be
// one.
bool IsStale(ResourceIndex& index, absl::string_view resource,
             bool is_tree = false) {
  return index.Find(resource, is_tree).at(0).is_stale;
}

TEST(ResourceIndexTest, TheNewestHolderComesFirst) {
  ResourceIndex index;
  index.AddHolder("/a/f", ReadOf(1));
  index.AddHolder("/a/g", ReadOf(2));
  index.AddHolder("/a/f", ReadOf(3));
  const std::vector<FoundHolder> found = index.Find("/a/f", false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].holder.observation, 3U);
  EXPECT_EQ(found[1].holder.observation, 1U);
  EXPECT_TRUE(index.Find("/a/h", false).empty());
}

TEST(ResourceIndexTest, AWriteToItOrToAFolderAboveMakesItStale) {
  for (const absl::string_view path : {"/a/b/f", "/a/b", "/a", ""}) {
    ResourceIndex index;
    index.AddHolder("/a/b/f", ReadOf(1));
    EXPECT_FALSE(IsStale(index, "/a/b/f"));
    index.AddWrite(path, path != "/a/b/f");
    EXPECT_TRUE(IsStale(index, "/a/b/f")) << path;
  }
  for (const absl::string_view path : {"/a/b/g", "/a/c", "/a/b/f.bak"}) {
    ResourceIndex index;
    index.AddHolder("/a/b/f", ReadOf(1));
    index.AddWrite(path, true);
    EXPECT_FALSE(IsStale(index, "/a/b/f")) << path;
  }
}

TEST(ResourceIndexTest, AWriteToAFileMakesSearchesOfItsFoldersStale) {
  ResourceIndex index;
  index.AddHolder("/a", SearchOf(1));
  index.AddWrite("/b/f", false);
  EXPECT_FALSE(IsStale(index, "/a", true));
  index.AddWrite("/a/b/c/f", false);
  EXPECT_TRUE(IsStale(index, "/a", true));
}

TEST(ResourceIndexTest, AReadAfterTheWriteIsNotStale) {
  ResourceIndex index;
  index.AddHolder("/f", ReadOf(1));
  index.AddWrite("/f", false);
  index.AddHolder("/f", ReadOf(2));
  const std::vector<FoundHolder> found = index.Find("/f", false);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_FALSE(found[0].is_stale);
  EXPECT_TRUE(found[1].is_stale);
}

TEST(ResourceIndexTest, ARelativePathIsWhatEndsWithIt) {
  ResourceIndex index;
  index.AddHolder("/repo/src/a.py", ReadOf(1));
  EXPECT_EQ(index.Find("/repo/src/a.py", false).size(), 1U);
  index.AddHolder("src/a.py", ReadOf(2));
  EXPECT_EQ(index.Find("/repo/src/a.py", false).size(), 2U);
  index.AddHolder("/other/a.py", ReadOf(3));
  EXPECT_EQ(index.Find("src/a.py", false).size(), 2U);
  index.AddWrite("src/a.py", false);
  EXPECT_TRUE(IsStale(index, "/repo/src/a.py"));
}

TEST(ResourceIndexTest, TwoAbsolutePathsAreNeverTheSame) {
  ResourceIndex index;
  index.AddHolder("/README.md", ReadOf(1));
  index.AddHolder("/packages/x/README.md", ReadOf(2));
  EXPECT_EQ(index.Find("/README.md", false).size(), 1U);
  EXPECT_EQ(index.Find("/packages/x/README.md", false).size(), 1U);
}

TEST(ResourceIndexTest, SearchesOfFoldersShowTheFilesInThem) {
  ResourceIndex index;
  index.AddHolder("/a/b", SearchOf(1));
  index.AddHolder("/a/b", ReadOf(2));  // A listing shows no file.
  const std::vector<FoundHolder> found = index.Find("/a/b/f", false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].holder.observation, 1U);
  EXPECT_FALSE(found[0].is_same);
}

TEST(ResourceIndexTest, AUrlHasNoFoldersAndNoSuffix) {
  ResourceIndex index;
  index.AddHolder("https://x.org/a/f", ReadOf(1));
  index.AddWrite("a/f", false);
  EXPECT_FALSE(IsStale(index, "https://x.org/a/f"));
}

TEST(ResourceIndexTest, WhatIsNoFileIsOnlyDoubtfulAfterAWriteOfAll) {
  ResourceIndex index;
  index.AddHolder("tool:get_order id=1", ReadOf(1));
  index.AddWrite("", true);
  const std::vector<FoundHolder> found =
      index.Find("tool:get_order id=1", false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_FALSE(found[0].is_stale);
  EXPECT_TRUE(found[0].is_doubtful);
}

TEST(ResourceIndexTest, ARelativeFolderIsAnyOfThatName) {
  ResourceIndex index;
  index.AddHolder("/repo/src/deep/f", ReadOf(1));
  index.AddWrite("rc/deep", true);
  EXPECT_FALSE(IsStale(index, "/repo/src/deep/f"));
  index.AddWrite("src/deep", true);
  EXPECT_TRUE(IsStale(index, "/repo/src/deep/f"));
}

TEST(ResourceIndexTest, MemoryIsBoundedWhateverIsNoted) {
  ResourceIndex index;
  for (std::size_t i = 0; i < 5 * kResourcesMax; ++i) {
    index.AddHolder(absl::StrCat("/d/", i, "/file"), ReadOf(i));
    index.AddWrite(absl::StrCat("w", i, "/file"), i % 2 == 0);
    index.AddHolder("/the/same", ReadOf(i));
  }
  EXPECT_LT(index.memory_bytes(), 16 << 20);
  EXPECT_LE(index.Find("/the/same", false).size(), kHoldersMax);
}

TEST(ResourceIndexTest, WhatWasForgottenMayHaveBeenWritten) {
  ResourceIndex index;
  index.AddHolder("/a", SearchOf(0));
  index.AddWrite("/a/f", false);
  for (std::size_t i = 0; i < 2 * kResourcesMax; ++i) {
    index.AddHolder("/kept", ReadOf(i));
    index.AddHolder(absl::StrCat("/d/", i), ReadOf(i));
  }
  EXPECT_TRUE(index.Find("/a", true).empty());
  EXPECT_FALSE(IsStale(index, "/kept"));
}

}  // namespace
}  // namespace clerestory
