// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Calls that are made to cost much.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/json/literal.h"
#include "server/tools/access.h"

namespace clerestory {
namespace {

std::string Call(absl::string_view name, absl::string_view value) {
  return absl::StrCat("{\"", name, "\":", json::Quote(value), "}");
}

const Access& OnlyAccess(const CallAccesses& done) {
  EXPECT_EQ(done.accesses.size(), 1U);
  return done.accesses.at(0);
}

TEST(AccessBoundsTest, ALongNameIsReadUnderOneOfFixedLength) {
  const std::string path = absl::StrCat("/", std::string(1 << 20, 'x'));
  const CallAccesses read = AccessesOf("Read", Call("file_path", path), "");
  EXPECT_EQ(OnlyAccess(read).access_class, AccessClass::kRead);
  EXPECT_LT(OnlyAccess(read).resource.size(), 100U);
  EXPECT_EQ(read, AccessesOf("Read", Call("file_path", path), ""));
  EXPECT_NE(read, AccessesOf("Read", Call("file_path", path + "y"), ""));
  const CallAccesses found = AccessesOf("Grep", Call("path", path), "");
  EXPECT_LT(OnlyAccess(found).resource.size(), 100U);
  const std::string name(kResourceBytesMax - 1, 'x');
  EXPECT_EQ(OnlyAccess(AccessesOf("Read", Call("file_path", "/" + name), ""))
                .resource,
            "/" + name);
}

TEST(AccessBoundsTest, AWriteToALongNameMayWriteAnything) {
  const std::string path = absl::StrCat("/", std::string(8'000, 'x'));
  ToolAccess rule;
  rule.access_class = AccessClass::kWrite;
  for (const CallAccesses& done :
       {AccessesOf("Write", Call("file_path", path), ""),
        AccessesOf("Bash", Call("command", "touch " + path), ""),
        AccessesOf("Read", Call("file_path", path), "", rule)}) {
    EXPECT_EQ(OnlyAccess(done).access_class, AccessClass::kUnknown);
    EXPECT_EQ(OnlyAccess(done).resource, "");
  }
}

TEST(AccessBoundsTest, NoNameIsLongHoweverItIsMade) {
  const std::string part(60'000, 'x');
  for (const std::string& script :
       {absl::StrCat("ssh ", part, " cat a"), absl::StrCat("cd ", part, "; ls"),
        absl::StrCat("git show HEAD:", part), absl::StrCat("cat ", part),
        absl::StrCat("curl https://a.org/", part)}) {
    for (const Access& access :
         AccessesOf("Bash", Call("command", script), "").accesses) {
      EXPECT_LE(access.resource.size(), kResourceBytesMax);
    }
  }
  for (const absl::string_view tool : {"Read", "Bash", "Grep", "Write"}) {
    const CallAccesses done = AccessesOf(
        tool, R"({"file_path":"a","path":"a","command":"cat a"})", part);
    for (const Access& access : done.accesses) {
      EXPECT_LE(access.resource.size(), kResourceBytesMax) << tool;
    }
  }
}

TEST(AccessBoundsTest, ThousandsOfPathsBesideThousandsOfArgumentsTakeNoTime) {
  std::string paths;
  std::string keys;
  for (int i = 0; i < 4'000; ++i) {
    absl::StrAppend(&paths, paths.empty() ? "" : ",", "\"p", i, "\"");
    absl::StrAppend(&keys, ",\"key_", i, "\":1");
  }
  const std::string arguments =
      absl::StrCat("{\"paths\":[", paths, "]", keys, "}");
  ToolAccess rule;
  rule.resource_argument = "paths";
  const auto begin = std::chrono::steady_clock::now();
  for (const absl::string_view tool :
       {"read", "write", "grep", "ls", "read_many_files", "edit", "get_x"}) {
    EXPECT_EQ(OnlyAccess(AccessesOf(tool, arguments, "")).access_class,
              AccessClass::kUnknown)
        << tool;
  }
  EXPECT_EQ(OnlyAccess(AccessesOf("x", arguments, "", rule)).access_class,
            AccessClass::kUnknown);
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(500));
}

TEST(AccessBoundsTest, APromptOfManyUrlsTakesNoTime) {
  std::string prompt;
  for (int i = 0; i < 100'000; ++i)
    absl::StrAppend(&prompt, "http://a/", i, " ");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(OnlyAccess(AccessesOf("web_fetch", Call("prompt", prompt), ""))
                .access_class,
            AccessClass::kUnknown);
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace clerestory
