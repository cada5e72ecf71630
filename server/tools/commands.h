// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_COMMANDS_H_
#define CLERESTORY_SERVER_TOOLS_COMMANDS_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {

// Returns what a script of a shell does, by the table of commands. `directory`
// is in normal form, or "" if it is not known. A command that is not known is a
// run; a script that is none is kUnknown.
CallAccesses ScriptAccesses(absl::string_view script,
                            absl::string_view directory);

// Likewise of one command, its words given.
CallAccesses CommandAccesses(std::span<const std::string> words,
                             absl::string_view directory);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_COMMANDS_H_
