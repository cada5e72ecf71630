// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/yaml/reader.h"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/yaml/problem.h"

namespace clerestory {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::string_view kModes[] = {"adaptive", "block", "off"};

// What is wrong with `text` if `ask` is what is asked of it.
std::string ProblemsOf(
    absl::string_view text,
    const std::function<void(YamlMap&)>& ask = [](YamlMap&) {}) {
  std::vector<Problem> problems;
  std::optional<YamlMap> map = YamlMap::Load("f.yaml", text, problems);
  if (map.has_value()) ask(*map);
  EXPECT_TRUE(map.has_value() || !problems.empty());
  return Describe(problems);
}

TEST(YamlMapTest, ManyNamesTakeNoLongerToFindThanFew) {
  // As many as fit. To look through all of them for each takes minutes.
  std::string text = "map:\n";
  std::size_t count = 0;
  while (text.size() + 16 < kYamlBytesMax) {
    absl::StrAppend(&text, " ", absl::Hex(count++), ": 1\n");
  }
  ASSERT_GT(count, 90'000U);
  std::size_t found = 0;
  EXPECT_EQ(ProblemsOf(text,
                       [&](YamlMap& map) {
                         std::optional<YamlMap> inner = map.Map("map");
                         for (const std::string& key : inner->Keys()) {
                           if (inner->Integer(key, 1, 1).has_value()) ++found;
                         }
                       }),
            "");
  EXPECT_EQ(found, count);
}

TEST(YamlMapTest, GivesWhatIsThere) {
  std::vector<Problem> problems;
  std::optional<YamlMap> map = YamlMap::Load("f.yaml", R"(# A comment.
integer: -5
decimal: 0.0125
text: "5"
word: 5
boolean: true
mode: block
date: 2026-11-30
map: {inner: 1}
maps: [{a: 1}, {a: 2}]
texts: [one, "two"]
one: single
table: {"*": x, b: "y z"}
)",
                                             problems);
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->Integer("integer", -10, 10), -5);
  EXPECT_EQ(map->Decimal("decimal", 6, 0, 1'000'000), 12'500);
  EXPECT_EQ(map->Text("text"), "5");
  EXPECT_EQ(map->Text("word"), "5");
  EXPECT_EQ(map->Boolean("boolean"), true);
  EXPECT_EQ(map->Choice("mode", kModes), std::size_t{1});
  EXPECT_EQ(map->Date("date"), 1'795'996'800 * kMicrosPerSecond);
  std::optional<YamlMap> inner = map->Map("map");
  ASSERT_TRUE(inner.has_value());
  EXPECT_EQ(inner->Integer("inner", 0, 1), 1);
  inner->Finish();
  std::vector<YamlMap> maps = map->Maps("maps");
  ASSERT_EQ(maps.size(), 2U);
  EXPECT_EQ(maps[1].Integer("a", 0, 9), 2);
  EXPECT_THAT(*map->Texts("texts"), ElementsAre("one", "two"));
  EXPECT_THAT(*map->Texts("one"), ElementsAre("single"));
  EXPECT_EQ(*map->TextMap("table"),
            (std::map<std::string, std::string>{{"*", "x"}, {"b", "y z"}}));
  map->Finish();
  EXPECT_EQ(Describe(problems), "");
}

TEST(YamlMapTest, WhatIsNotThereIsAbsentAndNoProblem) {
  EXPECT_EQ(ProblemsOf("# Nothing.\n",
                       [](YamlMap& map) {
                         EXPECT_FALSE(map.Has("a"));
                         EXPECT_EQ(map.Integer("a", 0, 1), std::nullopt);
                         EXPECT_EQ(map.Text("a"), std::nullopt);
                         EXPECT_EQ(map.Boolean("a"), std::nullopt);
                         EXPECT_EQ(map.Choice("a", kModes), std::nullopt);
                         EXPECT_EQ(map.Date("a"), std::nullopt);
                         EXPECT_FALSE(map.Map("a").has_value());
                         EXPECT_TRUE(map.Maps("a").empty());
                         EXPECT_FALSE(map.Texts("a").has_value());
                         EXPECT_FALSE(map.TextMap("a").has_value());
                         map.Finish();
                       }),
            "");
  EXPECT_EQ(ProblemsOf(""), "");
}

TEST(YamlMapTest, AllThatIsWrongIsToldAtOnce) {
  EXPECT_EQ(ProblemsOf("a: 11\nb: \"5\"\nc: yes\nd: blok\ne: 2026-02-30\n"
                       "f: 1.1234567\ng:\nh: [1]\ni: x\nj: [{}, 7]\n"
                       "k: [a, [b]]\nl: {x: {}}\n",
                       [](YamlMap& map) {
                         map.Integer("a", 1, 10);
                         map.Integer("b", 1, 10);
                         map.Boolean("c");
                         map.Choice("d", kModes);
                         map.Date("e");
                         map.Decimal("f", 6, 0, 5'000'000);
                         map.Integer("g", 1, 10);
                         map.Text("h");
                         map.Map("i");
                         map.Maps("j");
                         map.Texts("k");
                         map.TextMap("l");
                         map.Finish();
                       }),
            R"(f.yaml:1:4: a: expected a whole number from 1 to 10, not "11"
f.yaml:2:4: b: expected a whole number from 1 to 10, not a text; leave out the quotes around "5"
f.yaml:3:4: c: expected true or false, not "yes"
f.yaml:4:4: d: expected one of adaptive, block, off, not "blok" (did you mean "block"?)
f.yaml:5:4: e: expected a day that exists, as 2026-11-30, not "2026-02-30"
f.yaml:6:4: f: expected a number from 0 to 5 with at most 6 digits behind the point, not "1.1234567"
f.yaml:7:1: g: expected a whole number from 1 to 10, which is missing behind the colon
f.yaml:8:4: h: expected a text, not a list
f.yaml:9:4: i: expected a mapping, not "x"
f.yaml:10:9: j[1]: expected a mapping, not "7"
f.yaml:11:8: k[1]: expected a text, not a list
f.yaml:12:8: l.x: expected a text, not a mapping)");
}

TEST(YamlMapTest, NamesThatNobodyAsksForAreUnknown) {
  EXPECT_EQ(ProblemsOf("policies:\n  - kep: 1\n    model: x\nother: 2\n",
                       [](YamlMap& map) {
                         std::vector<YamlMap> policies = map.Maps("policies");
                         ASSERT_EQ(policies.size(), 1U);
                         policies[0].Integer("keep", 0, 9);
                         policies[0].Has("model");
                         policies[0].Finish();
                         map.Finish();
                       }),
            "f.yaml:2:5: policies[0]: unknown name \"kep\" (did you mean "
            "\"keep\"?); use keep, model\n"
            "f.yaml:4:1: unknown name \"other\"; use policies");
}

TEST(YamlMapTest, NamesThatAreUpToTheWriterAreKnown) {
  EXPECT_EQ(ProblemsOf("b: 1\na: 2\n",
                       [](YamlMap& map) {
                         EXPECT_THAT(map.Keys(), ElementsAre("b", "a"));
                         map.Finish();
                       }),
            "");
}

TEST(YamlMapTest, OthersMayAddProblems) {
  EXPECT_EQ(ProblemsOf("m:\n  a: 1\n  b: [x, y]\n  \"c/d\": z\n",
                       [](YamlMap& map) {
                         std::optional<YamlMap> inner = map.Map("m");
                         ASSERT_TRUE(inner.has_value());
                         inner->Add("a", "too small");
                         inner->AddItem("b", 1, "no glob");
                         inner->AddItem("a", 0, "no list");
                         inner->Add("c/d", "odd");
                         inner->Add("e", "missing");
                         inner->Add("bad as a whole");
                       }),
            "f.yaml:2:3: m.e: missing\n"
            "f.yaml:2:3: m: bad as a whole\n"
            "f.yaml:2:6: m.a: too small\n"
            "f.yaml:2:6: m.a: no list\n"
            "f.yaml:3:10: m.b[1]: no glob\n"
            "f.yaml:4:10: m.\"c/d\": odd");
}

TEST(YamlMapTest, TheRootIsAMapping) {
  for (const absl::string_view text : {"- 1\n", "[]", "word", "\"\"", "7"}) {
    EXPECT_EQ(ProblemsOf(text), "f.yaml:1:1: expected `name: value` lines")
        << text;
  }
}

TEST(YamlMapTest, AFileIsOneDocument) {
  EXPECT_EQ(ProblemsOf("---\na: 1\n"), "");
  EXPECT_EQ(ProblemsOf("a: 1\n---\nb: 2\n"),
            "f.yaml:3:1: a second document; write one to a file");
}

TEST(YamlMapTest, NamesStandOnce) {
  EXPECT_EQ(
      ProblemsOf("a: 1\nb: {c: 1, c: {d: 1, d: [x]}}\na: [2]\n",
                 [](YamlMap& map) { EXPECT_EQ(map.Integer("a", 0, 9), 1); }),
      "f.yaml:2:11: \"c\" stands twice; leave one of them out\n"
      "f.yaml:3:1: \"a\" stands twice; leave one of them out");
  EXPECT_EQ(ProblemsOf("? [a]\n: {b: 1}\n? {c: 1}\n: 2\n"),
            "f.yaml:1:3: expected a name\nf.yaml:3:3: expected a name");
}

TEST(YamlMapTest, AnchorsAliasesAndTagsAreNotRead) {
  const std::string problems =
      ProblemsOf("a: &x [1]\nb: *x\nc: !!int \"5\"\n",
                 [](YamlMap& map) { EXPECT_FALSE(map.Map("b").has_value()); });
  EXPECT_THAT(problems, HasSubstr("anchors are not read; write the value out"));
  EXPECT_THAT(problems, HasSubstr("f.yaml:2:4: aliases are not read"));
  EXPECT_THAT(problems, HasSubstr("tags are not read; leave out "
                                  "\"tag:yaml.org,2002:int\""));
}

// Nine levels of nine aliases each would be a billion values.
TEST(YamlMapTest, AliasesDoNotGrow) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    absl::StrAppend(&text, "a", i, ": &a", i, " [");
    for (int j = 0; j < 9; ++j) absl::StrAppend(&text, "*a", i - 1, ", ");
    absl::StrAppend(&text, "]\n");
  }
  EXPECT_THAT(ProblemsOf(text), HasSubstr("aliases are not read"));
}

