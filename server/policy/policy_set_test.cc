// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy_set.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/policy.h"
#include "server/policy/presets.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

using ::testing::SizeIs;

PolicySet Load(absl::string_view text, const Policy& fallback = Policy()) {
  std::vector<Problem> problems;
  const auto set = LoadPolicies("acme.yaml", text, fallback, problems);
  EXPECT_EQ(Describe(problems), "");
  return set.value_or(PolicySet::Of("none", Policy()));
}

std::string NameFor(const PolicySet& set, const Labels& labels,
                    absl::string_view model) {
  return std::string(set.For({"acme", "s"}, labels, model).name);
}

TEST(PolicySetTest, TheFirstThatMatchesIsApplied) {
  const PolicySet set = Load(
      "policies:\n"
      "  - name: opus-batch\n"
      "    match: {labels: {kind: batch, team: a}, model: claude-opus-*}\n"
      "    mode: block\n"
      "  - name: batch\n"
      "    match: {labels: {kind: batch}}\n"
      "  - name: claude\n"
      "    match: {model: claude-*}\n"
      "  - name: rest\n"
      "    mode: off\n");
  EXPECT_THAT(set.policies(), SizeIs(4));
  EXPECT_EQ(NameFor(set, {{"kind", "batch"}, {"team", "a"}}, "claude-opus-5"),
            "opus-batch");
  // More labels than are asked for do no harm, fewer or others do.
  EXPECT_EQ(NameFor(set, {{"kind", "batch"}, {"team", "a"}, {"x", "y"}},
                    "claude-opus-5"),
            "opus-batch");
  EXPECT_EQ(NameFor(set, {{"kind", "batch"}, {"team", "b"}}, "claude-opus-5"),
            "batch");
  EXPECT_EQ(NameFor(set, {{"kind", "batch"}}, ""), "batch");
  EXPECT_EQ(NameFor(set, {{"kind", "batches"}}, "claude-opus-5"), "claude");
  EXPECT_EQ(NameFor(set, {}, "gpt-6"), "rest");
  const AppliedPolicy applied = set.For({"acme", "s"}, {}, "gpt-6");
  EXPECT_EQ(applied.policy->mode, Mode::kOff);
  EXPECT_EQ(applied.digest, PolicyDigest(*applied.policy));
}

TEST(PolicySetTest, WhatNoneMatchesGetsTheFallback) {
  Policy fallback;
  fallback.mode = Mode::kOff;
  const PolicySet set =
      Load("policies: [{name: claude, match: {model: claude-*}}]", fallback);
  EXPECT_EQ(NameFor(set, {}, "gpt-6"), "default");
  EXPECT_EQ(*set.For({"acme", "s"}, {}, "gpt-6").policy, fallback);
  const PolicySet other = PolicySet::Of("acme", fallback);
  EXPECT_EQ(*other.For({"acme", "s"}, {}, "").policy, fallback);
  EXPECT_EQ(other.tenant(), "acme");
}

TEST(PolicySetTest, APresetIsDepartedFrom) {
  const PolicySet set = Load(
      "policies: [{name: p, preset: opencode, keep: {turns: 2},"
      " tools: {exclude: [skill, task]}}]");
  Policy expected = FindPreset("opencode")->policy;
  expected.keep_turns = 2;
  expected.exclude = {"skill", "task"};
  EXPECT_EQ(set.policies()[0].policy, expected);
}

TEST(PolicySetTest, AModelThatMatchesAllIsNone) {
  EXPECT_EQ(Load("policies: [{name: p, match: {model: \"**\"}}]"),
            Load("policies: [{name: p}]"));
}

TEST(PolicySetTest, DigestsDifferWhenAnythingDoes) {
  std::set<std::string> digests;
  for (const absl::string_view text :
       {"policies: [{name: p}]", "policies: [{name: q}]",
        "tenant: other\npolicies: [{name: p}]",
        "policies: [{name: p, mode: block}]",
        "policies: [{name: a, match: {model: x}}]",
        "policies: [{name: a, match: {model: y}}]",
        "policies: [{name: a, match: {labels: {x: y}}}]",
        "policies: [{name: a, match: {labels: {x: z}}}]",
        "policies: [{name: a, match: {labels: {x: y, z: u}}}]",
        "policies: [{name: a, match: {model: x}}, {name: b, match: {model: "
        "y}}]",
        "policies: [{name: b, match: {model: y}}, {name: a, match: {model: "
        "x}}]"}) {
    const PolicySet set = Load(text);
    EXPECT_THAT(set.digest(), SizeIs(16));
    EXPECT_EQ(Load(text).digest(), set.digest());
    digests.insert(set.digest());
  }
  EXPECT_EQ(digests.size(), 11U);
}

