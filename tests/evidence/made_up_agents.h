// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_EVIDENCE_MADE_UP_AGENTS_H_
#define CLERESTORY_TESTS_EVIDENCE_MADE_UP_AGENTS_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/breaker/tool_breaker.h"
#include "server/model/money.h"

namespace clerestory {

// An agent as far as one tool goes. Prices are in pico-dollars a token.
struct Agent {
  absl::string_view name;
  PicoUsd read = 0;
  PicoUsd write = 0;
  PicoUsd output = 0;
  // Of the tool's outputs, in tokens: the median, and how wide they scatter.
  double median_tokens = 0;
  double sigma = 0;
  // Model calls that follow a masked output, on average.
  double calls = 0;
  // What stands in front of the output that is fetched again, in tokens: the
  // model call that it takes reads it.
  std::int64_t prefix_tokens = 0;
};

// Agents whose break-even rates go from 8 to 25 %.
std::span<const Agent> Agents();

// Draws of a seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // From 0 up to 1.
  double Share() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  double Normal() {
    return std::sqrt(-2 * std::log(1 - Share())) *
           std::cos(2 * 3.14159265358979323846 * Share());
  }

  // At least 1, geometric.
  std::int64_t Count(double mean) {
    if (mean <= 1) return 1;
    return 1 + static_cast<std::int64_t>(std::log(1 - Share()) /
                                         std::log(1 - 1 / mean));
  }

 private:
  std::mt19937_64 engine_;
};

// An output, and what masking and fetching it again would do.
struct Output {
  PicoUsd saved = 0;   // In all, over `calls`.
  PicoUsd broken = 0;  // Its part of the break, not in `saved`.
  PicoUsd lost = 0;
  // Whatever is masked: its call, its first reading, and being carried until it
  // is old enough.
  PicoUsd spent = 0;
  bool is_refetched = false;  // If it is masked.
  std::int64_t calls = 0;
};

// An output of the agent's tool, which is fetched again with the probability
// `rate` if it is masked.
Output Draw(const Agent& agent, double rate, Random& random);

// The rate at which masking the tool's outputs saves nothing.
double BreakEven(const Agent& agent, std::uint64_t seed);

// A tool in a tenant's sessions, which end one after another.
class Loop {
 public:
  Loop(const Agent& agent, double rate, const BreakerOptions& options,
       Random& random)
      : agent_(agent), rate_(rate), options_(options), random_(random) {}

  const std::vector<BreakerTransition>& transitions() const {
    return transitions_;
  }
  std::int64_t masked_count() const { return masked_count_; }
  std::int64_t observation_count() const { return observation_count_; }
  double spent() const { return spent_; }
  double avoidable() const { return avoidable_; }
  void set_rate(double rate) { rate_ = rate; }

  // A session of some outputs, from `now` on. What comes of masking one is told
  // bit by bit while the session lasts, in an order that has nothing to do with
  // others.
  void RunSession(TimeMicros now);

 private:
  void AddCost(double amount) {
    spent_ += amount;
    avoidable_ += amount;
  }

  const Agent& agent_;
  double rate_;
  const BreakerOptions options_;
  Random& random_;
  ToolBreaker breaker_;
  std::vector<BreakerTransition> transitions_;
  std::int64_t session_count_ = 0;
  std::int64_t masked_count_ = 0;
  std::int64_t observation_count_ = 0;
  double spent_ = 0;      // In all.
  double avoidable_ = 0;  // Of that, what depends on masking.
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_EVIDENCE_MADE_UP_AGENTS_H_
