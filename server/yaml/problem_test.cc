// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/yaml/problem.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace clerestory {
namespace {

using ::testing::EndsWith;

Problem At(int line, int column, std::string path = "") {
  return {.file = "f.yaml",
          .line = line,
          .column = column,
          .path = std::move(path),
          .what = "wrong"};
}

TEST(ProblemTest, IsOneLine) {
  EXPECT_EQ(Describe(At(3, 7, "policies[0].mode")),
            "f.yaml:3:7: policies[0].mode: wrong");
  EXPECT_EQ(Describe(At(1, 1)), "f.yaml:1:1: wrong");
}

TEST(ProblemTest, SeveralAreSortedByPlace) {
  const std::vector<Problem> problems = {At(10, 1), At(2, 30), At(2, 4, "a")};
  EXPECT_EQ(Describe(problems),
            "f.yaml:2:4: a: wrong\nf.yaml:2:30: wrong\nf.yaml:10:1: wrong");
  EXPECT_EQ(Describe(std::vector<Problem>()), "");
}

TEST(ProblemTest, TooManyAreCounted) {
  const std::vector<Problem> problems(kProblemsMax + 7, At(1, 1));
  EXPECT_THAT(Describe(problems), EndsWith("wrong\nand 7 more"));
}

TEST(ProblemTest, QuotesAreShortAndPrintable) {
  EXPECT_EQ(QuoteForError("a b"), "\"a b\"");
  EXPECT_EQ(QuoteForError("\n\""), R"("\n\"")");
  EXPECT_EQ(QuoteForError(std::string(100, 'x')),
            "\"" + std::string(60, 'x') + "...\"");
  // A letter is not cut in two.
  EXPECT_EQ(QuoteForError(std::string(59, 'x') + "\u00E9y"),
            "\"" + std::string(59, 'x') + "...\"");
}

TEST(ProblemTest, TheNearestNameIsMeant) {
  const std::vector<absl::string_view> names = {"input", "output", "read",
                                                "to"};
  EXPECT_EQ(DidYouMean("inptu", names), " (did you mean \"input\"?)");
  EXPECT_EQ(DidYouMean("outputs", names), " (did you mean \"output\"?)");
  EXPECT_EQ(DidYouMean("intput", names), " (did you mean \"input\"?)");
  EXPECT_EQ(DidYouMean("raed", names), " (did you mean \"read\"?)");
  EXPECT_EQ(DidYouMean("price", names), "");
  EXPECT_EQ(DidYouMean("so", names), "");
  EXPECT_EQ(DidYouMean("", names), "");
  EXPECT_EQ(DidYouMean(std::string(1 << 20, 'x'), names), "");
}

}  // namespace
}  // namespace clerestory
