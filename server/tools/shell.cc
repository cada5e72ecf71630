// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/shell.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

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

bool IsName(absl::string_view text) {
  return !text.empty() && !IsDigit(text[0]) &&
         std::all_of(text.begin(), text.end(), IsNameChar);
}

class Parser {
 public:
  Parser(absl::string_view text, ShellDialect dialect, int depth)
      : text_(text),
        is_windows_(dialect == ShellDialect::kWindows),
        depth_(depth),
        expansion_left_(text.size() + 64) {}

  std::optional<std::vector<ShellStep>> Parse() {
    if (!ParseList(/*closing=*/'\0')) return std::nullopt;
    return std::move(steps_);
  }

 private:
  bool IsEnd() const { return at_ >= text_.size(); }
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Consume(absl::string_view token) {
    if (!absl::StartsWith(text_.substr(at_), token)) return false;
    at_ += token.size();
    return true;
  }

  char escape() const { return is_windows_ ? '`' : '\\'; }

  bool IsMeta(char c) const {
    constexpr absl::string_view kMeta = " \t\r\n;&|<>()";
    return kMeta.find(c) != absl::string_view::npos ||
           (is_windows_ && (c == '{' || c == '}'));
  }

  void SkipBlanks() {
    while (!IsEnd()) {
      const char c = Peek();
      if (c == escape() && Peek(1) == '\n') {
        at_ += 2;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        const std::size_t end = text_.find('\n', at_);
        at_ = end == absl::string_view::npos ? text_.size() : end;
      } else {
        return;
      }
    }
  }

