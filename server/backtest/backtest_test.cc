// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/backtest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/backtest/price_source.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "tests/support/messages.h"
#include "tests/support/random_session.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

// Sessions begin at no time in particular.
const ModelPrices& PricesOf(absl::string_view model) {
  return BuiltInPrices().Of(model, 0);
}

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};
constexpr const char* kModel = "claude-sonnet-4-6";  // 5 minutes of cache.
constexpr TimeMicros kStart = 1'000 * kMicrosPerSecond;

// A turn of a session: how many tokens its results have, and the pause before
// its call.
struct Turn {
  std::vector<std::int64_t> results;
  std::int64_t pause_seconds = 1;
};

// A session of one question, `turns`, and an answer.
BacktestInput InputOf(Format format, const std::vector<Turn>& turns,
                      const std::string& model = kModel) {
  BacktestInput input;
  input.format = format;
  input.preamble_tokens = 5'000;  // More than any cache asks for.
  const auto add = [&](const std::string& message, TimeMicros time,
                       const std::string& of_model) {
    input.messages.push_back(
        {.bytes = ToBytes(message), .time = time, .model = of_model});
  };
  TimeMicros now = kStart;
  add(UserMessage(format, std::string(40, 'u')), now, "");
  std::int64_t id = 0;
  for (const Turn& turn : turns) {
    now += turn.pause_seconds * kMicrosPerSecond;
    std::vector<CallSpec> calls;
    std::vector<ResultSpec> results;
    for (const std::int64_t tokens : turn.results) {
      calls.push_back({.id = absl::StrCat("c", id++)});
      results.push_back(
          {.id = calls.back().id,
           .content = LiteralOf(static_cast<std::size_t>(tokens))});
    }
    add(AssistantMessage(format, "", calls), now, model);
    for (const std::string& message : ResultMessages(format, results)) {
      add(message, 0, "");
    }
  }
  add(AssistantMessage(format, "done"), now + kMicrosPerSecond, model);
  return input;
}

std::vector<Turn> RandomTurns(Random& random) {
  std::vector<Turn> turns(static_cast<std::size_t>(random.Between(1, 7)));
  for (Turn& turn : turns) {
    const std::int64_t count = random.OneIn(2) ? random.Between(1, 4) : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      turn.results.push_back(random.Size(4'000) + 1);
    }
    if (random.OneIn(6)) turn.pause_seconds = 301;
  }
  return turns;
}

// --- Backtest ----------------------------------------------------------------

TEST(BacktestTest, IsTheSumOfItsCalls) {
  Random random(7);
  for (int i = 0; i < 50; ++i) {
    Policy policy = PlainPolicy();
    if (i % 3 == 0) policy.mode = Mode::kEveryTurn;
    const absl::StatusOr<BacktestResult> result =
        Backtest(InputOf(kFormats[i % 2], RandomTurns(random)), policy,
                 CharacterCounter(), ListPrices());
    ASSERT_THAT(result, IsOk());
    const ModelPrices& prices = PricesOf(kModel);
    PicoUsd cost = 0;
    CallTokens input;
    std::int64_t output = 0;
    std::array<std::int64_t, kBreakReasonCount> breaks = {};
    for (const BacktestCall& call : result->calls) {
      EXPECT_EQ(call.cost, call.view.view_call.read * prices.read +
                               call.view.view_call.written * prices.write +
                               call.output_tokens * prices.output);
      cost += call.cost;
      input.read += call.view.view_call.read;
      input.written += call.view.view_call.written;
      output += call.output_tokens;
      ++breaks.at(static_cast<std::size_t>(call.view.break_reason));
    }
    EXPECT_EQ(result->cost, cost);
    EXPECT_EQ(result->input, input);
    EXPECT_EQ(result->output_tokens, output);
    EXPECT_EQ(result->breaks, breaks);
  }
}

TEST(BacktestTest, FetchingAgainCostsACallAndTheTokensForEachMask) {
  const BacktestInput input = InputOf(
      Format::kAnthropicMessages,
      {{.results = {900}}, {.results = {10, 10, 10}}, {.results = {10}}});
  Policy policy = PlainPolicy();
  policy.mode = Mode::kEveryTurn;
  const absl::StatusOr<BacktestResult> result =
      Backtest(input, policy, CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  const ModelPrices& prices = PricesOf(kModel);
  std::int64_t masked = 0;
  std::int64_t saved = 0;
  PicoUsd cost = 0;
  for (const BacktestCall& call : result->calls) {
    const auto masks = static_cast<std::int64_t>(call.view.masks.size());
    masked += masks;
    cost += masks * (call.view.view_call.total() * prices.read +
                     kRefetchOutputTokens * prices.output);
    saved = call.view.raw_tokens.total() - call.view.view_tokens.total();
  }
  ASSERT_GT(saved, 800);
  EXPECT_EQ(result->masked_count, masked);
  EXPECT_EQ(result->refetch_cost, cost + saved * prices.write);
}

TEST(BacktestTest, DecidesAsAServerWould) {
  Random random(8);
  for (int i = 0; i < 50; ++i) {
    const BacktestInput input = InputOf(kFormats[i % 2], RandomTurns(random));
    const absl::StatusOr<BacktestResult> result =
        Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices());
    ASSERT_THAT(result, IsOk());
    ScriptedSession server(input.format);
    server.prices = PricesOf(kModel);
    server.model = kModel;
    server.preamble_tokens = input.preamble_tokens;
    std::size_t call = 0;
    for (const BacktestInput::Message& message : input.messages) {
      if (message.time != 0) server.now = message.time;
      if (!message.model.empty()) {
        EXPECT_EQ(server.Serve().decision, result->calls[call++].view);
      }
      server.Append(*message.bytes);
    }
    EXPECT_EQ(call, result->calls.size());
  }
}

TEST(BacktestTest, MakesACallBeforeEveryAssistantMessageAtItsTime) {
  const BacktestInput input =
      InputOf(Format::kAnthropicMessages,
              {{.results = {10}}, {.results = {20}, .pause_seconds = 9}});
  const absl::StatusOr<BacktestResult> result =
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->calls.size(), 3U);
  EXPECT_EQ(result->calls[0].view.message_count, 1);
  EXPECT_EQ(result->calls[1].view.message_count, 3);
  EXPECT_EQ(result->calls[2].view.message_count, 5);
  EXPECT_EQ(result->calls[0].view.time, kStart + kMicrosPerSecond);
  EXPECT_EQ(result->calls[1].view.time, kStart + 10 * kMicrosPerSecond);
}

