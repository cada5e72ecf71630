// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy_file.h"

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
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/yaml/problem.h"
#include "server/yaml/reader.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

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
TEST(PolicyFileTest, EveryMistakeIsToldAsWrittenBesideIt) {
  const bool writes = std::getenv("CLERESTORY_WRITE_GOLDEN") != nullptr;
  for (const fs::path& path : Mistakes()) {
    const std::string told = Describe(ProblemsOf(path)) + "\n";
    fs::path golden = path;
    golden.replace_extension(".txt");
    if (writes) std::ofstream(golden, std::ios::binary) << told;
    EXPECT_EQ(told, ReadFile(golden)) << golden;
  }
}

// Ends with a line for tests/evidence/economics.py.
TEST(PolicyFileTest, EveryMistakeHasItsPlaceAndARemedy) {
  const std::vector<fs::path> paths = Mistakes();
  EXPECT_GE(paths.size(), 40U);
  int explained_count = 0;
  for (const fs::path& path : paths) {
    bool is_explained = true;
    for (const Problem& problem : ProblemsOf(path)) {
      const bool is_told = problem.file == path.filename().string() &&
                           problem.line > 0 && problem.column > 0 &&
                           HasRemedy(problem.what);
      EXPECT_TRUE(is_told) << Describe(problem);
      is_explained &= is_told;
    }
    if (is_explained) ++explained_count;
  }
  std::printf("policy mistakes: %zu tried, %d explained\n", paths.size(),
              explained_count);
}

TEST(PolicyFileTest, NoTwoMistakesAreTheSame) {
  std::set<std::string> texts;
  for (const fs::path& path : Mistakes()) texts.insert(ReadFile(path));
  EXPECT_EQ(texts.size(), Mistakes().size());
}

TEST(PolicyFileTest, TheTenantIsThatOfTheFileOrItsName) {
  const auto tenant = [](absl::string_view file, absl::string_view start) {
    std::vector<Problem> problems;
    const auto parsed = ParsePolicyFile(
        file, absl::StrCat(start, "policies: [{name: p}]"), problems);
    EXPECT_THAT(problems, IsEmpty());
    return parsed.has_value() ? parsed->tenant : "none";
  };
  EXPECT_EQ(tenant("acme.yaml", ""), "acme");
  EXPECT_EQ(tenant("policies/acme.emea.yaml", ""), "acme.emea");
  EXPECT_EQ(tenant("policies/acme.yaml", "tenant: other\n"), "other");
  EXPECT_EQ(tenant("request", ""), "");
}

TEST(PolicyFileTest, AFileNameThatIsNoTenantsIsAProblem) {
  std::vector<Problem> problems;
  ParsePolicyFile("my tenant.yaml", "policies: [{name: p}]", problems);
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].path, "tenant");
}

TEST(PolicyFileTest, ListsHaveLimits) {
  const auto first = [](absl::string_view text) {
    std::vector<Problem> problems;
    LoadPolicies("f", text, Policy(), problems);
    return problems.empty() ? "" : Describe(problems.front());
  };
  std::string policies = "policies:\n";
  std::string globs = "policies: [{name: p, tools: {include: [";
  std::string rules = "policies: [{name: p, tools: {rules: [";
  std::string labels = "policies: [{name: p, match: {labels: {";
  for (int i = 0; i <= 100; ++i) {
    absl::StrAppend(&policies, "  - {name: p", i, ", match: {model: m", i,
                    "}}\n");
    absl::StrAppend(&globs, "t", i, ", ");
    absl::StrAppend(&rules, "{tool: t", i, ", never_mask: true}, ");
    if (i <= 16) absl::StrAppend(&labels, "l", i, ": x, ");
  }
  EXPECT_EQ(first(policies),
            "f:2:3: policies: has 101 policies; write at most 100");
  EXPECT_THAT(first(globs + "]}}]"), HasSubstr("has 101 globs; write 1 to"));
  EXPECT_THAT(first(rules + "]}}]"), HasSubstr("has 101 rules; write at most"));
  EXPECT_THAT(first(labels + "}}}]"),
              HasSubstr("has 17 labels; write 1 to 16"));
}

TEST(PolicyFileTest, KeepsWhatStandsWhere) {
  std::vector<Problem> problems;
  const auto parsed = ParsePolicyFile("acme.yaml",
                                      "policies:\n"
                                      "  - name: batch\n"
                                      "    match: {labels: {kind: batch}}\n"
                                      "    keep:\n"
                                      "      turns: 3\n",
                                      problems);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_TRUE(parsed->is_whole);
  ASSERT_THAT(parsed->policies, SizeIs(1));
  const ParsedPolicy& policy = parsed->policies[0];
  EXPECT_EQ(policy.name, "batch");
  EXPECT_THAT(policy.labels, ElementsAre(Pair("kind", "batch")));
  ASSERT_THAT(policy.settings, SizeIs(1));
  EXPECT_EQ(policy.settings[0].field, "keep_turns");
  EXPECT_EQ(policy.settings[0].value, "3");
  EXPECT_EQ(policy.settings[0].place.line, 5);
  EXPECT_EQ(policy.settings[0].place.column, 14);
  EXPECT_EQ(policy.settings[0].place.path, "policies[0].keep.turns");
}

