// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/write_commands.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/tools/access.h"
#include "server/tools/access_sink.h"
#include "server/tools/command_line.h"
#include "server/tools/command_table.h"
#include "server/tools/paths.h"
#include "server/tools/program_text.h"
#include "server/tools/shell.h"

namespace clerestory {
namespace {

constexpr absl::string_view kPathOptions = "-path -literalpath -filepath";

class WriteCommand {
 public:
  WriteCommand(const CommandSpec& spec, std::span<const ShellWord> words,
               const ShellWord* text, AccessSink& sink)
      : spec_(spec),
        words_(words),
        line_(words, spec.value_options, spec.style),
        text_(text),
        sink_(sink) {}

  void Add() {
    const CommandKind kind = spec_.kind;
    if (kind == CommandKind::kWriteLast) return WriteLast();
    if (kind == CommandKind::kDd) return WriteDd();
    if (kind == CommandKind::kPatch || kind == CommandKind::kApplyPatch) {
      return WritePatch();
    }
    if (kind == CommandKind::kExtract) return Extract();
    if (kind == CommandKind::kFormat || kind == CommandKind::kFormatIf) {
      return Format();
    }
    if (kind == CommandKind::kFetch) return Fetch();
    WriteAll(/*is_tree=*/kind == CommandKind::kWriteTree);
  }

 private:
  void WriteAll(bool is_tree) {
    for (const ShellWord* word :
         line_.Values(absl::StrCat(kPathOptions, " -destination -newname"))) {
      sink_.AddWrite(*word, is_tree);
    }
    for (const ShellWord* word : line_.operands()) {
      sink_.AddWrite(*word, is_tree);
    }
  }

  // Copies into the last operand, which may be a folder.
  void WriteLast() {
    if (const ShellWord* word = line_.Value("-destination")) {
      return sink_.AddWrite(*word, /*is_tree=*/true);
    }
    if (line_.operands().empty()) return;
    const ShellWord& last = *line_.operands().back();
    // `user@host:path`, of scp and rsync.
    const std::size_t colon = last.text.find(':');
    if (last.is_literal && colon != std::string::npos && colon > 1 &&
        !IsUrl(last.text)) {
      const absl::string_view path =
          absl::string_view(last.text).substr(colon + 1);
      return sink_.AddWrite(
          absl::StrCat(last.text.substr(0, colon + 1),
                       NormalPath(path.empty() ? "." : path, "")),
          /*is_tree=*/true);
    }
    sink_.AddWrite(last, /*is_tree=*/true);
  }

  void WriteDd() {
    for (const ShellWord& word : words_.subspan(1)) {
      absl::string_view path = word.text;
      const bool is_output = absl::ConsumePrefix(&path, "of=");
      if (!is_output && !absl::ConsumePrefix(&path, "if=")) continue;
      const ShellWord file = {.text = std::string(path),
                              .is_literal = word.is_literal};
      if (is_output) {
        sink_.AddWrite(file);
      } else {
        sink_.AddRead(file, std::nullopt);
      }
    }
  }

  // Writes the files that the patch names, or anything.
  void WritePatch() {
    if (line_.Has("--dry-run")) return sink_.AddRun(JoinWords(words_));
    const ShellWord* patch = text_;
    if (spec_.kind == CommandKind::kApplyPatch && !line_.operands().empty()) {
      patch = line_.operands().back();
    } else if (!line_.operands().empty()) {
      // `patch FILE < PATCH`.
      return sink_.AddWrite(*line_.operands().front());
    }
    AddPatch(patch == nullptr ? "" : patch->text, sink_);
  }

  void Extract() {
    const absl::string_view name = CommandName(words_[0].text);
    const ShellWord* folder = line_.Value("-C --directory -d -destinationpath");
    if (name == "tar") {
      // `tar xzf` and `tar -xzf`, and `tar t`, `tar c`.
      const absl::string_view mode =
          words_.size() > 1 ? absl::string_view(words_[1].text) : "";
      if (absl::StrContains(mode, 't') && !absl::StrContains(mode, 'x')) {
        return sink_.AddRun(JoinWords(words_));
      }
      if (absl::StrContains(mode, 'c') && !absl::StrContains(mode, 'x')) {
        if (words_.size() > 2) sink_.AddWrite(words_[2]);
        return;
      }
    } else if (line_.Has("-l -t --list")) {
      return sink_.AddRun(JoinWords(words_));
    }
    if (folder != nullptr) return sink_.AddWrite(*folder, /*is_tree=*/true);
    sink_.AddWrite(sink_.Directory(), /*is_tree=*/true);
  }

