// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/access.h"

#include <gtest/gtest.h>

namespace clerestory {
namespace {

TEST(AccessTest, ReadsAFileWithItsRange) {
  const CallAccesses got = AccessesOf(
      "Read", R"({"file_path":"/r/a.go","offset":59,"limit":150})", "");
  ASSERT_EQ(got.accesses.size(), 1U);
  EXPECT_EQ(got.accesses[0].lines, (LineRange{59, 208}));
}

}  // namespace
}  // namespace clerestory
