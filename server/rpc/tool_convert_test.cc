// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/tool_convert.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/policy_service.pb.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/breaker/tool_breaker.h"
#include "server/engine/tool_registry.h"
#include "server/model/breaker_record.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

TEST(ToolConvertTest, AToolHasItsStateAndFigures) {
  const v1::Tool tool = FromTool({.tool = "Read",
                                  .figures = {.state = BreakerState::kUnmasked,
                                              .since = 1'000'000,
                                              .next_probe = 3'000'000,
                                              .masked_count = 30,
                                              .refetched_count = 20,
                                              .rate = 666'666,
                                              .interval = {5, 900'000},
                                              .break_even = 130'000}});
  EXPECT_EQ(tool.name(), "Read");
  EXPECT_FALSE(tool.is_other());
  EXPECT_EQ(tool.state(), v1::TOOL_STATE_UNMASKED);
  EXPECT_EQ(tool.state_time().seconds(), 1);
  EXPECT_EQ(tool.next_probe_time().seconds(), 3);
  EXPECT_EQ(tool.masked_count(), 30);
  EXPECT_EQ(tool.refetched_count(), 20);
  EXPECT_EQ(tool.rate_ppm(), 666'666);
  EXPECT_EQ(tool.rate_low_ppm(), 5);
  EXPECT_EQ(tool.rate_high_ppm(), 900'000);
  EXPECT_EQ(tool.break_even_ppm(), 130'000);
}

TEST(ToolConvertTest, AToolOfWhichNothingIsKnownHasNoTimes) {
  const v1::Tool tool = FromTool({});
  EXPECT_TRUE(tool.is_other());
  EXPECT_FALSE(tool.has_state_time());
  EXPECT_FALSE(tool.has_next_probe_time());
  EXPECT_EQ(tool.rate_high_ppm(), 1'000'000);
}

TEST(ToolConvertTest, EveryStateHasOne) {
  ToolStatus tool;
  tool.figures.state = BreakerState::kObserving;
  EXPECT_EQ(FromTool(tool).state(), v1::TOOL_STATE_OBSERVING);
  tool.figures.state = BreakerState::kMasked;
  EXPECT_EQ(FromTool(tool).state(), v1::TOOL_STATE_MASKED);
  tool.figures.state = BreakerState::kProbing;
  EXPECT_EQ(FromTool(tool).state(), v1::TOOL_STATE_PROBING);
}

TEST(ToolConvertTest, PagesHaveAllToolsInOrder) {
  std::vector<ToolStatus> tools;
  for (const char* const name : {"", "+", "Bash", "Read", "\xc3\xa9"}) {
    tools.push_back({.tool = name, .figures = {}});
  }
  for (int size = 1; size <= 6; ++size) {
    v1::ListToolsRequest request;
    request.set_page_size(size);
    std::vector<std::string> names;
    do {
      v1::ListToolsResponse response;
      ASSERT_THAT(ToPage(tools, "t", request, response), IsOk());
      EXPECT_LE(response.tools_size(), size);
      EXPECT_GT(response.tools_size(), 0);
      for (const v1::Tool& tool : response.tools()) {
        names.push_back(tool.name());
      }
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    ASSERT_EQ(names.size(), tools.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(names[i], tools[i].tool);
    }
  }
}

TEST(ToolConvertTest, APageThatDoesNotExistIsRefused) {
  v1::ListToolsResponse response;
  v1::ListToolsRequest request;
  request.set_page_size(-1);
  EXPECT_THAT(
      ToPage({}, "t", request, response),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid));
  request.set_page_size(1);
  request.set_page_token("x");
  EXPECT_THAT(
      ToPage({}, "t", request, response),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kPageTokenInvalid));
  // Of another tenant.
  request.clear_page_token();
  ASSERT_THAT(
      ToPage({{.tool = "a", .figures = {}}, {.tool = "b", .figures = {}}}, "u",
             request, response),
      IsOk());
  request.set_page_token(response.next_page_token());
  EXPECT_THAT(
      ToPage({}, "t", request, response),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kPageTokenInvalid));
}

TEST(ToolConvertTest, ANameThatIsTooLongIsRefused) {
  const std::string longest(ToolRegistry::kNameBytesMax, 'x');
  EXPECT_THAT(CheckToolName(""), IsOk());
  EXPECT_THAT(CheckToolName(longest), IsOk());
  EXPECT_THAT(
      CheckToolName(longest + "x"),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid));
}

}  // namespace
}  // namespace clerestory
