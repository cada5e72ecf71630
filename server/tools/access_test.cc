// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/access.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/json/literal.h"

namespace clerestory {
namespace {

// As in commands_test.cc: `read /r/a 5-10; write /r/b/`, `@` and the directory
// if it is not /r.
std::string Shown(const CallAccesses& done) {
  std::string out;
  for (const Access& access : done.accesses) {
    absl::StrAppend(&out, out.empty() ? "" : "; ",
                    AccessClassName(access.access_class));
    if (!access.resource.empty()) absl::StrAppend(&out, " ", access.resource);
    if (access.is_tree && !access.resource.empty()) absl::StrAppend(&out, "/");
    if (access.lines.has_value() && *access.lines != LineRange()) {
      absl::StrAppend(&out, " ", access.lines->first, "-");
      if (access.lines->last != INT64_MAX) {
        absl::StrAppend(&out, access.lines->last);
      }
    }
    if (!access.lines.has_value() &&
        access.access_class == AccessClass::kRead) {
      absl::StrAppend(&out, " ?");
    }
    if (!access.query.empty()) absl::StrAppend(&out, " `", access.query, "`");
  }
  if (done.directory != "/r") absl::StrAppend(&out, " @", done.directory);
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

TEST(AccessTest, ClaudeCodesToolsAreKnown) {
  constexpr Case kCases[] = {
      {"Read", R"({"file_path":"/a"})", "read /a"},
      {"Read", R"({"file_path":"/a","offset":59,"limit":150})",
       "read /a 59-208"},
      {"Read", R"({"file_path":"/a","limit":30})", "read /a 1-30"},
      {"Read", R"({"file_path":"/a","offset":"5","limit":"2"})", "read /a 5-6"},
      {"Edit", R"({"file_path":"/a","old_string":"x","new_string":"y"})",
       "write /a"},
      {"MultiEdit", R"({"file_path":"/a","edits":[]})", "write /a"},
      {"Write", R"({"content":"x","file_path":"/a"})", "write /a"},
      {"NotebookEdit", R"({"notebook_path":"/a.ipynb"})", "write /a.ipynb"},
      {"Grep", R"({"pattern":"x"})", "search /r/ `x`"},
      {"Grep", R"({"pattern":"x","path":"src","glob":"*.go","-i":true})",
       "search /r/src/ `x\nglob=\"*.go\"\n-i=true`"},
      {"Glob", R"({"pattern":"**/*.go"})", "search /r/ `**/*.go`"},
      {"LS", R"({"path":"/a"})", "search /a/ `*`"},
      {"Bash", R"({"command":"cd /x && cat a","timeout":5})", "read /x/a @/x"},
      {"BashOutput", R"({"bash_id":"1"})", "run `BashOutput bash_id=\"1\"`"},
      {"WebFetch", R"({"url":"https://a.org","prompt":"x"})",
       "search https://a.org `x`"},
      {"WebSearch", R"({"query":"x"})",
       "search tool:WebSearch query=\"x\" `x`"},
      {"TodoWrite", R"({"todos":[]})", "write tool:TodoWrite"},
      {"Task", R"({"prompt":"x","description":"y"})",
       "unknown tool:Task prompt=\"x\""},
  };
  ExpectAll(kCases);
}

TEST(AccessTest, CodexsToolsAreKnown) {
  constexpr Case kCases[] = {
      {"shell", R"({"command":["bash","-lc","cd x; cat a"],"workdir":"/w"})",
       "read /w/x/a"},
      {"shell", R"({"command":["cat","a b"],"workdir":"."})", "read /r/a b"},
      {"shell", R"("{\"command\":[\"sed\",\"-n\",\"1,9p\",\"a\"]}")",
       "read /r/a 1-9"},
      {"exec_command", R"({"cmd":"ls","workdir":"sub"})", "search /r/sub/ `*`"},
      {"apply_patch", R"("*** Begin Patch\n*** Add File: a\n+x\n")",
       "write /r/a"},
      {"apply_patch", R"({"input":"*** Update File: a\n*** Delete File: /b"})",
       "write /r/a; write /b"},
      {"shell",
       R"({"command":["apply_patch","*** Begin Patch\n*** Add File: a\n"]})",
       "write /r/a"},
      {"update_plan", R"({"plan":[]})", "write tool:update_plan"},
      {"view_image", R"({"path":"a.png"})", "read /r/a.png"},
      {"write_stdin", R"({"session_id":1})", "run `write_stdin session_id=1`"},
  };
  ExpectAll(kCases);
}

TEST(AccessTest, GeminisToolsAreKnown) {
  constexpr Case kCases[] = {
      {"read_file", R"({"absolute_path":"/a"})", "read /a"},
      {"read_file", R"({"file_path":"a","offset":10,"limit":5})",
       "read /r/a 11-15"},
      {"read_many_files", R"({"paths":["a","src/*.go"]})",
       "read /r/a; search /r/src/ `\nsrc/*.go`"},
      {"write_file", R"({"file_path":"a","content":"x"})", "write /r/a"},
      {"replace", R"({"file_path":"a","old_string":"x"})", "write /r/a"},
      {"search_file_content", R"({"pattern":"x","include":"*.go"})",
       "search /r/ `x\ninclude=\"*.go\"`"},
      {"list_directory", R"({"dir_path":"a"})", "search /r/a/ `*`"},
      {"run_shell_command", R"({"command":"cd x; cat a","directory":"d"})",
       "read /r/d/x/a"},
      {"web_fetch", R"({"prompt":"Sum up https://a.org/x."})",
       "search https://a.org/x `Sum up https://a.org/x.`"},
      {"google_web_search", R"({"query":"x"})",
       "search tool:google_web_search query=\"x\" `x`"},
      {"save_memory", R"({"fact":"x"})", "write tool:save_memory"},
  };
  ExpectAll(kCases);
}

TEST(AccessTest, EditorsAndTheirKinAreKnown) {
  constexpr Case kCases[] = {
      {"str_replace_editor",
       R"({"command":"view","path":"/a","view_range":[5,10]})", "read /a 5-10"},
      {"str_replace_editor",
       R"({"command":"view","path":"/a","view_range":[5,-1]})", "read /a 5-"},
      {"str_replace_based_edit_tool",
       R"({"command":"view","path":"/a","view_range":[]})", "read /a"},
      {"str_replace_based_edit_tool", R"({"command":"insert","path":"/a"})",
       "write /a"},
      {"file_editor", R"({"command":"undo_edit","path":"/a"})", "write /a"},
      {"execute_bash", R"({"command":"cd /x"})", " @/x"},
      {"open", R"({"command":"open a.py 10\n"})", "read /r/a.py ?"},
      {"open", R"({"path":"a.py","line_number":10})", "read /r/a.py ?"},
      {"create", R"({"command":"create a.py\n"})", "write /r/a.py"},
      {"edit", R"({"command":"edit 1:1\nx"})", "write"},
      {"find_file", R"({"file_name":"a.py","dir":"src"})",
       "search /r/src/ `a.py`"},
      {"execute_ipython_cell", R"~({"code":"open('a','w').write('x')"})~",
       "write /r/a; run `execute_ipython_cell`"},
      {"read_files",
       R"({"files":[{"path":"a","start_line":5,"end_line":9},{"path":"b"}]})",
       "read /r/a 5-9; read /r/b"},
      {"execute_command", R"({"command":"cat a","requires_approval":false})",
       "read /r/a"},
      {"read", R"({"filePath":"/a","offset":4,"limit":2})", "read /a 5-6"},
      {"read", R"({"path":"/a","offset":5,"limit":2})", "read /a 5-6"},
      {"replace_in_file", R"({"path":"a","diff":"x"})", "write /r/a"},
      {"think", R"({"thought":"x"})", "write tool:think"},
  };
  ExpectAll(kCases);
}

TEST(AccessTest, ToolsOfServersAreKnownByTheirNames) {
  constexpr Case kCases[] = {
      {"mcp__filesystem__read_text_file", R"({"path":"/a","head":10})",
       "read /a 1-10"},
      {"filesystem/read_text_file", R"({"path":"/a","tail":10})", "read /a ?"},
      {"filesystem.read_multiple_files", R"({"paths":["/a","/b"]})",
       "read /a; read /b"},
      {"mcp__filesystem__move_file", R"({"source":"/a","destination":"/b"})",
       "write /a; write /b"},
      {"mcp__filesystem__directory_tree", R"({"path":"/a"})", "search /a/ `*`"},
      {"fetch", R"({"url":"https://a.org","start_index":5000})",
       "read https://a.org ?"},
      {"mcp__linear__get_issue", R"({"id":"A-1"})",
       "read linear:get_issue id=\"A-1\""},
      {"linear/create_issue", R"({"title":"x"})", "write linear:/"},
      {"mcp__github__get_file_contents",
       R"({"owner":"o","repo":"r","path":"a.go"})",
       "read github:get_file_contents owner=\"o\",path=\"a.go\",repo=\"r\""},
      {"execute-tool",
       R"({"server_name":"fs","tool_name":"read_file","params":{"path":"/a"}})",
       "read /a"},
      {"use_mcp_tool",
       R"({"server_name":"l","tool_name":"get_x","arguments":"{\"id\":1}"})",
       "read l:get_x id=1"},
  };
  ExpectAll(kCases);
}

TEST(AccessTest, OtherToolsAreKnownByTheirVerbs) {
  constexpr Case kCases[] = {
      {"get_user_details", R"({ "user_id": "u" })",
       "read tool:get_user_details user_id=\"u\""},
      {"search_flights", R"({"to":"A","from":"B"})",
       "search tool:search_flights from=\"B\",to=\"A\""},
      {"book_reservation", R"({"destination":"SFO"})",
       "unknown tool:book_reservation destination=\"SFO\""},
      {"getDocument", R"({"path":"a.md"})", "read /r/a.md"},
      {"add_paragraph", R"({"filename":"/a.docx"})", "write /a.docx"},
      {"frobnicate", R"({"x":1})", "unknown tool:frobnicate x=1"},
      {"frobnicate", "", "unknown tool:frobnicate "},
  };
  ExpectAll(kCases);
}

TEST(AccessTest, EqualCallsHaveEqualResources) {
  const auto resource = [](absl::string_view arguments) {
    return AccessesOf("get_x", arguments, "").accesses.at(0).resource;
  };
  EXPECT_EQ(resource(R"({"a":1,"b":[1,2]})"),
            resource(R"({ "b": [1, 2], "a": 1, "description": "y" })"));
  EXPECT_NE(resource(R"({"a":1})"), resource(R"({"a":2})"));
  EXPECT_NE(resource(R"({"a":"x y"})"), resource(R"({"a":"xy"})"));
  const std::string longer(10'000, 'x');
  EXPECT_LT(resource(absl::StrCat("{\"a\":\"", longer, "\"}")).size(), 100U);
  EXPECT_NE(resource(absl::StrCat("{\"a\":\"", longer, "\"}")),
            resource(absl::StrCat("{\"a\":\"", longer, "x\"}")));
}

TEST(AccessTest, ARuleSaysWhatTheTablesDoNot) {
  ToolAccess rule;
  rule.access_class = AccessClass::kRead;
  rule.resource_argument = "page";
  rule.first_line_argument = "from";
  rule.line_count_argument = "n";
  EXPECT_EQ(
      Shown(AccessesOf("wiki", R"({"page":"a","from":5,"n":3})", "/r", rule)),
      "read /r/a 5-7");
  EXPECT_EQ(Shown(AccessesOf("wiki", R"({"page":7})", "/r", rule)),
            "read /r/7");
  // What it cannot say stays as the tables have it.
  EXPECT_EQ(Shown(AccessesOf("wiki", R"({"id":7})", "/r", rule)),
            "read tool:wiki id=7");
  rule.line_count_argument = "";
  rule.last_line_argument = "to";
  EXPECT_EQ(Shown(AccessesOf("wiki", R"({"page":"a","to":3})", "/r", rule)),
            "read /r/a 1-3");
}

TEST(AccessTest, ARuleOverrulesTheTables) {
  ToolAccess rule;
  rule.access_class = AccessClass::kWrite;
  EXPECT_EQ(Shown(AccessesOf("Read", R"({"file_path":"/a"})", "/r", rule)),
            "write /a");
  rule.access_class = AccessClass::kRead;
  EXPECT_EQ(Shown(AccessesOf("book", R"({"id":1})", "/r", rule)),
            "read tool:book id=1");
  rule = {};
  rule.resource_argument = "other";
  EXPECT_EQ(Shown(AccessesOf("Read", R"({"file_path":"/a","other":"/b"})", "/r",
                             rule)),
            "read /b");
}

TEST(AccessTest, WhateverComesIsAnswered) {
  for (const absl::string_view arguments :
       {"", "null", "[]", "{", "\"", "\"{\"", "{\"file_path\":1}", "\"x\"",
        "{\"file_path\":[]}", "{\"command\":{}}", "{\"files\":[1,{}]}",
        "{\"a\":1,\"a\":2}", "\xFF"}) {
    for (const absl::string_view tool :
         {"Read", "Grep", "Bash", "shell", "apply_patch", "execute-tool",
          "str_replace_editor", "open", "x", "", "mcp__", "/", "__"}) {
      const CallAccesses done = AccessesOf(tool, arguments, "/r");
      EXPECT_LE(done.accesses.size(), kAccessesMax) << tool << arguments;
    }
  }
}

// Fails by taking minutes.
TEST(AccessTest, HostileScriptsTakeLinearTime) {
  for (const absl::string_view part :
       {"$(",        "\"$(",  "((",
        "{ ",        "if ",   "case x in ",
        "<<A ",      "<<A\n", "'",
        "\"'",       "`",     "a|",
        "[[ ",       "${a:-", "<(",
        "\\",        "a=(",   "a=$a$a;",
        "bash -c '", "sudo ", "xargs ",
        "|head -1",  "cd a;", "cd ..;",
        "../",       "open(", "*** Add File: a\n",
        "ssh h ",    "-i",    "*"}) {
    std::string text;
    while (text.size() + part.size() <= kAccessBytesMax) {
      absl::StrAppend(&text, part);
    }
    const std::string quoted = json::Quote(text);
    for (const absl::string_view tool :
         {"Bash", "execute_ipython_cell", "apply_patch", "Read"}) {
      const CallAccesses done = AccessesOf(
          tool,
          absl::StrCat("{\"command\":", quoted, ",\"code\":", quoted,
                       ",\"input\":", quoted, ",\"path\":", quoted, "}"),
          "/r");
      EXPECT_LE(done.accesses.size(), kAccessesMax);
    }
  }
}

TEST(AccessTest, ManyAccessesAreOneUnknown) {
  std::string paths = "{\"paths\":[\"a\"";
  for (std::size_t i = 0; i < kAccessesMax; ++i) {
    absl::StrAppend(&paths, ",\"a", i, "\"");
  }
  EXPECT_EQ(Shown(AccessesOf("read_multiple_files", paths + "]}", "/r")),
            "unknown");
}

}  // namespace
}  // namespace clerestory
