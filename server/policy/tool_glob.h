// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_POLICY_TOOL_GLOB_H_
#define CLERESTORY_SERVER_POLICY_TOOL_GLOB_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/policy/policy.h"

namespace clerestory {

// The functions here are pure. A glob is text in which `*` is any run of
// characters, also none, and `?` any one character; a character is a code point
// of UTF-8. Upper and lower case differ.

// INVALID_ARGUMENT with kFieldInvalid and the metadata `field` if `glob` is
// empty, long, or has what no tool's name has, such as a blank, or `[` and `{`,
// which mean more elsewhere.
absl::Status CheckGlob(absl::string_view field, absl::string_view glob);

// Whether `glob` matches the whole of `text`. Takes time of at most the product
// of their lengths, whatever they are.
bool MatchesGlob(absl::string_view glob, absl::string_view text);

// Whether `glob` matches the name `tool`. The name of an MCP tool,
// `mcp__SERVER__TOOL`, is matched as it stands and as `SERVER/TOOL`.
bool MatchesTool(absl::string_view glob, absl::string_view tool);

// Whether MatchesTool is true of `general` for every tool of which it is of
// `special`. False also where that cannot be seen from the texts.
bool CoversTool(absl::string_view general, absl::string_view special);

// The same of MatchesGlob.
bool CoversGlob(absl::string_view general, absl::string_view special);

// The first of the policy's tool rules that matches `tool`, or null. Lives as
// long as the policy stays as it is.
const ToolRule* RuleFor(const Policy& policy, absl::string_view tool);

// Whether observations of `tool` may be masked at all: `exclude` does not match
// it, `include` does or is empty, and the tool's rule does not say that it is
// never masked. Asked in this order, so that `exclude` beats `include`, and
// both beat rules.
bool IsMaskable(const Policy& policy, absl::string_view tool);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_POLICY_TOOL_GLOB_H_
