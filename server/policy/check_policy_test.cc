// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/check_policy.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/policy/policy.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

// The field that is to be changed for `policy` to be allowed; "" if none.
std::string ContradictionIn(const Policy& policy) {
  const absl::Status status = CheckPolicy(policy);
  if (status.ok()) return "";
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
  // What to write instead follows what is wrong.
  EXPECT_THAT(std::string(status.message()), HasSubstr("; "));
  return MetadataOf(status, "field");
}

TEST(CheckPolicyTest, TheWindowLeavesRoomForWhatIsAskedOfIt) {
  Policy policy;
  policy.window_tokens = 50'000;
  EXPECT_EQ(ContradictionIn(policy), "");
  policy.mode = Mode::kThreshold;
  EXPECT_EQ(ContradictionIn(policy), "threshold_tokens");
  policy.threshold_tokens = 50'000;
  EXPECT_EQ(ContradictionIn(policy), "");
  policy.keep_tokens = 50'000;
  EXPECT_EQ(ContradictionIn(policy), "keep_tokens");
  policy.keep_tokens = 49'999;
  EXPECT_EQ(ContradictionIn(policy), "");
  policy.reclaim_tokens_min = 50'000;
  EXPECT_EQ(ContradictionIn(policy), "reclaim_tokens_min");
  // The model's window is not known here.
  policy.window_tokens = 0;
  EXPECT_EQ(ContradictionIn(policy), "");
}

TEST(CheckPolicyTest, WhatIsNeverMaskedHasNoControlGroup) {
  Policy policy;
  policy.control_permille = 1;
  EXPECT_EQ(ContradictionIn(policy), "");
  policy.mode = Mode::kOff;
  EXPECT_EQ(ContradictionIn(policy), "control_permille");
}

TEST(CheckPolicyTest, ModeDelegateAsksNothingThatTheProviderCannotBeTold) {
  Policy policy;
  policy.mode = Mode::kDelegate;
  policy.exclude = {"Read"};
  policy.tools = {{.tool = "Bash", .is_never_masked = true}};
  policy.reclaim_tokens_min = 5'000;
  EXPECT_EQ(ContradictionIn(policy), "");
  Policy wrong = policy;
  wrong.keep_turns = 1;
  EXPECT_EQ(ContradictionIn(wrong), "keep_turns");
  wrong = policy;
  wrong.keep_tokens = 1;
  EXPECT_EQ(ContradictionIn(wrong), "keep_tokens");
  wrong = policy;
  wrong.errors = ErrorRule::kKeep;
  EXPECT_EQ(ContradictionIn(wrong), "errors");
  wrong = policy;
  wrong.duplicates = DuplicateRule::kSuperseded;
  EXPECT_EQ(ContradictionIn(wrong), "duplicates");
  wrong = policy;
  wrong.tools.push_back({.tool = "Grep", .keep_observations = 2});
  EXPECT_EQ(ContradictionIn(wrong), "tools[1].keep_observations");
}

TEST(CheckPolicyTest, ExcludeLeavesSomethingToMask) {
  Policy policy;
  policy.exclude = {"Read", "*"};
  EXPECT_EQ(ContradictionIn(policy), "exclude");
  policy.exclude = {"**"};
  EXPECT_EQ(ContradictionIn(policy), "exclude");
  policy.exclude = {"github/*"};
  policy.include = {"mcp__github__get_*", "github/list_?"};
  EXPECT_EQ(ContradictionIn(policy), "exclude");
  policy.include.emplace_back("Read");
  EXPECT_EQ(ContradictionIn(policy), "");
  // What is left of it cannot be seen from the text.
  policy.exclude = {"R*"};
  policy.include = {"*d"};
  EXPECT_EQ(ContradictionIn(policy), "");
  policy.exclude = {"*"};
  policy.mode = Mode::kOff;
  EXPECT_EQ(ContradictionIn(policy), "");
}

TEST(CheckPolicyTest, EveryToolRuleCanApply) {
  Policy policy;
  policy.tools = {{.tool = "github/get_*", .is_never_masked = true},
                  {.tool = "github/*", .keep_observations = 3},
                  {.tool = "*", .keep_observations = 1}};
  EXPECT_EQ(ContradictionIn(policy), "");
  policy.tools.push_back({.tool = "Read"});
  EXPECT_EQ(ContradictionIn(policy), "tools[3]");
  EXPECT_EQ(CheckPolicy(policy).message(),
            "tools[3]: never applies, since tools[2] with \"*\" matches "
            "whatever \"Read\" does; write it in front of that");
  policy.tools.pop_back();
  policy.tools[1].tool = "mcp__github__get_issue";
  EXPECT_EQ(ContradictionIn(policy), "tools[1]");
  policy.tools[1].tool = "gitlab/*";
  policy.exclude = {"git*/*"};
  EXPECT_EQ(ContradictionIn(policy), "tools[0]");
  EXPECT_EQ(CheckPolicy(policy).message(),
            "tools[0]: never applies, since exclude has \"git*/*\", which "
            "matches whatever \"github/get_*\" does; leave one of them out");
  // Both at once, in order.
  EXPECT_EQ(FindContradictions(policy).size(), 2U);
}

TEST(CheckPolicyTest, AToolRuleSaysOneThing) {
  Policy policy;
  policy.tools = {
      {.tool = "Read", .is_never_masked = true, .keep_observations = 1}};
  EXPECT_EQ(ContradictionIn(policy), "tools[0].keep_observations");
}

TEST(CheckPolicyTest, OnlyReadsHaveLinesAndTheyEndOnce) {
  Policy policy;
  policy.tools = {{.tool = "Read"}};
  ToolAccess& access = policy.tools[0].access;
  access.first_line_argument = "from";
  EXPECT_EQ(ContradictionIn(policy), "tools[0].lines");
  access.access_class = AccessClass::kSearch;
  EXPECT_EQ(ContradictionIn(policy), "tools[0].lines");
  access.access_class = AccessClass::kRead;
  EXPECT_EQ(ContradictionIn(policy), "");
  access.last_line_argument = "to";
  EXPECT_EQ(ContradictionIn(policy), "");
  access.line_count_argument = "count";
  EXPECT_EQ(ContradictionIn(policy), "tools[0].lines");
}

TEST(CheckPolicyTest, WhatAnExcludedToolDoesMayBeSaid) {
  Policy policy;
  policy.exclude = {"Save"};
  policy.tools = {{.tool = "Save"}};
  EXPECT_EQ(ContradictionIn(policy), "tools[0]");
  policy.tools[0].access.access_class = AccessClass::kWrite;
  EXPECT_EQ(ContradictionIn(policy), "");
}

}  // namespace
}  // namespace clerestory
