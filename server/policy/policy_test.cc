// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/policy.h"

#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Mode kModes[] = {Mode::kOff,       Mode::kAdaptive,  Mode::kBlock,
                           Mode::kThreshold, Mode::kEveryTurn, Mode::kDelegate};
constexpr absl::string_view kTemplates[] = {"placeholder", "error_placeholder"};
constexpr absl::string_view kModeNames =
    "off, adaptive, block, threshold, every_turn, delegate";

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
    EXPECT_EQ(
        ErrorOf("mode", mode),
        absl::StrCat("mode: unknown value \"", mode, "\"; use ", kModeNames));
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
            "low_water_tokens: above threshold_tokens; write at most that");
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
            "reserve_tokens: leaves nothing of window_tokens; write less than "
            "that");
  EXPECT_EQ(MetadataOf(CheckPolicy(policy), "field"), "reserve_tokens");
  policy.reserve_tokens = 999;
  EXPECT_THAT(CheckPolicy(policy), IsOk());
  // The model's window is not known here.
  policy.window_tokens = 0;
  policy.reserve_tokens = 1'000'000'000;
  EXPECT_THAT(CheckPolicy(policy), IsOk());
}

// Changes a field to another value of its type.
void Change(std::int64_t& field) { ++field; }
void Change(std::string& field) { field += "x"; }
void Change(std::vector<std::string>& field) { field.emplace_back("x"); }
void Change(std::vector<ToolRule>& field) { field.push_back({.tool = "x"}); }
void Change(Mode& field) { field = Mode::kBlock; }
void Change(ErrorRule& field) { field = ErrorRule::kKeep; }
void Change(DuplicateRule& field) { field = DuplicateRule::kIdentical; }
void Change(ThinkingRule& field) { field = ThinkingRule::kAvoid; }
void Change(CacheLife& field) { field = CacheLife::kLong; }

// Calls `visit` with each field of `policy`. Does not compile when there is one
// more: it is to be named here, and so is seen to be in the digest and in what
// is parsed and written.
template <typename Visit>
void ForEachField(Policy& policy, Visit visit) {
  auto& [mode, keep_observations, keep_turns, keep_tokens, reclaim_tokens_min,
         first_break_percent, later_break_percent, look_ahead_calls, block_size,
         threshold_tokens, low_water_tokens, window_tokens, reserve_tokens,
         errors, duplicates, thinking, cache_life, include, exclude, tools,
         control_permille, refetch_session_limit, refetch_rate_permille,
         refetch_samples_min, refetch_confidence_percent,
         refetch_cool_off_minutes, refetch_probe_permille, recall_keep_turns,
         argument_tokens_min, placeholder, error_placeholder,
         argument_placeholder] = policy;
  std::apply(
      [&](auto&... fields) { (visit(fields), ...); },
      std::tie(mode, keep_observations, keep_turns, keep_tokens,
               reclaim_tokens_min, first_break_percent, later_break_percent,
               look_ahead_calls, block_size, threshold_tokens, low_water_tokens,
               window_tokens, reserve_tokens, errors, duplicates, thinking,
               cache_life, include, exclude, tools, control_permille,
               refetch_session_limit, refetch_rate_permille,
               refetch_samples_min, refetch_confidence_percent,
               refetch_cool_off_minutes, refetch_probe_permille,
               recall_keep_turns, argument_tokens_min, placeholder,
               error_placeholder, argument_placeholder));
}

// The default, and policies that differ from it in one field each.
std::vector<Policy> PoliciesThatDiffer() {
  std::vector<Policy> policies(1);
  int count = 0;
  ForEachField(policies.front(), [&](auto&) { ++count; });
  for (int i = 0; i < count; ++i) {
    int at = 0;
    ForEachField(policies.emplace_back(), [&](auto& field) {
      if (at++ == i) Change(field);
    });
  }
  return policies;
}

TEST(PolicyTest, EveryFieldButToolsHasAName) {
  int count = 0;
  Policy policy;
  ForEachField(policy, [&](auto&) { ++count; });
  EXPECT_EQ(static_cast<int>(PolicyFieldNames().size()) + 1, count);
  EXPECT_EQ(std::set<absl::string_view>(PolicyFieldNames().begin(),
                                        PolicyFieldNames().end())
                .size(),
            PolicyFieldNames().size());
}