  void Format() {
    const bool is_check = line_.Has(
        "--check --diff --check-only -d --dry-run -n --help --version");
    std::vector<const ShellWord*> files = line_.operands();
    bool is_write = !is_check;
    if (spec_.kind == CommandKind::kFormatIf) {
      is_write = is_write && line_.Has(spec_.options);
      if (spec_.own_operands > 0 && !files.empty()) {
        // ruff format, biome format --write.
        if (files[0]->text == "format" &&
            CommandName(words_[0].text) == "ruff") {
          is_write = !is_check;
        }
        files.erase(files.begin());
      }
    }
    if (!is_write) return sink_.AddRun(JoinWords(words_));
    for (const ShellWord* file : files) sink_.AddWrite(*file, /*is_tree=*/true);
    if (files.empty()) sink_.AddWrite(sink_.Directory(), /*is_tree=*/true);
  }

  void Fetch() {
    std::vector<const ShellWord*> urls = line_.Values("-uri");
    for (const ShellWord* word : line_.operands()) urls.push_back(word);
    const ShellWord* method = line_.Value("-X --request -method");
    const bool is_read =
        (method == nullptr || absl::EqualsIgnoreCase(method->text, "GET") ||
         absl::EqualsIgnoreCase(method->text, "HEAD")) &&
        !line_.Has(
            "-d --data --data-raw --data-binary --data-urlencode --json "
            "-F --form -T --upload-file -body");
    const bool is_wget = CommandName(words_[0].text) == "wget";
    const ShellWord* file = is_wget ? line_.Value("-O --output-document")
                                    : line_.Value("-o --output -outfile");
    // A file of the name that the URL ends with.
    const bool is_named = is_wget ? file == nullptr : line_.Has("-O");
    if (file != nullptr && file->text != "-") sink_.AddWrite(*file);
    for (const ShellWord* url : urls) {
      ShellWord target = *url;
      // What stands in an URL is no pattern.
      target.is_glob = false;
      if (target.is_literal && !IsUrl(target.text)) {
        target.text = absl::StrCat("http://", target.text);
      }
      if (!is_read) {
        sink_.AddWrite(target);
      } else if (is_named) {
        sink_.AddWrite(sink_.Directory(), /*is_tree=*/true);
      } else if (file == nullptr || file->text == "-" ||
                 file->text == "/dev/stdout") {
        sink_.AddRead(target, line_.Has("-I --head")
                                  ? std::nullopt
                                  : std::optional<LineRange>(LineRange()));
      }
    }
    if (urls.empty()) sink_.AddRun(JoinWords(words_));
  }

