// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tools/shell_reader.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/tools/shell.h"

namespace clerestory {
namespace {

// Arrays in words in arrays: the reader calls itself for each.
constexpr int kArraysMax = 8;

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

}  // namespace

bool ShellReader::Consume(absl::string_view token) {
  if (!absl::StartsWith(text_.substr(at_), token)) return false;
  at_ += token.size();
  return true;
}

bool ShellReader::IsMeta(char c) const {
  constexpr absl::string_view kMeta = " \t\r\n;&|<>()";
  return kMeta.find(c) != absl::string_view::npos ||
         (is_windows_ && (c == '{' || c == '}'));
}

bool ShellReader::IsSubstitution() const {
  return !is_windows_ && (Peek() == '<' || Peek() == '>') && Peek(1) == '(';
}

void ShellReader::SkipBlanks() {
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

void ShellReader::SkipNewline() { at_ = std::max(at_ + 1, here_end_); }

bool ShellReader::ParseBackquotes() {
  std::string inner;
  ++at_;
  while (Peek() != '`') {
    if (IsEnd()) return false;
    if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
    inner.push_back(text_[at_++]);
  }
  ++at_;
  return ReadQuoted(inner);
}

bool ShellReader::ParseHere(bool is_indented, ShellWord& text) {
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
  // Behind the delimiter of the one in front.
  if (here_end_ < text_.size() && text_[here_end_] == '\n' &&
      text_[here_end_ - 1] != '\n') {
    ++here_end_;
  }
  const std::size_t begin = here_end_;
  std::size_t end = text_.size();
  while (here_end_ < text_.size()) {
    const std::size_t next =
        std::min(text_.find('\n', here_end_), text_.size());
    absl::string_view line = text_.substr(here_end_, next - here_end_);
    end = here_end_;
    // The newline behind the delimiter separates commands.
    here_end_ = next;
    if (is_indented) {
      line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    }
    absl::ConsumeSuffix(&line, "\r");
    if (line == delimiter.text) break;
    here_end_ = std::min(next + 1, text_.size());
    end = here_end_;
  }
  text.text = std::string(text_.substr(begin, end - begin));
  text.is_literal =
      is_quoted || text.text.find_first_of("$`") == std::string::npos;
  return true;
}

bool ShellReader::SkipArithmetic() {
  int open = 0;
  while (!IsEnd()) {
    const char c = text_[at_++];
    if (c == '(') ++open;
    if (c == ')' && --open == 0) return true;
  }
  return false;
}

bool ShellReader::ParseDollar(ShellWord& word) {
  if (!is_windows_ && Peek(1) == '(' && Peek(2) == '(') {
    ++at_;
    word.is_literal = false;
    return SkipArithmetic();
  }
  if (Peek(1) == '(') {
    at_ += 2;
    word.is_literal = false;
    return ReadInner(')');
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

void ShellReader::Expand(absl::string_view name, ShellWord& word) {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.size() > expansion_left_) {
    word.is_literal = false;
    return;
  }
  expansion_left_ -= found->second.size();
  word.text += found->second;
}

bool ShellReader::SkipBraces() {
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

bool ShellReader::ParseDoubleQuotes(ShellWord& word) {
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

bool ShellReader::ParseSingleQuotes(ShellWord& word, bool has_escapes) {
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

bool ShellReader::ParseWord(ShellWord& word) {
  while (!IsEnd()) {
    const char c = Peek();
    if (IsSubstitution()) {
      at_ += 2;
      word.is_literal = false;
      if (!ReadInner(')')) return false;
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

bool ShellReader::ParseArray() {
  ++at_;
  for (;;) {
    SkipBlanks();
    if (IsEnd()) return false;
    if (Consume(")")) return true;
    if (Peek() == '\n') {
      SkipNewline();
      continue;
    }
    if (IsMeta(Peek()) && !IsSubstitution()) return false;
    if (++arrays_ > kArraysMax) return false;
    ShellWord word;
    if (!ParseWord(word)) return false;
    --arrays_;
  }
}

bool ShellReader::TakeAssignment(absl::string_view raw, const ShellWord& word) {
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

}  // namespace clerestory
