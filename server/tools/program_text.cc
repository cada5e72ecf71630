// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/program_text.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/tools/access.h"
#include "server/tools/access_sink.h"

namespace clerestory {
namespace {

constexpr absl::string_view kPatchFiles[] = {
    "*** Add File: ", "*** Update File: ", "*** Delete File: ",
    "*** Move to: "};

// Calls that take a path first, and a mode behind it.
constexpr absl::string_view kOpens[] = {"open(", "Path(", "File.open("};
// Calls that write their first argument.
constexpr absl::string_view kWriters[] = {
    "writeFileSync(", "writeFile(",        "appendFileSync(", "appendFile(",
    "File.write(",    "WriteAllText(",     "WriteAllBytes(",  "os.remove(",
    "unlinkSync(",    "file_put_contents("};
constexpr absl::string_view kReaders[] = {"readFileSync(", "readFile(",
                                          "File.read(",    "ReadAllText(",
                                          "ReadAllBytes(", "ReadAllLines("};
// What writes files that no literal names.
constexpr absl::string_view kWrites[] = {
    ".write(", ".write_text(", ".write_bytes(", ".writelines(", "json.dump(",
    "shutil.", "os.rename(",   ".unlink(",      "writeFile",    "WriteAll"};
// What may do anything.
constexpr absl::string_view kRuns[] = {
    "import ", "require(", "subprocess", "os.system", "exec",
    "spawn",   "urlopen",  "requests",   "eval(",     "system("};
// Modules of Python that read and print only.
constexpr absl::string_view kHarmless[] = {
    "import sys",      "import json",         "import re",
    "import pathlib",  "from pathlib import", "require('fs')",
    "require(\"fs\")", "import os\n",         "import ast"};

template <typename Words>
bool ContainsOneOf(absl::string_view text, const Words& words) {
  return std::any_of(
      std::begin(words), std::end(words),
      [&](absl::string_view word) { return absl::StrContains(text, word); });
}

// The literal in front of `text`, taken off it with its quotes.
std::optional<absl::string_view> TakeLiteral(absl::string_view& text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  absl::ConsumePrefix(&text, "r");
  if (text.empty() || (text[0] != '"' && text[0] != '\'')) return std::nullopt;
  constexpr std::size_t kLiteralBytesMax = 1024;
  const std::size_t end = text.substr(0, kLiteralBytesMax).find(text[0], 1);
  if (end == absl::string_view::npos) return std::nullopt;
  const absl::string_view literal = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return literal;
}

// What calls a program has with paths in them.
struct Calls {
  std::vector<std::string> written;
  std::vector<std::string> read;
};

void AddCall(absl::string_view call, absl::string_view rest, Calls& calls) {
  const std::optional<absl::string_view> path = TakeLiteral(rest);
  if (!path.has_value() || path->empty()) return;
  const auto is_in = [&](const auto& words) {
    return std::find(std::begin(words), std::end(words), call) !=
           std::end(words);
  };
  bool is_write = is_in(kWriters);
  if (is_in(kOpens)) {
    // The mode, or what is done with the path.
    absl::string_view mode = absl::StripLeadingAsciiWhitespace(rest);
    if (absl::ConsumePrefix(&mode, ",")) {
      mode = absl::StripLeadingAsciiWhitespace(mode);
      absl::ConsumePrefix(&mode, "mode=");
      const std::optional<absl::string_view> letters = TakeLiteral(mode);
      is_write = letters.has_value() &&
                 letters->find_first_of("wax+>") != absl::string_view::npos;
    } else {
      is_write = absl::StartsWith(mode, ").write") ||
                 absl::StartsWith(mode, ").unlink") ||
                 absl::StartsWith(mode, ").touch");
    }
  }
  (is_write ? calls.written : calls.read).emplace_back(*path);
}

Calls FindCalls(absl::string_view program) {
  Calls calls;
  // Each `(` is looked at once, with the name in front of it.
  for (std::size_t at = program.find('('); at != absl::string_view::npos;
       at = program.find('(', at + 1)) {
    if (calls.written.size() + calls.read.size() > kAccessesMax) break;
    const absl::string_view before = program.substr(0, at + 1);
    const auto try_all = [&](const auto& words) {
      for (const absl::string_view call : words) {
        if (!absl::EndsWith(before, call)) continue;
        AddCall(call, program.substr(at + 1), calls);
        return true;
      }
      return false;
    };
    if (try_all(kWriters) || try_all(kReaders)) continue;
    try_all(kOpens);
  }
  return calls;
}

}  // namespace

void AddPatch(absl::string_view patch, AccessSink& sink) {
  bool has_file = false;
  for (absl::string_view line : absl::StrSplit(patch, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    bool is_file = false;
    for (const absl::string_view prefix : kPatchFiles) {
      is_file = is_file || absl::ConsumePrefix(&line, prefix);
    }
    if (!is_file && absl::ConsumePrefix(&line, "+++ ")) {
      // A time may follow behind a tab.
      line = line.substr(0, line.find('\t'));
      absl::ConsumePrefix(&line, "b/");
      is_file = !line.empty() && line != "/dev/null";
    }
    if (!is_file) continue;
    has_file = true;
    sink.AddWrite(sink.Resource(line), /*is_tree=*/false);
  }
  if (!has_file) sink.AddWrite("", /*is_tree=*/true);
}

void AddProgram(absl::string_view program, absl::string_view command,
                AccessSink& sink) {
  const Calls calls = FindCalls(program);
  for (const std::string& path : calls.read) {
    if (std::find(calls.written.begin(), calls.written.end(), path) ==
        calls.written.end()) {
      sink.Add(MakeAccess(AccessClass::kRead, sink.Resource(path)));
    }
  }
  for (const std::string& path : calls.written) {
    sink.AddWrite(sink.Resource(path), /*is_tree=*/false);
  }
  const bool writes = ContainsOneOf(program, kWrites);
  if (writes && calls.written.empty()) sink.AddWrite("", /*is_tree=*/true);
  if (writes || calls.read.empty()) return sink.AddRun(command);
  std::string rest(program);
  for (const absl::string_view harmless : kHarmless) {
    for (std::size_t at = rest.find(harmless.data(), 0, harmless.size());
         at != std::string::npos;
         at = rest.find(harmless.data(), at, harmless.size())) {
      for (std::size_t i = 0; i < harmless.size(); ++i) rest[at + i] = ' ';
    }
  }
  if (ContainsOneOf(rest, kRuns)) sink.AddRun(command);
}

}  // namespace clerestory
