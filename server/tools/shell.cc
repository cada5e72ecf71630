// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/shell.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/tools/shell_reader.h"

namespace clerestory {
namespace {

// Substitutions in substitutions. The parser calls itself for each.
constexpr int kDepthMax = 40;

// Words in front of a command that only say when it is done.
constexpr absl::string_view kLeadingWords[] = {
    "!", "do", "elif", "else", "if", "then", "time", "until", "while", "{"};
// Those behind, which may be followed by redirections.
constexpr absl::string_view kClosingWords[] = {"done", "esac", "fi", "}"};
// What PowerShell's are called.
constexpr absl::string_view kVerbs[] = {
    "Add-",     "Clear-",  "Compare-", "ConvertFrom-", "ConvertTo-", "Copy-",
    "Expand-",  "Export-", "ForEach-", "Format-",      "Get-",       "Import-",
    "Install-", "Invoke-", "Join-",    "Measure-",     "Move-",      "New-",
    "Out-",     "Remove-", "Rename-",  "Resolve-",     "Select-",    "Set-",
    "Sort-",    "Start-",  "Stop-",    "Test-",        "Where-",     "Write-"};

template <typename Words>
bool IsOneOf(const Words& words, absl::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Whether a name such as `Get-Content` stands in front.
bool IsCmdlet(absl::string_view text) {
  if (!absl::ascii_isupper(static_cast<unsigned char>(text[0]))) return false;
  for (const absl::string_view verb : kVerbs) {
    if (absl::StartsWith(text, verb) && text.size() > verb.size() &&
        absl::ascii_isupper(static_cast<unsigned char>(text[verb.size()]))) {
      return true;
    }
  }
  return false;
}

class Parser : public ShellReader {
 public:
  Parser(absl::string_view text, ShellDialect dialect, int depth)
      : ShellReader(text, dialect), depth_(depth) {}

  std::optional<std::vector<ShellStep>> Parse() {
    if (!ParseList(/*closing=*/'\0')) return std::nullopt;
    return std::move(steps_);
  }

 private:
  // Ends the pipeline that was read so far.
  void Flush() {
    if (pipeline_.empty()) return;
    ShellStep step;
    step.pipeline = std::exchange(pipeline_, {});
    steps_.push_back(std::move(step));
  }

  void Mark(ShellStep::Kind kind) {
    ShellStep step;
    step.kind = kind;
    steps_.push_back(std::move(step));
  }

  // Reads commands up to `closing`, which it takes, or to the end if that is
  // '\0'. False if they are none.
  bool ParseList(char closing) {
    int open = 0;  // Parentheses of shells of their own.
    for (;;) {
      SkipBlanks();
      if (IsEnd()) {
        Flush();
        return closing == '\0' && open == 0;
      }
      const char c = Peek();
      if (c == '\n') {
        Flush();
        SkipNewline();
      } else if (c == ';') {
        Flush();
        ++at_;
        if (Consume(";")) is_pattern_ = case_depth_ > 0;
      } else if (c == '&' && Peek(1) != '>') {
        Flush();
        ++at_;
        Consume("&");
      } else if (c == '|') {
        ++at_;
        if (Consume("|")) {
          Flush();
        } else {
          Consume("&");
        }
      } else if (c == '(') {
        if (!ParseParenthesis(open)) return false;
      } else if (c == ')') {
        ++at_;
        if (open > 0) {
          --open;
          Flush();
          Mark(ShellStep::Kind::kLeave);
        } else {
          Flush();
          return closing == ')';
        }
      } else if (is_windows() && (c == '{' || c == '}')) {
        ++at_;
        Flush();
      } else if (is_pattern_) {
        if (!ParsePattern()) return false;
      } else if (!ParseCommand()) {
        return false;
      }
    }
  }

  bool ParseParenthesis(int& open) {
    if (is_pattern_) {
      ++at_;
      return true;
    }
    if (!is_windows() && Peek(1) == '(') return SkipArithmetic();
    if (open >= kDepthMax) return false;
    ++open;
    ++at_;
    Flush();
    Mark(ShellStep::Kind::kEnter);
    return true;
  }

  // Behind the pattern of a branch of `case`; `esac` ends it.
  bool ParsePattern() {
    if (Peek() == '|') {
      ++at_;
      return true;
    }
    ShellWord word;
    const std::size_t before = at_;
    if (!ParseWord(word)) return false;
    if (at_ == before) return false;
    if (word.text == "esac") {
      is_pattern_ = false;
      --case_depth_;
      return true;
    }
    SkipBlanks();
    if (Consume(")")) is_pattern_ = false;
    return true;
  }

  // Reads one command up to what separates commands.
  bool ParseCommand() {
    ShellCommand command;
    bool is_first = true;
    for (;;) {
      SkipBlanks();
      if (IsEnd()) break;
      const char c = Peek();
      if (c == '(' && !is_windows()) {
        // The head of a function, if anything.
        if (command.words.size() != 1) return false;
        ++at_;
        SkipBlanks();
        if (!Consume(")")) return false;
        return true;
      }
      if (c == '(' && is_windows() && !is_first) {
        ++at_;
        if (!ReadInner(')')) return false;
        command.words.push_back({.text = "", .is_literal = false});
        continue;
      }
      bool is_redirection = false;
      if (!ParseRedirection(command, is_redirection)) return false;
      if (is_redirection) {
        is_first = false;
        continue;
      }
      if (IsMeta(c) && c != '<' && c != '>') break;
      const std::size_t before = at_;
      ShellWord word;
      if (!ParseWord(word)) return false;
      if (at_ == before) return false;
      const absl::string_view raw = text().substr(before, at_ - before);
      if (command.words.empty() && !is_windows()) {
        if (raw == "[[") {
          if (!SkipTest()) return false;
          return true;
        }
        if (IsOneOf(kLeadingWords, raw)) return true;
        if (raw == "for" || raw == "select") return ParseFor();
        if (raw == "case") return ParseCase();
        if (raw == "function") {
          SkipBlanks();
          continue;
        }
        if (TakeAssignment(raw, word)) continue;
      }
      if (command.words.empty() && raw == "esac" && case_depth_ > 0) {
        --case_depth_;
      }
      if (command.words.empty() && IsOneOf(kClosingWords, raw)) continue;
      is_first = false;
      command.words.push_back(std::move(word));
    }
    if (!command.words.empty() || !command.redirections.empty()) {
      pipeline_.push_back(std::move(command));
    }
    return true;
  }

  // Behind `NAME in WORDS`, or `((...))`.
  bool ParseFor() {
    SkipBlanks();
    if (Consume("((")) {
      at_ -= 2;
      return SkipArithmetic();
    }
    ShellWord name;
    if (!ParseWord(name)) return false;
    Forget(name.text);
    return SkipWords("");
  }

  // Behind `WORD in`.
  bool ParseCase() {
    SkipBlanks();
    ShellWord word;
    if (!ParseWord(word)) return false;
    if (!SkipWords("in")) return false;
    ++case_depth_;
    is_pattern_ = true;
    return true;
  }

  // Behind the words up to `last`, or what separates commands.
  bool SkipWords(absl::string_view last) {
    for (;;) {
      SkipBlanks();
      if (IsEnd() || (IsMeta(Peek()) && !(Peek() == '\n' && !last.empty()))) {
        return true;
      }
      if (Peek() == '\n') {
        SkipNewline();
        continue;
      }
      ShellWord word;
      const std::size_t before = at_;
      if (!ParseWord(word) || at_ == before) return false;
      if (!last.empty() && word.text == last) return true;
    }
  }

  // Behind `]]`.
  bool SkipTest() {
    for (;;) {
      SkipBlanks();
      if (IsEnd()) return false;
      if (Consume("]]")) return true;
      if (IsMeta(Peek())) {
        ++at_;
        continue;
      }
      ShellWord word;
      const std::size_t before = at_;
      if (!ParseWord(word) || at_ == before) return false;
    }
  }

  // Reads a redirection if there is one.
  bool ParseRedirection(ShellCommand& command, bool& is_redirection) {
    const std::size_t before = at_;
    while (IsDigit(Peek()) && at_ < before + 4) ++at_;
    const bool is_both = at_ == before && Peek() == '&' && Peek(1) == '>';
    if (is_both) ++at_;
    if (is_windows() && at_ == before && Peek() == '*' && Peek(1) == '>') ++at_;
    if ((Peek() != '<' && Peek() != '>') || IsSubstitution()) {
      at_ = before;
      return true;
    }
    is_redirection = true;
    if (!is_windows() && Consume("<<<")) {
      return ParseTarget(ShellRedirection::Kind::kText, command);
    }
    if (!is_windows() && Consume("<<")) {
      ShellRedirection redirection;
      redirection.kind = ShellRedirection::Kind::kText;
      if (!ParseHere(Consume("-"), redirection.target)) return false;
      command.redirections.push_back(std::move(redirection));
      return true;
    }
    const bool is_input = Peek() == '<';
    ++at_;
    if (Consume("&")) {
      // Of a descriptor, which is no file.
      SkipBlanks();
      if (IsDigit(Peek()) || Peek() == '-') {
        ShellWord word;
        return ParseWord(word);
      }
    } else if (is_input ? Consume(">") : Consume(">") || Consume("|")) {
      // Appends, or is forced: it is written in any case.
    }
    return ParseTarget(is_input ? ShellRedirection::Kind::kInput
                                : ShellRedirection::Kind::kOutput,
                       command);
  }

  bool ParseTarget(ShellRedirection::Kind kind, ShellCommand& command) {
    SkipBlanks();
    ShellRedirection redirection;
    redirection.kind = kind;
    const std::size_t before = at_;
    if (!ParseWord(redirection.target) || at_ == before) return false;
    command.redirections.push_back(std::move(redirection));
    return true;
  }

  // Commands inside a word, up to `closing`, which are done before it.
  bool ReadInner(char closing) override {
    if (++depth_ > kDepthMax) return false;
    std::vector<ShellCommand> outer = std::exchange(pipeline_, {});
    const int case_depth = std::exchange(case_depth_, 0);
    const bool is_pattern = std::exchange(is_pattern_, false);
    Mark(ShellStep::Kind::kEnter);
    if (!ParseList(closing)) return false;
    Mark(ShellStep::Kind::kLeave);
    pipeline_ = std::move(outer);
    case_depth_ = case_depth;
    is_pattern_ = is_pattern;
    --depth_;
    return true;
  }

  bool ReadQuoted(absl::string_view script) override {
    // Its text is another one, which is read again: not often.
    constexpr int kDepth = 8;
    if (depth_ + kDepth > kDepthMax) return false;
    auto steps = Parser(script, ShellDialect::kPosix, depth_ + kDepth).Parse();
    if (!steps.has_value()) return false;
    Mark(ShellStep::Kind::kEnter);
    std::move(steps->begin(), steps->end(), std::back_inserter(steps_));
    Mark(ShellStep::Kind::kLeave);
    return true;
  }

  int depth_;
  int case_depth_ = 0;
  // Whether the pattern of a branch comes next.
  bool is_pattern_ = false;
  std::vector<ShellCommand> pipeline_;
  std::vector<ShellStep> steps_;
};

}  // namespace

ShellDialect DialectOf(absl::string_view text) {
  // The others have no here-documents.
  if (absl::StrContains(text, "<<")) return ShellDialect::kPosix;
  bool is_command = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const absl::string_view rest = text.substr(at);
    const char c = rest[0];
    if (absl::string_view("\n;|&({").find(c) != absl::string_view::npos) {
      is_command = true;
      continue;
    }
    if (c == ' ') continue;
    const bool is_begin = at == 0 || !IsNameChar(text[at - 1]);
    const bool is_drive = is_begin && rest.size() > 2 && rest[1] == ':' &&
                          rest[2] == '\\' && rest.substr(3, 1) != "/" &&
                          absl::ascii_isalpha(static_cast<unsigned char>(c));
    if (is_drive || absl::StartsWith(rest, "$env:") ||
        (is_command && IsCmdlet(rest))) {
      return ShellDialect::kWindows;
    }
    is_command = false;
  }
  return ShellDialect::kPosix;
}

std::optional<std::vector<ShellStep>> ParseShell(absl::string_view text,
                                                 ShellDialect dialect) {
  return Parser(text, dialect, /*depth=*/0).Parse();
}

}  // namespace clerestory
