// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_COMMAND_TABLE_H_
#define CLERESTORY_SERVER_TOOLS_COMMAND_TABLE_H_

#include "absl/strings/string_view.h"
#include "server/tools/command_line.h"

namespace clerestory {

// What a command does with its words and its input.
enum class CommandKind {
  kNothing,  // Reads and writes no file: echo.
  kRun,      // Gives the state of something, or may do anything.

  kCat,   // Gives files as they are.
  kDump,  // Gives files in another form, or some bytes of them.
  kHead,  // The first lines.
  kTail,  // The last lines, or those from one on.
  kSed,
  kAwk,
  kGrep,      // Lines that a pattern matches, of files.
  kRg,        // Likewise, of folders.
  kFind,      // The names in folders.
  kList,      // Likewise, without a query.
  kDigest,    // Something computed of files: wc.
  kScripted,  // Likewise, by the first operand: jq.
  kPipe,      // Something computed of its input: tr.

  kWriteAll,   // Writes all its operands: touch.
  kWriteTree,  // Likewise, with all that is in them: rm.
  kWriteLast,  // Writes the last operand: cp.
  kDd,
  kPatch,
  kApplyPatch,
  kExtract,   // Writes into a folder.
  kFormat,    // Rewrites its operands, or the folder, unless it only checks.
  kFormatIf,  // Likewise, if it has one of its `options`.
  kFetch,     // curl, wget.

  kTee,
  kGit,
  kCd,
  kWrapper,  // Does the command behind its own options.
  kXargs,    // Likewise, with the input as operands.
  kShell,    // Does a script.
  kProgram,  // An interpreter of a language.
  kSsh,
  kDocker,
  kRunner,  // Does what a name stands for in a file of the project: make.

  // SWE-agent's own.
  kOpen,
  kScroll,
  kEditOpen,
  kSearchIn,
};

struct CommandSpec {
  absl::string_view names;
  CommandKind kind = CommandKind::kRun;
  // The options that the next word belongs to.
  absl::string_view value_options = "";
  OptionStyle style = OptionStyle::kShort;
  // kWrapper: how many operands of its own it has. kFormatIf: see there.
  int own_operands = 0;
  absl::string_view options = "";
};

// Whether it changes nothing, but that kSed may.
constexpr bool OnlyReads(CommandKind kind) {
  return kind == CommandKind::kNothing ||
         (kind >= CommandKind::kCat && kind <= CommandKind::kPipe);
}

// Whether it writes what its words say, or fetches it.
constexpr bool WritesOrFetches(CommandKind kind) {
  return kind >= CommandKind::kWriteAll && kind <= CommandKind::kFetch;
}

// What is known of a command by its name, which may have folders in front and
// `.exe` behind; kRun for one that is not known.
const CommandSpec& CommandNamed(absl::string_view name);

// The name without folders and `.exe`.
absl::string_view CommandName(absl::string_view word);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_COMMAND_TABLE_H_
