// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_REASONING_BINDING_H_
#define CLERESTORY_TESTS_SUPPORT_REASONING_BINDING_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/model/message.h"

namespace clerestory {

// A provider that binds reasoning to what stood before it, as Anthropic and
// Bedrock do (platform.claude.com, preserved thinking):
//
// - every message before a block must be as it was sent when the model made
//   the block;
// - each block knows the one before it: a run of blocks may be left out from
//   the beginning of a conversation, but none from the middle of it;
// - of the blocks of a message all stand or none.
//
// Blocks are told apart by their signatures, which have to be unique. In other
// formats nothing is bound. Knows nothing of the service's own adapters.
class ReasoningBinding {
 public:
  explicit ReasoningBinding(Format format) : format_(format) {}

  // The model was sent `view`.
  void Sent(const std::vector<std::string>& view);
  // What follows what was sent: what the model made of it, or the user.
  void Appended(const std::string& message);

  // INVALID_ARGUMENT, in the provider's words, if it would refuse `view`.
  absl::Status Check(const std::vector<std::string>& view) const;
  // INVALID_ARGUMENT if the last turn has calls, and `view` lacks reasoning of
  // it.
  absl::Status CheckLastTurn(const std::vector<std::string>& view) const;

 private:
  struct Parts {
    std::string rest;  // The role and all that is no reasoning; or empty.
    std::vector<std::string> reasoning;  // Signatures.
    bool is_assistant = false;
    bool has_calls = false;
  };
  struct Binding {
    std::string prefix;
    std::string previous;
    std::vector<std::string> siblings;
  };

  Parts PartsOf(const std::string& message) const;
  // The prefix that `parts` are a part of.
  static std::string Then(const std::string& prefix, const Parts& parts);

  const Format format_;
  std::map<std::string, Binding> bindings_;  // By signature.
  // Of what was sent, with what was appended since.
  std::string prefix_;
  std::string last_;
  // The last turn.
  bool is_in_turn_ = false;
  bool has_calls_ = false;
  std::vector<std::string> turn_;
};

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_REASONING_BINDING_H_
