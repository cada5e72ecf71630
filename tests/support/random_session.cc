// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/random_session.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "tests/support/messages.h"

namespace clerestory {
namespace {

// Pieces of the inside of a JSON string: words, wide letters, and every kind of
// escape.
constexpr absl::string_view kPieces[] = {
    "error: ", "0x7f",    "void f() {}", "\\n",       "\\t",
    "\\\"",    "\\\\",    "\\/",         "caf\u00e9", "\\u00e9",
    "漢字",    "パス",    "한국어",      "😀",        "\\ud83d\\ude00",
    " ",       "\\u0000", "path/to",     ", ",        "</tool>"};

}  // namespace

std::uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::int64_t Random::Between(std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>(Next() % count);
}

std::int64_t Random::Size(std::int64_t high) {
  std::int64_t bits = 0;
  while ((std::int64_t{1} << bits) <= high) ++bits;
  return Between(0, high) >> Between(0, bits);
}

RandomHistory::RandomHistory(const RandomHistoryOptions& options,
                             Random& random)
    : options_(options), random_(random) {}

std::string RandomHistory::Text(std::int64_t size) {
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < size) {
    const auto piece =
        random_.Between(0, static_cast<std::int64_t>(std::size(kPieces)) - 1);
    absl::StrAppend(&text, kPieces[piece]);
    // Most of a large text is plain.
    if (size > 1'000) text.append(static_cast<std::size_t>(size / 20), 'x');
  }
  return text;
}

std::string RandomHistory::Part(absl::string_view text) {
  const absl::string_view mark =
      random_.OneIn(8) ? R"(,"cache_control":{"ttl":"1h","type":"ephemeral"})"
                       : "";
  return absl::StrCat(random_.OneIn(2) ? R"({"type":"text","text":"x)"
                                       : R"({ "type" : "text" , "text":"x)",
                      text, "\"", mark, "}");
}

std::string RandomHistory::Image() {
  if (is_anthropic()) return ImageBlock();
  return R"({"type":"image_url","image_url":{"url":"https://example.com/i"}})";
}

// The content of a result.
std::string RandomHistory::Content() {
  const std::int64_t size = random_.Size(options_.result_size_max);
  switch (random_.Between(0, 9)) {
    case 0:
      return R"("")";
    case 1:
      return R"("ok")";
    case 2:
      return absl::StrCat("[", Part(Text(size)), "]");
    case 3:
      return absl::StrCat("[ ", Part(Text(size / 2)), ",\n", Part(Text(size)),
                          " ]");
    case 4:
      if (!options_.has_images) break;
      return absl::StrCat("[", Part(Text(size)), ",", Image(), "]");
    case 5:
      if (!options_.has_images) break;
      return absl::StrCat("[", Image(), "]");
    case 6:
      if (!is_anthropic()) break;
      return R"([{"type":"tool_reference","tool_name":"grep_the_whole_tree"}])";
    default:
      break;
  }
  return absl::StrCat("\"", Text(size), "\"");
}

std::string RandomHistory::Result(const std::string& id) {
  const std::string content = Content();
  if (!is_anthropic()) {
    if (random_.OneIn(3)) {
      return absl::StrCat(R"({"content":)", content, R"(, "tool_call_id":")",
                          id, R"(","role":"tool","x":1.50e+3})");
    }
    return ResultMessages(options_.format, {{.id = id, .content = content}})[0];
  }
  const absl::string_view error = random_.OneIn(6) ? R"(,"is_error":true)" : "";
  if (random_.OneIn(12)) {
    return absl::StrCat(R"({"type":"tool_result","tool_use_id":")", id, "\"}");
  }
  if (random_.OneIn(3)) {
    return absl::StrCat(R"({ "content" : )", content,
                        R"(,"cache_control":{"type":"ephemeral"},)",
                        R"("tool_use_id":")", id, R"(","type":"tool_result")",
                        error, "}");
  }
  return absl::StrCat(R"({"type":"tool_result","tool_use_id":")", id, "\"",
                      error, R"(,"content":)", content, "}");
}

void RandomHistory::AddResults(std::vector<std::string> ids,
                               std::vector<std::string>& messages) {
  if (ids.empty()) return;
  for (std::size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[static_cast<std::size_t>(random_.Between(
                              0, static_cast<std::int64_t>(i) - 1))]);
  }
  std::vector<std::string> parts;
  for (const std::string& id : ids) parts.push_back(Result(id));
  if (!is_anthropic()) {
    messages.insert(messages.end(), parts.begin(), parts.end());
    return;
  }
  if (random_.OneIn(8)) parts.push_back(TextBlock("go on"));
  if (random_.OneIn(12)) parts.push_back(R"({"type":"from_the_future","n":1})");
  if (options_.has_images && random_.OneIn(30)) parts.push_back(ImageBlock());
  messages.push_back(AnthropicUser(parts));
}

