// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What tools do, by their names and the names of their arguments.

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// `read /r/a 5-10; write /r/b/`: class, resource with a slash behind a tree,
// and lines. Queries are only told to be there or not, by a `?`.
std::string Shown(const CallAccesses& done) {
  std::string out;
  for (const Access& access : done.accesses) {
    absl::StrAppend(&out, out.empty() ? "" : "; ",
                    AccessClassName(access.access_class));
    if (!access.resource.empty()) absl::StrAppend(&out, " ", access.resource);
    if (access.is_tree && !access.resource.empty()) absl::StrAppend(&out, "/");
    if (access.lines.has_value() && *access.lines != LineRange()) {
      absl::StrAppend(&out, " ", access.lines->first, "-", access.lines->last);
    }
    if (access.access_class == AccessClass::kRead &&
        !access.lines.has_value()) {
      absl::StrAppend(&out, " some");
    }
    if (access.access_class == AccessClass::kSearch && !access.query.empty()) {
      absl::StrAppend(&out, " ?");
    }
  }
  return out;
}

struct Case {
  absl::string_view tool;
  absl::string_view arguments;
  absl::string_view want;
};

template <typename Cases>
void ExpectAll(const Cases& cases) {
  for (const Case& each : cases) {
    EXPECT_EQ(Shown(AccessesOf(each.tool, each.arguments, "/r")), each.want)
        << each.tool << " " << each.arguments;
  }
}

TEST(ToolNamesTest, WhoSearchesAndReplacesWrites) {
  constexpr Case kCases[] = {
      {"search_and_replace", R"({"path":"a","search":"x"})", "write /r/a"},
      {"single_find_and_replace", R"({"filepath":"a","old_string":"x"})",
       "write /r/a"},
      {"multi_replace_string_in_file",
       R"({"replacements":[{"filePath":"/a","oldString":"x"},
                           {"filePath":"/b","oldString":"y"}]})",
       "write /a; write /b"},
      {"MultiEdit", R"({"edits":[{"file_path":"/a"}]})", "write /a"},
      {"mcp__x__find_and_delete", R"({"path":"/a"})", "write /a"},
      {"find_replace_all", R"({"path":"/a"})", "write /a"},
      {"get_merge_request", R"({"id":1})", "read tool:get_merge_request id=1"},
  };
  ExpectAll(kCases);
}

TEST(ToolNamesTest, WhatGivesAStateIsARun) {
  for (const absl::string_view tool :
       {"get_errors", "read_lints", "getDiagnostics", "get_job_status",
        "get_task_output", "read-process", "view_diff", "check_progress",
        "mcp__ide__getDiagnostics", "get_file_problems", "list-processes"}) {
    const CallAccesses done =
        AccessesOf(tool, R"({"path":"/a","filePaths":["/a"]})", "/r");
    ASSERT_EQ(done.accesses.size(), 1U) << tool;
    EXPECT_EQ(done.accesses[0].access_class, AccessClass::kRun) << tool;
  }
  EXPECT_EQ(Shown(AccessesOf("mcp__x__update_status", R"({"id":1})", "/r")),
            "write x:/");
}

TEST(ToolNamesTest, NotesWriteNothingElseAndUnknownWritesPerhapsAll) {
  constexpr Case kCases[] = {
      {"update_todo_list", R"({"todos":"x"})", "write tool:update_todo_list"},
      {"manage_todo_list", R"({"operation":"write"})",
       "write tool:manage_todo_list"},
      {"create_diagram", R"({"content":"x"})", "write tool:create_diagram"},
      {"cancel_order", R"({"id":1})", "unknown tool:cancel_order id=1"},
  };
  ExpectAll(kCases);
}

TEST(ToolNamesTest, AnOutlineOfAFileIsASearchOfIt) {
  constexpr Case kCases[] = {
      {"view_file_outline", R"({"AbsolutePath":"/a"})", "search /a/ ?"},
      {"mcp__serena__get_symbols_overview", R"({"relative_path":"a"})",
       "search /r/a/ ?"},
      {"view_code_item", R"({"File":"/a","NodePath":"B"})", "search /a/ ?"},
  };
  ExpectAll(kCases);
}

