// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/read_commands.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "server/tools/line_script.h"
#include "server/tools/shell.h"

namespace clerestory {
namespace {

using Files = std::vector<const ShellWord*>;

constexpr absl::string_view kPathOptions = "-path -literalpath";

// What find does to what it finds, of which the names follow.
constexpr absl::string_view kExecOptions = "-exec -execdir -ok -okdir -x -X";

class ReadCommand {
 public:
  ReadCommand(const CommandSpec& spec, std::span<const ShellWord> words,
              const ShellWord* input, AccessSink& sink)
      : spec_(spec),
        words_(words),
        line_(words, spec.value_options, spec.style),
        input_(input),
        sink_(sink) {}

  void Add() {
    const CommandKind kind = spec_.kind;
    if (kind == CommandKind::kCat) return AddCat();
    if (kind == CommandKind::kDump) return AddLines(FilesFrom(0), std::nullopt);
    if (kind == CommandKind::kHead) return AddHead();
    if (kind == CommandKind::kTail) return AddTail();
    if (kind == CommandKind::kSed) {
      return AddScript(SedLines, "-e --expression",
                       line_.Has("-n --quiet --silent"));
    }
    if (kind == CommandKind::kAwk) return AddScript(AwkLines, "", false);
    if (kind == CommandKind::kGrep || kind == CommandKind::kRg) {
      return AddGrep();
    }
    if (kind == CommandKind::kFind) return AddFind();
    if (kind == CommandKind::kList) return AddList();
    if (kind == CommandKind::kPipe) return sink_.Filter(JoinWords(words_));
    AddDigest(kind == CommandKind::kScripted ? 1 : 0);
  }

 private:
  using LinesOf = std::optional<std::vector<LineRange>> (*)(absl::string_view,
                                                            bool);

  // The operands from `first` on, or what else says what the files are.
  Files FilesFrom(std::size_t first) const {
    Files files = line_.Values(kPathOptions);
    for (std::size_t i = first; i < line_.operands().size(); ++i) {
      const ShellWord* word = line_.operands()[i];
      if (word->text.empty() && word->is_literal) continue;
      files.push_back(word);
    }
    if (files.empty() && input_ != nullptr) files.push_back(input_);
    return files;
  }

  // Reads those lines of the files, or lets them pass of the input.
  void AddLines(const Files& files, std::optional<LineRange> lines) {
    for (const ShellWord* file : files) sink_.AddRead(*file, lines);
    if (!files.empty()) return;
    if (lines.has_value()) {
      sink_.Narrow(*lines);
    } else {
      sink_.NarrowSomehow();
    }
  }

  void AddCat() {
    const Files files = FilesFrom(0);
    std::optional<LineRange> lines = LineRange();
    if (const auto count = line_.Number("-totalcount -head -first")) {
      lines->last = std::max<std::int64_t>(*count, 1);
    } else if (line_.Has("-tail -last")) {
      lines.reset();
    } else if (const ShellWord* range = line_.Value("-r --line-range")) {
      lines = ColonRange(range->text);
    }
    AddLines(files, lines);
  }

  void AddHead() {
    std::optional<LineRange> lines;
    const auto count = line_.Number("-n --lines -first");
    if (line_.Has("-c --bytes -last -skip") ||
        (count.has_value() && *count <= 0)) {
      // Which lines they are depends on how many there are.
    } else if (count.has_value() || !line_.Has("-n --lines -property")) {
      lines = LineRange{.last = count.value_or(10)};
    }
    AddLines(FilesFrom(0), lines);
  }

  void AddTail() {
    std::optional<LineRange> lines;
    Files files = FilesFrom(0);
    absl::string_view from;
    if (const ShellWord* value = line_.Value("-n --lines")) {
      from = value->text;
    } else if (!files.empty() && absl::StartsWith(files[0]->text, "+")) {
      from = files[0]->text;
      files.erase(files.begin());
    }
    std::int64_t first = 0;
    if (absl::ConsumePrefix(&from, "+") && ReadNumber(from, first)) {
      lines = LineRange{.first = std::max<std::int64_t>(first, 1)};
    }
    AddLines(files, lines);
  }

