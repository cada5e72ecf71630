// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_REPORTED_USAGE_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_REPORTED_USAGE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "server/json/document.h"
#include "server/model/record.h"

namespace clerestory {

// How an agent writes down what a call used. A name that is "" is of nothing
// that it writes.
struct UsageNames {
  absl::string_view input;
  absl::string_view cache_read = "";
  absl::string_view cache_write = "";
  absl::string_view output = "";
  absl::string_view reasoning = "";
  // Where OpenAI puts what was read from the cache, an object beside `input`.
  absl::string_view input_details = "";
  // Whether the input holds what was read from the cache and written to it.
  bool is_input_whole = false;
  // Whether the output leaves out the reasoning.
  bool is_reasoning_apart = false;
};

inline constexpr UsageNames kAnthropicUsage = {
    .input = "input_tokens",
    .cache_read = "cache_read_input_tokens",
    .cache_write = "cache_creation_input_tokens",
    .output = "output_tokens"};

inline constexpr UsageNames kChatUsage = {
    .input = "prompt_tokens",
    .cache_read = "cached_tokens",
    .output = "completion_tokens",
    .input_details = "prompt_tokens_details",
    .is_input_whole = true};

// Returns what `usage` says in our classes; absent if it is no object, if it
// does not tell the input, or if what it tells is no number of tokens. Pure.
std::optional<Usage> ReportedUsage(const json::Value& usage,
                                   const UsageNames& names);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_REPORTED_USAGE_H_
