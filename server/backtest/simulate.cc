// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/simulate.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/backtest/backtest.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "server/tokens/chars_token_counter.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr std::int64_t kPreambleTokens = 6'000;
constexpr std::size_t kAssistantTokens = 250;
constexpr std::size_t kObservationTokens = 1'800;
// The tool's name and its arguments, `r` and `{}`, count with the assistant's.
constexpr std::size_t kCallTokens = 3;
constexpr const char* kPlaceholder = "[ masked ]";
// The prices of the simulation: read 0.30, write 3.75, output 15.00.
constexpr const char* kModel = "claude-sonnet-4-6";

Bytes MessageOf(std::string json) {
  return std::make_shared<const std::string>(std::move(json));
}

}  // namespace

BacktestInput SimulatedSession(std::int64_t turns) {
  BacktestInput input;
  input.format = Format::kAnthropicMessages;
  input.preamble_tokens = kPreambleTokens;
  const std::string text(kAssistantTokens - kCallTokens, 'a');
  const std::string output(kObservationTokens, 'o');
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    input.messages.push_back(
        {.bytes = MessageOf(absl::StrCat(
             R"({"role":"assistant","content":[{"type":"text","text":")", text,
             R"("},{"type":"tool_use","id":"t)", turn,
             R"(","name":"r","input":{}}]})")),
         .time = 1,
         .model = kModel});
    input.messages.push_back(
        {.bytes = MessageOf(
             absl::StrCat(R"({"role":"user","content":[{"type":"tool_result",)",
                          R"("tool_use_id":"t)", turn, R"(","content":")",
                          output, R"("}]})")),
         .time = 1,
         .model = ""});
  }
  return input;
}

const TokenCounter& SimulationCounter() {
  static const auto* const counter = new CharsTokenCounter(1);
  return *counter;
}

Policy WithSimulationPlaceholder(Policy policy) {
  policy.placeholder = kPlaceholder;
  policy.error_placeholder = kPlaceholder;
  return policy;
}

}  // namespace clerestory