  // sed and awk: `lines_of` says which lines a script prints.
  void AddScript(LinesOf lines_of, absl::string_view script_options,
                 bool is_quiet) {
    std::string script;
    std::size_t first = 0;
    bool is_known = true;
    const auto append = [&](const ShellWord& word) {
      is_known = is_known && word.is_literal;
      absl::StrAppend(&script, script.empty() ? "" : ";", word.text);
    };
    for (const ShellWord* word : line_.Values(script_options)) append(*word);
    if (script.empty() && !line_.Has("-f --file")) {
      if (line_.operands().empty()) return;
      append(*line_.operands()[0]);
      first = 1;
    }
    const Files files = FilesFrom(first);
    const auto ranges = is_known ? lines_of(script, is_quiet) : std::nullopt;
    if (!ranges.has_value()) {
      if (files.empty()) return sink_.Filter(script);
      for (const ShellWord* file : files) {
        sink_.AddSearch(*file, /*is_tree=*/false, script);
      }
      return;
    }
    if (files.empty()) {
      // Of several parts, the input can have only one.
      return ranges->size() == 1 ? sink_.Narrow(ranges->front())
                                 : sink_.NarrowSomehow();
    }
    for (const ShellWord* file : files) {
      for (const LineRange& range : *ranges) sink_.AddRead(*file, range);
    }
  }

  // What is asked for, and how: the pattern, and in lines of their own the
  // letters that change what is found, and the names of files it is limited to.
  std::string GrepQuery(std::size_t& first) const {
    std::string query;
    for (const ShellWord* word :
         line_.Values("-e --regexp -pattern -f --file")) {
      absl::StrAppend(&query, query.empty() ? "" : "|", word->text);
    }
    if (query.empty() && !line_.Has("--files") && !line_.operands().empty()) {
      query = line_.operands()[0]->text;
      if (!line_.operands()[0]->is_literal) absl::StrAppend(&query, "$");
      first = 1;
    }
    std::string letters;
    for (const absl::string_view letter : {"i", "v", "w", "x", "l", "c", "o"}) {
      if (line_.Has(absl::StrCat("-", letter)))
        absl::StrAppend(&letters, letter);
    }
    if (line_.Has("--ignore-case") && !absl::StrContains(letters, 'i')) {
      letters = absl::StrCat("i", letters);
    }
    if (line_.Has("--files-with-matches --files"))
      absl::StrAppend(&letters, "l");
    if (line_.Has("--count")) absl::StrAppend(&letters, "c");
    if (!letters.empty()) absl::StrAppend(&query, "\n-", letters);
    for (const ShellWord* word :
         line_.Values("--include --exclude -g --glob -t --type -T --type-not "
                      "--exclude-dir -include -exclude --iglob -G")) {
      absl::StrAppend(&query, "\n", word->text);
    }
    return query;
  }

  void AddGrep() {
    std::size_t first = 0;
    const std::string query = GrepQuery(first);
    const Files files = FilesFrom(first);
    const bool is_tree =
        spec_.kind == CommandKind::kRg ||
        line_.Has("-r -R --recursive --dereference-recursive -recurse") ||
        absl::StartsWith(words_[0].text, "rgrep");
    for (const ShellWord* file : files) sink_.AddSearch(*file, is_tree, query);
    if (!files.empty()) return;
    if (sink_.HasInput() || !is_tree) return sink_.Filter(query);
    sink_.AddSearch(sink_.Directory(), /*is_tree=*/true, query);
  }

