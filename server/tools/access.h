// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_ACCESS_H_
#define CLERESTORY_SERVER_TOOLS_ACCESS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clerestory {

// What a tool call does to a resource.
enum class AccessClass {
  kRead,     // Gets what the resource holds.
  kSearch,   // Gets what of the resource answers a query.
  kRun,      // A test, a build, a status: what it gives is the state now.
  kWrite,    // Changes the resource.
  kUnknown,  // Not known: it may write anything, and gives what it gives.
};

// "read", "search", "run", "write" or "unknown".
absl::string_view AccessClassName(AccessClass access_class);

// Lines of a resource, counted from 1, both ends included.
struct LineRange {
  std::int64_t first = 1;
  std::int64_t last = INT64_MAX;

  friend bool operator==(const LineRange&, const LineRange&) = default;
};

// One thing that a call does.
struct Access {
  AccessClass access_class = AccessClass::kUnknown;
  // What it is done to, in one form for all spellings:
  //   a path in normal form (NormalPath of paths.h), absolute where the
  //     directory is known, and `HOST:` in front where it is done elsewhere;
  //   a URL;
  //   `git:COMMIT:PATH`, which no write to the work tree changes;
  //   `SERVER:TOOL ARGUMENTS`, with `tool` where no server is named, for what a
  //     tool gives to arguments that name none of these.
  // No longer than kResourceBytesMax: what would be is read and searched under
  // a digest that no other path is related to, and a write to it is kUnknown.
  // Empty: none is known, which for a write is every resource. What is not
  // empty lies in a tree or not as IsWithin() of paths.h says.
  std::string resource;
  // Whether it is a folder and all that is in it, or may be.
  bool is_tree = false;
  // Of a read: which lines, where the call says so. A read of the whole has all
  // of them; absent where it cannot be known (the last lines, a byte range).
  std::optional<LineRange> lines;
  // Of a search: what is asked for, with what limits it in lines of its own. Of
  // a run: the command, without what only waits or shortens what it prints. ""
  // otherwise.
  std::string query;

  friend bool operator==(const Access&, const Access&) = default;
};

// All that one call does, in order. None if it does nothing to anything:
// `echo`.
struct CallAccesses {
  std::vector<Access> accesses;
  // The directory that commands after it run in; "" if it is not known.
  std::string directory;

  friend bool operator==(const CallAccesses&, const CallAccesses&) = default;
};

// What an operator says of a tool, over what the tables say.
struct ToolAccess {
  std::optional<AccessClass> access_class;
  // The name of the argument that holds the resource; "" leaves it to the
  // tables.
  std::string resource_argument;
  // The names of the arguments that hold the first line and the last, or the
  // first and the number of lines.
  std::string first_line_argument;
  std::string last_line_argument;
  std::string line_count_argument;

  friend bool operator==(const ToolAccess&, const ToolAccess&) = default;
};

// What the call of `tool` with `arguments` does: by `rule` where it says
// something, else by the tables of tools and commands. `arguments` is a JSON
// object, or a JSON string that holds one; anything else is no argument.
// `directory` is where commands run if the call does not say; "" is unknown.
//
// Total: whatever it is given, it answers, with kUnknown if need be. Takes time
// and space linear in the size of the arguments, of which scripts and patches
// longer than kAccessBytesMax are not looked into. Pure; safe from any thread.
CallAccesses AccessesOf(absl::string_view tool, absl::string_view arguments,
                        absl::string_view directory,
                        const ToolAccess& rule = {});

// A longer script may do anything.
inline constexpr std::int64_t kAccessBytesMax = 64 << 10;
// The longest name of a resource.
inline constexpr std::size_t kResourceBytesMax = 4096;
// The most accesses of one call; with more it is one kUnknown in their place.
inline constexpr std::size_t kAccessesMax = 64;

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_ACCESS_H_