TEST(ToolNamesTest, ASearchWhoseQuestionIsUnknownIsToldByItsArguments) {
  const auto query = [](absl::string_view arguments) {
    return AccessesOf("search_files", arguments, "").accesses.at(0).query;
  };
  EXPECT_NE(query(R"({"path":"/a","needle":"x"})"),
            query(R"({"path":"/a","needle":"y"})"));
  EXPECT_EQ(Shown(AccessesOf("mcp__github__search_code", R"({"q":"x"})", "/r")),
            "search github:search_code q=\"x\" ?");
}

TEST(ToolNamesTest, ArgumentsOfManyAgentsAreKnown) {
  constexpr Case kCases[] = {
      // Copilot.
      {"read_file",
       R"({"filePath":"/a","startLineNumberBaseZero":4,
           "endLineNumberBaseZero":9})",
       "read /a 5-10"},
      {"grep_search", R"({"query":"x","includePattern":"/b"})", "search /r/ ?"},
      // Windsurf.
      {"read_url_content", R"({"Url":"https://a.org"})", "read https://a.org"},
      {"codebase_search", R"({"Query":"x","TargetDirectories":["/a"]})",
       "search /a/ ?"},
      // Roo and Cline.
      {"read_file",
       R"({"files":[{"path":"a","line_ranges":[[1,50]]},
                    {"path":"b","line_ranges":["5-9",[20,30]]}]})",
       "read /r/a 1-50; read /r/b 5-9; read /r/b 20-30"},
      // Amp.
      {"Read", R"({"path":"/a","read_range":[5,9]})", "read /a 5-9"},
      // Amazon Q.
      {"fs_read",
       R"({"operations":[{"mode":"Line","path":"/a","start_line":5,
                          "end_line":9},
                         {"mode":"Line","path":"/b","start_line":-5},
                         {"mode":"Directory","path":"/c"},
                         {"mode":"Search","path":"/d","pattern":"x"}]})",
       "read /a 5-9; read /b some; search /c/ ?; search /d/ ?"},
      {"fs_write", R"({"command":"create","path":"/a"})", "write /a"},
      // JetBrains.
      {"get_file_text_by_path", R"({"pathInProject":"a"})", "read /r/a"},
      {"replace_text_in_file", R"({"pathInProject":"a"})", "write /r/a"},
      // Serena.
      {"mcp__serena__find_symbol", R"({"name_path":"A","relative_path":"a"})",
       "search /r/a/ ?"},
      {"mcp__serena__search_for_pattern",
       R"({"substring_pattern":"A","relative_path":"a"})", "search /r/a/ ?"},
      // Augment.
      {"launch-process", R"({"command":"cat a","cwd":"/x","wait":true})",
       "read /x/a"},
      // Factory.
      {"Execute", R"({"command":"cat a"})", "read /r/a"},
      {"execute", R"({"sql":"x"})", "unknown tool:execute sql=\"x\""},
      // Continue.
      {"ls", R"({"dirPath":"/a"})", "search /a/ ?"},
      // Zed.
      {"terminal", R"({"command":"cat a","cd":"x"})", "read /r/x/a"},
  };
  ExpectAll(kCases);
  EXPECT_EQ(
      AccessesOf("terminal", R"({"command":"ls","cd":"x"})", "/r").directory,
      "/r");
  const auto query = [](absl::string_view arguments) {
    return AccessesOf("grep_search", arguments, "").accesses.at(0).query;
  };
  EXPECT_NE(query(R"({"query":"x","includePattern":"a"})"),
            query(R"({"query":"x","includePattern":"b"})"));
  EXPECT_NE(query(R"({"query":"x","isRegexp":true})"),
            query(R"({"query":"x","isRegexp":false})"));
}

}  // namespace
}  // namespace clerestory
