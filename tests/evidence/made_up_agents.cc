// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/evidence/made_up_agents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/model/tool_outcome.h"

namespace clerestory {
namespace {

constexpr std::array<Agent, 8> kAgents = {{
    {"sonnet, files", 300'000, 3'750'000, 15'000'000, 1'500, 1.0, 4.5, 15'000},
    {"sonnet, short sessions", 300'000, 3'750'000, 15'000'000, 1'500, 1.0, 2,
     8'000},
    {"sonnet, long sessions", 300'000, 3'750'000, 15'000'000, 900, 0.8, 12,
     60'000},
    {"opus, listings", 500'000, 6'250'000, 25'000'000, 400, 0.6, 7, 20'000},
    {"haiku, large pages", 100'000, 1'250'000, 5'000'000, 6'000, 1.3, 6,
     20'000},
    {"gpt, files", 125'000, 1'250'000, 10'000'000, 1'500, 1.0, 4, 20'000},
    {"gpt, search", 125'000, 1'250'000, 10'000'000, 700, 1.3, 3, 12'000},
    {"gemini, files", 200'000, 2'000'000, 12'000'000, 2'500, 1.0, 4, 12'000},
}};

// Tokens of the call that fetches again, and calls after which an output is
// masked.
constexpr std::int64_t kCallTokens = 120;
constexpr std::int64_t kKeptCalls = 10;
// From one call to the next.
constexpr std::int64_t kMicrosPerCall = 60 * kMicrosPerSecond;

}  // namespace

std::span<const Agent> Agents() { return kAgents; }

Output Draw(const Agent& agent, double rate, Random& random) {
  const auto tokens = static_cast<std::int64_t>(
      std::clamp(agent.median_tokens * std::exp(agent.sigma * random.Normal()),
                 100.0, 50'000.0));
  Output output;
  output.calls = random.Count(agent.calls);
  output.saved = tokens * agent.read * output.calls;
  // Breaks pay for themselves, and wait until they do.
  output.broken = output.saved / 5;
  output.spent = tokens * (agent.write + agent.read * kKeptCalls) +
                 kCallTokens * agent.output;
  output.lost =
      tokens * (agent.write + agent.read * std::min(kKeptCalls, output.calls)) +
      kCallTokens * agent.output + agent.prefix_tokens * agent.read;
  output.is_refetched = random.Share() < rate;
  return output;
}

double BreakEven(const Agent& agent, std::uint64_t seed) {
  Random random(seed);
  double saved = 0;
  double lost = 0;
  for (int i = 0; i < 400'000; ++i) {
    const Output output = Draw(agent, 0, random);
    saved += static_cast<double>(output.saved - output.broken);
    lost += static_cast<double>(output.lost);
  }
  return saved / lost;
}

void Loop::RunSession(TimeMicros now) {
  breaker_.Advance("tool", options_, now, transitions_);
  const std::string session = absl::StrCat("session ", session_count_++);
  struct Event {
    double at = 0;
    ToolOutcome outcome;
  };
  std::int64_t calls = 1;
  std::vector<Event> events;
  const std::int64_t count = random_.Count(5);
  for (std::int64_t i = 0; i < count; ++i) {
    const Output output = Draw(agent_, rate_, random_);
    const double start = random_.Share();
    calls = std::max(calls, output.calls);
    ++observation_count_;
    spent_ += static_cast<double>(output.spent);
    if (!breaker_.IsMaskedIn("tenant", "tool", session)) {
      AddCost(static_cast<double>(output.saved));
      continue;
    }
    ++masked_count_;
    AddCost(static_cast<double>(output.broken));
    if (output.is_refetched) AddCost(static_cast<double>(output.lost));
    events.push_back(
        {start, {.tool = "tool", .masked_count = 1, .saved = -output.broken}});
    for (int part = 1; part <= 3; ++part) {
      events.push_back({start + (1 - start) * part / 3,
                        {.tool = "tool", .saved = output.saved / 3}});
    }
    if (output.is_refetched) {
      events.push_back(
          {start + (1 - start) * random_.Share(),
           {.tool = "tool", .refetched_count = 1, .lost = output.lost}});
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  const auto length = static_cast<double>(calls * kMicrosPerCall);
  for (const Event& event : events) {
    breaker_.Learn(event.outcome, options_,
                   now + static_cast<std::int64_t>(event.at * length),
                   transitions_);
  }
}

}  // namespace clerestory
