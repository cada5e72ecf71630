// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/policy/tool_glob.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/status.h"
#include "server/policy/policy.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::Pointee;

// All texts of at most `size` letters of `alphabet`.
std::vector<std::string> Texts(absl::string_view alphabet, std::size_t size) {
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == size) continue;
    for (const char c : alphabet) texts.push_back(texts[i] + c);
  }
  return texts;
}

// As the definition has it, in exponential time.
bool PlainMatches(absl::string_view glob, absl::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') {
    return PlainMatches(glob.substr(1), text) ||
           (!text.empty() && PlainMatches(glob, text.substr(1)));
  }
  return !text.empty() && (glob[0] == '?' || glob[0] == text[0]) &&
         PlainMatches(glob.substr(1), text.substr(1));
}

TEST(ToolGlobTest, MatchesWhatItsDefinitionDoes) {
  int match_count = 0;
  for (const std::string& glob : Texts("ab*?", 5)) {
    for (const std::string& text : Texts("ab", 5)) {
      const bool matches = MatchesGlob(glob, text);
      ASSERT_EQ(matches, PlainMatches(glob, text)) << glob << " " << text;
      match_count += matches ? 1 : 0;
    }
  }
  EXPECT_GT(match_count, 10'000);
}

TEST(ToolGlobTest, WhatCoversMatchesAllThatIsCovered) {
  const std::vector<std::string> globs = Texts("ab*?", 3);
  const std::vector<std::string> texts = Texts("ab", 4);
  int cover_count = 0;
  for (const std::string& general : globs) {
    for (const std::string& special : globs) {
      if (!CoversGlob(general, special)) continue;
      ++cover_count;
      for (const std::string& text : texts) {
        ASSERT_TRUE(!MatchesGlob(special, text) || MatchesGlob(general, text))
            << general << " " << special << " " << text;
      }
    }
  }
  EXPECT_GT(cover_count, 1'000);
  EXPECT_TRUE(CoversGlob("*", "a*b?"));
  EXPECT_TRUE(CoversGlob("a*", "ab*"));
  EXPECT_FALSE(CoversGlob("ab*", "a*"));
  EXPECT_FALSE(CoversGlob("?", "*"));
}

TEST(ToolGlobTest, TakesNoLongerForGlobsThatAreMadeToTakeLong) {
  std::string glob;
  for (int i = 0; i < 99; ++i) glob += "*a";
  const std::string text(1024, 'a');
  EXPECT_TRUE(MatchesGlob(glob, text));
  EXPECT_FALSE(MatchesGlob(glob + "b", text));
}

TEST(ToolGlobTest, ACharacterIsACodePoint) {
  EXPECT_TRUE(MatchesGlob("caf?", "café"));
  EXPECT_TRUE(MatchesGlob("?", "😀"));
  EXPECT_FALSE(MatchesGlob("??", "😀"));
  EXPECT_TRUE(MatchesGlob("*é", "caféé"));
}

TEST(ToolGlobTest, McpNamesMatchInBothForms) {
  EXPECT_TRUE(MatchesTool("github/get_issue", "mcp__github__get_issue"));
  EXPECT_TRUE(MatchesTool("mcp__github__get_issue", "mcp__github__get_issue"));
  EXPECT_TRUE(MatchesTool("github/*", "mcp__github__get_issue"));
  EXPECT_TRUE(MatchesTool("*/get_*", "mcp__github__get_issue"));
  EXPECT_TRUE(MatchesTool("mcp__*", "mcp__github__get_issue"));
  EXPECT_TRUE(MatchesTool("github/a__b", "mcp__github__a__b"));
  EXPECT_FALSE(MatchesTool("github/*", "mcp__gitlab__get_issue"));
  EXPECT_FALSE(MatchesTool("github__*", "mcp__github__get_issue"));
  // These are no MCP names.
  EXPECT_FALSE(MatchesTool("github/*", "github__get_issue"));
  EXPECT_FALSE(MatchesTool("*/*", "mcp__github"));
  EXPECT_FALSE(MatchesTool("*/*", "mcp____get_issue"));
  EXPECT_FALSE(MatchesTool("read", "Read"));
}

TEST(ToolGlobTest, CoversMcpNamesInBothForms) {
  EXPECT_TRUE(CoversTool("github/*", "mcp__github__get_*"));
  EXPECT_TRUE(CoversTool("github/*", "github/get_*"));
  EXPECT_TRUE(CoversTool("*", "github/*"));
  // The server may be another.
  EXPECT_FALSE(CoversTool("github/*", "mcp__git*__get"));
  // The one is a tool of no MCP server, perhaps.
  EXPECT_FALSE(CoversTool("mcp__github__*", "github/*"));
}

TEST(ToolGlobTest, GlobsThatMeanNothingAreRefused) {
  const auto error = [](absl::string_view glob) {
    return std::string(CheckGlob("tool", glob).message());
  };
  for (const absl::string_view glob :
       {"*", "Read", "mcp__github__*", "a.b:c@d#e+f=g~h%i&j/k-l_m", "é?"}) {
    EXPECT_EQ(error(glob), "") << glob;
  }
  EXPECT_EQ(error(""),
            "tool: expected a glob of 1 to 200 bytes, got 0; * is any run of "
            "characters, ? any one");
  EXPECT_THAT(error(std::string(201, 'x')), HasSubstr("got 201"));
  EXPECT_THAT(error("a b"), HasSubstr("no blanks"));
  EXPECT_THAT(error("a\n"), HasSubstr("no blanks"));
  EXPECT_THAT(error("[ab]"), HasSubstr("no name has \"[\""));
  EXPECT_THAT(error("{a,b}"), HasSubstr("no name has \"{\""));
  EXPECT_THAT(error("a|b"), HasSubstr("one glob for each choice"));
  EXPECT_THAT(error("\xFF"), HasSubstr("not valid UTF-8"));
}

TEST(ToolGlobTest, TheFirstRuleThatMatchesIsTheRule) {
  Policy policy;
  policy.tools = {{.tool = "github/get_*", .keep_observations = 1},
                  {.tool = "github/*", .keep_observations = 2},
                  {.tool = "Read", .is_never_masked = true}};
  EXPECT_THAT(RuleFor(policy, "mcp__github__get_issue"),
              Pointee(policy.tools[0]));
  EXPECT_THAT(RuleFor(policy, "mcp__github__list"), Pointee(policy.tools[1]));
  EXPECT_THAT(RuleFor(policy, "Read"), Pointee(policy.tools[2]));
  EXPECT_THAT(RuleFor(policy, "Write"), IsNull());
}

TEST(ToolGlobTest, ExcludeBeatsIncludeAndBothBeatRules) {
  Policy policy;
  EXPECT_TRUE(IsMaskable(policy, "Read"));
  EXPECT_TRUE(IsMaskable(policy, ""));
  policy.include = {"Read", "github/*"};
  policy.exclude = {"*_secret"};
  policy.tools = {{.tool = "*get*", .is_never_masked = true},
                  {.tool = "*", .keep_observations = 2}};
  EXPECT_TRUE(IsMaskable(policy, "Read"));
  EXPECT_FALSE(IsMaskable(policy, "Write"));
  EXPECT_TRUE(IsMaskable(policy, "mcp__github__list"));
  EXPECT_FALSE(IsMaskable(policy, "mcp__github__get"));
  EXPECT_FALSE(IsMaskable(policy, "mcp__github__list_secret"));
  // An earlier rule shields from a later one.
  policy.tools.insert(policy.tools.begin(), {.tool = "github/get_issue"});
  EXPECT_TRUE(IsMaskable(policy, "mcp__github__get_issue"));
}

}  // namespace
}  // namespace clerestory
