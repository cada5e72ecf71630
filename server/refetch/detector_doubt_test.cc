// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What may have been written since it was shown: its content says whether it
// was.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/refetch/detector.h"
#include "tests/support/seen_history.h"

namespace clerestory {
namespace {

// The lines of a file before and after something changed one of them.
std::string Before() { return FileLines("f", 1, 100); }
std::string After() {
  return absl::StrCat(FileLines("f", 1, 21), FileLines("g", 22, 22),
                      FileLines("f", 23, 100));
}

TEST(DetectorDoubtTest, AnyRunMayHaveWrittenAFile) {
  for (const absl::string_view run :
       {"python fix.py", "vim -es -c '%s/a/b/' -c wq f", "pre-commit run",
        "npm install", "cargo add x", "go mod tidy"}) {
    SeenHistory history;
    history.Shell("cat /f", Before());
    history.Shell(run, "done");
    EXPECT_EQ(history.Shell("cat /f", After()).kind, RepeatKind::kRefresh)
        << run;
    history.Shell(run, "done again");
    EXPECT_EQ(history.Shell("cat /f", After()).kind, RepeatKind::kRefetch)
        << run;
  }
}

TEST(DetectorDoubtTest, TheEndOfAFileThatGrewIsNew) {
  SeenHistory history;
  history.Shell("tail -20 /f.txt", FileLines("f", 1, 20));
  EXPECT_EQ(history.Shell("tail -20 /f.txt", FileLines("f", 6, 25)).kind,
            RepeatKind::kRefresh);
  EXPECT_EQ(history.Shell("tail -20 /f.txt", FileLines("f", 6, 25)).kind,
            RepeatKind::kRefetch);
}

TEST(DetectorDoubtTest, APageThatChangedIsNew) {
  for (const absl::string_view tool :
       {"fetch", "browser_navigate", "read_url_content"}) {
    constexpr absl::string_view kCall = R"({"url": "https://a.org/x"})";
    SeenHistory history;
    history.Add(tool, kCall, Before());
    EXPECT_EQ(history.Add(tool, kCall, After()).kind, RepeatKind::kRefresh)
        << tool;
    EXPECT_EQ(history.Add(tool, kCall, After()).kind, RepeatKind::kRefetch)
        << tool;
  }
  SeenHistory history;
  history.Shell("curl -s https://a.org/x", Before());
  EXPECT_EQ(history.Shell("curl -s https://a.org/x", After()).kind,
            RepeatKind::kRefresh);
}

TEST(DetectorDoubtTest, WhatAServerWasToldMayChangeWhatItAnswers) {
  constexpr absl::string_view kCall = R"({"id": "A-1"})";
  SeenHistory history;
  history.Add("mcp__linear__get_issue", kCall, Before());
  history.Add("mcp__linear__update_issue", kCall, "ok");
  EXPECT_EQ(history.Add("mcp__linear__get_issue", kCall, After()).kind,
            RepeatKind::kRefresh);
  history.Add("mcp__linear__update_issue", kCall, "ok");
  EXPECT_EQ(history.Add("mcp__linear__get_issue", kCall, After()).kind,
            RepeatKind::kRefetch);
}

TEST(DetectorDoubtTest, ACommitChangesWhatHeadIs) {
  SeenHistory history;
  history.Shell("git show HEAD:f", Before());
  history.Shell("git commit -am x", "1 file changed");
  EXPECT_EQ(history.Shell("git show HEAD:f", After()).kind,
            RepeatKind::kRefresh);
}

TEST(DetectorDoubtTest, WritesToNoFileDoNotTouchSearches) {
  constexpr absl::string_view kCall = R"({"pattern": "value", "path": "/src"})";
  for (const absl::string_view tool :
       {"TodoWrite", "mcp__linear__update_issue"}) {
    SeenHistory history;
    history.Add("Grep", kCall, Before());
    history.Add(tool, "{}", "ok");
    EXPECT_EQ(history.Add("Grep", kCall, Before()).kind, RepeatKind::kRefetch)
        << tool;
  }
}

TEST(DetectorDoubtTest, WhatElseShowsTheSameLinesHidesNoHolder) {
  for (const absl::string_view tool :
       {"get_summary", "view_file_outline", "get_errors"}) {
    SeenHistory history;
    history.Read("/f", NumberedLines("f", 1, 40));
    history.Add(tool, R"({"path": "/f"})", NumberedLines("s", 1, 40));
    EXPECT_EQ(history.Read("/f", NumberedLines("f", 1, 40)).kind,
              RepeatKind::kRefetch)
        << tool;
  }
  SeenHistory history;
  history.Shell("cat -n /f", NumberedLines("f", 1, 40));
  history.Shell("git blame /f", NumberedLines("author", 1, 40));
  EXPECT_EQ(history.Shell("cat -n /f", NumberedLines("f", 1, 40)).kind,
            RepeatKind::kRefetch);
}

}  // namespace
}  // namespace clerestory