  void AddFind() {
    std::size_t at = 1;
    Files roots;
    const bool is_fd = absl::StartsWith(CommandName(words_[0].text), "fd");
    if (is_fd) {
      // The pattern comes first, and folders behind it.
      for (std::size_t i = 1; i < line_.operands().size(); ++i) {
        roots.push_back(line_.operands()[i]);
      }
    } else {
      for (; at < words_.size(); ++at) {
        const absl::string_view text = words_[at].text;
        if (text.empty() && words_[at].is_literal) continue;
        if (text == "-H" || text == "-L" || text == "-P") continue;
        if (absl::StartsWith(text, "-") || text == "(" || text == "!") break;
        roots.push_back(&words_[at]);
      }
    }
    const std::string query =
        JoinWords(words_.subspan(std::min(at, words_.size())));
    const bool is_write = Changes(at);
    const auto add = [&](std::string root, const ShellWord* word) {
      if (is_write) {
        sink_.AddWrite(std::move(root), /*is_tree=*/true);
      } else if (word != nullptr) {
        sink_.AddSearch(*word, /*is_tree=*/true, query);
      } else {
        sink_.AddSearch(std::move(root), /*is_tree=*/true, query);
      }
    };
    for (const ShellWord* root : roots) add(sink_.Resource(*root), root);
    if (roots.empty()) add(sink_.Directory(), nullptr);
  }

  // Whether what is found is changed by what stands from word `at` on.
  bool Changes(std::size_t at) const {
    for (; at < words_.size(); ++at) {
      if (words_[at].text == "-delete") return true;
      if (!IsOneOfWords(words_[at].text, kExecOptions)) continue;
      if (at + 1 >= words_.size()) return true;
      const CommandSpec& inner = CommandNamed(words_[at + 1].text);
      if (inner.kind == CommandKind::kSed) {
        return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(at),
                           words_.end(), [](const ShellWord& word) {
                             return absl::StartsWith(word.text, "-i") ||
                                    absl::StartsWith(word.text, "--in-place");
                           });
      }
      if (!OnlyReads(inner.kind)) return true;
    }
    return false;
  }

  void AddList() {
    Files files = FilesFrom(0);
    // Options of cmd begin with a slash: `dir /s`.
    if (absl::EqualsIgnoreCase(words_[0].text, "dir")) {
      std::erase_if(files, [](const ShellWord* word) {
        return absl::StartsWith(word->text, "/") && word->text.size() == 2;
      });
    }
    std::string query = "*";
    for (const ShellWord* word :
         line_.Values("-filter -include -exclude -I -P")) {
      absl::StrAppend(&query, "\n", word->text);
    }
    for (const ShellWord* file : files) {
      sink_.AddSearch(*file, /*is_tree=*/true, query);
    }
    if (files.empty()) {
      sink_.AddSearch(sink_.Directory(), /*is_tree=*/true, query);
    }
  }

  // `own` operands in front are no files.
  void AddDigest(std::size_t own) {
    std::string query(CommandName(words_[0].text));
    for (const ShellWord& word : words_.subspan(1)) {
      if (absl::StartsWith(word.text, "-") && query.size() < 256) {
        absl::StrAppend(&query, " ", word.text);
      }
    }
    own = std::min(own, line_.operands().size());
    for (std::size_t i = 0; i < own; ++i) {
      absl::StrAppend(&query, " ", line_.operands()[i]->text);
    }
    const Files files = FilesFrom(own);
    for (const ShellWord* file : files) {
      sink_.AddSearch(*file, /*is_tree=*/false, query);
    }
    if (files.empty()) sink_.Filter(query);
  }

  const CommandSpec& spec_;
  const std::span<const ShellWord> words_;
  const CommandLine line_;
  const ShellWord* input_;
  AccessSink& sink_;
};

}  // namespace

void AddReadCommand(const CommandSpec& spec, std::span<const ShellWord> words,
                    const ShellWord* input, AccessSink& sink) {
  ReadCommand(spec, words, input, sink).Add();
}

}  // namespace clerestory
