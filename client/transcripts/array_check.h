// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_ARRAY_CHECK_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_ARRAY_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/transcripts/transcript.h"
#include "server/json/document.h"

namespace clerestory {

// A message of an array that is taken as it is, and the line where it begins.
struct ArrayMessage {
  json::Value value;
  std::int64_t line = 0;
};

// What makes `message` no message of the format, or "". Unknown blocks and
// members are no fault.
std::string AnthropicFault(const json::Value& message);
std::string ChatFault(const json::Value& message);

// Adds to `issues` what the provider would refuse in the history `messages`,
// all without fault: calls without a result, unless they are the end; results
// without a call; results behind other blocks; texts without a word.
void CheckAnthropicPairs(const std::vector<ArrayMessage>& messages,
                         std::vector<ReadIssue>& issues);
void CheckChatPairs(const std::vector<ArrayMessage>& messages,
                    std::vector<ReadIssue>& issues);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_ARRAY_CHECK_H_