  // Behind the newline at `at_`, and the here-documents that begin there.
  void SkipNewline() { at_ = std::max(at_ + 1, here_end_); }

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
      } else if (is_windows_ && (c == '{' || c == '}')) {
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
    if (!is_windows_ && Peek(1) == '(') return SkipArithmetic();
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

  // Behind `((...))`.
  bool SkipArithmetic() {
    int open = 0;
    while (!IsEnd()) {
      const char c = text_[at_++];
      if (c == '(') ++open;
      if (c == ')' && --open == 0) return true;
    }
    return false;
  }

  // Reads one command up to what separates commands.
  bool ParseCommand() {
    ShellCommand command;
    bool is_first = true;
    for (;;) {
      SkipBlanks();
      if (IsEnd()) break;
      const char c = Peek();
      if (c == '(' && !is_windows_) {
        // The head of a function, if anything.
        if (command.words.size() != 1) return false;
        ++at_;
        SkipBlanks();
        if (!Consume(")")) return false;
        return true;
      }
      if (c == '(' && is_windows_ && !is_first) {
        ++at_;
        if (!ParseInner(')')) return false;
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
      const absl::string_view raw = text_.substr(before, at_ - before);
      if (command.words.empty() && !is_windows_) {
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
    variables_.erase(name.text);
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

  // Whether the word is `NAME=...` in front of a command; what it sets is then
  // known, if it can be.
  bool TakeAssignment(absl::string_view raw, const ShellWord& word) {
    std::size_t end = raw.find('=');
    if (end == absl::string_view::npos || end == 0) return false;
    const std::size_t value = end + 1;
    if (raw[end - 1] == '+') --end;
    const absl::string_view name = raw.substr(0, end);
    if (!IsName(name.substr(0, name.find('[')))) return false;
    const std::string key(name);
    if (word.is_literal && !word.is_glob && end + 1 == value &&
        word.text.size() >= value && word.text.size() < value + 512) {
      variables_[key] = word.text.substr(value);
    } else {
      variables_.erase(key);
    }
    return true;
  }

  // Reads a redirection if there is one.
  bool ParseRedirection(ShellCommand& command, bool& is_redirection) {
    const std::size_t before = at_;
    while (IsDigit(Peek()) && at_ < before + 4) ++at_;
    const bool is_both = at_ == before && Peek() == '&' && Peek(1) == '>';
    if (is_both) ++at_;
    if (is_windows_ && at_ == before && Peek() == '*' && Peek(1) == '>') ++at_;
    if ((Peek() != '<' && Peek() != '>') || IsSubstitution()) {
      at_ = before;
      return true;
    }
    is_redirection = true;
    if (!is_windows_ && Consume("<<<")) {
      return ParseTarget(ShellRedirection::Kind::kText, command);
    }
    if (!is_windows_ && Consume("<<")) return ParseHere(command);
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

  bool IsSubstitution() const {
    return !is_windows_ && (Peek() == '<' || Peek() == '>') && Peek(1) == '(';
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

  bool ParseHere(ShellCommand& command) {
    const bool is_indented = Consume("-");
    SkipBlanks();
    const std::size_t before = at_;
    ShellWord delimiter;
    if (!ParseWord(delimiter) || at_ == before) return false;
    const bool is_quoted =
        text_.substr(before, at_ - before).find_first_of("'\"\\") !=
        absl::string_view::npos;
    if (here_end_ <= at_) {
      const std::size_t line = text_.find('\n', at_);
      here_end_ = line == absl::string_view::npos ? text_.size() : line + 1;
    }
    ShellRedirection redirection;
    redirection.kind = ShellRedirection::Kind::kText;
    const std::size_t begin = here_end_;
    std::size_t end = text_.size();
    while (here_end_ < text_.size()) {
      std::size_t next = text_.find('\n', here_end_);
      if (next == absl::string_view::npos) next = text_.size();
      absl::string_view line = text_.substr(here_end_, next - here_end_);
      end = here_end_;
      // The newline behind the delimiter separates commands.
      here_end_ = next;
      if (is_indented) {
        line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      }
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line == delimiter.text) break;
      here_end_ = std::min(next + 1, text_.size());
      end = here_end_;
    }
    redirection.target.text = std::string(text_.substr(begin, end - begin));
    redirection.target.is_literal =
        is_quoted ||
        redirection.target.text.find_first_of("$`") == std::string::npos;
    command.redirections.push_back(std::move(redirection));
    return true;
  }

  // Commands inside a word, up to `closing`, which are done before it.
  bool ParseInner(char closing) {
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

  // As ParseInner(), of what stands between backquotes.
  bool ParseBackquotes() {
    std::string inner;
    ++at_;
    while (Peek() != '`') {
      if (IsEnd()) return false;
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      inner.push_back(text_[at_++]);
    }
    ++at_;
    if (depth_ + 8 > kDepthMax) return false;
    auto steps = Parser(inner, ShellDialect::kPosix, depth_ + 8).Parse();
    if (!steps.has_value()) return false;
    Mark(ShellStep::Kind::kEnter);
    std::move(steps->begin(), steps->end(), std::back_inserter(steps_));
    Mark(ShellStep::Kind::kLeave);
    return true;
  }

  // Reads the expansion at `$`, if it is one.
  bool ParseDollar(ShellWord& word) {
    if (!is_windows_ && Peek(1) == '(' && Peek(2) == '(') {
      ++at_;
      word.is_literal = false;
      return SkipArithmetic();
    }
    if (Peek(1) == '(') {
      at_ += 2;
      word.is_literal = false;
      return ParseInner(')');
    }
    if (Peek(1) == '{') {
      at_ += 2;
      const std::size_t begin = at_;
      while (IsNameChar(Peek())) ++at_;
      if (Peek() == '}') {
        Expand(text_.substr(begin, at_ - begin), word);
        ++at_;
        return true;
      }
      word.is_literal = false;
      return SkipBraces();
    }
    ++at_;
    const std::size_t begin = at_;
    while (IsNameChar(Peek()) ||
           (is_windows_ && Peek() == ':' && IsNameChar(Peek(1)))) {
      ++at_;
    }
    if (at_ > begin) {
      Expand(text_.substr(begin, at_ - begin), word);
    } else if (absl::string_view("@*#?-$!").find(Peek()) !=
                   absl::string_view::npos &&
               !IsEnd()) {
      ++at_;
      word.is_literal = false;
    } else {
      word.text.push_back('$');
    }
    return true;
  }

  void Expand(absl::string_view name, ShellWord& word) {
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.size() > expansion_left_) {
      word.is_literal = false;
      return;
    }
    expansion_left_ -= found->second.size();
    word.text += found->second;
  }

  // Behind the brace that closes `${`.
  bool SkipBraces() {
    int open = 1;
    while (!IsEnd()) {
      const char c = Peek();
      if (c == '\\') {
        at_ = std::min(at_ + 2, text_.size());
        continue;
      }
      if (c == '{') ++open;
      ++at_;
      if (c == '}' && --open == 0) return true;
    }
    return false;
  }

  bool ParseDoubleQuotes(ShellWord& word) {
    ++at_;
    while (!IsEnd()) {
      const char c = Peek();
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '$') {
        if (!ParseDollar(word)) return false;
      } else if (c == '`' && !is_windows_) {
        word.is_literal = false;
        if (!ParseBackquotes()) return false;
      } else if (c == escape() && at_ + 1 < text_.size()) {
        const char next = Peek(1);
        at_ += 2;
        if (next == '\n') continue;
        if (!is_windows_ && next != '"' && next != '\\' && next != '$' &&
            next != '`') {
          word.text.push_back(c);
        }
        word.text.push_back(next);
      } else {
        word.text.push_back(c);
        ++at_;
      }
    }
    return false;
  }

  bool ParseSingleQuotes(ShellWord& word, bool has_escapes) {
    ++at_;
    while (!IsEnd()) {
      const char c = text_[at_++];
      if (c == '\'') {
        if (!is_windows_ || Peek() != '\'') return true;
        ++at_;
        word.text.push_back('\'');
      } else if (has_escapes && c == '\\' && !IsEnd()) {
        const char next = text_[at_++];
        word.text.push_back(next == 'n' ? '\n' : next == 't' ? '\t' : next);
      } else {
        word.text.push_back(c);
      }
    }
    return false;
  }

  // Reads up to what ends a word. False if a quote stays open.
  bool ParseWord(ShellWord& word) {
    while (!IsEnd()) {
      const char c = Peek();
      if (IsSubstitution()) {
        at_ += 2;
        word.is_literal = false;
        if (!ParseInner(')')) return false;
      } else if (c == '(' && !word.text.empty() && word.text.back() == '=' &&
                 !is_windows_) {
        // The values of an array.
        word.is_literal = false;
        if (!ParseArray()) return false;
      } else if (IsMeta(c)) {
        return true;
      } else if (c == '"') {
        if (!ParseDoubleQuotes(word)) return false;
      } else if (c == '\'') {
        if (!ParseSingleQuotes(word, /*has_escapes=*/false)) return false;
      } else if (c == '$' && Peek(1) == '\'' && !is_windows_) {
        ++at_;
        if (!ParseSingleQuotes(word, /*has_escapes=*/true)) return false;
      } else if (c == '$') {
        if (!ParseDollar(word)) return false;
      } else if (c == '`' && !is_windows_) {
        word.is_literal = false;
        if (!ParseBackquotes()) return false;
      } else if (c == escape() && at_ + 1 < text_.size()) {
        if (Peek(1) != '\n') word.text.push_back(Peek(1));
        at_ += 2;
      } else {
        if (c == '*' || c == '?' ||
            (c == '{' && Peek(1) != '}' && !word.text.empty())) {
          word.is_glob = true;
        }
        word.text.push_back(c);
        ++at_;
      }
    }
    return true;
  }

  bool ParseArray() {
    ++at_;
    for (;;) {
      SkipBlanks();
      if (IsEnd()) return false;
      if (Consume(")")) return true;
      if (Peek() == '\n') {
        SkipNewline();
        continue;
      }
      // Words that hold arrays are no words of an array.
      if (IsMeta(Peek()) && !IsSubstitution()) return false;
      if (++depth_ > kDepthMax) return false;
      ShellWord word;
      if (!ParseWord(word)) return false;
      --depth_;
    }
  }

  const absl::string_view text_;
  const bool is_windows_;
  int depth_;
  std::size_t at_ = 0;
  // Behind the here-documents of the line.
  std::size_t here_end_ = 0;
  // How many bytes of variables may still be written out.
  std::size_t expansion_left_;
  int case_depth_ = 0;
  // Whether the pattern of a branch comes next.
  bool is_pattern_ = false;
  std::map<std::string, std::string, std::less<>> variables_;
  std::vector<ShellCommand> pipeline_;
  std::vector<ShellStep> steps_;
};

}  // namespace

ShellDialect DialectOf(absl::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_begin = at == 0 || !IsNameChar(text[at - 1]);
    if (!is_begin) continue;
    const absl::string_view rest = text.substr(at);
    if (rest.size() > 2 && rest[1] == ':' && rest[2] == '\\' &&
        absl::ascii_isalpha(static_cast<unsigned char>(rest[0]))) {
      return ShellDialect::kWindows;
    }
    if (absl::StartsWith(rest, "$env:")) return ShellDialect::kWindows;
    const bool is_command =
        at == 0 || absl::string_view("\n;|({ ").find(text[at - 1]) !=
                       absl::string_view::npos;
    if (!is_command ||
        !absl::ascii_isupper(static_cast<unsigned char>(rest[0]))) {
      continue;
    }
    for (const absl::string_view verb : kVerbs) {
      if (absl::StartsWith(rest, verb) && rest.size() > verb.size() &&
          absl::ascii_isupper(static_cast<unsigned char>(rest[verb.size()]))) {
        return ShellDialect::kWindows;
      }
    }
  }
  return ShellDialect::kPosix;
}

std::optional<std::vector<ShellStep>> ParseShell(absl::string_view text,
                                                 ShellDialect dialect) {
  return Parser(text, dialect, /*depth=*/0).Parse();
}

}  // namespace clerestory
