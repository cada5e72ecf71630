// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_SHELL_H_
#define CLERESTORY_SERVER_TOOLS_SHELL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clerestory {

// Whose rules of quoting hold.
enum class ShellDialect {
  kPosix,    // bash and the like.
  kWindows,  // PowerShell; and cmd, as far as they agree.
};

// Returns the dialect that `text` seems to be written in.
ShellDialect DialectOf(absl::string_view text);

// A word of a command, without its quotes.
struct ShellWord {
  std::string text;
  // Whether the text is what the command gets. False if a part of it is a
  // variable or the output of a command, which is left out of the text.
  bool is_literal = true;
  // Whether it has unquoted `*`, `?` or `{`, and so may be several. A pattern
  // in brackets is taken for a name, which it is if it matches none.
  bool is_glob = false;
};

// Where a command's input comes from, or its output goes.
struct ShellRedirection {
  enum class Kind {
    kInput,   // `target` is a file.
    kOutput,  // `target` is a file, which is written or appended to.
    kText,    // `target` is the input itself: a here-document or -string.
  };
  Kind kind = Kind::kInput;
  ShellWord target;
};

struct ShellCommand {
  // Its name and arguments; assignments in front of them are left out. May be
  // empty if there are redirections.
  std::vector<ShellWord> words;
  // Those of files and texts: duplications of descriptors are left out.
  std::vector<ShellRedirection> redirections;
};

// A part of a script. Loops, branches and functions are opened: their commands
// follow each other as they stand.
struct ShellStep {
  enum class Kind {
    kPipeline,
    kEnter,  // What follows up to its kLeave is done in a shell of its own.
    kLeave,
  };
  Kind kind = Kind::kPipeline;
  // Of kPipeline: the output of each is the input of the next.
  std::vector<ShellCommand> pipeline;
};

// Returns the commands of `text` in the order in which they stand, those in
// substitutions in front of the command that uses their output; nullopt if it
// is no script, as with an open quote, or nests deeper than it may. Takes time
// and space linear in the size of `text`.
std::optional<std::vector<ShellStep>> ParseShell(absl::string_view text,
                                                 ShellDialect dialect);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_SHELL_H_
