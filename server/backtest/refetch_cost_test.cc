// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/backtest/backtest.h"
#include "server/backtest/price_source.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

constexpr const char* kModel = "claude-sonnet-4-6";  // 5 minutes of cache.
constexpr TimeMicros kStart = 1'000 * kMicrosPerSecond;

TEST(RefetchCostTest, WhatIsShownAgainMakesNothingCheaperToFetch) {
  // Reads one file again and again, which from then on stays, and is shown
  // again when the cache is cold.
  BacktestInput input;
  input.format = Format::kAnthropicMessages;
  input.preamble_tokens = 5'000;
  const auto add = [&](const std::string& message, TimeMicros time) {
    input.messages.push_back(
        {.bytes = ToBytes(message), .time = time, .model = kModel});
  };
  add(UserMessage(input.format, "go"), kStart);
  TimeMicros now = kStart;
  for (int i = 0; i < 12; ++i) {
    const std::string id = absl::StrCat("c", i);
    const std::string path = i % 4 == 0 ? "/a" : absl::StrCat("/", i);
    now += (i == 11 ? 7'200 : 1) * kMicrosPerSecond;
    add(AssistantMessage(
            input.format, "t",
            {{.id = id,
              .tool = "Read",
              .arguments = absl::StrCat(R"({"file_path":")", path, "\"}")}}),
        now);
    std::string content;
    for (int line = 1; line <= 40; ++line) {
      absl::StrAppend(&content, "what stands in ", path, " at ", line, "\n");
    }
    add(ResultMessages(input.format,
                       {{.id = id, .content = Literal(content)}})[0],
        now);
  }
  add(AssistantMessage(input.format, "done"), now);
  Policy policy = PlainPolicy();
  policy.mode = Mode::kEveryTurn;
  policy.refetch_session_limit = 2;
  const auto result = Backtest(input, policy, CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  const ModelPrices& prices = BuiltInPrices().Of(kModel, 0);
  int restored = 0;
  std::int64_t saved = 0;
  PicoUsd cost = 0;
  for (const BacktestCall& call : result->calls) {
    const ViewServed& view = call.view;
    const std::int64_t before = saved;
    saved = view.raw_tokens.total() - view.view_tokens.total();
    if (saved < before) {
      EXPECT_EQ(MaskedCount(view), 0);
      ++restored;
      continue;
    }
    cost += MaskedCount(view) * (view.view_call.total() * prices.read +
                                 kRefetchOutputTokens * prices.output) +
            (saved - before) * prices.write;
  }
  ASSERT_EQ(restored, 1);
  EXPECT_EQ(result->refetch_cost, cost);
}

}  // namespace
}  // namespace clerestory
