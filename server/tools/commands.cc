// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/commands.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/tools/access.h"
#include "server/tools/access_sink.h"
#include "server/tools/command_line.h"
#include "server/tools/command_table.h"
#include "server/tools/line_script.h"
#include "server/tools/paths.h"
#include "server/tools/program_text.h"
#include "server/tools/read_commands.h"
#include "server/tools/shell.h"
#include "server/tools/write_commands.h"

namespace clerestory {
namespace {

// Scripts in the words of scripts, and commands behind commands.
constexpr int kDepthMax = 6;
constexpr int kWrappersMax = 8;
// A longer one is nowhere.
constexpr std::size_t kDirectoryBytesMax = 1024;

using Words = std::span<const ShellWord>;

// What a command has for input.
struct Input {
  const ShellWord* file = nullptr;
  const ShellWord* text = nullptr;
};

bool IsAssignment(absl::string_view word) {
  const std::size_t end = word.find('=');
  return end != absl::string_view::npos && end > 0 &&
         std::all_of(
             word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end),
             [](char c) {
               return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      c == '_';
             });
}

// The words of the command that stands behind the options of another, and
// `own` operands of it.
Words Behind(Words words, absl::string_view value_options, int own) {
  std::size_t at = 1;
  for (; at < words.size(); ++at) {
    const absl::string_view text = words[at].text;
    if (text == "--") {
      ++at;
      break;
    }
    if (text.size() > 1 && text[0] == '-') {
      if (IsOneOfWords(text, value_options)) ++at;
    } else if (IsAssignment(text) && words[0].text != "xargs") {
      // Of env.
    } else if (own-- <= 0) {
      break;
    }
  }
  return words.subspan(std::min(at, words.size()));
}

class Runner {
 public:
  explicit Runner(AccessSink& sink) : sink_(sink) {}

  void RunScript(absl::string_view script, ShellDialect dialect) {
    const auto steps =
        depth_ < kDepthMax ? ParseShell(script, dialect) : std::nullopt;
    if (!steps.has_value()) return sink_.AddUnknown("");
    ++depth_;
    std::vector<CommandPlace> outer;
    for (const ShellStep& step : *steps) {
      if (sink_.is_full()) break;
      switch (step.kind) {
        case ShellStep::Kind::kEnter:
          outer.push_back(sink_.place());
          break;
        case ShellStep::Kind::kLeave:
          sink_.place() = std::move(outer.back());
          outer.pop_back();
          break;
        case ShellStep::Kind::kPipeline:
          RunPipeline(step.pipeline);
          break;
      }
    }
    // What PowerShell does by calls of .NET.
    if (dialect == ShellDialect::kWindows &&
        absl::StrContains(script, "::Write")) {
      sink_.AddWrite("", /*is_tree=*/true);
    }
    --depth_;
  }

  void RunWords(Words words) { RunCommand(words, {}); }

 private:
  void RunPipeline(const std::vector<ShellCommand>& pipeline) {
    const std::size_t outer_begin = sink_.pipeline_begin();
    sink_.BeginPipeline();
    for (const ShellCommand& command : pipeline) {
      if (sink_.is_full()) break;
      Input input;
      for (const ShellRedirection& redirection : command.redirections) {
        if (redirection.kind == ShellRedirection::Kind::kInput) {
          input.file = &redirection.target;
        } else if (redirection.kind == ShellRedirection::Kind::kText) {
          input.text = &redirection.target;
        }
      }
      if (command.words.empty()) {
        if (input.file != nullptr) sink_.AddRead(*input.file, LineRange());
      } else {
        wrappers_ = 0;
        RunCommand(command.words, input);
      }
      for (const ShellRedirection& redirection : command.redirections) {
        if (redirection.kind == ShellRedirection::Kind::kOutput) {
          WriteOutput(redirection.target);
        }
      }
    }
    sink_.set_pipeline_begin(outer_begin);
  }

  // A redirection is done where the shell is, also that of `ssh`.
  void WriteOutput(const ShellWord& file) { sink_.AddWrite(file); }

