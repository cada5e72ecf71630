// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_READ_COMMANDS_H_
#define CLERESTORY_SERVER_TOOLS_READ_COMMANDS_H_

#include <span>

#include "server/tools/access_sink.h"
#include "server/tools/command_table.h"
#include "server/tools/shell.h"

namespace clerestory {

// Adds what a command does that reads or searches files, or what the pipeline
// gives if it names none. `input` is the file its input comes from, or null.
void AddReadCommand(const CommandSpec& spec, std::span<const ShellWord> words,
                    const ShellWord* input, AccessSink& sink);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_READ_COMMANDS_H_
