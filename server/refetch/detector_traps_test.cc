// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What traps a rule that knows inner parts, other tools and other forms.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/refetch/detector.h"
#include "tests/support/seen_history.h"

namespace clerestory {
namespace {

constexpr absl::string_view kReminder =
    "\n<system-reminder>\nConsider whether this file is malicious, and do not "
    "improve it if it is.\n</system-reminder>\n";

// What reading the same part of `/r/src/f.py` again is, with `between` done
// in between.
template <typename Between>
RepeatKind KindAfter(const Between& between) {
  SeenHistory history;
  const std::string text = NumberedLines("f", 1, 60);
  history.Read("/r/src/f.py", text);
  between(history);
  return history.Read("/r/src/f.py", text).kind;
}

RepeatKind KindAfterCommand(absl::string_view command,
                            absl::string_view output = "") {
  return KindAfter([command, output](SeenHistory& history) {
    history.Shell(command, output);
  });
}

TEST(DetectorTrapTest, ALineReadSoThatAnEditIsAcceptedIsNoRefetch) {
  SeenHistory history;
  history.Read("/f", NumberedLines("f", 1, 200));
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 1, 1), 1, 1).kind,
            RepeatKind::kNone);
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 7, 9), 7, 3).kind,
            RepeatKind::kNone);
}

TEST(DetectorTrapTest, RemindersAndTagsAreNotWhatIsRepeated) {
  SeenHistory history;
  history.Read("/f", absl::StrCat(NumberedLines("f", 1, 6), kReminder), 1, 6);
  EXPECT_EQ(history
                .Read("/f", absl::StrCat(NumberedLines("f", 90, 95), kReminder),
                      90, 6)
                .kind,
            RepeatKind::kPaging);
  SeenHistory tags;
  tags.Shell("cat /f", "<returncode>0</returncode>\n<output>\na\n</output>");
  EXPECT_EQ(tags.Shell("tail -n 3 /f",
                       "<returncode>0</returncode>\n<output>\nb\n</output>")
                .kind,
            RepeatKind::kNone);
}

TEST(DetectorTrapTest, LinesThatRecurByChanceDoNotDecideWhereRangesAreKnown) {
  std::string first;
  std::string second;
  for (int i = 0; i < 60; ++i) {
    const std::string common = "if err := check(ctx, request); err != nil {\n";
    absl::StrAppend(&first, i + 1, "\t", i % 2 ? common : FileLines("a", i, i));
    absl::StrAppend(&second, i + 61, "\t",
                    i % 2 ? common : FileLines("b", i, i));
  }
  SeenHistory history;
  history.Read("/f.go", first, 1, 60);
  EXPECT_EQ(history.Read("/f.go", second, 61, 60).kind, RepeatKind::kPaging);
}

TEST(DetectorTrapTest, WritesOfTheShellMakeWhatTheyTouchStale) {
  for (const absl::string_view command :
       {"sed -i 's/a/b/' /r/src/f.py", "echo x > /r/src/f.py",
        "cat >> /r/src/f.py <<'EOF'\nx\nEOF", "git checkout main",
        "git reset --hard HEAD~1", "git stash pop", "black /r/src",
        "cp /tmp/x /r/src/f.py", "mv /r/src /r/old", "git pull --rebase",
        "python3 - <<'EOF'\nopen('/r/src/f.py', 'w').write('x')\nEOF"}) {
    EXPECT_EQ(KindAfterCommand(command), RepeatKind::kRefresh) << command;
  }
}

TEST(DetectorTrapTest, WhatWritesElsewhereOrNotAtAllDoesNot) {
  for (const absl::string_view command :
       {"git apply --check x.patch", "ls /r 2>/dev/null", "git log -3",
        "sed -i 's/a/b/' /r/src/g.py", "echo x > /r/notes.md", "pytest -q",
        "grep -rn value /r/src"}) {
    EXPECT_EQ(KindAfterCommand(command), RepeatKind::kRefetch) << command;
  }
}

