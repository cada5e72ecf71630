// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What is strange, enormous or hostile.

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/json/literal.h"
#include "server/refetch/detector.h"
#include "server/tools/access.h"
#include "tests/support/seen_history.h"

namespace clerestory {
namespace {

TEST(DetectorBoundsTest, CallsWithoutArgumentsOrContentAreNothing) {
  for (const absl::string_view arguments : {"", "{}", "null", "\"\"", "[]"}) {
    SeenHistory history;
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(history.AddRaw("Read", arguments, "").kind,
                RepeatKind::kRefetch);
      EXPECT_NE(history.AddRaw("", arguments, "null").kind,
                RepeatKind::kRefetch);
    }
  }
}

TEST(DetectorBoundsTest, CatchingUpGivesTheSameAsLookingAtEach) {
  SeenHistory each;
  const std::string text = NumberedLines("f", 1, 60);
  each.Read("/f", text);
  each.Edit("/g", "The file /g has been updated.");
  const Repeat expected = each.Read("/f", text);

  const std::string read = "{\"file_path\": \"/f\"}";
  const std::string edit =
      R"({"file_path": "/g", "old_string": "a", "new_string": "b"})";
  const std::string content = json::Quote(text);
  RepeatDetector detector;
  const Repeat late = detector.Look(
      2,
      [&](std::size_t i) {
        return i == 1
                   ? SeenObservation{.tool = "Edit",
                                     .arguments = edit,
                                     .content = "\"has been updated\""}
                   : SeenObservation{
                         .tool = "Read", .arguments = read, .content = content};
      },
      [](std::size_t) { return true; },
      [](absl::string_view) { return ToolAccess(); });
  EXPECT_EQ(late, expected);
  EXPECT_EQ(late.kind, RepeatKind::kRefetch);
}

TEST(DetectorBoundsTest, ACopyGoesOnByItself) {
  SeenHistory history;
  const std::string text = NumberedLines("f", 1, 60);
  history.Read("/f", text);
  RepeatDetector copy = history.detector();
  const std::string read = "{\"file_path\": \"/f\"}";
  const std::string content = json::Quote(text);
  const auto look = [&](RepeatDetector& detector) {
    return detector.Look(
        1,
        [&](std::size_t) {
          return SeenObservation{
              .tool = "Read", .arguments = read, .content = content};
        },
        [](std::size_t) { return true; },
        [](absl::string_view) { return ToolAccess(); });
  };
  EXPECT_EQ(look(copy), look(history.detector()));
}

TEST(DetectorBoundsTest, APolicyCanSayWhatAToolDoes) {
  SeenHistory history;
  ToolAccess rule;
  rule.access_class = AccessClass::kRead;
  rule.resource_argument = "doc";
  history.set_rule(rule);
  const std::string text = FileLines("f", 1, 40);
  history.Add("ours", R"({"doc": "handbook"})", text);
  EXPECT_EQ(history.Add("ours", R"({"doc": "handbook"})", text).kind,
            RepeatKind::kRefetch);
  EXPECT_EQ(history.Add("ours", R"({"doc": "other"})", text).kind,
            RepeatKind::kNone);
}

TEST(DetectorBoundsTest, ThousandsOfToolsAndFilesStayBoundedAndFast) {
  SeenHistory history;
  const std::string text = NumberedLines("f", 1, 60);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5'000; ++i) {
    switch (i % 4) {
      case 0:
        history.Read(absl::StrCat("/d/", i, "/f"), text);
        break;
      case 1:
        history.Read("/the/same", text);
        break;
      case 2:
        history.Shell(absl::StrCat("cd /d/", i, " && cat f && make"), text);
        break;
      default:
        history.Add(absl::StrCat("tool_", i), R"({"path": "/x"})", text);
        break;
    }
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took, std::chrono::seconds(20));
  EXPECT_LT(history.detector().memory_bytes(), 8 << 20);
}

TEST(DetectorBoundsTest, EnormousContentsAreReadInPart) {
  SeenHistory history;
  const std::string text = FileLines("f", 1, 200'000);
  for (int i = 0; i < 4; ++i) history.Shell("cat /f", text);
  EXPECT_EQ(history.Shell("cat /f", text).kind, RepeatKind::kRefetch);
  const std::string line(std::size_t{4} << 20, 'x');
  history.Shell("cat /g", line);
  history.Shell("cat /g", line);
  EXPECT_LT(history.detector().memory_bytes(), 1 << 20);
}

TEST(DetectorBoundsTest, DeepWrappersEnd) {
  std::string text = FileLines("f", 1, 10);
  for (int i = 0; i < 12; ++i) {
    text = absl::StrCat("{\"output\":", json::Quote(text), "}");
  }
  SeenHistory history;
  history.Shell("cat /f", text);
  history.Shell("cat /f", text);
  EXPECT_LT(history.detector().memory_bytes(), 1 << 20);
}

}  // namespace
}  // namespace clerestory