TEST(BacktestTest, ARunOfResponsesItemsIsOneAnswer) {
  BacktestInput input;
  input.format = Format::kOpenaiResponses;
  const auto add = [&](const std::string& item) {
    input.messages.push_back(
        {.bytes = ToBytes(item), .time = kStart, .model = kModel});
  };
  add(UserMessage(input.format, "go"));
  for (const char* const id : {"a", "b"}) {
    add(absl::StrCat(R"({"type":"reasoning","summary":[],"encrypted_content":)",
                     LiteralOf(500), "}"));
    add(AssistantMessage(input.format, "", {{.id = id}}));
    add(ResultMessages(input.format, {{.id = id, .content = LiteralOf(9)}})[0]);
  }
  add(AssistantMessage(input.format, "done"));
  const auto result =
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  ASSERT_EQ(result->calls.size(), 3U);
  EXPECT_GT(result->calls[0].output_tokens, result->calls[2].output_tokens)
      << "the reasoning and the call";
}

TEST(BacktestTest, AMessageWithoutATimeHasThatOfTheOneBefore) {
  BacktestInput input =
      InputOf(Format::kAnthropicMessages, {{.results = {10}}});
  input.messages.back().time = 0;
  const absl::StatusOr<BacktestResult> result =
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->calls[1].view.time, result->calls[0].view.time);
}

TEST(BacktestTest, PricesEveryCallWithItsOwnModel) {
  BacktestInput input =
      InputOf(Format::kOpenaiChat, {{.results = {10}}, {.results = {20}}});
  input.messages.back().model = "gpt-5.4";
  const absl::StatusOr<BacktestResult> result =
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  const BacktestCall& last = result->calls.back();
  EXPECT_EQ(last.view.model, "gpt-5.4");
  EXPECT_EQ(last.view.view_call.read, 0) << "it has a cache of its own";
  EXPECT_EQ(last.cost, last.view.view_call.written * PricesOf("gpt-5.4").write +
                           last.output_tokens * PricesOf("gpt-5.4").output);
}

TEST(BacktestTest, ASessionWithoutCallsCostsNothing) {
  BacktestInput input;
  input.messages.push_back({.bytes = ToBytes(UserMessage(input.format, "hi")),
                            .time = 1,
                            .model = {}});
  EXPECT_EQ(
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices())->cost,
      0);
  EXPECT_EQ(
      *OptimumCost(input, PlainPolicy(), CharacterCounter(), ListPrices()), 0);
}