TEST(DetectorTrapTest, ARefusedOrFailedEditIsNoWrite) {
  EXPECT_EQ(KindAfter([](SeenHistory& history) {
              history.Edit("/r/src/f.py",
                           "<tool_use_error>String to replace not found in "
                           "file.</tool_use_error>",
                           /*is_error=*/true);
            }),
            RepeatKind::kRefetch);
  EXPECT_EQ(KindAfter([](SeenHistory& history) {
              history.Edit("/r/src/f.py",
                           "Error: No replacement was performed, old_str `a` "
                           "did not appear verbatim in /r/src/f.py.");
            }),
            RepeatKind::kRefetch);
  EXPECT_EQ(KindAfter([](SeenHistory& history) {
              history.Edit("/r/src/f.py",
                           "The user doesn't want to proceed with this tool "
                           "use. The tool use was rejected.",
                           /*is_error=*/true);
            }),
            RepeatKind::kRefetch);
  EXPECT_EQ(KindAfter([](SeenHistory& history) {
              history.Edit("/r/src/f.py",
                           "The file /r/src/f.py has been updated.");
            }),
            RepeatKind::kRefresh);
}

TEST(DetectorTrapTest, ASubAgentMayHaveWrittenWhatIsNotTheSame) {
  constexpr absl::string_view kTask =
      R"({"description": "Fix it", "prompt": "Fix it",
          "subagent_type": "general-purpose"})";
  SeenHistory history;
  history.Read("/f", FileLines("f", 1, 60));
  history.Read("/g", FileLines("g", 1, 60));
  history.Add("Task", kTask, "Done.");
  EXPECT_EQ(history.Read("/f", FileLines("f", 1, 60)).kind,
            RepeatKind::kRefetch);
  EXPECT_EQ(history
                .Read("/g", absl::StrCat(FileLines("g", 1, 50),
                                         FileLines("new", 51, 60)))
                .kind,
            RepeatKind::kRefresh);
}

TEST(DetectorTrapTest, AnEditElsewhereInTheFileMakesItStaleAsAWhole) {
  SeenHistory history;
  history.Read("/f", NumberedLines("f", 1, 200));
  history.Edit("/f", "The file /f has been updated.");
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 100, 150), 100, 51),
            (Repeat{.kind = RepeatKind::kRefresh, .earlier = 0}));
  // What was read since is fresh.
  EXPECT_EQ(history.Read("/f", NumberedLines("f", 110, 140), 110, 31),
            (Repeat{.kind = RepeatKind::kRefetch, .earlier = 2}));
}

TEST(DetectorTrapTest, AFileOfACommitDoesNotChangeWithTheWorkTree) {
  SeenHistory history;
  history.Shell("git show HEAD:src/f.py", FileLines("f", 1, 60));
  history.Edit("/r/src/f.py", "The file /r/src/f.py has been updated.");
  EXPECT_EQ(history.Shell("git show HEAD:src/f.py", FileLines("f", 1, 60)),
            (Repeat{.kind = RepeatKind::kRefetch, .earlier = 0}));
}

TEST(DetectorTrapTest, FilesOfTheSameNameInTwoFoldersAreTwo) {
  SeenHistory history;
  const std::string text = FileLines("f", 1, 30);
  history.Shell("cat /r/README.md", text);
  EXPECT_EQ(history.Shell("cd /r/packages/x && cat README.md", text).kind,
            RepeatKind::kNone);
  EXPECT_EQ(history.Shell("cd /r && cat README.md", text),
            (Repeat{.kind = RepeatKind::kRefetch, .earlier = 0}));
}

TEST(DetectorTrapTest, AFolderOfOneCommandIsNotThatOfTheNext) {
  // Where each command begins in the same folder.
  SeenHistory fresh;
  const std::string text = FileLines("f", 1, 60);
  fresh.Shell("cat src/f.py", text);
  fresh.Shell("cd packages/a && ls", "src");
  EXPECT_EQ(fresh.Shell("cat src/f.py", text).kind, RepeatKind::kRefetch);
  fresh.Shell("cd packages/b && ls", "src");
  fresh.Edit("src/f.py", "The file src/f.py has been updated.");
  fresh.Shell("cd /r/packages/c && ls", "src");
  EXPECT_EQ(fresh.Shell("cat src/f.py", text).kind, RepeatKind::kRefresh);
  // Where a shell goes on.
  SeenHistory kept;
  kept.Read("/r/src/f.py", NumberedLines("f", 1, 60));
  kept.Shell("cd /r/src", "");
  EXPECT_EQ(kept.Shell("cat f.py", text).kind, RepeatKind::kRefetch);
  kept.Shell("sed -i s/a/b/ f.py", "");
  EXPECT_EQ(kept.Read("/r/src/f.py", NumberedLines("f", 1, 60)).kind,
            RepeatKind::kRefresh);
}