  void RunCommand(Words words, const Input& input) {
    if (words.empty()) return;
    if (!words[0].is_literal || ++wrappers_ > kWrappersMax) {
      return sink_.AddRun(JoinWords(words));
    }
    const CommandSpec& spec = CommandNamed(words[0].text);
    const CommandKind kind = spec.kind;
    if (kind == CommandKind::kNothing) return;
    if (kind == CommandKind::kSed && IsInPlace(words)) {
      return RunInPlace(words, /*own=*/1);
    }
    if (kind == CommandKind::kAwk && words.size() > 2 &&
        words[1].text == "-i") {
      return RunInPlace(words.subspan(2), /*own=*/1);
    }
    if (OnlyReads(kind)) {
      return AddReadCommand(spec, words, input.file, sink_);
    }
    if (WritesOrFetches(kind)) {
      return AddWriteCommand(spec, words, input.text, sink_);
    }
    if (kind == CommandKind::kTee) return RunTee(words);
    if (kind == CommandKind::kGit) {
      return AddGitCommand(words, input.text, sink_);
    }
    if (kind == CommandKind::kCd) return RunCd(words);
    if (kind == CommandKind::kWrapper) return RunWrapper(spec, words, input);
    if (kind == CommandKind::kXargs) return RunXargs(spec, words);
    if (kind == CommandKind::kShell) return RunShell(words, input);
    if (kind == CommandKind::kProgram) return RunProgram(words, input);
    if (kind == CommandKind::kSsh) return RunSsh(spec, words);
    if (kind == CommandKind::kDocker) return RunDocker(spec, words);
    if (kind >= CommandKind::kOpen) return RunSweAgent(spec, words);
    RunRunner(spec, words);
  }

  // A test, a build; and what only formats files, by its name.
  void RunRunner(const CommandSpec& spec, Words words) {
    const std::string command = JoinWords(words);
    sink_.AddRun(command);
    if (spec.kind != CommandKind::kRunner) return;
    for (const ShellWord& word : words.subspan(1)) {
      const absl::string_view text = word.text;
      if (text == "--check" || text == "--diff") return;
    }
    for (const ShellWord& word : words.subspan(1)) {
      if (IsOneOfWords(word.text,
                       "fmt format fmt:fix format:fix lint:fix format:write "
                       "--fix --write")) {
        return sink_.AddWrite(sink_.Directory(), /*is_tree=*/true);
      }
    }
  }

  static bool IsInPlace(Words words) {
    return std::any_of(words.begin() + 1, words.end(), [](const ShellWord& w) {
      const absl::string_view text = w.text;
      return absl::StartsWith(text, "--in-place") ||
             (absl::StartsWith(text, "-") && !absl::StartsWith(text, "--") &&
              text.substr(0, 5).find('i') != absl::string_view::npos &&
              text.find_first_of("ef") > text.find('i'));
    });
  }

  // `own` operands in front of the files are scripts, unless options are.
  void RunInPlace(Words words, int own) {
    const CommandLine line(words, "-e --expression -f --file -I",
                           OptionStyle::kShort);
    if (line.Has("-e --expression -f --file")) own = 0;
    std::size_t count = 0;
    for (const ShellWord* word : line.operands()) {
      // The empty suffix that sed of macOS asks for.
      if (word->text.empty() && word->is_literal) continue;
      if (own-- > 0) continue;
      sink_.AddWrite(*word);
      ++count;
    }
    if (count == 0) sink_.WriteInput();
  }

  void RunTee(Words words) {
    for (const ShellWord& word : words.subspan(1)) {
      if (!absl::StartsWith(word.text, "-")) sink_.AddWrite(word);
    }
  }

  void RunCd(Words words) {
    const ShellWord* target = nullptr;
    for (const ShellWord& word : words.subspan(1)) {
      const bool is_option = absl::StartsWith(word.text, "-") ||
                             absl::EqualsIgnoreCase(word.text, "/d");
      if (!is_option || word.text == "-") target = &word;
    }
    if (absl::StartsWith(words[0].text, "popd") ||
        (target != nullptr && target->text == "-")) {
      sink_.place().directory.reset();
      return;
    }
    // Without prefix, which every resource gets again.
    CommandPlace& place = sink_.place();
    const std::string text = target == nullptr ? "~" : target->text;
    const bool is_known =
        (target == nullptr || (target->is_literal && !target->is_glob)) &&
        (place.directory.has_value() || IsAbsolutePath(text));
    if (!is_known || text.empty()) {
      place.directory.reset();
      return;
    }
    const std::string moved = NormalPath(text, place.directory.value_or(""));
    if (moved.size() > kDirectoryBytesMax) {
      place.directory.reset();
    } else {
      place.directory = moved == "." ? "" : moved;
    }
  }