TEST(BacktestTest, NamesTheFirstMessageThatAServerWouldRefuse) {
  BacktestInput input =
      InputOf(Format::kAnthropicMessages, {{.results = {10}}});
  input.messages[2].bytes = ToBytes("{");
  const absl::Status statuses[] = {
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices()).status(),
      OptimumCost(input, PlainPolicy(), CharacterCounter(), ListPrices())
          .status()};
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                  Reason::kMessageInvalid));
    EXPECT_EQ(MetadataOf(status, "field"), "messages[2]");
  }
}

// --- OptimumCost -------------------------------------------------------------

// All ways to move the frontier forward over the batches of a session, tried
// one by one and added up from scratch.
class BruteForce {
 public:
  BruteForce(const std::vector<Turn>& turns, std::int64_t keep,
             const ModelPrices& prices)
      : turns_(turns), keep_(keep), prices_(prices) {}

  PicoUsd Cost() const { return Best(0, 0); }

 private:
  static constexpr std::int64_t kPlaceholder = 8;

  static std::int64_t CallTokensOf(const Turn& turn) {
    return 3 * static_cast<std::int64_t>(turn.results.size());
  }

  // The prompt of the call after `turns` turns, the first `frontier` masked.
  std::int64_t Prompt(std::size_t turns, std::size_t frontier) const {
    std::int64_t tokens = 5'000 + 40;
    for (std::size_t t = 0; t < turns; ++t) {
      tokens += CallTokensOf(turns_[t]);
      for (const std::int64_t result : turns_[t].results) {
        tokens += t < frontier ? std::min(result, kPlaceholder) : result;
      }
    }
    return tokens;
  }

  // How much of it stands before the first result that changes when turns from
  // `frontier` up to `next` are masked; all, if none does.
  std::int64_t Unchanged(std::size_t turns, std::size_t frontier,
                         std::size_t next) const {
    for (std::size_t t = frontier; t < next; ++t) {
      std::int64_t tokens = Prompt(t, frontier) + CallTokensOf(turns_[t]);
      for (const std::int64_t result : turns_[t].results) {
        if (result > kPlaceholder) return tokens;
        tokens += result;
      }
    }
    return Prompt(turns, frontier);
  }

  // What a token costs in a call of `prompt` tokens.
  TokenRates Rates(std::int64_t prompt) const {
    TokenRates rates = {.input = prices_.input,
                        .write = prices_.write,
                        .read = prices_.read,
                        .output = prices_.output};
    for (const PriceTier& tier : prices_.tiers) {
      if (prompt > tier.above_tokens) {
        rates = {.input = tier.input,
                 .write = tier.write,
                 .read = tier.read,
                 .output = tier.output};
      }
    }
    if (prompt < prices_.cache_tokens_min) {
      rates.read = rates.input;
      rates.write = rates.input;
    }
    return rates;
  }

  // How many turns may be masked in the call after `turns` turns.
  std::size_t Eligible(std::size_t turns) const {
    std::size_t eligible = 0;
    for (std::size_t t = 0; t + 1 < turns; ++t) {
      std::int64_t newer = 0;
      for (std::size_t u = t + 1; u < turns; ++u) {
        newer += static_cast<std::int64_t>(turns_[u].results.size());
      }
      if (newer >= keep_) eligible = t + 1;
    }
    return eligible;
  }

  // The least that the calls from the one after `turns` turns on can cost.
  PicoUsd Best(std::size_t turns, std::size_t frontier) const {
    if (turns > turns_.size()) return 0;
    const bool cold = turns == 0 || (turns < turns_.size() &&
                                     turns_[turns].pause_seconds > 300);
    // What the call before was too short for is not in the cache.
    const bool has_cache =
        !cold && Prompt(turns - 1, frontier) >= prices_.cache_tokens_min;
    const std::int64_t answer =
        turns < turns_.size() ? CallTokensOf(turns_[turns]) : 4;  // "done"
    PicoUsd best = std::numeric_limits<PicoUsd>::max();
    for (std::size_t next = frontier;
         next <= std::max(frontier, Eligible(turns)); ++next) {
      const std::int64_t read = has_cache
                                    ? std::min(Prompt(turns - 1, frontier),
                                               Unchanged(turns, frontier, next))
                                    : 0;
      const std::int64_t prompt = Prompt(turns, next);
      const TokenRates rates = Rates(prompt);
      best = std::min(best, read * rates.read + (prompt - read) * rates.write +
                                answer * rates.output + Best(turns + 1, next));
    }
    return best;
  }

  const std::vector<Turn>& turns_;
  const std::int64_t keep_;
  const ModelPrices& prices_;
};

