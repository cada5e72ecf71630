// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_WRITE_COMMANDS_H_
#define CLERESTORY_SERVER_TOOLS_WRITE_COMMANDS_H_

#include <span>

#include "server/tools/access_sink.h"
#include "server/tools/command_table.h"
#include "server/tools/shell.h"

namespace clerestory {

// Adds what a command does that writes files or fetches URLs. `text` is its
// input, where the script holds it, or null.
void AddWriteCommand(const CommandSpec& spec, std::span<const ShellWord> words,
                     const ShellWord* text, AccessSink& sink);

// Adds what a command of git does.
void AddGitCommand(std::span<const ShellWord> words, const ShellWord* text,
                   AccessSink& sink);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_WRITE_COMMANDS_H_