TEST(YamlMapTest, DeepNestingIsRefused) {
  for (const int depth : {40, 400, 100'000}) {
    for (const absl::string_view open : {"[", "{a: ", "[{a: "}) {
      std::string text = "a: ";
      for (int i = 0; i < depth; ++i) absl::StrAppend(&text, open);
      EXPECT_THAT(ProblemsOf(text), AnyOf(HasSubstr("nested more than 32 deep"),
                                          HasSubstr("not YAML: end of")))
          << depth << open;
    }
  }
  std::string closed = "a: " + std::string(40, '[') + std::string(40, ']');
  EXPECT_EQ(ProblemsOf(closed), "f.yaml:1:35: nested more than 32 deep");
  EXPECT_THAT(ProblemsOf(std::string(20'000, '-') + "\n"),
              StartsWith("f.yaml"));
  std::string lists;
  for (int i = 0; i < 5'000; ++i) absl::StrAppend(&lists, "- ");
  EXPECT_THAT(ProblemsOf("a:\n" + lists), StartsWith("f.yaml:2:"));
}

TEST(YamlMapTest, OnlyTextIsRead) {
  const auto with = [](absl::string_view bytes) {
    return ProblemsOf(absl::StrCat("a: 1\nbc: ", bytes, "\n"));
  };
  EXPECT_EQ(with(absl::string_view("\0", 1)),
            "f.yaml:2:5: a control character; leave it out");
  EXPECT_EQ(with("\x04"), "f.yaml:2:5: a control character; leave it out");
  EXPECT_EQ(with("\x7F"), "f.yaml:2:5: a control character; leave it out");
  EXPECT_EQ(with("\xFF"), "f.yaml:2:5: not UTF-8");
  EXPECT_EQ(with("\xED\xA0\x80"), "f.yaml:2:5: not UTF-8");
  EXPECT_EQ(with("\u00E9"), "");
  // UTF-16, with and without the mark of its byte order.
  EXPECT_EQ(ProblemsOf(absl::string_view("\xFF\xFE"
                                         "a\0",
                                         4)),
            "f.yaml:1:1: not UTF-8");
  EXPECT_EQ(ProblemsOf(absl::string_view("a\0:\0", 4)),
            "f.yaml:1:2: a control character; leave it out");
  EXPECT_EQ(ProblemsOf("\xEF\xBB\xBF"
                       "a: 1\r\n"),
            "");
}

TEST(YamlMapTest, WhatIsNoYamlIsRefusedWithItsPlace) {
  EXPECT_THAT(ProblemsOf("a: 1\nb: [1\nc: 2\n"),
              StartsWith("f.yaml:3:2: not YAML: "));
  for (const absl::string_view value :
       {"\"x", "'x", "\"x\n", "'x''", "'x''\n", R"("x\")", R"("x\\\")"}) {
    EXPECT_THAT(ProblemsOf(absl::StrCat("# \u00E9\r\na: ", value)),
                StartsWith("f.yaml:2:"))
        << value;
  }
  for (const absl::string_view value :
       {"\"x\"", "'x'", "'x'''", R"("x\"" # ")", "|\n  \"x", "x\"y'"}) {
    EXPECT_EQ(ProblemsOf(absl::StrCat("# \u00E9\r\na: ", value)), "") << value;
  }
  EXPECT_THAT(ProblemsOf("a: 1\n  b: 2\n"), StartsWith("f.yaml:2:"));
  EXPECT_THAT(ProblemsOf("a: *nowhere\n"), HasSubstr(": not YAML: "));
  EXPECT_THAT(ProblemsOf("\ta: 1\n"), HasSubstr(": not YAML: "));
  EXPECT_THAT(ProblemsOf("a: \"\\xZZ\"\n"), HasSubstr(": not YAML: "));
}

TEST(YamlMapTest, LargeFilesAreRefused) {
  EXPECT_EQ(ProblemsOf(std::string(kYamlBytesMax + 1, '#')),
            "f.yaml:1:1: has 1048577 bytes; at most 1048576 are read");
  EXPECT_EQ(ProblemsOf(std::string(kYamlBytesMax, '#')), "");
}

TEST(YamlMapTest, OutlivesItsFile) {
  std::vector<Problem> problems;
  std::optional<YamlMap> inner;
  {
    const std::string text = "a: {b: 7}\n";
    std::optional<YamlMap> map = YamlMap::Load("f.yaml", text, problems);
    ASSERT_TRUE(map.has_value());
    inner.emplace(*map->Map("a"));
  }
  EXPECT_EQ(inner->Integer("b", 0, 9), 7);
}

}  // namespace
}  // namespace clerestory