  void RunWrapper(const CommandSpec& spec, Words words, const Input& input) {
    const Words inner = Behind(words, spec.value_options, spec.own_operands);
    if (inner.empty()) return sink_.AddRun(JoinWords(words));
    RunCommand(inner, input);
  }

  // A command whose operands are what the pipeline finds.
  void RunXargs(const CommandSpec& spec, Words words) {
    const Words inner = Behind(words, spec.value_options, 0);
    if (inner.empty()) return;
    const CommandSpec& command = CommandNamed(inner[0].text);
    const CommandKind kind = command.kind;
    if (kind == CommandKind::kFormatIf) sink_.AddRun(JoinWords(words));
    if (kind == CommandKind::kWriteAll || kind == CommandKind::kWriteTree ||
        kind == CommandKind::kWriteLast || kind == CommandKind::kFormat ||
        kind == CommandKind::kFormatIf ||
        (kind == CommandKind::kSed && IsInPlace(inner))) {
      return sink_.WriteInput();
    }
    if (!OnlyReads(kind)) return RunCommand(inner, {});
    if (sink_.HasInput()) return sink_.Filter(JoinWords(words));
    sink_.AddSearch("", /*is_tree=*/true, JoinWords(words));
  }

  // bash -c SCRIPT, bash <<EOF, bash FILE; cmd /c and PowerShell's likewise.
  void RunShell(Words words, const Input& input) {
    const std::string name = absl::AsciiStrToLower(CommandName(words[0].text));
    const bool is_windows =
        name == "cmd" || name == "powershell" || name == "pwsh";
    const ShellDialect dialect =
        is_windows ? ShellDialect::kWindows : ShellDialect::kPosix;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string text = absl::AsciiStrToLower(words[i].text);
      if (text.empty() || (text[0] != '-' && text[0] != '/')) break;
      const bool is_script = is_windows
                                 ? text == "/c" || text == "/k" ||
                                       text == "-command" || text == "-c"
                                 : text[0] == '-' && text.size() < 6 &&
                                       text.find('c') != std::string::npos &&
                                       !absl::StartsWith(text, "--");
      if (!is_script) {
        if (text == "-o" || text == "-executionpolicy" || text == "-ep") ++i;
        continue;
      }
      if (i + 1 >= words.size()) break;
      // What is left of cmd is one script; of bash it is the next word.
      if (!is_windows) {
        if (!words[i + 1].is_literal) break;
        return RunScript(words[i + 1].text, dialect);
      }
      return RunScript(JoinAll(words.subspan(i + 1)), dialect);
    }
    const bool has_file = words.size() > 1 && words.back().text[0] != '-' &&
                          words.back().text != "-s";
    if (input.text != nullptr && !has_file) {
      return RunScript(input.text->text, dialect);
    }
    sink_.AddRun(JoinWords(words));
  }

  static std::string JoinAll(Words words) {
    std::string text;
    for (const ShellWord& word : words) {
      absl::StrAppend(&text, text.empty() ? "" : " ", word.text,
                      word.is_literal ? "" : "$_");
    }
    return text;
  }

  void RunProgram(Words words, const Input& input) {
    const std::string command = JoinWords(words);
    const absl::string_view name = CommandName(words[0].text);
    const bool is_perl = name == "perl" || name == "ruby";
    if (is_perl && words.size() > 1 && IsInPlace(words)) {
      return RunInPlace(words, /*own=*/0);
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      const absl::string_view text = words[i].text;
      if (text == "-m" && i + 1 < words.size()) {
        if (IsOneOfWords(words[i + 1].text, "json.tool")) {
          if (i + 2 < words.size()) {
            return sink_.AddSearch(words[i + 2], /*is_tree=*/false,
                                   words[i + 1].text);
          }
          return sink_.Filter(command);
        }
        const CommandSpec& module = CommandNamed(words[i + 1].text);
        if (module.kind == CommandKind::kFormat ||
            module.kind == CommandKind::kFormatIf) {
          return RunCommand(words.subspan(i + 1), input);
        }
        break;
      }
      if (IsOneOfWords(text, "-c -e -E -p --eval --print -r") &&
          i + 1 < words.size()) {
        return AddProgram(words[i + 1].text, command, sink_);
      }
      if (text == "-") break;
      if (!absl::StartsWith(text, "-")) return sink_.AddRun(command);
    }
    if (input.text != nullptr) {
      return AddProgram(input.text->text, command, sink_);
    }
    sink_.AddRun(command);
  }

