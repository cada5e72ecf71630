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
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "tests/support/messages.h"

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
  // One assistant message in so many thinks, if any does.
  std::int64_t thinking_one_in = 5;
  // Whether one may consist of nothing else.
  bool has_lone_thinking = false;
  // Whether there are blocks and fields that nobody knows.
  bool has_unknown = true;
  // Whether calls and their results are repeated now and then.
  bool repeats = false;
  // Whether some calls are of the tool that recalls what is masked.
  bool has_recall_tool = false;
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
  struct RandomCall {
    std::string id;
    std::string tool;
    std::string kind;        // The type of its item in Responses.
    std::int64_t index = 0;  // In its turn.
  };

  std::string Text(std::int64_t size);
  // Whether a cache mark goes here: one time in `one_in`, while it may.
  bool Marks(std::int64_t one_in);
  // `json` with other white space, and letters escaped.
  std::string Respell(absl::string_view json);
  // `message`, perhaps respelled and with a field that nobody knows.
  std::string Finish(std::string message);

  std::string Arguments();
  std::string Content();
  std::string NewContent();
  // Reasoning, each with a signature of its own.
  std::string Thinking();
  std::string Part(absl::string_view text);
  std::string Image();
  std::string MediaPart();

  RandomCall NewCall(std::int64_t index);
  void AddAssistant(const std::vector<RandomCall>& calls,
                    std::vector<std::string>& messages);
  void AddItems(const std::vector<RandomCall>& calls, const std::string& text,
                const std::vector<CallSpec>& specs, bool thinks,
                std::vector<std::string>& messages);
  std::string PartsOf(const std::string& text,
                      const std::vector<CallSpec>& specs, bool thinks);

  std::string Result(const RandomCall& call);
  std::string AnthropicResult(const std::string& id);
  std::string ChatResult(const std::string& id);
  std::string OutputItem(const RandomCall& call, const std::string& text);
  std::string GeminiResult(const RandomCall& call, const std::string& text);
  std::string ConverseResult(const RandomCall& call, const std::string& text);
  // The results of `calls`, and what the user says then, unless it is empty.
  void AddResults(std::vector<RandomCall> calls, absl::string_view text,
                  std::vector<std::string>& messages);
  void AddUserParts(std::vector<std::string> parts, absl::string_view text,
                    std::vector<std::string>& messages);

  bool is_anthropic() const {
    return options_.format == Format::kAnthropicMessages;
  }
  bool is_gemini() const { return options_.format == Format::kGemini; }
  bool is_converse() const {
    return options_.format == Format::kBedrockConverse;
  }
  // Whether each result is a message of its own.
  bool has_items() const {
    return options_.format == Format::kOpenaiChat ||
           options_.format == Format::kOpenaiResponses;
  }

  const RandomHistoryOptions options_;
  Random& random_;
  std::int64_t call_count_ = 0;
  std::int64_t item_count_ = 0;
  std::int64_t mark_count_ = 0;
  bool begun_ = false;
  std::vector<RandomCall> unanswered_;
  std::vector<RandomCall> answered_;
  std::vector<std::string> contents_;
};

// A policy that may be set, and prices that a model could have.
Policy RandomPolicy(Random& random);
ModelPrices RandomPrices(Random& random);

// The same with what changes which observations are kept: tokens, rules of
// tools, copies; and how long the client asks to cache.
Policy RandomPolicyWithRules(Random& random);
// The same with tiers, a least size of what is cached, a long life, or no
// cache.
ModelPrices RandomPricesWithTiers(Random& random);

// What a provider might report of a call that was estimated so: mostly what was
// expected, or nothing found, written or not, or something else altogether.
Usage RandomUsage(const CallTokens& expected, Random& random);

// The number that the environment variable `name` holds, for a test to be
// played again with a seed; `otherwise` if it holds none.
std::uint64_t NumberFromEnvironment(const char* name, std::uint64_t otherwise);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_RANDOM_SESSION_H_
