// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/backtest/backtest.h"
#include "server/base/time.h"
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

// Of sessions with log-normal sizes.
constexpr double kSigma = 1.3;
constexpr double kAssistantMu = 5.2;
constexpr double kAssistantSigma = 0.7;
constexpr double kObservationTokensLeast = 20;
constexpr double kObservationTokensMost = 25'000;
constexpr double kAssistantTokensLeast = 40;
constexpr TimeMicros kTurnTime = kMicrosPerSecond;
constexpr TimeMicros kPauseTime = 7'200 * kMicrosPerSecond;

// The same numbers on every machine, which the standard's distributions do not
// promise: SplitMix64, and Box and Muller's way to normal ones.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}

  // Above 0 and at most 1.
  double Uniform() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    z ^= z >> 31U;
    return (static_cast<double>(z >> 11U) + 1) / 9007199254740992.0;  // 2^53
  }

  std::size_t LogNormal(double mu, double sigma, double least, double most) {
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * Uniform());
    return static_cast<std::size_t>(
        std::clamp(std::exp(mu + sigma * normal), least, most));
  }

 private:
  std::uint64_t state_;
};

Bytes MessageOf(std::string json) {
  return std::make_shared<const std::string>(std::move(json));
}

// Adds a turn in which the assistant writes `assistant` tokens, call included,
// and gets `observation` tokens.
void AddTurn(BacktestInput& input, std::int64_t turn, TimeMicros time,
             std::size_t assistant, std::size_t observation) {
  const std::string text(assistant - kCallTokens, 'a');
  const std::string output(observation, 'o');
  input.messages.push_back(
      {.bytes = MessageOf(absl::StrCat(
           R"({"role":"assistant","content":[{"type":"text","text":")", text,
           R"("},{"type":"tool_use","id":"t)", turn,
           R"(","name":"r","input":{}}]})")),
       .time = time,
       .model = kModel});
  input.messages.push_back(
      {.bytes = MessageOf(absl::StrCat(
           R"({"role":"user","content":[{"type":"tool_result",)",
           R"("tool_use_id":"t)", turn, R"(","content":")", output, R"("}]})")),
       .time = time,
       .model = ""});
}

BacktestInput EmptySession() {
  BacktestInput input;
  input.format = Format::kAnthropicMessages;
  input.preamble_tokens = kPreambleTokens;
  return input;
}

}  // namespace

BacktestInput SimulatedSession(std::int64_t turns) {
  BacktestInput input = EmptySession();
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    AddTurn(input, turn, 1, kAssistantTokens, kObservationTokens);
  }
  return input;
}

BacktestInput LogNormalSession(const LogNormalOptions& options) {
  BacktestInput input = EmptySession();
  Generator generator(options.seed);
  const double mu =
      std::log(static_cast<double>(kObservationTokens)) - kSigma * kSigma / 2;
  TimeMicros now = 1;
  for (std::int64_t turn = 0; turn < options.turns; ++turn) {
    const bool pauses =
        generator.Uniform() * 100 <= static_cast<double>(options.pause_percent);
    now += pauses ? kPauseTime : kTurnTime;
    const std::size_t observation = generator.LogNormal(
        mu, kSigma, kObservationTokensLeast, kObservationTokensMost);
    const std::size_t assistant = generator.LogNormal(
        kAssistantMu, kAssistantSigma, kAssistantTokensLeast,
        std::numeric_limits<std::int32_t>::max());
    AddTurn(input, turn, now, assistant, observation);
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
