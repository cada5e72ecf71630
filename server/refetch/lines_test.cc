// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/lines.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/json/literal.h"
#include "server/refetch/content_kind.h"
#include "server/refetch/line_text.h"
#include "server/refetch/unwrap.h"
#include "tests/support/seen_history.h"

namespace clerestory {
namespace {

std::string Unwrapped(absl::string_view text) {
  return UnwrappedText(json::Quote(text));
}

ContentLines OfText(absl::string_view text) {
  return LinesOf(json::Quote(text));
}

bool AreSameLines(absl::string_view a, absl::string_view b) {
  const auto hashes_of = [](absl::string_view text) {
    std::vector<std::uint64_t> hashes;
    for (const LineDigest& line : OfText(text).lines) {
      hashes.push_back(line.hash);
    }
    return hashes;
  };
  return hashes_of(a) == hashes_of(b);
}

TEST(UnwrapTest, StringsBlocksAndObjectsAreTheTextInThem) {
  EXPECT_EQ(UnwrappedText("\"a\\nb\""), "a\nb");
  EXPECT_EQ(UnwrappedText(R"([{"type":"text","text":"a"},{"text":"b"}])"),
            "a\nb");
  EXPECT_EQ(UnwrappedText(R"({"output":"a\nb"})"), "a\nb");
  EXPECT_EQ(UnwrappedText(R"([{"stdout":"a","stderr":"b","outcome":{}}])"),
            "a\nb");
  EXPECT_EQ(UnwrappedText(""), "");
  EXPECT_EQ(UnwrappedText("null"), "null");
}

TEST(UnwrapTest, PicturesAreNoText) {
  EXPECT_EQ(UnwrappedText(
                R"([{"type":"image","source":{"data":"AAAA"}},{"text":"a"}])"),
            "a");
}

TEST(UnwrapTest, CodexObjectInAString) {
  EXPECT_EQ(Unwrapped(R"({"output":"one\ntwo\n","metadata":{"exit_code":0}})"),
            "one\ntwo\n");
  EXPECT_EQ(
      Unwrapped("Exit code: 0\nWall time: 0.1 seconds\nOutput:\none\ntwo"),
      "one\ntwo");
}

TEST(UnwrapTest, TagsOfMiniSweAgent) {
  EXPECT_EQ(
      Unwrapped("<returncode>0</returncode>\n<output>\none\ntwo\n</output>"),
      "\none\ntwo\n");
}

TEST(UnwrapTest, PythonsReprOfMcpResults) {
  EXPECT_EQ(Unwrapped("meta=None content=[TextContent(type='text', "
                      "text='it\\'s\\nhere', annotations=None)] isError=False"),
            "it's\nhere");
  EXPECT_EQ(Unwrapped("meta=None content=[TextContent(type='text', "
                      "text='{\"content\": [{\"type\": \"text\", \"text\": "
                      "\"deep\"}]}', annotations=None)]"),
            "deep");
}

TEST(UnwrapTest, ReportOfGeminisShell) {
  EXPECT_EQ(
      Unwrapped("Command: ls\nDirectory: (root)\nOutput: one\ntwo\nError: "
                "(none)\nExit Code: 0\nSignal: 0"),
      "one\ntwo");
}

TEST(UnwrapTest, RemindersAndHeadsAreLeftOut) {
  EXPECT_EQ(Unwrapped("one\n<system-reminder>\nbe good\n</system-reminder>\n"),
            "one\n\n");
  EXPECT_EQ(Unwrapped("OBSERVATION:\nHere's the result of running `cat -n` on "
                      "/a/b.py:\n     1\tone\n"),
            "     1\tone\n");
}

TEST(UnwrapTest, WhatIsNoWrapperStaysAsItIs) {
  for (const absl::string_view text :
       {"{not json", "[1, 2]", "{\"a\": 1}", "Command: x", "<b>bold</b>"}) {
    EXPECT_EQ(Unwrapped(text), text);
  }
}

TEST(UnwrapTest, ADocumentWithSuchAMemberStaysAsItIs) {
  constexpr absl::string_view kText =
      R"({"compilerOptions": {"strict": true, "target": "es2022"},)"
      R"( "output": "dist", "include": ["src/one", "src/two"]})";
  EXPECT_EQ(Unwrapped(kText), kText);
}

TEST(UnwrapTest, ALongLiteralIsCutBetweenEscapes) {
  std::string content = "\"";
  while (content.size() < 3 * kTextBytesMax / 2) content += "\\ud83d\\ude00";
  content += "\"";
  const std::string text = UnwrappedText(content);
  EXPECT_GT(text.size(), kTextBytesMax / 4);
  EXPECT_LE(text.size(), kTextBytesMax);
}

TEST(LinesTest, NumbersInAnyFormAreNoPartOfALine) {
  const std::string plain = FileLines("f", 1, 40);
  for (const absl::string_view mark :
       {"\t", "\xE2\x86\x92", ":", "-", "|", " | "}) {
    EXPECT_TRUE(AreSameLines(plain, NumberedLines("f", 1, 40, mark))) << mark;
  }
}

TEST(LinesTest, PathsBeforeLinesAreNoPartOfThem) {
  EXPECT_TRUE(AreSameLines("src/a.cc:12:int main() {}", "int main() {}"));
  EXPECT_TRUE(AreSameLines("src/a-b.cc-12-int main() {}", "int main() {}"));
  EXPECT_TRUE(AreSameLines("src/a.cc:int main() {}", "int main() {}"));
  EXPECT_FALSE(AreSameLines(".button:hover {", "hover {"));
  EXPECT_TRUE(AreSameLines("web/a.css:12:.button:hover {", ".button:hover {"));
  EXPECT_FALSE(AreSameLines("case 12: return main;", "return main;"));
}

TEST(LinesTest, ColoursTimesAndBlanksAreNoPartOfALine) {
  EXPECT_TRUE(AreSameLines("\x1b[01;34mfolder\x1b[0m here", "folder here"));
  EXPECT_TRUE(AreSameLines("12 passed in 0.32s", "12 passed in 11.07s"));
  EXPECT_TRUE(AreSameLines("test ok (3 ms)", "test ok (5 ms)"));
  EXPECT_FALSE(AreSameLines("total 3 files", "total 5 files"));
  EXPECT_TRUE(AreSameLines("one line here  \r\n", "one line here\n"));
}

TEST(LinesTest, LinesThatSayNothingAreNone) {
  EXPECT_EQ(OfText("}\n\n  });\nreturn err\n} else {\n").line_count, 0);
  EXPECT_EQ(OfText("}\nreturn err\n").text_line_count, 2);
}

TEST(LinesTest, NumbersInSequenceTellTheRange) {
  const ContentLines lines = OfText(NumberedLines("f", 40, 60));
  ASSERT_TRUE(lines.numbers.has_value());
  EXPECT_EQ(*lines.numbers, (LineRange{.first = 40, .last = 60}));
  EXPECT_FALSE(lines.has_gaps);
  EXPECT_TRUE(OfText("3:one here\n9:two here\n12:three here").has_gaps);
  EXPECT_FALSE(OfText(FileLines("f", 1, 9)).numbers.has_value());
}

TEST(LinesTest, ALineWithAWholeDocumentIsTakenApart) {
  std::string a;
  for (int i = 0; i < 200; ++i) absl::StrAppend(&a, "Sentence ", i, " ends. ");
  const std::string b =
      absl::StrReplaceAll(a, {{"Sentence 77 ends.", "Another one."}});
  const ContentLines lines_a = OfText(a);
  const ContentLines lines_b = OfText(b);
  const Share share = ShareOf(lines_b, {&lines_a});
  EXPECT_TRUE(share.IsAtLeast(95));
  EXPECT_FALSE(share.IsAtLeast(100));
}

TEST(LinesTest, ManyLinesAreSampledAlikeInEveryText) {
  const std::string all = FileLines("f", 1, 60'000);
  const ContentLines whole = OfText(all);
  EXPECT_LE(whole.lines.size(), kLinesMax);
  EXPECT_GT(whole.sampling, 0);
  const ContentLines part = OfText(FileLines("f", 20'001, 40'000));
  EXPECT_TRUE(ShareOf(part, {&whole}).IsAtLeast(100));
  const ContentLines other = OfText(FileLines("g", 1, 20'000));
  EXPECT_FALSE(ShareOf(other, {&whole}).IsAtLeast(1));
}

TEST(LinesTest, TheShareIsThatOfTheBytes) {
  const ContentLines whole = OfText("a line that is rather long, it is\nshort");
  const ContentLines part = OfText("short\nthis other one is longer than that");
  const Share share = ShareOf(part, {&whole});
  EXPECT_EQ(share.line_count, 1);
  EXPECT_EQ(share.line_count_of, 2);
  EXPECT_FALSE(share.IsAtLeast(50));
}

TEST(ContentKindTest, WordsForNothingAndForFailures) {
  for (const absl::string_view text :
       {"", " \n", "(no output)", "No matches found", "No files found",
        "Found 0 matches", "Tool ran without output"}) {
    EXPECT_EQ(ContentKindOf(text), ContentKind::kEmpty) << text;
  }
  for (const absl::string_view text :
       {"<tool_use_error>String to replace not found in file.",
        "The user doesn't want to proceed with this tool use.",
        "Error: No replacement was performed, old_str `x` did not appear",
        "File has not been read yet. Read it first before writing to it."}) {
    EXPECT_EQ(ContentKindOf(text), ContentKind::kRefused) << text;
  }
  for (const absl::string_view text :
       {"cat: x: No such file or directory", "bash: foo: command not found",
        "Error: cannot read it", "Tool call timed out."}) {
    EXPECT_EQ(ContentKindOf(text), ContentKind::kFailed) << text;
  }
  for (const absl::string_view text :
       {"int main() {}", "The file /a.py has been updated. Error: is a word"}) {
    EXPECT_EQ(ContentKindOf(text), ContentKind::kGiven) << text;
  }
}

TEST(ContentKindTest, CodeWithSuchWordsIsContent) {
  EXPECT_EQ(ContentKindOf("if (!found) {\n  return fail(\n      "
                          "\"no such file or directory\",\n      path);\n}\n"),
            ContentKind::kGiven);
}

TEST(ContentKindTest, ALongTextHasContent) {
  EXPECT_EQ(ContentKindOf(absl::StrCat(FileLines("f", 1, 90), "timed out")),
            ContentKind::kGiven);
}

}  // namespace
}  // namespace clerestory
