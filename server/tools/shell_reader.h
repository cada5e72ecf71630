// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_SHELL_READER_H_
#define CLERESTORY_SERVER_TOOLS_SHELL_READER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "server/tools/shell.h"

namespace clerestory {

// Reads the words of a script, one after the other: quotes, escapes, variables
// that the script has set. What words hold of commands is another's to read.
// Functions that return whether they could read leave the rest unread if not.
class ShellReader {
 public:
  ShellReader(absl::string_view text, ShellDialect dialect)
      : text_(text),
        is_windows_(dialect == ShellDialect::kWindows),
        expansion_left_(text.size() + 64) {}
  virtual ~ShellReader() = default;
  ShellReader(const ShellReader&) = delete;
  ShellReader& operator=(const ShellReader&) = delete;

 protected:
  // Reads commands inside a word, up to `closing`, which are done before it.
  virtual bool ReadInner(char closing) = 0;
  // Likewise commands that stood between backquotes.
  virtual bool ReadQuoted(absl::string_view script) = 0;

  absl::string_view text() const { return text_; }
  bool is_windows() const { return is_windows_; }
  bool IsEnd() const { return at_ >= text_.size(); }
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Consume(absl::string_view token);
  // Whether `c` ends a word.
  bool IsMeta(char c) const;
  // Whether a command stands here in place of a file: `<(`.
  bool IsSubstitution() const;

  // Behind blanks and comments.
  void SkipBlanks();
  // Behind the newline at `at_`, and the here-documents that begin there.
  void SkipNewline();
  // Behind `((...))`.
  bool SkipArithmetic();

  // Reads up to what ends a word. False if a quote stays open.
  bool ParseWord(ShellWord& word);
  // Reads the delimiter of a here-document and its text, which stands behind
  // the line.
  bool ParseHere(bool is_indented, ShellWord& text);
  // Whether the word is `NAME=...` in front of a command; what it sets is then
  // known, if it can be.
  bool TakeAssignment(absl::string_view raw, const ShellWord& word);
  // From here on nobody knows what the variable holds.
  void Forget(const std::string& variable) { variables_.erase(variable); }

  std::size_t at_ = 0;

 private:
  char escape() const { return is_windows_ ? '`' : '\\'; }

  bool ParseBackquotes();
  // Reads the expansion at `$`, if it is one.
  bool ParseDollar(ShellWord& word);
  void Expand(absl::string_view name, ShellWord& word);
  // Behind the brace that closes `${`.
  bool SkipBraces();
  bool ParseDoubleQuotes(ShellWord& word);
  bool ParseSingleQuotes(ShellWord& word, bool has_escapes);
  bool ParseArray();

  const absl::string_view text_;
  const bool is_windows_;
  // Behind the here-documents of the line.
  std::size_t here_end_ = 0;
  // How many bytes of variables may still be written out.
  std::size_t expansion_left_;
  // Arrays in words in arrays.
  int arrays_ = 0;
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_SHELL_READER_H_
