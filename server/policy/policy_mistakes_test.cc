// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Files with mistakes in policies, tests/testdata/policies, and what is said of
// them.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

using ::testing::IsEmpty;

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> Mistakes() {
  std::vector<fs::path> paths;
  const fs::path folder =
      fs::path(CLERESTORY_SOURCE_DIR) / "tests/testdata/policies";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<Problem> ProblemsOf(const fs::path& path) {
  std::vector<Problem> problems;
  const auto set = LoadPolicies(path.filename().string(), ReadFile(path),
                                Policy(), problems);
  EXPECT_FALSE(set.has_value()) << path;
  EXPECT_THAT(problems, Not(IsEmpty())) << path;
  return problems;
}

// Whether `what` says what to write instead.
bool HasRemedy(absl::string_view what) {
  for (const absl::string_view remedy :
       {"expected ", "; write ", "; use ", "; leave ", "; give ", "; rename ",
        ", or write ", "; * is ", "no blanks; "}) {
    if (absl::StrContains(what, remedy)) return true;
  }
  return false;
}

// Each file has a mistake, or some; beside it stands what is said of them. With
// CLERESTORY_WRITE_GOLDEN=1 that is written anew.
TEST(PolicyMistakesTest, EveryMistakeIsToldAsWrittenBesideIt) {
  const bool writes = std::getenv("CLERESTORY_WRITE_GOLDEN") != nullptr;
  for (const fs::path& path : Mistakes()) {
    const std::string told = Describe(ProblemsOf(path)) + "\n";
    fs::path golden = path;
    golden.replace_extension(".txt");
    if (writes) std::ofstream(golden, std::ios::binary) << told;
    EXPECT_EQ(told, ReadFile(golden)) << golden;
  }
}

TEST(PolicyMistakesTest, EveryMistakeHasItsPlaceAndARemedy) {
  const std::vector<fs::path> paths = Mistakes();
  EXPECT_GE(paths.size(), 40U);
  int explained_count = 0;
  for (const fs::path& path : paths) {
    bool is_explained = true;
    for (const Problem& problem : ProblemsOf(path)) {
      const bool has_all = problem.file == path.filename().string() &&
                           problem.line > 0 && problem.column > 0 &&
                           HasRemedy(problem.what);
      EXPECT_TRUE(has_all) << Describe(problem);
      is_explained = is_explained && has_all;
    }
    if (is_explained) ++explained_count;
  }
  // Read by tests/evidence/economics.py.
  std::printf("policy mistakes: %zu tried, %d explained\n", paths.size(),
              explained_count);
}

TEST(PolicyMistakesTest, NoTwoMistakesAreTheSame) {
  std::set<std::string> texts;
  for (const fs::path& path : Mistakes()) texts.insert(ReadFile(path));
  EXPECT_EQ(texts.size(), Mistakes().size());
}

}  // namespace
}  // namespace clerestory
