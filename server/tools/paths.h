// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOOLS_PATHS_H_
#define CLERESTORY_SERVER_TOOLS_PATHS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// Returns the one form of all spellings of `path`: without `.`, `..`, doubled
// and last slashes; with the letter of a Windows drive in upper case, and
// slashes for backslashes; a file:// URL as its path. Another URL is returned
// without its fragment, and otherwise as it is. What `~` is is not known, so
// that it stays.
//
// A relative path is joined to `directory`, which is in this form; it stays
// relative if that is relative or "", the unknown one: then `.` is the form of
// that directory. "" for "". Takes linear time.
std::string NormalPath(absl::string_view path, absl::string_view directory);

// Returns whether `text` is an URL with a host.
bool IsUrl(absl::string_view text);

// Returns whether `path`, in any form, says where it is by itself.
bool IsAbsolutePath(absl::string_view path);

// Returns whether `resource` is `tree` or lies in it, both as AccessesOf()
// names them. Nothing but "" lies in "".
bool IsWithin(absl::string_view resource, absl::string_view tree);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOOLS_PATHS_H_
