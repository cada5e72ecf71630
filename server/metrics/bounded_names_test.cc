// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/bounded_names.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/metrics/catalogue.h"

namespace clerestory {
namespace {

using Place = BoundedNames::Place;

TEST(BoundedNamesTest, ANameThatIsGivenAPlaceHasItAtOnceAndForEver) {
  std::int64_t shared = 10;
  BoundedNames names(2, 5);
  EXPECT_EQ(names.Give("a", shared), Place::kOwn);
  EXPECT_EQ(names.Give("a", shared), Place::kOwn);
  EXPECT_EQ(shared, 9);
  EXPECT_EQ(names.Give("b", shared), Place::kOwn);
  EXPECT_EQ(names.Give("c", shared), Place::kNoneLeft);
  EXPECT_EQ(names.See("a", 1, shared), Place::kOwn);
  EXPECT_EQ(names.See("c", 1'000, shared), Place::kNoneLeft);
  EXPECT_EQ(shared, 8);
}

TEST(BoundedNamesTest, ANameThatIsSeenOftenGetsAPlace) {
  std::int64_t shared = 10;
  BoundedNames names(2, 5);
  EXPECT_EQ(names.See("a", 4, shared), Place::kNotYet);
  EXPECT_EQ(names.See("b", 3, shared), Place::kNotYet);
  EXPECT_FALSE(names.Has("a"));
  EXPECT_EQ(names.See("a", 1, shared), Place::kOwn);
  EXPECT_EQ(names.See("b", 2, shared), Place::kOwn);
  EXPECT_EQ(names.See("c", 9, shared), Place::kNoneLeft);
}

TEST(BoundedNamesTest, PlacesAreSharedWithOthers) {
  std::int64_t shared = 1;
  BoundedNames first(5, 1);
  BoundedNames second(5, 1);
  EXPECT_EQ(first.See("a", 1, shared), Place::kOwn);
  EXPECT_EQ(second.See("a", 1, shared), Place::kNoneLeft);
  EXPECT_EQ(first.See("b", 1, shared), Place::kNoneLeft);
}

TEST(BoundedNamesTest, ABusyNameIsFoundAmongAnyNumberOfRareOnes) {
  std::int64_t shared = 100;
  BoundedNames names(3, 16);
  for (int i = 0; i < 100'000; ++i) {
    names.See(absl::StrCat("rare", i), 1, shared);
    if (i % 40 == 0) names.See("busy", 1, shared);
  }
  EXPECT_TRUE(names.Has("busy"));
  EXPECT_EQ(shared, 99);
}

TEST(BoundedNamesTest, WhatCannotBeALabelHasNoPlace) {
  std::int64_t shared = 100;
  BoundedNames names(100, 1);
  const std::string longest(static_cast<std::size_t>(kLabelBytesMax), 'x');
  for (const std::string& name : {std::string(), std::string("other"),
                                  std::string("\xff"), longest + "x"}) {
    EXPECT_EQ(names.Give(name, shared), Place::kNoneLeft) << name;
    EXPECT_EQ(names.See(name, 9, shared), Place::kNoneLeft) << name;
  }
  EXPECT_EQ(names.See(longest, 1, shared), Place::kOwn);
  EXPECT_EQ(names.See("\"quoted\\\n", 1, shared), Place::kOwn);
}

}  // namespace
}  // namespace clerestory
