// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/backtest/backtest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/backtest/price_source.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/candidate.h"
#include "server/view/plan_view.h"
#include "server/view/repeats.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

SessionHeader HeaderOf(const BacktestInput& input) {
  SessionHeader header;
  header.format = input.format;
  return header;
}

// A batch of observations, as a step that the frontier can take.
struct Step {
  std::int64_t tokens_before = 0;  // With the preamble, nothing masked.
  std::int64_t saving = 0;
  std::size_t observations_end = 0;
};

// Plays a session once and calls `on_call(planned view, its answer's tokens,
// its prices)` for every model call. The answer is the assistant's message, or
// in the Responses API the run of its items.
template <typename OnCall>
absl::Status Play(const BacktestInput& input, const Policy& policy,
                  const PriceSource& source, const GoOn& go_on,
                  Session& session, OnCall on_call) {
  TimeMicros now = 0;
  std::string model;
  std::optional<ViewServed> call;       // Of which the answer is not over.
  const ModelPrices* prices = nullptr;  // Of that call.
  std::int64_t output_tokens = 0;
  std::vector<Record> repeats;  // The session keeps what they tell.
  const auto finish_call = [&] {
    if (call.has_value()) on_call(*std::move(call), output_tokens, *prices);
    call.reset();
  };
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    const BacktestInput::Message& message = input.messages[i];
    if (message.time != 0) now = message.time;
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        session.CheckAppend({message.bytes}, i);
    if (!parsed.ok()) return parsed.status();
    const bool is_answer = parsed->front().role == Role::kAssistant;
    const bool goes_on = is_answer && call.has_value() &&
                         input.format == Format::kOpenaiResponses;
    if (!goes_on) finish_call();
    const bool is_call = is_answer && !goes_on;
    if (go_on != nullptr) {
      CLERESTORY_RETURN_IF_ERROR(
          go_on(is_call ? std::ssize(session.observations()) : 0));
    }
    if (is_call) {
      if (!message.model.empty()) model = message.model;
      prices = &source.Of(model, now);
      call = PlanView(session, policy, *prices,
                      {.now = now,
                       .model = model,
                       .preamble_tokens = input.preamble_tokens});
      session.Apply(*call);
      output_tokens = 0;
    }
    output_tokens =
        SaturatingAdd(output_tokens, parsed->front().tokens.total());
    const std::size_t first = session.observations().size();
    session.Append({.time = now, .message = message.bytes},
                   std::move(parsed->front()));
    NoteRepeats(first, now, policy,
                prices != nullptr ? *prices : source.Of(model, now), session,
                repeats);
  }
  finish_call();
  return absl::OkStatus();
}

// What masking each batch of `session`, in which nothing is masked, would save
// under `policy`; batches that save nothing are no steps.
std::vector<Step> StepsOf(const Session& session, const Policy& policy,
                          const ModelPrices& prices,
                          std::int64_t preamble_tokens) {
  std::vector<Step> steps;
  const std::vector<Observation>& all = session.observations();
  for (std::size_t i = 0; i < all.size();) {
    Step step;
    for (const std::int64_t turn = all[i].turn;
         i < all.size() && all[i].turn == turn; ++i) {
      const std::int64_t saving = MaskSaving(session, policy, prices, i);
      if (saving > 0 && step.saving == 0) {
        step.tokens_before = preamble_tokens + all[i].view_tokens_before;
      }
      step.saving += saving;
    }
    step.observations_end = i;
    if (step.saving > 0) steps.push_back(step);
  }
  return steps;
}

// The cheapest way to every frontier, call by call.
class Schedule {
 public:
  explicit Schedule(const std::vector<Step>& steps)
      : steps_(steps), saved_before_(steps.size() + 1) {
    for (std::size_t b = 0; b < steps.size(); ++b) {
      saved_before_[b + 1] = saved_before_[b] + steps[b].saving;
    }
    best_.push_back(0);
  }

  // Adds a call of `tokens`, nothing masked, and its answer, after one of
  // `last_tokens` with `last_prices`. `warm`: whether the cache still holds
  // what that one wrote.
  void AddCall(std::int64_t tokens, std::int64_t output_tokens,
               const ModelPrices& prices, std::int64_t last_tokens,
               const ModelPrices& last_prices, bool warm,
               std::int64_t eligible_count) {
    std::vector<PicoUsd> next;
    // By what a token costs more that is written and not read: the least that a
    // move from a frontier before `b` costs, but for what it writes. As many
    // entries as the model has tiers.
    std::map<PicoUsd, PicoUsd> least_moves;
    const auto rates_of = [&](std::size_t b) {
      return RatesFor(prices, tokens - saved_before_[b], false);
    };
    const auto extra_of = [&](const TokenRates& rates) {
      return warm ? rates.write - rates.read : 0;
    };
    // Whether the last prompt was long enough to be cached, with a frontier.
    const auto was_cached = [&](std::size_t b) {
      return last_tokens - saved_before_[b] >= last_prices.cache_tokens_min;
    };
    for (std::size_t b = 0; b <= steps_.size(); ++b) {
      least_moves[extra_of(rates_of(b))] = std::numeric_limits<PicoUsd>::max();
    }
    for (std::size_t b = 0; b <= steps_.size(); ++b) {
      const bool known = b < best_.size();
      const bool reachable =
          b == 0 || steps_[b - 1].observations_end <=
                        static_cast<std::size_t>(eligible_count);
      if (!known && !reachable) break;
      const TokenRates rates = rates_of(b);
      const PicoUsd extra = extra_of(rates);
      const PicoUsd written = (tokens - saved_before_[b]) * rates.write +
                              output_tokens * rates.output;
      const PicoUsd least_move = least_moves.at(extra);
      PicoUsd cost = std::numeric_limits<PicoUsd>::max();
      if (known) {
        const std::int64_t read =
            was_cached(b) ? last_tokens - saved_before_[b] : 0;
        cost = best_[b] + written - read * extra;
      }
      if (reachable && least_move != std::numeric_limits<PicoUsd>::max()) {
        cost = std::min(cost, least_move + written);
      }
      next.push_back(cost);
      if (!known || b == steps_.size()) continue;
      const std::int64_t before = steps_[b].tokens_before - saved_before_[b];
      const std::int64_t read =
          was_cached(b) ? std::min(before, last_tokens - saved_before_[b]) : 0;
      for (auto& [more, least] : least_moves) {
        least = std::min(least, best_[b] - read * more);
      }
    }
    best_ = std::move(next);
  }