std::string RandomHistory::Assistant(const std::vector<std::string>& ids) {
  const std::string text =
      ids.empty() || random_.OneIn(2) ? "x" + Text(random_.Size(300)) : "";
  std::vector<CallSpec> calls;
  for (const std::string& id : ids) {
    calls.push_back({.id = id,
                     .tool = random_.OneIn(2) ? "read" : "bash",
                     .arguments = absl::StrCat(
                         R"({"path":"x)", Text(random_.Size(100)), R"("})")});
  }
  if (!options_.has_thinking || !is_anthropic() || !random_.OneIn(5)) {
    // The text is the inside of a literal already; what it shows is as good.
    return AssistantMessage(options_.format, text, calls);
  }
  std::vector<std::string> blocks = {ThinkingBlock()};
  if (!text.empty()) blocks.push_back(TextBlock(text));
  for (const CallSpec& call : calls) {
    blocks.push_back(absl::StrCat(R"({"type":"tool_use","id":")", call.id,
                                  R"(","name":"read","input":)", call.arguments,
                                  "}"));
  }
  return AnthropicAssistant(blocks);
}

std::vector<std::string> RandomHistory::NextStep() {
  std::vector<std::string> messages;
  if (!begun_) {
    begun_ = true;
    if (!is_anthropic()) {
      messages.emplace_back(R"({"role":"system","content":"be brief"})");
    }
    messages.push_back(UserMessage(options_.format, "x" + Text(50)));
    return messages;
  }
  std::vector<std::string> ids;
  const std::int64_t count =
      random_.OneIn(3) ? random_.Between(0, 5) : random_.Between(0, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    // Some servers number the calls of each turn from 0.
    ids.push_back(random_.OneIn(10) ? absl::StrCat("call_", i)
                                    : absl::StrCat("c", call_count_++));
  }
  messages.push_back(Assistant(ids));
  if (options_.is_valid) {
    AddResults(ids, messages);
  } else {
    std::vector<std::string> now;
    for (const std::string& id : ids) {
      (random_.OneIn(4) ? unanswered_ : now).push_back(id);
    }
    if (!unanswered_.empty() && random_.OneIn(3)) {
      now.push_back(unanswered_.back());  // Late.
      unanswered_.pop_back();
    }
    if (!answered_.empty() && random_.OneIn(6)) now.push_back(answered_.back());
    AddResults(now, messages);
    answered_.insert(answered_.end(), now.begin(), now.end());
  }
  if (count == 0 || random_.OneIn(10)) {
    messages.push_back(
        UserMessage(options_.format, "x" + Text(random_.Size(800))));
  }
  return messages;
}

Policy RandomPolicy(Random& random) {
  Policy policy;
  switch (random.Between(0, 9)) {
    case 0:
      policy.mode = Mode::kOff;
      break;
    case 1:
      policy.mode = Mode::kBlock;
      policy.block_size = random.Between(1, 8);
      break;
    case 2:
      policy.mode = Mode::kThreshold;
      policy.threshold_tokens = random.Between(1, 8'000);
      policy.low_water_tokens = random.Between(0, policy.threshold_tokens);
      break;
    case 3:
      policy.mode = Mode::kEveryTurn;
      break;
    default:
      break;
  }
  if (random.OneIn(2)) {
    policy.first_break_percent = random.Between(1, 300);
    policy.later_break_percent = random.Between(1, 300);
  }
  policy.keep_observations = random.Between(kKeepObservationsMin, 10);
  if (random.OneIn(3)) policy.keep_turns = random.Between(1, 8);
  if (random.OneIn(4)) policy.reclaim_tokens_min = random.Size(2'000);
  if (random.OneIn(3)) {
    policy.window_tokens = random.Between(100, 20'000);
    policy.reserve_tokens = random.Between(0, policy.window_tokens - 1);
  }
  if (random.OneIn(3)) policy.placeholder = "~";
  if (random.OneIn(6)) policy.placeholder = R"("""""""""" {size})";
  return policy;
}

ModelPrices RandomPrices(Random& random) {
  ModelPrices prices;
  prices.model = "m";
  prices.read = random.Between(1, 10);
  prices.write = prices.read + random.Size(200);
  prices.input = prices.write;
  prices.output = random.Between(0, 100);
  prices.window_tokens = 1'000'000'000;
  prices.output_tokens_max = 8'000;
  prices.cache_ttl_seconds = 300;
  prices.reasoning_prefix_bound = random.OneIn(4);
  return prices;
}

}  // namespace clerestory