TEST(DetectorTrapTest, TheNewestHolderDecidesWhatIsVisible) {
  SeenHistory history(2);
  const std::string text = NumberedLines("f", 1, 60);
  history.Read("/f", text);
  history.Shell("git log -1", "a commit of someone");
  history.Shell("git log -2", "two commits of someone");
  EXPECT_EQ(history.Read("/f", text).kind, RepeatKind::kRefetch);
  EXPECT_EQ(history.Read("/f", text),
            (Repeat{.kind = RepeatKind::kDuplicate, .earlier = 3}));
}

TEST(DetectorTrapTest, WhatTheClientRemovedIsNotInTheHistoryToBeJudgedBy) {
  // After a compaction the client begins anew, and so does the detector.
  SeenHistory before;
  before.Read("/f", NumberedLines("f", 1, 60));
  SeenHistory after;
  EXPECT_EQ(after.Read("/f", NumberedLines("f", 1, 60)).kind,
            RepeatKind::kNone);
}

TEST(DetectorTrapTest, WhatIsListedBesideAReadIsNotWhatIsRepeated) {
  const std::string listing =
      "total 3\n-rw-r--r-- 1 u g 101 Jan 1 10:00 entry_one.txt\n"
      "-rw-r--r-- 1 u g 102 Jan 1 10:00 entry_two.txt\n"
      "-rw-r--r-- 1 u g 103 Jan 1 10:00 entry_three.txt\n"
      "-rw-r--r-- 1 u g 104 Jan 1 10:00 entry_four.txt\n";
  SeenHistory history;
  history.Shell("sed -n 1,40p /f; ls -la /x", FileLines("f", 1, 40) + listing);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(history
                  .Shell(absl::StrCat("sed -n 1,5p /g", i, "; ls -la /x"),
                         FileLines(absl::StrCat("g", i), 1, 5) + listing)
                  .kind,
              RepeatKind::kNone);
  }
  EXPECT_EQ(history.Shell("sed -n 10,30p /f; ls -la /x",
                          FileLines("f", 10, 30) + listing),
            (Repeat{.kind = RepeatKind::kRefetch, .earlier = 0}));
  EXPECT_EQ(history
                .Shell("sed -n 200,230p /f; ls -la /x",
                       FileLines("f", 200, 230) + listing)
                .kind,
            RepeatKind::kPaging);
}

TEST(DetectorTrapTest, SeveralFilesInOneCallAreLookedForEach) {
  SeenHistory history;
  history.Shell("cat /a", FileLines("a", 1, 30));
  history.Shell("cat /b", FileLines("b", 1, 30));
  for (int i = 0; i < 20; ++i) {
    history.Shell("sed -n 100,110p /b", FileLines("b", 100, 110));
  }
  EXPECT_EQ(
      history.Shell("cat /a /b", FileLines("a", 1, 30) + FileLines("b", 1, 30))
          .kind,
      RepeatKind::kRefetch);
}

TEST(DetectorTrapTest, DescriptionsTimeoutsAndTailsDoNotMatter) {
  SeenHistory history;
  const std::string text = FileLines("f", 1, 40);
  history.Add("Bash",
              R"({"command": "cat /f", "description": "Look", "timeout": 9})",
              text);
  EXPECT_EQ(
      history
          .Add("Bash", R"({"command": "cat /f | tail -30", "timeout": 5})",
               FileLines("f", 11, 40))
          .kind,
      RepeatKind::kRefetch);
}

}  // namespace
}  // namespace clerestory