TEST(PolicySetTest, TheControlGroupIsAShareOfSessionsThatOnlyGrows) {
  std::int64_t counts[3] = {};
  for (int i = 0; i < 10'000; ++i) {
    const SessionKey key = {"acme", absl::StrCat("session-", i)};
    EXPECT_FALSE(IsControl(key, 0));
    EXPECT_TRUE(IsControl(key, 1'000));
    bool is_control = false;
    int at = 0;
    for (const std::int64_t permille : {10, 50, 500}) {
      EXPECT_LE(is_control, IsControl(key, permille));
      is_control = IsControl(key, permille);
      counts[at++] += is_control ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(counts[0]), 100, 40);
  EXPECT_NEAR(static_cast<double>(counts[1]), 500, 90);
  EXPECT_NEAR(static_cast<double>(counts[2]), 5'000, 200);
}

TEST(PolicySetTest, TheControlGroupIsTheTenantsOwn) {
  int count = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::string session = absl::StrCat("session-", i);
    if (IsControl({"acme", session}, 500) !=
        IsControl({"other", session}, 500)) {
      ++count;
    }
    // Where the tenant ends matters.
    EXPECT_TRUE(IsControl({"a", "b"}, 1'000));
  }
  EXPECT_NEAR(count, 500, 80);
  // It never changes: stored sessions stay what they are.
  const PolicySet set =
      Load("policies: [{name: p, control: {share_permille: 50}}]");
  std::vector<int> members;
  for (int i = 0; i < 60; ++i) {
    if (set.For({"acme", absl::StrCat(i)}, {}, "").is_control) {
      members.push_back(i);
    }
  }
  EXPECT_EQ(members, std::vector<int>({8, 12, 24, 40, 50}));
}

TEST(PolicySetTest, WhatIsWrittenIsReadAgain) {
  std::vector<std::string> texts = {
      "policies: [{name: p}]",
      "tenant: other\npolicies: [{name: a, match: {labels: {x: y, \"z/u\": "
      "\"1\"}, model: \"gpt-?\"}, control: {share_permille: 3}}]",
      "policies: [{name: p, placeholder: {success: "
      "\"a\\\"b\\\\c\\n\\x7F\\t€\"},"
      " tools: {include: [a, \"b*\"], exclude: [\"c/*\"], rules: [{tool: d,"
      " never_mask: false}, {tool: e, never_mask: true}, {tool: f,"
      " keep_observations: 2}]}}]",
      "policies: [{name: p, tools: {rules: [{tool: d, never_mask: true}]}}]",
      "policies: [{name: p, tools: {rules: [{tool: d, class: write, resource:"
      " \"a \\\"b\"}, {tool: e, class: read, keep_observations: 2, lines: "
      "{first: x, last: y}}, {tool: f, resource: z, never_mask: true}, {tool: "
      "g, class: read, lines: {count: n}}, {tool: h, class: run}, {tool: i, "
      "class: search}]}}]",
      "policies: [{name: p, mode: off, duplicates: superseded, thinking: "
      "avoid, cache: {life: long}, errors: drop}]"};
  for (const Preset& preset : Presets()) {
    texts.push_back(
        absl::StrCat("policies: [{name: p, preset: ", preset.name, "}]"));
  }
  for (const std::string& text : texts) {
    const PolicySet set = Load(text);
    const std::string yaml = ToYaml(set);
    const PolicySet again = Load(yaml);
    EXPECT_EQ(again, set) << yaml;
    EXPECT_EQ(ToYaml(again), yaml);
  }
}

TEST(PolicySetTest, NothingIsMadeOfAFileWithAProblem) {
  std::vector<Problem> problems;
  EXPECT_EQ(
      LoadPolicies("f", "policies: [{name: p}]\nx: 1\n", Policy(), problems),
      std::nullopt);
  EXPECT_THAT(problems, SizeIs(1));
  EXPECT_EQ(LoadPolicies("f", "policies: [", Policy(), problems), std::nullopt);
  EXPECT_THAT(problems, SizeIs(2));
}

}  // namespace
}  // namespace clerestory
