// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/line_script.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

std::string Shown(const std::optional<std::vector<LineRange>>& ranges) {
  if (!ranges.has_value()) return "none";
  std::string out;
  for (const LineRange& range : *ranges) {
    absl::StrAppend(&out, out.empty() ? "" : " ", range.first, "-",
                    range.last == INT64_MAX ? "" : absl::StrCat(range.last));
  }
  return out;
}

TEST(LineScriptTest, SedPrintsLinesByNumber) {
  struct Case {
    absl::string_view script;
    bool is_quiet = true;
    absl::string_view want;
  };
  constexpr Case kCases[] = {
      {"5,10p", true, "5-10"},
      {"5p", true, "5-5"},
      {"5,$p", true, "5-"},
      {"5,+3p", true, "5-8"},
      {" 5 , 10 p", true, "5-10"},
      {"1,5p;9,12p", true, "1-5 9-12"},
      {"10,3p", true, "10-10"},
      {"5,10p;10q", true, "5-10"},
      {"10q", false, "1-10"},
      {"5{p}", true, "5-5"},
      {"5,10p", false, "none"},
      {"$p", true, "none"},
      {"/a/,/b/p", true, "none"},
      {"s/a/b/p", true, "none"},
      {"0,10p", true, "none"},
      {"5,10d", false, "none"},
      {"", true, "none"},
      {"5,10p;/x/p", true, "none"},
      {"99999999999999999p", true, "none"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(SedLines(each.script, each.is_quiet)), each.want)
        << each.script;
  }
}

TEST(LineScriptTest, AwkPrintsLinesByNumber) {
  struct Case {
    absl::string_view program;
    absl::string_view want;
  };
  constexpr Case kCases[] = {
      {"NR>=5 && NR<=10", "5-10"},
      {"NR>5&&NR<10{print}", "6-9"},
      {"NR==5, NR==10 {print NR\": \"$0}", "5-10"},
      {"FNR==7", "7-7"},
      {"NR<=20", "1-20"},
      {"(NR>=5) { print $0 }", "5-"},
      {"NR==5{print $1}", "none"},
      {"NR>=10 && NR<=5", "none"},
      {"/x/ && NR>5", "none"},
      {"NR==1{next} {print}", "none"},
      {"{print}", "none"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(AwkLines(each.program, false)), each.want) << each.program;
  }
}

TEST(LineScriptTest, ARangeMayBeOpen) {
  EXPECT_EQ(ColonRange("5:10"), (LineRange{5, 10}));
  EXPECT_EQ(ColonRange("5:"), (LineRange{5, INT64_MAX}));
  EXPECT_EQ(ColonRange(":10"), (LineRange{1, 10}));
  EXPECT_EQ(ColonRange("5"), (LineRange{5, 5}));
  EXPECT_EQ(ColonRange("a:b"), std::nullopt);
}

}  // namespace
}  // namespace clerestory
