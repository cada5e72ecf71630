// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/context_management.h"

#include <gtest/gtest.h>

namespace clerestory {
namespace {

TEST(ContextManagementTest, SaysWhenAndWhatToClear) {
  EXPECT_EQ(ContextManagement({.trigger_tokens = 100'000, .keep = 3}),
            R"({"edits":[{"type":"clear_tool_uses_20250919",)"
            R"("trigger":{"type":"input_tokens","value":100000},)"
            R"("keep":{"type":"tool_uses","value":3}}]})");
}

TEST(ContextManagementTest, NamesToolsInOrderAndEscaped) {
  EXPECT_EQ(ContextManagement({.trigger_tokens = 1,
                               .keep = 10,
                               .clear_tokens_min = 5'000,
                               .exclude_tools = {"web", "a\"b"}}),
            R"({"edits":[{"type":"clear_tool_uses_20250919",)"
            R"("trigger":{"type":"input_tokens","value":1},)"
            R"("keep":{"type":"tool_uses","value":10},)"
            R"("clear_at_least":{"type":"input_tokens","value":5000},)"
            R"("exclude_tools":["a\"b","web"]}]})");
}

}  // namespace
}  // namespace clerestory
