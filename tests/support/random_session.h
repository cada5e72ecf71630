// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_RANDOM_SESSION_H_
#define CLERESTORY_TESTS_SUPPORT_RANDOM_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/policy/policy.h"

namespace clerestory {

// Numbers that follow from a seed, the same on any machine (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next();
  // From `low` to `high`, both included.
  std::int64_t Between(std::int64_t low, std::int64_t high);
  bool OneIn(std::int64_t count) { return Between(1, count) == 1; }
  // From 0 to `high`, small numbers as often as large ones.
  std::int64_t Size(std::int64_t high);

 private:
  std::uint64_t state_;
};

struct RandomHistoryOptions {
  Format format = Format::kAnthropicMessages;
  // Whether the provider would accept the history after every step. If not,
  // results may be missing, late, or given twice.
  bool is_valid = true;
  bool has_images = false;
  bool has_thinking = false;
  // The most characters of a result.
  std::int64_t result_size_max = 400;
};

// A session as an agent might send it, step by step.
class RandomHistory {
 public:
  RandomHistory(const RandomHistoryOptions& options, Random& random);

  // What comes between one model call and the next.
  std::vector<std::string> NextStep();

 private:
  std::string Text(std::int64_t size);
  std::string Content();
  std::string Part(absl::string_view text);
  std::string Image();
  std::string Assistant(const std::vector<std::string>& ids);
  std::string Result(const std::string& id);
  void AddResults(std::vector<std::string> ids,
                  std::vector<std::string>& messages);

  bool is_anthropic() const {
    return options_.format == Format::kAnthropicMessages;
  }

  const RandomHistoryOptions options_;
  Random& random_;
  std::int64_t call_count_ = 0;
  bool begun_ = false;
  std::vector<std::string> unanswered_;
  std::vector<std::string> answered_;
};

// A policy that may be set, and prices that a model could have.
Policy RandomPolicy(Random& random);
ModelPrices RandomPrices(Random& random);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_RANDOM_SESSION_H_
