// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What a simpler rule - the same tool and resource, masked, no write, and equal
// arguments or half of the old lines - gets wrong, one by one.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/json/literal.h"
#include "server/refetch/detector.h"
#include "tests/support/seen_history.h"

namespace clerestory {
namespace {

constexpr Repeat kNothing = {};

Repeat RefetchOf(std::size_t earlier) {
  return {.kind = RepeatKind::kRefetch, .earlier = earlier};
}
Repeat DuplicateOf(std::size_t earlier) {
  return {.kind = RepeatKind::kDuplicate, .earlier = earlier};
}
Repeat RefreshOf(std::size_t earlier) {
  return {.kind = RepeatKind::kRefresh, .earlier = earlier};
}
Repeat PagingOf(std::size_t earlier) {
  return {.kind = RepeatKind::kPaging, .earlier = earlier};
}
Repeat PollOf(std::size_t earlier) {
  return {.kind = RepeatKind::kPoll, .earlier = earlier};
}

TEST(DetectorTest, AFileReadAgainIsARefetchIfTheFirstIsMasked) {
  const std::string text = NumberedLines("f", 1, 40);
  SeenHistory masked;
  EXPECT_EQ(masked.Read("/f", text), kNothing);
  EXPECT_EQ(masked.Read("/f", text), RefetchOf(0));
  SeenHistory shown(10);
  EXPECT_EQ(shown.Read("/f", text), kNothing);
  EXPECT_EQ(shown.Read("/f", text), DuplicateOf(0));
}

TEST(DetectorTest, RunsAreNeverRefetchesWhateverTheyPrint) {
  const std::string output = FileLines("test", 1, 30);
  for (const absl::string_view command :
       {"pytest -q", "npm run build", "make lint", "git status", "git diff"}) {
    SeenHistory each;
    EXPECT_EQ(each.Shell(command, output).kind, RepeatKind::kNone) << command;
    EXPECT_EQ(each.Shell(command, output), PollOf(0)) << command;
  }
}

TEST(DetectorTest, NoMatchesTwiceIsNoRefetch) {
  SeenHistory history;
  constexpr absl::string_view kCall = R"({"pattern": "x", "path": "/src"})";
  EXPECT_EQ(history.Add("Grep", kCall, "No matches found"), kNothing);
  EXPECT_EQ(history.Add("Grep", kCall, "No matches found"), kNothing);
}

TEST(DetectorTest, AHitThatRecursInTheCodeReadNextIsNone) {
  SeenHistory history;
  history.Add("Grep", R"({"pattern": "value", "path": "/src/f"})",
              NumberedLines("f", 17, 17, ":"));
  EXPECT_EQ(history.Read("/src/f", NumberedLines("f", 1, 200)).kind,
            RepeatKind::kNone);
}

TEST(DetectorTest, ErrorsAreNeverHoldersNorRefetches) {
  SeenHistory history;
  const std::string text = FileLines("f", 1, 30);
  history.Shell("cat /f", text, /*is_error=*/true);
  EXPECT_EQ(history.Shell("cat /f", text), kNothing);
  EXPECT_EQ(history.Shell("cat /f", text, /*is_error=*/true), kNothing);
}

TEST(DetectorTest, TheSameQuestionWithTheSameSmallAnswerIsARefetch) {
  SeenHistory history;
  constexpr absl::string_view kCall =
      R"({"pattern": "cleanup", "path": "/src/f", "output_mode": "content"})";
  history.Add(
      "Grep", kCall,
      "318:    cleanup_everything(context, branch, worktree_path, dry_run)");
  EXPECT_EQ(history.Add("Grep", kCall,
                        "318:    cleanup_everything(context, branch, "
                        "worktree_path, dry_run)"),
            RefetchOf(0));
}

TEST(DetectorTest, AFileThatIsOtherAfterARunIsReadAnew) {
  SeenHistory history;
  const std::string text = NumberedLines("f", 1, 40);
  history.Read("/p/dist/app.js", text);
  history.Read("/p/src/app.js", text);
  history.Shell("npm run build", "done");
  EXPECT_EQ(
      history.Read("/p/dist/app.js", absl::StrCat(NumberedLines("f", 1, 38),
                                                  NumberedLines("g", 39, 40))),
      RefreshOf(0));
  EXPECT_EQ(history.Read("/p/src/app.js", text), RefetchOf(1));
}

TEST(DetectorTest, AnUnknownToolIsNoRefetchAndMayWriteAnything) {
  SeenHistory history;
  const std::string text = NumberedLines("f", 1, 40);
  history.Read("/g", NumberedLines("g", 1, 40));
  history.Read("/f", text);
  EXPECT_EQ(history.Add("mcp__x__frobnicate", "{}", text).kind,
            RepeatKind::kNone);
  EXPECT_EQ(history.Add("mcp__x__frobnicate", "{}", text).kind,
            RepeatKind::kNone);
  // What is the same as before was not written.
  EXPECT_EQ(history.Read("/f", text), RefetchOf(1));
  EXPECT_EQ(history.Read("/g", absl::StrCat(NumberedLines("g", 1, 35),
                                            NumberedLines("h", 36, 40))),
            RefreshOf(0));
}

TEST(DetectorTest, AnInnerPartOfAFileReadWholeIsARefetch) {
  SeenHistory history;
  history.Read("/f", NumberedLines("f", 1, 400));
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 225, 324), 225, 100),
            RefetchOf(0));
}

