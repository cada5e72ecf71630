// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/shell.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace clerestory {
namespace {

// The commands as text: words in brackets, with `$` where something is left out
// and `*` for a pattern; `|` in pipelines, `(` and `)` around shells of their
// own.
std::string Shown(absl::string_view text,
                  ShellDialect dialect = ShellDialect::kPosix) {
  const std::optional<std::vector<ShellStep>> steps = ParseShell(text, dialect);
  if (!steps.has_value()) return "none";
  std::string out;
  for (const ShellStep& step : *steps) {
    if (step.kind == ShellStep::Kind::kEnter) absl::StrAppend(&out, "(");
    if (step.kind == ShellStep::Kind::kLeave) absl::StrAppend(&out, ")");
    for (std::size_t i = 0; i < step.pipeline.size(); ++i) {
      if (i > 0) absl::StrAppend(&out, "|");
      for (const ShellWord& word : step.pipeline[i].words) {
        absl::StrAppend(&out, "[", word.text, word.is_literal ? "" : "$",
                        word.is_glob ? "*" : "", "]");
      }
      for (const ShellRedirection& each : step.pipeline[i].redirections) {
        constexpr absl::string_view kKinds[] = {"<", ">", "<<"};
        absl::StrAppend(&out, kKinds[static_cast<int>(each.kind)],
                        each.target.text, each.target.is_literal ? "" : "$");
      }
    }
    if (!step.pipeline.empty()) absl::StrAppend(&out, ";");
  }
  return out;
}

struct Case {
  absl::string_view script;
  absl::string_view want;
};

TEST(ShellTest, WordsHaveNoQuotes) {
  constexpr Case kCases[] = {
      {"a b  c", "[a][b][c];"},
      {"a 'b c' \"d e\" f\\ g", "[a][b c][d e][f g];"},
      {"a 'b'\"c\"d", "[a][bcd];"},
      {"a \"\\\"\\$\\n\"", "[a][\"$\\n];"},
      {"a $'x\\ty\\'z'", "[a][x\ty'z];"},
      {"a b\\\nc", "[a][bc];"},
      {"a '' b", "[a][][b];"},
      {"a # b\nc", "[a];[c];"},
      {"a b#c", "[a][b#c];"},
      {"a $b \"${c}\" ${d:-e} $(( 1 + 2 )) $1 $", "[a][$][$][$][$][$][$];"},
      {"a *.go b? {c,d} e{f,g}", "[a][*.go*][b?*][{c,d}][e{f,g}*];"},
      {"a '*' [id]", "[a][*][[id]];"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(each.script), each.want) << each.script;
  }
}

TEST(ShellTest, CommandsAreSeparated) {
  constexpr Case kCases[] = {
      {"a && b || c; d & e\nf", "[a];[b];[c];[d];[e];[f];"},
      {"a | b |& c", "[a]|[b]|[c];"},
      {"(a; b) && c", "([a];[b];)[c];"},
      {"{ a; b; }", "[a];[b];"},
      {"x=1 y='2 3' a b=c", "[a][b=c];"},
      {"for f in a b; do cat $f; done", "[cat][$];"},
      {"if a; then b; elif c; then d; else e; fi", "[a];[b];[c];[d];[e];"},
      {"while read l; do a; done < f", "[read][l];[a];<f;"},
      {"case $x in a|b) c;; *) d;; esac; e", "[c];[d];[e];"},
      {"f() { a; }; f", "[a];[f];"},
      {"[[ a < b && -f c ]] && d", "[d];"},
      {"! a", "[a];"},
      {"for ((i=0; i<3; i++)); do a; done", "[a];"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(each.script), each.want) << each.script;
  }
}

TEST(ShellTest, RedirectionsOfFilesAreKept) {
  constexpr Case kCases[] = {
      {"a > b", "[a]>b;"},
      {"a >> b 2>&1", "[a]>b;"},
      {"a 2>/dev/null < c", "[a]>/dev/null<c;"},
      {"a &> b", "[a]>b;"},
      {"a >| b >&2", "[a]>b;"},
      {"a <<< 'x y'", "[a]<<x y;"},
      {"a <<EOF > b\nx $y\nEOF\nc", "[a]<<x $y\n$>b;[c];"},
      {"a <<'EOF'\nx $y\nEOF", "[a]<<x $y\n;"},
      {"a <<-E\n\tx\n\tE\nb", "[a]<<\tx\n;[b];"},
      {"a <<A <<B\n1\nA\n2\nB\nc", "[a]<<1\n<<2\n;[c];"},
      {"a <<EOF\nno end", "[a]<<no end;"},
      {"a <(b) >(c)", "([b];)([c];)[a][$][$];"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(each.script), each.want) << each.script;
  }
}

TEST(ShellTest, CommandsInWordsComeFirst) {
  constexpr Case kCases[] = {
      {"a $(b \"$(c)\") d", "(([c];)[b][$];)[a][$][d];"},
      {"a \"x$(b | c)y\"", "([b]|[c];)[a][xy$];"},
      {"a `b \\`c\\``", "(([c];)[b][$];)[a][$];"},
      {"git commit -m \"$(cat <<'EOF'\nx) \"\nEOF\n)\"",
       "([cat]<<x) \"\n;)[git][commit][-m][$];"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(each.script), each.want) << each.script;
  }
}

TEST(ShellTest, VariablesThatTheScriptSetsAreKnown) {
  constexpr Case kCases[] = {
      {"d=/r; cat $d/a \"${d}/b\"", "[cat][/r/a][/r/b];"},
      {"d=$(pwd); cat $d", "([pwd];)[cat][$];"},
      {"f=a; for f in b c; do cat $f; done", "[cat][$];"},
      {"a=x; a+=y; cat $a", "[cat][$];"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(each.script), each.want) << each.script;
  }
}

TEST(ShellTest, WindowsKeepsBackslashes) {
  constexpr Case kCases[] = {
      {"dir C:\\a\\b /s", "[dir][C:\\a\\b][/s];"},
      {"Get-Content \"C:\\a b\\\" | Select-Object -First 5",
       "[Get-Content][C:\\a b\\]|[Select-Object][-First][5];"},
      {"type a`b 'it''s'", "[type][ab][it's];"},
      {"gci | % { gc $_.FullName }", "[gci]|[%];[gc][.FullName$];"},
  };
  for (const Case& each : kCases) {
    EXPECT_EQ(Shown(each.script, ShellDialect::kWindows), each.want)
        << each.script;
  }
}

TEST(ShellTest, TheDialectIsSeen) {
  for (const absl::string_view script :
       {"Get-Content a", "cat a; Select-String b", "dir C:\\x",
        "echo $env:TEMP"}) {
    EXPECT_EQ(DialectOf(script), ShellDialect::kWindows) << script;
  }
  for (const absl::string_view script :
       {"cat a", "git commit -m 'Use Get-Content'", "ls C:/x",
        "cat <<E\nC:\\x\nE", "Get-", "sed 's/a:\\/b/c/' x"}) {
    EXPECT_EQ(DialectOf(script), ShellDialect::kPosix) << script;
  }
}

TEST(ShellTest, WhatIsNoScriptIsNone) {
  for (const absl::string_view script : {"a 'b", "a \"b", "a $(b", "a `b", "(a",
                                         "a ${b", "[[ a", "a >", "a )b(c"}) {
    EXPECT_EQ(Shown(script), "none") << script;
  }
}

TEST(ShellTest, NestsOnlySoDeep) {
  const auto nested = [](int depth) {
    std::string script;
    for (int i = 0; i < depth; ++i) absl::StrAppend(&script, "a $(");
    return absl::StrCat(script, "b",
                        std::string(static_cast<std::size_t>(depth), ')'));
  };
  EXPECT_NE(Shown(nested(20)), "none");
  EXPECT_EQ(Shown(nested(10'000)), "none");
}

}  // namespace
}  // namespace clerestory
