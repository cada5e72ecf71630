// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy.h"

#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

constexpr Mode kModes[] = {Mode::kOff, Mode::kAdaptive, Mode::kBlock,
                           Mode::kThreshold, Mode::kEveryTurn};
constexpr absl::string_view kTemplates[] = {"placeholder", "error_placeholder"};

// The message of the error that setting `name` to `value` gives; "" if none.
// Checks that the policy stays as it was then.
std::string ErrorOf(absl::string_view name, absl::string_view value) {
  Policy policy;
  const absl::Status status = SetPolicyField(name, value, policy);
  if (status.ok()) return "";
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
  EXPECT_EQ(MetadataOf(status, "field"), name);
  EXPECT_EQ(PolicyDigest(policy), PolicyDigest(Policy()));
  return std::string(status.message());
}

std::string ParseErrorOf(absl::string_view text) {
  const absl::StatusOr<Policy> policy = ParsePolicy(text);
  if (policy.ok()) return "";
  EXPECT_THAT(policy, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
  return std::string(policy.status().message());
}

TEST(PolicyTest, DefaultsAreAllowedAndConsistent) {
  const Policy policy;
  EXPECT_THAT(CheckPolicy(policy), IsOk());
  EXPECT_EQ(policy.mode, Mode::kAdaptive);
  EXPECT_EQ(policy.keep_observations, 10);
  for (const PolicyField& field : PolicyFields()) {
    EXPECT_GE(policy.*field.member, field.min) << field.name;
    EXPECT_LE(policy.*field.member, field.max) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
  }
  EXPECT_EQ(ErrorOf("placeholder", policy.placeholder), "");
  EXPECT_EQ(ErrorOf("error_placeholder", policy.error_placeholder), "");
}

TEST(PolicyTest, EveryNumberTakesItsRangeAndNoMore) {
  for (const PolicyField& field : PolicyFields()) {
    for (const std::int64_t number : {field.min, field.min + 1, field.max}) {
      Policy policy;
      EXPECT_THAT(SetPolicyField(field.name, absl::StrCat(number), policy),
                  IsOk())
          << field.name;
      EXPECT_EQ(policy.*field.member, number) << field.name;
    }
    for (const std::string& value :
         {absl::StrCat(field.min - 1), absl::StrCat(field.max + 1),
          std::string(), std::string("-1"), std::string("1.5"),
          std::string("1e3"), std::string("0x10"), std::string("many"),
          std::string("99999999999999999999"), std::string("10 000")}) {
      EXPECT_EQ(
          ErrorOf(field.name, value),
          absl::StrCat(field.name, ": expected a whole number from ", field.min,
                       " to ", field.max, ", got \"", value, "\""));
    }
  }
}

TEST(PolicyTest, KeepsNeverFewerThanThree) {
  EXPECT_EQ(ErrorOf("keep_observations", "2"),
            "keep_observations: expected a whole number from 3 to 100000, "
            "got \"2\"");
  EXPECT_EQ(ErrorOf("keep_observations", "3"), "");
}

TEST(PolicyTest, EveryModeHasAName) {
  std::set<std::string> names;
  for (const Mode mode : kModes) {
    const std::string name(ModeName(mode));
    names.insert(name);
    Policy policy;
    EXPECT_THAT(SetPolicyField("mode", name, policy), IsOk()) << name;
    EXPECT_EQ(policy.mode, mode) << name;
    const absl::StatusOr<Policy> parsed = ParsePolicy(name);
    ASSERT_THAT(parsed, IsOk()) << name;
    EXPECT_EQ(parsed->mode, mode) << name;
  }
  EXPECT_EQ(names.size(), std::size(kModes));
  EXPECT_EQ(ModeName(Mode::kEveryTurn), "every_turn");
}

TEST(PolicyTest, AnUnknownModeIsToldWhichAreKnown) {
  for (const absl::string_view mode : {"", "Adaptive", "adaptive ", "blocks"}) {
    EXPECT_EQ(ErrorOf("mode", mode),
              absl::StrCat("mode: unknown value \"", mode,
                           "\"; use off, adaptive, block, threshold, "
                           "every_turn"));
  }
}

TEST(PolicyTest, AnUnknownFieldIsToldWhichAreKnown) {
  for (const absl::string_view name :
       {"", "keep", "Mode", "keep_observations ", "placeholders"}) {
    const std::string error = ErrorOf(name, "1");
    EXPECT_THAT(error, HasSubstr("no such field of a policy; use mode, "));
    for (const PolicyField& field : PolicyFields()) {
      EXPECT_THAT(error, HasSubstr(std::string(field.name)));
    }
    for (const absl::string_view known : kTemplates) {
      EXPECT_THAT(error, HasSubstr(std::string(known)));
    }
  }
}

TEST(PolicyTest, TemplatesTakeTextThatProvidersTake) {
  for (const absl::string_view name : kTemplates) {
    for (const std::string& text :
         {std::string("x"), std::string(200, 'x'), std::string("{size}"),
          std::string(" [masked] "), std::string("[ausgeblendet: {tokens} €]"),
          std::string("😀")}) {
      EXPECT_EQ(ErrorOf(name, text), "");
    }
    // Empty or blank text is refused by providers.
    for (const std::string& text :
         {std::string(), std::string(" \n\t"), std::string(201, 'x')}) {
      EXPECT_EQ(ErrorOf(name, text),
                absl::StrCat(
                    name, ": expected 1 to 200 bytes, not all of them blank"));
    }
    // In a view it would be no JSON.
    for (const absl::string_view text :
         {"[masked \xFF]", "\xED\xA0\x80", "caf\xC3"}) {
      EXPECT_EQ(ErrorOf(name, text), absl::StrCat(name, ": not valid UTF-8"));
    }
  }
}

TEST(PolicyTest, ContradictionsAreRefused) {
  Policy policy;
  policy.mode = Mode::kThreshold;
  policy.threshold_tokens = 100;
  policy.low_water_tokens = 101;
  EXPECT_EQ(CheckPolicy(policy).message(),
            "low_water_tokens: above threshold_tokens");
  EXPECT_EQ(MetadataOf(CheckPolicy(policy), "field"), "low_water_tokens");
  policy.low_water_tokens = 100;
  EXPECT_THAT(CheckPolicy(policy), IsOk());
  // Of no effect in another mode.
  policy.low_water_tokens = 101;
  policy.mode = Mode::kBlock;
  EXPECT_THAT(CheckPolicy(policy), IsOk());

  policy.window_tokens = 1'000;
  policy.reserve_tokens = 1'000;
  EXPECT_EQ(CheckPolicy(policy).message(),
            "reserve_tokens: leaves nothing of window_tokens");
  EXPECT_EQ(MetadataOf(CheckPolicy(policy), "field"), "reserve_tokens");
  policy.reserve_tokens = 999;
  EXPECT_THAT(CheckPolicy(policy), IsOk());
  // The model's window is not known here.
  policy.window_tokens = 0;
  policy.reserve_tokens = 1'000'000'000;
  EXPECT_THAT(CheckPolicy(policy), IsOk());
}

// Policies that differ from the default in one field each, and in nothing else
// from one another.
std::vector<Policy> PoliciesThatDiffer() {
  std::vector<Policy> policies(1);
  for (const Mode mode : kModes) {
    if (mode == Mode::kAdaptive) continue;
    policies.emplace_back().mode = mode;
  }
  for (const PolicyField& field : PolicyFields()) {
    ++(policies.emplace_back().*field.member);
  }
  policies.emplace_back().placeholder += "x";
  policies.emplace_back().error_placeholder += "x";
  return policies;
}

TEST(PolicyTest, DigestsDifferWhenAFieldDoes) {
  const std::vector<Policy> policies = PoliciesThatDiffer();
  std::set<std::string> digests;
  for (const Policy& policy : policies) {
    const std::string digest = PolicyDigest(policy);
    EXPECT_EQ(digest.size(), 16U);
    EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(PolicyDigest(Policy(policy)), digest);
    digests.insert(digest);
  }
  EXPECT_EQ(digests.size(), policies.size());
}

TEST(PolicyTest, DigestsTellTemplatesApartThatLookLikeFields) {
  Policy first;
  first.placeholder = "x";
  first.error_placeholder = "y\nerror_placeholder=z";
  Policy second;
  second.placeholder = "x\nerror_placeholder=y";
  second.error_placeholder = "z";
  EXPECT_NE(PolicyDigest(first), PolicyDigest(second));
  first.error_placeholder = "1";
  second.placeholder = "1";
  second.error_placeholder = "x";
  EXPECT_NE(PolicyDigest(first), PolicyDigest(second));
}

// `policy` as ParsePolicy reads it.
std::string TextOf(const Policy& policy) {
  std::string text(ModeName(policy.mode));
  for (const PolicyField& field : PolicyFields()) {
    absl::StrAppend(&text, ",", field.name, "=", policy.*field.member);
  }
  absl::StrAppend(&text, ",placeholder=", policy.placeholder,
                  ",error_placeholder=", policy.error_placeholder);
  return text;
}

TEST(PolicyTest, EveryFieldSurvivesBeingWrittenAndParsed) {
  for (Policy policy : PoliciesThatDiffer()) {
    // Values hold no comma.
    absl::StrReplaceAll({{",", " ="}}, &policy.placeholder);
    absl::StrReplaceAll({{",", " ="}}, &policy.error_placeholder);
    const absl::StatusOr<Policy> parsed = ParsePolicy(TextOf(policy));
    ASSERT_THAT(parsed, IsOk()) << TextOf(policy);
    EXPECT_EQ(TextOf(*parsed), TextOf(policy));
    EXPECT_EQ(PolicyDigest(*parsed), PolicyDigest(policy));
  }
}

TEST(PolicyTest, ParsesAModeAndWhatDiffersFromTheDefaults) {
  const absl::StatusOr<Policy> policy =
      ParsePolicy("block,block_size=20,keep_observations=5");
  ASSERT_THAT(policy, IsOk());
  Policy expected;
  expected.mode = Mode::kBlock;
  expected.block_size = 20;
  expected.keep_observations = 5;
  EXPECT_EQ(PolicyDigest(*policy), PolicyDigest(expected));
}

TEST(PolicyTest, ParsingRefusesWhatSettingAndCheckingRefuse) {
  EXPECT_EQ(ParseErrorOf(""),
            "mode: unknown value \"\"; use off, adaptive, block, threshold, "
            "every_turn");
  EXPECT_EQ(ParseErrorOf("block_size=20"),
            "mode: unknown value \"block_size=20\"; use off, adaptive, block, "
            "threshold, every_turn");
  EXPECT_EQ(ParseErrorOf("block,"), ": expected name=value");
  EXPECT_EQ(ParseErrorOf("block,block_size"),
            "block_size: expected name=value");
  EXPECT_THAT(ParseErrorOf("block,size=2"),
              HasSubstr("size: no such field of a policy"));
  EXPECT_EQ(ParseErrorOf("block,block_size=0"),
            "block_size: expected a whole number from 1 to 100000, got \"0\"");
  EXPECT_EQ(ParseErrorOf("threshold,threshold_tokens=5,low_water_tokens=6"),
            "low_water_tokens: above threshold_tokens");
  EXPECT_EQ(ParseErrorOf("off,window_tokens=5,reserve_tokens=5"),
            "reserve_tokens: leaves nothing of window_tokens");
}

}  // namespace
}  // namespace clerestory