TEST(DetectorTest, AWiderWindowOfWhichMostWasHadIsARefetch) {
  SeenHistory history;
  history.Read("/f", NumberedLines("f", 100, 160), 100, 61);
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 80, 180), 80, 101),
            RefetchOf(0));
}

TEST(DetectorTest, WhatSeveralHoldTogetherIsARefetch) {
  SeenHistory history;
  history.Read("/f", NumberedLines("f", 1, 200), 1, 200);
  history.Read("/f", NumberedLines("f", 201, 400), 201, 200);
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 150, 250), 150, 101).kind,
            RepeatKind::kRefetch);
}

TEST(DetectorTest, TheFormOfNumbersDoesNotMatter) {
  for (const absl::string_view mark : {"\t", "\xE2\x86\x92", ":", "-", " | "}) {
    SeenHistory history;
    history.Shell("cat /f", FileLines("f", 1, 60));
    EXPECT_EQ(history.Read("/f", NumberedLines("f", 1, 60, mark)), RefetchOf(0))
        << mark;
  }
}

TEST(DetectorTest, ToolsAreComparedByWhatTheyRead) {
  SeenHistory history;
  history.Read("/src/f.cc", NumberedLines("f", 1, 300));
  EXPECT_EQ(history.Shell("sed -n '40,90p' /src/f.cc", FileLines("f", 40, 90)),
            RefetchOf(0));
  EXPECT_EQ(history.Shell("cat /src/f.cc", FileLines("f", 1, 300)),
            RefetchOf(0));
  EXPECT_EQ(history.Shell("head -50 /src/f.cc", FileLines("f", 1, 50)),
            RefetchOf(2));
  EXPECT_EQ(history.Shell("grep -n -A 20 value_ /src/f.cc",
                          NumberedLines("f", 100, 120, ":")),
            RefetchOf(2));
}

TEST(DetectorTest, ASearchWithItsSurroundingsHoldsWhatIsReadNext) {
  SeenHistory history;
  history.Add("Grep",
              R"({"pattern": "x", "path": "/f", "-A": 80, "-n": true,
                  "output_mode": "content"})",
              NumberedLines("f", 150, 230, ":"));
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 195, 214), 195, 20),
            RefetchOf(0));
}