// `begin`, then what `item` gives for 0, 1, ..., for as much as is read of a
// file, then `end`.
template <typename Item>
std::string Huge(absl::string_view begin, Item item, absl::string_view end) {
  std::string text(begin);
  for (int i = 0; text.size() + 1'000 < kYamlBytesMax; ++i) {
    absl::StrAppend(&text, item(i));
  }
  return text + std::string(end);
}

TEST(PolicyFileTest, WhatIsBeyondALimitIsNotLookedAt) {
  // What is wrong with each item would be a problem of its own.
  const auto label = [](int i) { return absl::StrCat("\"a ", i, "\": b, "); };
  const auto glob = [](int i) { return absl::StrCat("\"a ", i, "\", "); };
  const auto empty = [](int) { return "{}, "; };
  const auto policy = [](int) { return "{name: p}, "; };
  for (const std::string& text :
       {Huge("policies: [{name: a, match: {labels: {", label, "}}}]\n"),
        Huge("policies: [{name: a, tools: {include: [", glob, "]}}]\n"),
        Huge("policies: [{name: a, tools: {exclude: [", glob, "]}}]\n"),
        Huge("policies: [{name: a, tools: {rules: [", empty, "]}}]\n"),
        Huge("policies: [", policy, "]\n")}) {
    std::vector<Problem> problems;
    EXPECT_FALSE(LoadPolicies("f.yaml", text, Policy(), problems).has_value());
    EXPECT_THAT(problems, Not(IsEmpty()));
    EXPECT_LE(problems.size(), 2 * kGlobsMax + 1) << text.substr(0, 60);
  }
}

TEST(PolicyFileTest, GlobsAreComparedUpToANumberOfThem) {
  // Each policy is within its limits.
  const auto text = [](std::size_t count) {
    std::string yaml = "policies:\n";
    for (std::size_t p = 0; p * 100 < count; ++p) {
      absl::StrAppend(&yaml, "  - name: p", p, "\n    match: {labels: {x: v", p,
                      "}}\n    tools:\n      exclude: [");
      for (std::size_t i = p * 100; i < count && i < (p + 1) * 100; ++i) {
        absl::StrAppend(&yaml, "g", i, ", ");
      }
      absl::StrAppend(&yaml, "]\n");
    }
    return yaml;
  };
  std::vector<Problem> problems;
  EXPECT_TRUE(LoadPolicies("f.yaml", text(kFileGlobsMax), Policy(), problems)
                  .has_value());
  EXPECT_EQ(Describe(problems), "");
  EXPECT_FALSE(
      LoadPolicies("f.yaml", text(kFileGlobsMax + 1), Policy(), problems)
          .has_value());
  EXPECT_EQ(Describe(problems),
            "f.yaml:2:3: policies: has 1001 globs and rules of tools; write at "
            "most 1000");
}

TEST(PolicyFileTest, EveryFieldHasItsPlaceInYaml) {
  std::set<std::string> fields;
  std::set<std::string> paths;
  for (const YamlField& field : YamlFields()) {
    fields.insert(std::string(field.field));
    paths.insert(field.Path());
  }
  std::set<std::string> names;
  for (const absl::string_view name : PolicyFieldNames()) {
    names.insert(std::string(name));
  }
  EXPECT_EQ(fields, names);
  EXPECT_EQ(paths.size(), YamlFields().size());
}

TEST(PolicyFileTest, TheExampleHasEveryFieldAndNoMistake) {
  const fs::path path =
      fs::path(CLERESTORY_SOURCE_DIR) / "deploy/policies/example.yaml";
  const std::string text = ReadFile(path);
  std::vector<Problem> problems;
  const auto parsed = ParsePolicyFile("example.yaml", text, problems);
  ASSERT_TRUE(parsed.has_value());
  const auto set = CompilePolicies(*parsed, Policy(), problems);
  EXPECT_EQ(Describe(problems), "");
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->tenant(), "example");
  EXPECT_EQ(parsed->policies[0].settings.size(), YamlFields().size());
  EXPECT_FALSE(parsed->policies[0].tools.empty());
  EXPECT_FALSE(parsed->policies[0].preset.empty());
  EXPECT_EQ(set->policies().back().policy, Policy());
}

}  // namespace
}  // namespace clerestory