  PicoUsd cost() const { return *std::min_element(best_.begin(), best_.end()); }

 private:
  const std::vector<Step>& steps_;
  std::vector<std::int64_t> saved_before_;
  // The cost so far, by frontier.
  std::vector<PicoUsd> best_;
};

struct PricedCall {
  ViewServed view;
  std::int64_t output_tokens = 0;
  const ModelPrices* prices = nullptr;
};

PicoUsd OutputCost(const ViewServed& view, std::int64_t tokens,
                   const ModelPrices& prices) {
  return SaturatingMultiply(
      tokens, RatesFor(prices, view.view_call.total(), false).output);
}

// What it would cost if all that `view`, the last one of `session`, masks were
// fetched again. What it shows again is no part of that.
PicoUsd RefetchCost(const Session& session, const ViewServed& view,
                    const ModelPrices& prices) {
  std::vector<Mask> masks = view.masks;
  std::erase_if(masks, [](const Mask& mask) { return mask.is_restored; });
  const std::int64_t saved = std::max<std::int64_t>(0, session.SavingOf(masks));
  const PicoUsd call =
      SaturatingAdd(SaturatingMultiply(view.view_call.total(), prices.read),
                    SaturatingMultiply(kRefetchOutputTokens, prices.output));
  return SaturatingAdd(SaturatingMultiply(std::ssize(masks), call),
                       SaturatingMultiply(saved, prices.write));
}

}  // namespace

std::int64_t MaskedCount(const ViewServed& view) {
  return std::ranges::count(view.masks, false, &Mask::is_restored);
}

absl::StatusOr<BacktestResult> Backtest(const BacktestInput& input,
                                        const Policy& policy,
                                        const TokenCounter& counter,
                                        const PriceSource& prices,
                                        const GoOn& go_on) {
  Session session(HeaderOf(input), counter);
  BacktestResult result;
  CLERESTORY_RETURN_IF_ERROR(
      Play(input, policy, prices, go_on, session,
           [&](ViewServed view, std::int64_t output_tokens,
               const ModelPrices& call_prices) {
             BacktestCall call;
             call.output_tokens = output_tokens;
             call.cost = SaturatingAdd(
                 view.view_cost, OutputCost(view, output_tokens, call_prices));
             result.cost = SaturatingAdd(result.cost, call.cost);
             result.input.read += view.view_call.read;
             result.input.written += view.view_call.written;
             result.input.uncached += view.view_call.uncached;
             result.output_tokens += output_tokens;
             ++result.breaks.at(static_cast<std::size_t>(view.break_reason));
             result.masked_count += MaskedCount(view);
             result.refetch_cost = SaturatingAdd(
                 result.refetch_cost, RefetchCost(session, view, call_prices));
             call.view = std::move(view);
             result.calls.push_back(std::move(call));
           }));
  result.tools = session.tools();
  return result;
}

absl::StatusOr<std::vector<PicoUsd>> OptimumCosts(const BacktestInput& input,
                                                  const Policy& policy,
                                                  const TokenCounter& counter,
                                                  const PriceSource& prices) {
  Policy off = policy;
  off.mode = Mode::kOff;
  Session session(HeaderOf(input), counter);
  std::vector<PricedCall> calls;
  CLERESTORY_RETURN_IF_ERROR(
      Play(input, off, prices, nullptr, session,
           [&](ViewServed view, std::int64_t output_tokens,
               const ModelPrices& call_prices) {
             calls.push_back({.view = std::move(view),
                              .output_tokens = output_tokens,
                              .prices = &call_prices});
           }));
  std::vector<PicoUsd> costs;
  if (calls.empty()) return costs;
  const std::vector<Step> steps =
      StepsOf(session, policy, *calls.back().prices, input.preamble_tokens);
  Schedule schedule(steps);
  std::int64_t last_tokens = 0;
  const ModelPrices* last_prices = calls.front().prices;
  for (const PricedCall& call : calls) {
    // With nothing masked, what is not read is exactly what is new or cold.
    const std::int64_t tokens = call.view.raw_call.total();
    const bool warm = call.view.raw_call.read > 0;
    schedule.AddCall(tokens, call.output_tokens, *call.prices, last_tokens,
                     *last_prices, warm, call.view.eligible_count);
    last_tokens = tokens;
    last_prices = call.prices;
    costs.push_back(schedule.cost());
  }
  return costs;
}

absl::StatusOr<PicoUsd> OptimumCost(const BacktestInput& input,
                                    const Policy& policy,
                                    const TokenCounter& counter,
                                    const PriceSource& prices) {
  CLERESTORY_ASSIGN_OR_RETURN(const std::vector<PicoUsd> costs,
                              OptimumCosts(input, policy, counter, prices));
  return costs.empty() ? 0 : costs.back();
}

}  // namespace clerestory
