// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BACKTEST_BACKTEST_H_
#define CLERESTORY_SERVER_BACKTEST_BACKTEST_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/backtest/price_source.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/money.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/token_counter.h"
#include "server/view/session_parts.h"

namespace clerestory {

// A session that already happened, to be played again under other policies.
struct BacktestInput {
  Format format = Format::kAnthropicMessages;
  // What the client sent before its messages in every call.
  std::int64_t preamble_tokens = 0;
  struct Message {
    Bytes bytes;
    // When it came; for an assistant message, the time of its model call. 0 is
    // the time of the message before.
    TimeMicros time = 0;
    // The model of the call that an assistant message answers.
    std::string model;
  };
  std::vector<Message> messages;
};

// One model call of a back-test: the view before it, and its answer.
struct BacktestCall {
  ViewServed view;
  std::int64_t output_tokens = 0;
  PicoUsd cost = 0;  // Of input and output.
};

// How many observations or calls `view` masks; what it shows again is none.
std::int64_t MaskedCount(const ViewServed& view);

// What a session costs under a policy.
struct BacktestResult {
  std::vector<BacktestCall> calls;
  PicoUsd cost = 0;
  CallTokens input;
  std::int64_t output_tokens = 0;
  std::array<std::int64_t, kBreakReasonCount> breaks = {};  // By BreakReason.
  // How many observations or calls were masked; and what it would cost more if
  // the model fetched each of them again, once, right after that: a call that
  // reads the prompt and answers with kRefetchOutputTokens, and the tokens that
  // were saved, written anew.
  std::int64_t masked_count = 0;
  PicoUsd refetch_cost = 0;
  // What came of each tool, by its name: what the agent asked for again among
  // it. The messages are what they are, so under a policy that masks more, more
  // of what it asked again for had been masked.
  std::map<std::string, ToolTally> tools;
};

// What a model writes to call a tool again.
inline constexpr std::int64_t kRefetchOutputTokens = 60;

// Asked before each message of a session that is played; an error ends it.
// `observations` is how many there are by then if it answers a model call,
// which looks at them all, and else 0.
using GoOn = std::function<absl::Status(std::int64_t observations)>;

// Plays `input` again under `policy`: a model call before every assistant
// message, with the same decisions and the same estimates as a server would
// make and note. `prices` says what each call costs.
//
// Returns the error of the first message that a server would refuse, with the
// metadata `field`, and what `go_on` returns, which may be null. Deterministic
// and pure.
absl::StatusOr<BacktestResult> Backtest(const BacktestInput& input,
                                        const Policy& policy,
                                        const TokenCounter& counter,
                                        const PriceSource& prices,
                                        const GoOn& go_on = nullptr);

// What the best schedule of breaks would have cost, knowing the whole session,
// had it ended with the first call, with the second, and so on: the cheapest of
// all ways to move the frontier forward over the batches that `policy` makes
// eligible, by dynamic programming over every frontier at every call. All that
// is eligible before the frontier is masked.
//
// Exact for such schedules in a session of one model, its tiers of prices and
// the shortest prompt that it caches included. It knows nothing of the window,
// nor of what pictures and tools do to a cache. A policy may leave out a piece
// before the frontier, so now and then one is cheaper by a little.
//
// Errors as Backtest. Takes time and memory in proportion to calls times
// observations.
absl::StatusOr<std::vector<PicoUsd>> OptimumCosts(const BacktestInput& input,
                                                  const Policy& policy,
                                                  const TokenCounter& counter,
                                                  const PriceSource& prices);

// The same for the whole session; 0 if it has no call.
absl::StatusOr<PicoUsd> OptimumCost(const BacktestInput& input,
                                    const Policy& policy,
                                    const TokenCounter& counter,
                                    const PriceSource& prices);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BACKTEST_BACKTEST_H_
