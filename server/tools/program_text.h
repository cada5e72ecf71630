// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_PROGRAM_TEXT_H_
#define CLERESTORY_SERVER_TOOLS_PROGRAM_TEXT_H_

#include "absl/strings/string_view.h"
#include "server/tools/access_sink.h"

namespace clerestory {

// Adds the writes of the files that a patch names, in the form of apply_patch
// or of diff; a write of everything if it names none.
void AddPatch(absl::string_view patch, AccessSink& sink);

// Adds what a program in Python, JavaScript, Perl or Ruby does, as far as calls
// with literal paths tell: open("x", "w"), write_text, writeFileSync. One that
// only reads files is those reads; any other is a run, too, by the name of
// `command`.
void AddProgram(absl::string_view program, absl::string_view command,
                AccessSink& sink);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_PROGRAM_TEXT_H_