TEST(OptimumCostTest, IsTheLeastOfAllSchedules) {
  Random random(9);
  std::int64_t masked = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<Turn> turns = RandomTurns(random);
    const std::string model =
        random.OneIn(2) ? "claude-sonnet-4-6" : "claude-opus-5-5";
    const ModelPrices& prices = PricesOf(model);
    const BacktestInput input = InputOf(kFormats[i % 2], turns, model);
    const absl::StatusOr<PicoUsd> optimum =
        OptimumCost(input, PlainPolicy(), CharacterCounter(), ListPrices());
    ASSERT_THAT(optimum, IsOk());
    EXPECT_EQ(*optimum,
              BruteForce(turns, PlainPolicy().keep_observations, prices).Cost())
        << i;
    Policy off = PlainPolicy();
    off.mode = Mode::kOff;
    const PicoUsd raw =
        Backtest(input, off, CharacterCounter(), ListPrices())->cost;
    EXPECT_LE(*optimum, raw);
    if (*optimum < raw) ++masked;
  }
  EXPECT_GT(masked, 100) << "sessions that are worth a test";
}

// Prompts have from 5,000 to some 20,000 tokens, so that masking moves them
// over the borders of tiers, and below the shortest that is cached.
TEST(OptimumCostTest, IsTheLeastOfAllSchedulesWithTiersAndAMinimum) {
  Random random(10);
  for (const absl::string_view structure : PriceStructureNames()) {
    int differing = 0;
    for (int i = 0; i < 200; ++i) {
      ModelPrices prices = FindPriceStructure(structure)->Of(kModel, kStart);
      if (i % 3 != 0) {
        std::int64_t above = 0;
        for (const std::int64_t percent : {150, 200}) {
          above += random.Between(3'000, 6'000);
          prices.tiers.push_back({.above_tokens = above,
                                  .input = prices.input * percent / 100,
                                  .write = prices.write * percent / 100,
                                  .long_write = 0,
                                  .read = prices.read * percent / 100,
                                  .output = prices.output * percent / 100});
        }
      }
      if (i % 3 != 1) prices.cache_tokens_min = random.Between(5'000, 9'000);
      const std::vector<Turn> turns = RandomTurns(random);
      const absl::StatusOr<PicoUsd> optimum =
          OptimumCost(InputOf(kFormats[i % 2], turns), PlainPolicy(),
                      CharacterCounter(), FixedPrices(prices));
      ASSERT_THAT(optimum, IsOk());
      const std::int64_t keep = PlainPolicy().keep_observations;
      EXPECT_EQ(*optimum, BruteForce(turns, keep, prices).Cost())
          << std::string(structure) << " " << i;
      const ModelPrices plain =
          FindPriceStructure(structure)->Of(kModel, kStart);
      if (*optimum != BruteForce(turns, keep, plain).Cost()) ++differing;
    }
    EXPECT_GT(differing, 50) << std::string(structure);
  }
}

TEST(BacktestTest, SumsStayAtTheLargestValue) {
  // What a caller may say: each call writes all of the preamble.
  BacktestInput input = InputOf(
      Format::kAnthropicMessages,
      std::vector<Turn>(5'000, {.results = {1}, .pause_seconds = 7'200}));
  ASSERT_GE(input.messages.size(), 10'001U);
  input.preamble_tokens = kTokensMax;
  const auto result =
      Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->cost, std::numeric_limits<PicoUsd>::max());
  EXPECT_GE(result->refetch_cost, 0);
}

TEST(BacktestTest, IsAskedBeforeEachMessageWhetherToGoOn) {
  const BacktestInput input =
      InputOf(Format::kAnthropicMessages, {{.results = {1, 1}}, {{2}}});
  std::vector<std::int64_t> asked;
  const auto played = [&](std::size_t most) {
    asked.clear();
    return Backtest(input, PlainPolicy(), CharacterCounter(), ListPrices(),
                    [&](std::int64_t observations) {
                      asked.push_back(observations);
                      return asked.size() > most
                                 ? absl::CancelledError("enough")
                                 : absl::OkStatus();
                    });
  };
  EXPECT_THAT(played(100), IsOk());
  // The question, two calls with their results, and the last answer.
  EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 0, 0, 2, 0, 3}));
  EXPECT_EQ(played(2).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked.size(), 3U);
}

TEST(OptimumCostTest, MasksForNothingWhenTheCacheIsCold) {
  const std::vector<Turn> turns = {{.results = {4'000}},
                                   {.results = {10, 10, 10}},
                                   {.results = {10}, .pause_seconds = 301}};
  const BacktestInput input = InputOf(Format::kAnthropicMessages, turns);
  Policy adaptive = PlainPolicy();
  EXPECT_EQ(*OptimumCost(input, adaptive, CharacterCounter(), ListPrices()),
            Backtest(input, adaptive, CharacterCounter(), ListPrices())->cost);
}

}  // namespace
}  // namespace clerestory
