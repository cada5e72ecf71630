// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/paths.h"

#include <gtest/gtest.h>

#include "absl/strings/string_view.h"

namespace clerestory {
namespace {

TEST(PathsTest, AllSpellingsOfAPathHaveOneForm) {
  struct Case {
    absl::string_view path;
    absl::string_view directory;
    absl::string_view want;
  };
  constexpr Case kCases[] = {
      {"/r/a.go", "", "/r/a.go"},
      {"/r//b/./c/../a.go/", "", "/r/b/a.go"},
      {"/../..", "", "/"},
      {"/", "/r", "/"},
      {"a.go", "/r", "/r/a.go"},
      {"./a.go", "/r/b", "/r/b/a.go"},
      {"../a.go", "/r/b", "/r/a.go"},
      {"a/../../b", "", "../b"},
      {"a/..", "", "."},
      {".", "", "."},
      {".", "/r", "/r"},
      {"../x", "pkg", "x"},
      {"", "/r", ""},
      {"~/x/../y", "/r", "~/y"},
      {"~", "/r", "~"},
      {"~ann/x", "/r", "~ann/x"},
      {"c:\\data\\x\\a.txt", "/r", "C:/data/x/a.txt"},
      {"C:/data//x", "", "C:/data/x"},
      {"C:", "", "C:/"},
      {"src\\a.c", "C:/r", "C:/r/src/a.c"},
      {"/c/Program Files/x", "", "C:/Program Files/x"},
      {"/mnt/d/x", "", "D:/x"},
      {"/c/x", "", "/c/x"},
      {"a\\ b/c", "/r", "/r/a\\ b/c"},
      {"file:///r/a.go", "/x", "/r/a.go"},
      {"file://localhost/r/a.go", "/x", "/r/a.go"},
      {"file:///C:/r", "/x", "C:/r"},
      {"https://a.org/b/../c?d#e", "/x", "https://a.org/b/../c?d"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(NormalPath(each.path, each.directory), each.want)
        << each.path << " in " << each.directory;
  }
}

TEST(PathsTest, TheNormalFormIsItsOwn) {
  for (const absl::string_view path :
       {"/a/b", "a/b", "../a", ".", "~", "~/a", "C:/a", "C:/", "/"}) {
    EXPECT_EQ(NormalPath(path, ""), path);
  }
}

TEST(PathsTest, ATreeHoldsWhatLiesInIt) {
  EXPECT_TRUE(IsWithin("/r/a/b", "/r/a"));
  EXPECT_TRUE(IsWithin("/r/a", "/r/a"));
  EXPECT_TRUE(IsWithin("/r/a", "/"));
  EXPECT_TRUE(IsWithin("a/b", "."));
  EXPECT_TRUE(IsWithin("linear:get_issue id=1", "linear:"));
  EXPECT_TRUE(IsWithin("host:/etc/x", "host:/etc"));
  EXPECT_FALSE(IsWithin("/r/ab", "/r/a"));
  EXPECT_FALSE(IsWithin("/r", "/r/a"));
  EXPECT_FALSE(IsWithin("/a", "."));
  EXPECT_FALSE(IsWithin("../a", "."));
  EXPECT_FALSE(IsWithin("tool:x", "."));
  EXPECT_FALSE(IsWithin("/a", ""));
}

TEST(PathsTest, AnUrlHasAScheme) {
  EXPECT_TRUE(IsUrl("https://a.org"));
  EXPECT_TRUE(IsUrl("s3://bucket/x"));
  EXPECT_FALSE(IsUrl("C://x"));
  EXPECT_FALSE(IsUrl("see https://a.org"));
  EXPECT_FALSE(IsUrl("/a/b"));
}

}  // namespace
}  // namespace clerestory