  void RunElsewhere(absl::string_view where, absl::string_view script) {
    CommandPlace outer = sink_.place();
    sink_.place().prefix = absl::StrCat(outer.prefix, where, ":");
    sink_.place().directory = "";
    const std::size_t begin = sink_.pipeline_begin();
    RunScript(script, ShellDialect::kPosix);
    sink_.set_pipeline_begin(begin);
    sink_.place() = std::move(outer);
  }

  void RunSsh(const CommandSpec& spec, Words words) {
    const Words behind = Behind(words, spec.value_options, 0);
    if (behind.size() < 2 || !behind[0].is_literal) {
      return sink_.AddRun(JoinWords(words));
    }
    RunElsewhere(behind[0].text, JoinAll(behind.subspan(1)));
  }

  void RunDocker(const CommandSpec& spec, Words words) {
    std::size_t at = 1;
    if (at < words.size() && words[at].text == "compose") ++at;
    if (at < words.size() && words[at].text == "exec") {
      const Words behind = Behind(words.subspan(at), spec.value_options, 0);
      if (behind.size() >= 2 && behind[0].is_literal) {
        CommandPlace outer = sink_.place();
        sink_.place().prefix = absl::StrCat(outer.prefix, behind[0].text, ":");
        sink_.place().directory = "";
        RunCommand(behind.subspan(1), {});
        sink_.place() = std::move(outer);
        return;
      }
    }
    sink_.AddRun(JoinWords(words));
  }

  void RunSweAgent(const CommandSpec& spec, Words words) {
    const absl::string_view name = words[0].text;
    if (spec.kind == CommandKind::kOpen) {
      // A window of lines around one: how many is a matter of set-up.
      if (words.size() > 1 && !absl::StartsWith(words[1].text, "-")) {
        return sink_.AddRead(words[1], std::nullopt);
      }
      return sink_.AddRun(JoinWords(words));
    }
    if (spec.kind == CommandKind::kScroll) {
      return sink_.Add(MakeAccess(AccessClass::kRead));
    }
    if (spec.kind != CommandKind::kSearchIn) {
      // The open file, which no word names.
      return sink_.AddWrite("", /*is_tree=*/true);
    }
    const std::string query =
        words.size() > 1 ? JoinWords(words.subspan(1, 1)) : "";
    const bool is_tree = name != "search_file";
    if (words.size() > 2) return sink_.AddSearch(words[2], is_tree, query);
    sink_.AddSearch(is_tree ? sink_.Directory() : "", is_tree, query);
  }

  AccessSink& sink_;
  int depth_ = 0;
  int wrappers_ = 0;
};

CallAccesses Collect(AccessSink& sink) {
  CallAccesses result;
  // Behind a script that was given up nobody knows where it would be.
  if (!sink.is_full()) {
    result.directory = sink.place().directory.value_or("");
  }
  result.accesses = sink.Take();
  return result;
}

}  // namespace

CallAccesses ScriptAccesses(absl::string_view script,
                            absl::string_view directory) {
  AccessSink sink{CommandPlace(std::string(directory))};
  Runner(sink).RunScript(script, DialectOf(script));
  return Collect(sink);
}

CallAccesses CommandAccesses(std::span<const std::string> words,
                             absl::string_view directory) {
  AccessSink sink{CommandPlace(std::string(directory))};
  std::vector<ShellWord> command;
  for (const std::string& word : words) command.push_back({.text = word});
  Runner(sink).RunWords(command);
  return Collect(sink);
}

}  // namespace clerestory
