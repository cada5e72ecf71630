// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/presets.h"

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/policy/policy.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::IsNull;

TEST(PresetsTest, EachIsAllowedAndSaysWhereItIsFrom) {
  std::set<absl::string_view> names;
  std::set<std::string> digests;
  for (const Preset& preset : Presets()) {
    names.insert(preset.name);
    digests.insert(PolicyDigest(preset.policy));
    EXPECT_THAT(CheckPolicy(preset.policy), IsOk()) << preset.name;
    EXPECT_FALSE(preset.source.empty()) << preset.name;
    EXPECT_FALSE(preset.difference.empty()) << preset.name;
    EXPECT_EQ(FindPreset(preset.name), &preset);
    // Every value is one that could be set.
    for (const absl::string_view field : PolicyFieldNames()) {
      Policy policy;
      EXPECT_THAT(
          SetPolicyField(field, PolicyFieldText(field, preset.policy), policy),
          IsOk())
          << preset.name;
    }
  }
  EXPECT_EQ(names.size(), Presets().size());
  EXPECT_EQ(digests.size(), Presets().size());
  EXPECT_THAT(FindPreset("adaptive"), IsNull());
}

TEST(PresetsTest, StandWhereAModeDoesAndCanBeDepartedFrom) {
  for (const Preset& preset : Presets()) {
    const absl::StatusOr<Policy> plain = ParsePolicy(preset.name);
    ASSERT_THAT(plain, IsOk()) << preset.name;
    EXPECT_EQ(*plain, preset.policy) << preset.name;
    const absl::StatusOr<Policy> other =
        ParsePolicy(absl::StrCat(preset.name, ",keep_observations=77"));
    ASSERT_THAT(other, IsOk()) << preset.name;
    Policy expected = preset.policy;
    expected.keep_observations = 77;
    EXPECT_EQ(*other, expected) << preset.name;
  }
}

TEST(PresetsTest, HaveTheSettingsOfTheirSources) {
  const Policy& jetbrains = FindPreset("jetbrains")->policy;
  EXPECT_EQ(jetbrains.mode, Mode::kEveryTurn);
  EXPECT_EQ(jetbrains.keep_turns, 10);
  const Policy& anthropic = FindPreset("anthropic")->policy;
  EXPECT_EQ(anthropic.mode, Mode::kThreshold);
  EXPECT_EQ(anthropic.threshold_tokens, 100'000);
  EXPECT_EQ(anthropic.keep_observations, 3);
  const Policy& gemini = FindPreset("gemini-cli")->policy;
  EXPECT_EQ(gemini.keep_tokens, 50'000);
  EXPECT_EQ(gemini.reclaim_tokens_min, 30'000);
  const Policy& opencode = FindPreset("opencode")->policy;
  EXPECT_EQ(opencode.keep_tokens, 40'000);
  EXPECT_EQ(opencode.reclaim_tokens_min, 20'000);
  EXPECT_EQ(FindPreset("swe-agent-polling")->policy.block_size, 5);
  EXPECT_EQ(FindPreset("mini-claude-code")->policy.threshold_tokens, 8'000);
  EXPECT_EQ(FindPreset("rent_or_buy")->policy.first_break_percent, 100);
}

}  // namespace
}  // namespace clerestory