  const CommandSpec& spec_;
  const std::span<const ShellWord> words_;
  const CommandLine line_;
  const ShellWord* text_;
  AccessSink& sink_;
};

// What git does with the files of the work tree, or any.
constexpr absl::string_view kGitWrites =
    "am bisect cherry-pick clean filter-branch merge pull rebase revert "
    "sparse-checkout submodule update-index worktree";

}  // namespace

void AddWriteCommand(const CommandSpec& spec, std::span<const ShellWord> words,
                     const ShellWord* text, AccessSink& sink) {
  WriteCommand(spec, words, text, sink).Add();
}

void AddGitCommand(std::span<const ShellWord> words, const ShellWord* text,
                   AccessSink& sink) {
  // Options of git itself, in front of what it is to do.
  std::size_t at = 1;
  const auto outer = sink.place().directory;
  for (; at < words.size() && absl::StartsWith(words[at].text, "-"); ++at) {
    if (words[at].text == "-C" && at + 1 < words.size()) {
      ++at;
      const std::string folder = sink.Resource(words[at]);
      if (folder.empty()) {
        sink.place().directory.reset();
      } else if (sink.place().prefix.empty()) {
        sink.place().directory = folder;
      }
    } else if (IsOneOfWords(words[at].text, "-c --git-dir --work-tree")) {
      ++at;
    }
  }
  const std::string command = JoinWords(words);
  const absl::string_view verb =
      at < words.size() ? absl::string_view(words[at].text) : "";
  const std::span<const ShellWord> rest =
      words.subspan(std::min(at, words.size()));
  const CommandLine line(
      rest,
      "-L -b -B -c -C -m -n -s -e -f -A --max-count --author --since --format",
      OptionStyle::kShort);
  const auto& operands = line.operands();
  const auto write_operands = [&](std::size_t first) {
    for (std::size_t i = first; i < operands.size(); ++i) {
      sink.AddWrite(*operands[i], /*is_tree=*/true);
    }
  };
  // Where the files begin that `--` separates from commits.
  std::vector<const ShellWord*> files;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i].text != "--") continue;
    for (std::size_t k = i + 1; k < rest.size(); ++k) files.push_back(&rest[k]);
    break;
  }

  if (verb == "show" || verb == "cat-file") {
    bool is_read = false;
    for (const ShellWord* word : operands) {
      const std::size_t colon = word->text.find(':');
      if (!word->is_literal || colon == std::string::npos || colon == 0) {
        continue;
      }
      is_read = true;
      const absl::string_view path =
          absl::string_view(word->text).substr(colon + 1);
      sink.Add(MakeAccess(
          AccessClass::kRead,
          absl::StrCat(sink.place().prefix, "git:", word->text.substr(0, colon),
                       ":", NormalPath(path.empty() ? "." : path, "")),
          LineRange()));
    }
    if (!is_read) sink.AddRun(command);
  } else if (verb == "grep") {
    std::string query;
    std::size_t first = 0;
    if (const ShellWord* pattern = line.Value("-e")) {
      query = pattern->text;
    } else if (!operands.empty()) {
      query = operands[0]->text;
      first = 1;
    }
    for (std::size_t i = first; i < operands.size(); ++i) {
      sink.AddSearch(*operands[i], /*is_tree=*/true, query);
    }
    if (operands.size() <= first) {
      sink.AddSearch(sink.Directory(), /*is_tree=*/true, query);
    }
  } else if (verb == "blame" || verb == "annotate") {
    // Each line stands behind who wrote it: not what a read shows.
    std::string query(verb);
    if (const ShellWord* range = line.Value("-L")) {
      absl::StrAppend(&query, " ", range->text);
    }
    if (!operands.empty()) {
      sink.AddSearch(*operands.back(), /*is_tree=*/false, query);
    }
  } else if (verb == "ls-files" || verb == "ls-tree") {
    sink.AddSearch(sink.Directory(), /*is_tree=*/true, JoinWords(rest));
  } else if (verb == "mv" || verb == "rm" || verb == "restore") {
    if (verb == "restore" && line.Has("--staged -S") &&
        !line.Has("--worktree -W")) {
      sink.AddRun(command);
    } else {
      write_operands(0);
    }
  } else if (verb == "checkout" || verb == "switch") {
    if (line.Has("-b -c --orphan --detach") && operands.empty()) {
      // A new branch of what is there.
      sink.AddRun(command);
    } else if (!files.empty()) {
      for (const ShellWord* file : files)
        sink.AddWrite(*file, /*is_tree=*/true);
    } else {
      sink.AddWrite("", /*is_tree=*/true);
    }
  } else if (verb == "reset") {
    if (line.Has("--hard --merge --keep")) {
      sink.AddWrite("", /*is_tree=*/true);
    } else {
      sink.AddRun(command);
    }
  } else if (verb == "stash") {
    const absl::string_view what = operands.empty()
                                       ? absl::string_view()
                                       : absl::string_view(operands[0]->text);
    if (IsOneOfWords(what, "list show create")) {
      sink.AddRun(command);
    } else {
      sink.AddWrite("", /*is_tree=*/true);
    }
  } else if (verb == "apply") {
    if (line.Has("--check --stat --numstat --summary")) {
      sink.AddRun(command);
    } else {
      AddPatch(text == nullptr ? "" : text->text, sink);
    }
  } else if (verb == "commit") {
    sink.AddRun(command);
    // HEAD and branches are other commits from here on.
    sink.AddWrite(absl::StrCat(sink.place().prefix, "git:"), /*is_tree=*/true);
  } else if (verb == "clone") {
    sink.AddWrite(sink.Directory(), /*is_tree=*/true);
  } else if (IsOneOfWords(verb, kGitWrites)) {
    const bool is_list =
        !operands.empty() && IsOneOfWords(operands[0]->text, "list status log");
    if (is_list || line.Has("--dry-run -n")) {
      sink.AddRun(command);
    } else {
      sink.AddWrite("", /*is_tree=*/true);
    }
  } else {
    sink.AddRun(command);
  }
  sink.place().directory = outer;
}

}  // namespace clerestory
