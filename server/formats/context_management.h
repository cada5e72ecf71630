// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_CONTEXT_MANAGEMENT_H_
#define CLERESTORY_SERVER_FORMATS_CONTEXT_MANAGEMENT_H_

#include <cstdint>
#include <set>
#include <string>

namespace clerestory {

// When Anthropic is to clear old tool results itself, and which.
struct ClearToolUses {
  std::int64_t trigger_tokens = 0;    // Input tokens above which it does.
  std::int64_t keep = 0;              // Newest tool uses that it leaves.
  std::int64_t clear_tokens_min = 0;  // The fewest tokens worth it; 0 for any.
  // Names, as the API takes no globs.
  std::set<std::string> exclude_tools = {};
};

// Returns the value of `context_management` in a request to Anthropic's API, as
// JSON with the edit `clear_tool_uses_20250919` (platform.claude.com, "Context
// editing"; needs the beta header `context-management-2025-06-27`). Pure.
std::string ContextManagement(const ClearToolUses& edit);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_CONTEXT_MANAGEMENT_H_
