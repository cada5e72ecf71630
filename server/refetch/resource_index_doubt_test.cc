// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What may have been written, of which nobody knows whether it was.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/refetch/resource_index.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

Holder ReadOf(std::size_t observation) {
  Holder holder;
  holder.observation = observation;
  return holder;
}

FoundHolder NewestOf(ResourceIndex& index, absl::string_view resource) {
  return index.Find(resource, /*is_tree=*/false).at(0);
}

TEST(ResourceIndexDoubtTest, WhatAToolAnswersIsDoubtfulAfterAnyWrite) {
  for (const absl::string_view written : {"linear:", "tool:x", "/a/f"}) {
    ResourceIndex index;
    index.AddHolder("linear:get_issue id=1", ReadOf(1));
    EXPECT_FALSE(NewestOf(index, "linear:get_issue id=1").is_doubtful);
    index.AddWrite(written, /*is_tree=*/true);
    EXPECT_TRUE(NewestOf(index, "linear:get_issue id=1").is_doubtful);
    EXPECT_FALSE(NewestOf(index, "linear:get_issue id=1").is_stale);
  }
}

TEST(ResourceIndexDoubtTest, AllIsDoubtfulAfterARunAndNothingIsStale) {
  for (const absl::string_view path :
       {"/a/src/x.js", "/a/dist/x.js", "/tmp/x", "/a/bin/x", "target/x"}) {
    ResourceIndex index;
    index.AddHolder(path, ReadOf(1));
    EXPECT_FALSE(NewestOf(index, path).is_doubtful) << path;
    index.AddRun();
    EXPECT_TRUE(NewestOf(index, path).is_doubtful) << path;
    EXPECT_FALSE(NewestOf(index, path).is_stale) << path;
  }
}

TEST(ResourceIndexDoubtTest, TwoRelativePathsAreNotTheSame) {
  ResourceIndex index;
  index.AddHolder("tsconfig.json", ReadOf(1));
  EXPECT_TRUE(index.Find("packages/a/tsconfig.json", false).empty());
  index.AddHolder("packages/a/tsconfig.json", ReadOf(2));
  EXPECT_EQ(index.Find("tsconfig.json", false).size(), 1U);
  // A shell may stand in packages/a when it writes.
  index.AddWrite("tsconfig.json", false);
  EXPECT_TRUE(NewestOf(index, "packages/a/tsconfig.json").is_doubtful);
  EXPECT_FALSE(NewestOf(index, "packages/a/tsconfig.json").is_stale);
}

TEST(ResourceIndexDoubtTest, TheNarrowestPartIsForgottenFirst) {
  ResourceIndex index;
  // `cat f | head -2000` shows all of a short file.
  Holder wide = ReadOf(0);
  wide.lines = LineRange{.first = 1, .last = 2'000};
  index.AddHolder("/f", wide);
  for (std::size_t i = 1; i < 3 * kHoldersMax; ++i) {
    Holder part = ReadOf(i);
    const auto first = static_cast<std::int64_t>(i) * 10;
    part.lines = LineRange{.first = first, .last = first + 9};
    index.AddHolder("/f", part);
  }
  EXPECT_EQ(index.Find("/f", false).back().holder.observation, 0U);
}

TEST(ResourceIndexDoubtTest, LongFoldersAreLookedForInLittleTime) {
  ResourceIndex index;
  std::string path;
  while (path.size() + 2 < kResourceBytesMax) path.append("a/");
  for (int i = 0; i < 64; ++i) {
    index.AddWrite(absl::StrCat(path.substr(0, 2'000), "b", i), true);
  }
  path.append("f");
  index.AddHolder(path, ReadOf(1));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(index.Find(path, false).size(), 1U);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(500));
}

TEST(ResourceIndexDoubtTest, LongNamesTakeNoMoreMemoryThanShortOnes) {
  ResourceIndex index;
  const std::string folder = absl::StrCat("/", std::string(4'000, 'x'), "/");
  for (std::size_t i = 0; i < 2 * kResourcesMax; ++i) {
    index.AddHolder(absl::StrCat(folder, i), ReadOf(i));
  }
  EXPECT_LT(index.memory_bytes(), 16 << 20);
  EXPECT_EQ(
      index.Find(absl::StrCat(folder, 2 * kResourcesMax - 1), false).size(),
      1U);
}

}  // namespace
}  // namespace clerestory
