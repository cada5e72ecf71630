// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/context_management.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/json/literal.h"

namespace clerestory {

std::string ContextManagement(const ClearToolUses& edit) {
  std::string json =
      absl::StrCat(R"({"edits":[{"type":"clear_tool_uses_20250919",)"
                   R"("trigger":{"type":"input_tokens","value":)",
                   edit.trigger_tokens,
                   R"(},"keep":{"type":"tool_uses","value":)", edit.keep, "}");
  if (edit.clear_tokens_min > 0) {
    absl::StrAppend(&json,
                    R"(,"clear_at_least":{"type":"input_tokens",)"
                    R"("value":)",
                    edit.clear_tokens_min, "}");
  }
  if (!edit.exclude_tools.empty()) {
    absl::StrAppend(&json, R"(,"exclude_tools":[)");
    const char* comma = "";
    for (const std::string& tool : edit.exclude_tools) {
      absl::StrAppend(&json, comma, json::Quote(tool));
      comma = ",";
    }
    absl::StrAppend(&json, "]");
  }
  return absl::StrCat(json, "}]}");
}

}  // namespace clerestory