TEST(DetectorTest, WhatWasShownAroundAHitIsHadWithoutNumbersToo) {
  SeenHistory history;
  history.Shell("grep -A 40 value_ /f", FileLines("f", 100, 140));
  EXPECT_EQ(history.Shell("sed -n 90,150p /f", FileLines("f", 90, 150)),
            RefetchOf(0));
}

TEST(DetectorTest, AnAnswerOfAnApiIsTheSameOrNot) {
  SeenHistory history;
  const auto order = [](absl::string_view state) {
    return absl::StrCat("{\"order\": 17, \"state\": \"", state,
                        "\", \"items\": [\"a blue chair\", \"a lamp\"]}");
  };
  history.Add("get_order", R"({"id": 17})", order("open"));
  history.Add("get_order", R"({"id": 18})", order("open"));
  history.Add("cancel_order", R"({"id": 18})", "cancelled");
  EXPECT_EQ(history.Add("get_order", R"({"id": 17})", order("open")).kind,
            RepeatKind::kRefetch);
}

TEST(DetectorTest, WrappersAreOpenedBeforeLinesAreCompared) {
  const std::string text = FileLines("f", 1, 60);
  const std::string part = FileLines("f", 20, 50);
  const auto codex = [](const std::string& output) {
    return absl::StrCat("{\"output\":", json::Quote(output),
                        ",\"metadata\":{\"exit_code\":0}}");
  };
  SeenHistory history;
  history.Shell("cat /f", codex(text));
  EXPECT_EQ(history.Shell("sed -n 20,50p /f", codex(part)), RefetchOf(0));
}

TEST(DetectorTest, AnotherRangeIsPaging) {
  SeenHistory history;
  history.Read("/f", NumberedLines("f", 1, 200), 1, 200);
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 201, 400), 201, 200),
            PagingOf(0));
}

TEST(DetectorTest, WhoReadsInPartsWhatWasReadWholeFetchesAllOfItAgain) {
  SeenHistory history;
  history.Add("Read", R"({"file_path": "/f"})", FileLines("f", 1, 2'000));
  for (int first = 1; first < 2'000; first += 50) {
    const std::string call = absl::StrCat(R"({"file_path": "/f", "offset": )",
                                          first, R"(, "limit": 50})");
    EXPECT_EQ(history.Add("Read", call, FileLines("f", first, first + 49)),
              RefetchOf(0))
        << first;
  }
}

TEST(DetectorTest, AnotherFileWithTheSameLinesIsNoRefetch) {
  SeenHistory history;
  history.Read("/a/f", NumberedLines("f", 1, 60));
  EXPECT_EQ(history.Read("/a/g", NumberedLines("f", 1, 60)), kNothing);
}

TEST(DetectorTest, AQuestionAboutWhatWasReadIsAnotherNeed) {
  SeenHistory history;
  history.Read("/src/f.cc", NumberedLines("f", 1, 300));
  std::string hits;
  for (int i = 3; i < 300; i += 30) {
    absl::StrAppend(&hits, NumberedLines("f", i, i, ":"));
  }
  EXPECT_EQ(
      history.Add("Grep", R"({"pattern": "x", "path": "/src/f.cc"})", hits),
      kNothing);
}

TEST(DetectorTest, AnotherPatternIsAnotherQuestion) {
  SeenHistory history;
  history.Add("Grep", R"({"pattern": "x", "path": "/src"})",
              "src/a.cc:11:value_one = 1\nsrc/b.cc:12:value_two = 2\n"
              "src/c.cc:13:value_three = 3\nsrc/d.cc:14:value_four = 4\n");
  EXPECT_EQ(
      history.Add("Grep", R"({"pattern": "y", "path": "/src"})",
                  "src/a.cc:21:other_one = 1\nsrc/b.cc:12:value_two = 2\n"
                  "src/c.cc:23:other_three = 3\nsrc/d.cc:24:other_four = 4\n"),
      kNothing);
}

}  // namespace
}  // namespace clerestory
