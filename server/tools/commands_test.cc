// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/commands.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

// `read /r/a 5-10`, `search /r/ grep x`: class, resource with a slash behind a
// tree, lines or query; then `@` and the directory, if it has moved from /r.
std::string Shown(const CallAccesses& done) {
  std::string out;
  for (const Access& access : done.accesses) {
    absl::StrAppend(&out, out.empty() ? "" : "; ",
                    AccessClassName(access.access_class));
    if (!access.resource.empty()) absl::StrAppend(&out, " ", access.resource);
    if (access.is_tree && access.resource != "") absl::StrAppend(&out, "/");
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
  absl::string_view script;
  absl::string_view want;
};

template <typename Cases>
void ExpectAll(const Cases& cases) {
  for (const Case& each : cases) {
    EXPECT_EQ(Shown(ScriptAccesses(each.script, "/r")), each.want)
        << each.script;
  }
}

TEST(CommandsTest, ReadsOfFilesHaveTheirLines) {
  constexpr Case kCases[] = {
      {"cat a b", "read /r/a; read /r/b"},
      {"cat -n < a", "read /r/a"},
      {"cat -s a", "read /r/a"},
      {"cat -v a", "read /r/a"},
      {"nl -b a f", "read /r/f"},
      {"nl -ba a | sed -n '5,10p'", "read /r/a 5-10"},
      {"cat a | sed -n 5,10p | head -3", "read /r/a 5-7"},
      {"sed -n '1,5p;9,12p' a", "read /r/a 1-5; read /r/a 9-12"},
      {"sed -n -e 3p a", "read /r/a 3-3"},
      {"head a", "read /r/a 1-10"},
      {"head -n 50 /x/a", "read /x/a 1-50"},
      {"head -50 a", "read /r/a 1-50"},
      {"head -n -5 a", "read /r/a ?"},
      {"head -c 100 a", "read /r/a ?"},
      {"head -n 0 a", "read /r/a ?"},
      {"sed -n 5,9p a | sed -n 20,30p", "read /r/a ?"},
      {"tail -n 20 a", "read /r/a ?"},
      {"tail -n +20 a", "read /r/a 20-"},
      {"tail -n +20 a | head -n 11", "read /r/a 20-30"},
      {"cat a | tail -5", "read /r/a ?"},
      {"awk 'NR>=5 && NR<=9' a", "read /r/a 5-9"},
      {"bat -r 5:10 a", "read /r/a 5-10"},
      {"xxd a", "read /r/a ?"},
      {"timeout 5 cat a 2>/dev/null || echo none", "read /r/a"},
      {"cat $f", "read"},
      {"git show HEAD~1:src/a.c | head -20", "read git:HEAD~1:src/a.c 1-20"},
      {"git blame -L 5,10 a", "search /r/a `blame 5,10`"},
      {"git commit -m x", "run `git commit -m x`; write git:/"},
      {"curl -s https://a.org/x", "read https://a.org/x"},
      {"wget -qO- https://a.org/x", "read https://a.org/x"},
      {"bash -lc 'cat a'", "read /r/a"},
      {"sudo -u x env A=1 cat a", "read /r/a"},
      {"open a.py 20", "read /r/a.py ?"},
  };
  ExpectAll(kCases);
}

TEST(CommandsTest, SearchesHaveTheirQuery) {
  constexpr Case kCases[] = {
      {"grep -n x a", "search /r/a `x`"},
      {"grep -rn 'x y' src --include='*.go'", "search /r/src/ `x y\n*.go`"},
      {"grep -ri x", "search /r/ `x\n-i`"},
      {"grep -A 5 -e x -e y a", "search /r/a `x|y`"},
      {"rg x", "search /r/ `x`"},
      {"rg -n x src -g '*.ts' | head -20", "search /r/src/ `x\n*.ts`"},
      {"rg --files src", "search /r/src/ `\n-l`"},
      {"cat a | grep x", "search /r/a `x`"},
      {"git grep x -- src", "search /r/src/ `x`"},
      {"find . -name '*.go' | head", "search /r/ `-name *.go`"},
      {"find src -type f | xargs grep -l x",
       "search /r/src/ `-type f\nxargs grep -l x`"},
      {"find src -exec grep x {} \\;", "search /r/src/ `-exec grep x {} ;`"},
      {"ls -la", "search /r/ `*`"},
      {"ls src/*.go", "search /r/src/ `*\nsrc/*.go`"},
      {"wc -l a b", "search /r/a `wc -l`; search /r/b `wc -l`"},
      {"jq '.x' a", "search /r/a `jq .x`"},
      {"cat a | wc -l", "search /r/a `wc -l`"},
      {"sed -n '/x/,/y/p' a", "search /r/a `/x/,/y/p`"},
      {"cat src/*.go", "search /r/src/ `\nsrc/*.go`"},
      {"diff a b", "search /r/a `diff`; search /r/b `diff`"},
      {"search_dir x src", "search /r/src/ `x`"},
      {"find_file a.py", "search /r/ `a.py`"},
  };
  ExpectAll(kCases);
}

TEST(CommandsTest, WritesNameWhatTheyWrite) {
  constexpr Case kCases[] = {
      {"echo x > a", "write /r/a"},
      {"cat a >> b", "read /r/a; write /r/b"},
      {"cat > a <<'EOF'\nrm b\nEOF", "write /r/a"},
      {"make > /dev/null 2>&1", "run `make`"},
      {"echo x | tee -a a b", "write /r/a; write /r/b"},
      {"sed -i 's/x/y/' a b", "write /r/a; write /r/b"},
      {"sed -i '' -e 's/x/y/' a", "write /r/a"},
      {"sed -i.bak s/x/y/ a", "write /r/a"},
      {"perl -pi -e 's/x/y/' a", "write /r/a"},
      {"cp a b", "write /r/b/"},
      {"mv a b", "write /r/a/; write /r/b/"},
      {"rm -rf build *.o", "write /r/build/; write /r/"},
      {"mkdir -p x/y && touch x/y/z", "write /r/x/y; write /r/x/y/z"},
      {"dd if=a of=b bs=1M", "read /r/a ?; write /r/b"},
      {"tar -xzf a.tgz -C out", "write /r/out/"},
      {"find . -name '*.o' -delete", "write /r//"},
      {"grep -rl x src | xargs sed -i s/x/y/",
       "search /r/src/ `x\n-l`; write /r/src/"},
      {"git checkout main", "write"},
      {"git checkout -- a", "write /r/a/"},
      {"git stash && git pull", "write; write"},
      {"git reset --hard HEAD~1", "write"},
      {"git apply <<E\n--- a/x\n+++ b/x\nE", "write /r/x"},
      {"apply_patch <<'E'\n*** Begin Patch\n*** Update File: x\n*** Move to: "
       "y\nE",
       "write /r/x; write /r/y"},
      {"patch -p1 < a.diff", "write"},
      {"black src", "write /r/src/"},
      {"npx prettier --write .", "write /r/"},
      {"gofmt -w a.go", "write /r/a.go/"},
      {"ruff check --fix", "write /r/"},
      {"cargo fmt", "run `cargo fmt`; write /r/"},
      {"curl -o a https://a.org", "write /r/a"},
      {"curl -X POST -d x https://a.org", "write https://a.org"},
      {"scp a me@h:/tmp/b", "write me@h:/tmp/b/"},
      {"python - <<'E'\nopen('a','w').write('x')\nE",
       "write /r/a; run `python -`"},
  };
  for (const Case& each : kCases) {
    // A tree that ends with a slash is shown with one, not two.
    std::string want(each.want);
    if (want == "write /r//") want = "write /r/";
    EXPECT_EQ(Shown(ScriptAccesses(each.script, "/r")), want) << each.script;
  }
}

TEST(CommandsTest, WhatChangesNothingIsNoWrite) {
  constexpr Case kCases[] = {
      {"git apply --check x.diff", "run `git apply --check x.diff`"},
      {"git checkout -b new", "run `git checkout -b new`"},
      {"git status", "run `git status`"},
      {"git stash list", "run `git stash list`"},
      {"black --check src", "run `black --check src`"},
      {"prettier src", "run `prettier src`"},
      {"make test 2>&1 | tail -20", "run `make test`"},
      {"cd sub && pytest -q", "run `pytest -q` @/r/sub"},
      {"unknown a b", "run `unknown a b`"},
      {"dir 2>nul", "search /r/ `*`"},
      {"echo done", ""},
      {"python -c \"print(open('a').read())\"", "read /r/a ?"},
      {"python -m json.tool a.json | head", "search /r/a.json `json.tool`"},
      {"node -e 'console.log(1)'", "run `node -e console.log(1)`"},
  };
  ExpectAll(kCases);
}

TEST(CommandsTest, DirectoriesAreFollowed) {
  constexpr Case kCases[] = {
      {"cd sub && cat a", "read /r/sub/a @/r/sub"},
      {"cd /x; cd ../y; cat a", "read /y/a @/y"},
      {"(cd sub && cat a); cat a", "read /r/sub/a; read /r/a"},
      {"cat $(cd sub; ls) a", "search /r/sub/ `*`; read; read /r/a"},
      {"cd $d && cat a /b", "read; read /b @"},
      {"cd && cat a", "read ~/a @~"},
      {"pushd sub; cat a", "read /r/sub/a @/r/sub"},
      {"git -C sub grep x", "search /r/sub/ `x`"},
      {"ssh -p 22 me@h 'cd /etc && cat a' | head -5", "read me@h:/etc/a 1-5"},
      {"ssh h uptime", "run `h:uptime`"},
      {"ssh h 'cat a' > b", "read h:a; write /r/b"},
      {"docker exec -it c cat /a", "read c:/a"},
  };
  ExpectAll(kCases);
}

TEST(CommandsTest, PowerShellIsRead) {
  constexpr Case kCases[] = {
      {"Get-Content C:\\x\\a.txt -TotalCount 20", "read C:/x/a.txt 1-20"},
      {"gc 'C:\\x\\a.txt' | Select-Object -First 5", "read C:/x/a.txt 1-5"},
      {"Select-String -Path C:\\x\\a -Pattern y", "search C:/x/a `y`"},
      {"Get-ChildItem C:\\x -Filter *.txt", "search C:/x/ `*\n*.txt`"},
      {"dir C:\\x /s", "search C:/x/ `*`"},
      {"Set-Content -Path C:\\x\\a -Value y", "write C:/x/a"},
      {"Remove-Item C:\\x\\a", "write C:/x/a/"},
      {"cmd /c type C:\\x\\a", "read C:/x/a"},
      {"powershell -Command \"Get-Content C:\\x\\a\"", "read C:/x/a"},
      {"Invoke-WebRequest -Uri https://a.org -OutFile C:\\a", "write C:/a"},
  };
  ExpectAll(kCases);
}

TEST(CommandsTest, WordsThatAreGivenAreNotParsed) {
  EXPECT_EQ(
      Shown(CommandAccesses(std::vector<std::string>{"cat", "a b"}, "/r")),
      "read /r/a b");
  EXPECT_EQ(Shown(CommandAccesses(
                std::vector<std::string>{"bash", "-lc", "cd /x; ls"}, "/r")),
            "search /x/ `*` @/x");
  EXPECT_EQ(Shown(CommandAccesses(std::vector<std::string>(), "/r")), "");
}

TEST(CommandsTest, WhatIsNoScriptMayDoAnything) {
  EXPECT_EQ(Shown(ScriptAccesses("cat 'a", "/r")), "unknown");
  std::string many;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&many, "cat a", i, "\n");
  EXPECT_EQ(Shown(ScriptAccesses(many, "/r")), "unknown @");
}

}  // namespace
}  // namespace clerestory
