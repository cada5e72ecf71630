// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_TOOL_TABLE_H_
#define CLERESTORY_SERVER_TOOLS_TOOL_TABLE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/tools/access.h"

namespace clerestory {

// How the arguments of a tool say what it does.
enum class ToolKind {
  kRead,      // Reads a path, or several, or an URL.
  kFetch,     // Reads an URL, or searches it for what a prompt asks.
  kSearch,    // Looks for a query in a path, else in the directory.
  kList,      // Lists a folder.
  kAsk,       // Gives an answer to its arguments: a search of the web.
  kWrite,     // Writes the paths.
  kRun,       // Gives a state.
  kNote,      // Changes nothing but what it has for itself: a list of tasks.
  kShell,     // Does a script, or the words of a command.
  kEditor,    // What `command` says: view, create, str_replace.
  kPatch,     // Writes the files that a patch names.
  kCode,      // Does a program.
  kNative,    // `command` holds its name and words, if it has that argument.
  kRouter,    // Calls the tool that its arguments name.
  kAnything,  // May write anything: a sub-agent.
};

struct ToolSpec {
  // Keys, separated by blanks: see ToolName.
  absl::string_view keys;
  ToolKind kind = ToolKind::kAnything;
  // kShell: whether a `cd` holds for the calls that follow.
  bool keeps_directory = false;
  // Whether `offset` counts from 0.
  bool is_zero_based = false;
  // The arguments that hold the resource, separated by blanks; "" are those
  // that are usual.
  absl::string_view resources = "";
};

// A tool's name, taken apart.
struct ToolName {
  // `linear` of `mcp__linear__get_issue`, `linear/get_issue`,
  // `linear.get_issue`; "" if there is none.
  std::string server;
  std::string tool;  // `get_issue`.
  std::string key;   // `getissue`: the letters and digits, in lower case.
};

ToolName ParseToolName(absl::string_view name);

// What is known of the tool, or null.
const ToolSpec* FindTool(const ToolName& name);

// What the words of a name tell of what the tool does: get, create.
AccessClass ClassOfVerb(absl::string_view tool);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_TOOL_TABLE_H_