TEST(PolicyTest, DigestsDifferWhenAToolRuleDoes) {
  std::vector<Policy> policies(12);
  policies[0].tools = {{.tool = "a"}};
  // Does not compile when there is one more: it is to be among those below.
  [[maybe_unused]] const auto& [tool, is_never_masked, keep_observations,
                                access] = policies[0].tools[0];
  [[maybe_unused]] const auto& [access_class, resource, first, last, count] =
      access;
  policies[1].tools = {{.tool = "a", .is_never_masked = true}};
  policies[2].tools = {{.tool = "a", .keep_observations = 1}};
  policies[3].tools = {{.tool = "a"}, {.tool = "b"}};
  policies[4].tools = {{.tool = "b"}, {.tool = "a"}};
  policies[5].include = {"a", "b"};
  policies[6].include = {"a|b"};
  for (std::size_t i = 7; i < policies.size(); ++i) {
    policies[i].tools = policies[0].tools;
  }
  policies[7].tools[0].access.access_class = AccessClass::kRead;
  policies[8].tools[0].access.resource_argument = "x";
  policies[9].tools[0].access.first_line_argument = "x";
  policies[10].tools[0].access.last_line_argument = "x";
  policies[11].tools[0].access.line_count_argument = "x";
  std::set<std::string> digests;
  for (const Policy& policy : policies) digests.insert(PolicyDigest(policy));
  EXPECT_EQ(digests.size(), policies.size());
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
  for (const absl::string_view name : PolicyFieldNames()) {
    absl::StrAppend(&text, ",", name, "=", PolicyFieldText(name, policy));
  }
  return text;
}

TEST(PolicyTest, EveryFieldSurvivesBeingWrittenAndParsed) {
  for (Policy policy : PoliciesThatDiffer()) {
    // Has no text on one line.
    policy.tools.clear();
    // Values hold no comma.
    absl::StrReplaceAll({{",", " ="}}, &policy.placeholder);
    absl::StrReplaceAll({{",", " ="}}, &policy.error_placeholder);
    const absl::StatusOr<Policy> parsed = ParsePolicy(TextOf(policy));
    ASSERT_THAT(parsed, IsOk()) << TextOf(policy);
    EXPECT_EQ(*parsed, policy) << TextOf(policy);
    EXPECT_EQ(PolicyDigest(*parsed), PolicyDigest(policy));
  }
}

TEST(PolicyTest, GlobsStandBetweenBars) {
  Policy policy;
  ASSERT_THAT(SetPolicyField("include", "Read|mcp__github__*|a?c", policy),
              IsOk());
  EXPECT_THAT(policy.include, ElementsAre("Read", "mcp__github__*", "a?c"));
  EXPECT_EQ(PolicyFieldText("include", policy), "Read|mcp__github__*|a?c");
  ASSERT_THAT(SetPolicyField("include", "", policy), IsOk());
  EXPECT_THAT(policy.include, IsEmpty());
  EXPECT_THAT(ErrorOf("exclude", "a|"), HasSubstr("glob of 1 to 200 bytes"));
  EXPECT_THAT(ErrorOf("exclude", "a|b c"), HasSubstr("no blanks"));
}

TEST(PolicyTest, TemplatesRefuseWordsInBracesThatStandForNothing) {
  EXPECT_EQ(ErrorOf("placeholder", "[{lines} of {tokens}]"),
            "placeholder: unknown {lines}; use {size}, {tokens}");
  EXPECT_EQ(ErrorOf("argument_placeholder", "{size}"),
            "argument_placeholder: unknown {size}; use {tokens}");
  for (const absl::string_view text :
       {"{}", "{ size }", "{\"a\": 1}", "{", "}{", "{size", "{{size}}"}) {
    EXPECT_EQ(ErrorOf("placeholder", text), "") << text;
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
  for (const absl::string_view mode : {"", "block_size=20", "Jetbrains"}) {
    EXPECT_EQ(
        ParseErrorOf(mode),
        absl::StrCat("mode: unknown value \"", mode, "\"; use ", kModeNames,
                     ", rent_or_buy, jetbrains, "
                     "swe-agent-polling, anthropic, gemini-cli, opencode, "
                     "strands, mini-claude-code"));
  }
  EXPECT_EQ(ParseErrorOf("block,"), ": expected name=value");
  EXPECT_EQ(ParseErrorOf("block,block_size"),
            "block_size: expected name=value");
  EXPECT_THAT(ParseErrorOf("block,size=2"),
              HasSubstr("size: no such field of a policy"));
  EXPECT_EQ(ParseErrorOf("block,block_size=0"),
            "block_size: expected a whole number from 1 to 100000, got \"0\"");
  EXPECT_EQ(ParseErrorOf("threshold,threshold_tokens=5,low_water_tokens=6"),
            "low_water_tokens: above threshold_tokens; write at most that");
  EXPECT_EQ(ParseErrorOf("off,window_tokens=5,reserve_tokens=5"),
            "reserve_tokens: leaves nothing of window_tokens; write less than "
            "that");
}

}  // namespace
}  // namespace clerestory
