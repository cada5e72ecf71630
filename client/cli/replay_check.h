// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_REPLAY_CHECK_H_
#define CLERESTORY_CLIENT_CLI_REPLAY_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clerestory/v1/view_service.pb.h"
#include "server/base/digest.h"
#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// Looks at every view that a server answers as the provider and the agent
// would, knowing nothing but what was appended: is it what was promised, and
// what does a prompt cache do with it?
class ReplayCheck {
 public:
  // `counter` must outlive it.
  ReplayCheck(Format format, std::int64_t preamble_tokens,
              const TokenCounter& counter)
      : format_(format), preamble_tokens_(preamble_tokens), counter_(counter) {}

  // Takes the view answered for a history of `history` at `now`, and returns
  // what the provider's cache would do with it. `view` is kept until the next
  // one.
  //
  // Checked are: one message for each of the history; a message that differs is
  // a masked one of the same role, with the same calls and results in the same
  // order (valid); the view begins with the bytes of the one before it, or up
  // to the message that its break names (prefix-stable); what a break shows
  // again has the bytes that were appended; the digests are those of the bytes.
  //
  // Where a break leaves out reasoning, the messages are compared without it,
  // and none of it may come back. From a break on that drops calls or masks
  // their arguments only this, the prefix and the digests are checked: which
  // messages are left out, and what stands in them, is then for the server to
  // say. calls_edited() says so.
  CallTokens Add(const std::vector<std::string>& history,
                 v1::BuildViewResponse view, TimeMicros now,
                 const std::string& model);

  // Notes that what was read back of message `sequence` has other bytes.
  void NoteLoss(std::int64_t sequence);

  // What was wrong, a sentence each, by promise.
  const std::vector<std::string>& lossless() const { return lossless_; }
  const std::vector<std::string>& valid() const { return valid_; }
  const std::vector<std::string>& prefix_stable() const {
    return prefix_stable_;
  }
  // Whether a break dropped calls or masked their arguments.
  bool calls_edited() const { return calls_edited_; }
  // Calls of which the server expected something else of the cache: no promise,
  // but worth knowing.
  const std::vector<std::string>& estimates() const { return estimates_; }

 private:
  // Returns the messages that are left of `history` where only reasoning is
  // left out.
  std::vector<std::size_t> CheckMessages(
      const std::vector<std::string>& history,
      const v1::BuildViewResponse& view);
  // Whether, and where, `view` has other reasoning than `reasoning`, of each
  // element so many.
  bool ShowsMore(const v1::BuildViewResponse& view,
                 std::map<std::string, std::int64_t> reasoning);
  void CheckMessage(std::size_t index, const std::string& appended,
                    const std::string& shown);
  void CheckRestored(const std::vector<std::string>& history,
                     const v1::BuildViewResponse& view,
                     const std::vector<std::size_t>& left);
  // Whether `view` shows what was appended of the observation.
  bool ShowsOriginal(const std::string& observation_id,
                     const std::vector<std::string>& history,
                     const v1::BuildViewResponse& view,
                     const std::vector<std::size_t>& left) const;
  void CheckPrefix(const v1::BuildViewResponse& view,
                   const std::vector<std::size_t>& left);
  void CheckDigests(const v1::BuildViewResponse& view);
  std::int64_t TokensOf(const std::string& message) const;
  bool HasImage(const v1::BuildViewResponse& view) const;
  // The tokens of `view` that a cache which holds `held` has.
  std::int64_t ReadTokens(const v1::BuildViewResponse& held,
                          const v1::BuildViewResponse& view) const;

  const Format format_;
  const std::int64_t preamble_tokens_;
  const TokenCounter& counter_;

  bool calls_edited_ = false;
  // Whether reasoning was left out, and of which messages of the history.
  bool messages_edited_ = false;
  std::vector<bool> stripped_;
  std::int64_t view_count_ = 0;
  v1::BuildViewResponse last_;
  // What the cache of each model holds.
  struct HeldPrompt {
    v1::BuildViewResponse view;
    bool is_cached = false;
    TimeMicros time = 0;
  };
  std::map<std::string, HeldPrompt> held_;

  std::vector<std::string> lossless_;
  std::vector<std::string> valid_;
  std::vector<std::string> prefix_stable_;
  std::vector<std::string> estimates_;
};

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_REPLAY_CHECK_H_
