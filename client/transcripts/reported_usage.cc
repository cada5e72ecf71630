// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/reported_usage.h"

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/json/document.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

std::optional<std::int64_t> TokensIn(const json::Value& object,
                                     absl::string_view name) {
  if (name.empty()) return std::nullopt;
  const std::optional<std::int64_t> tokens = object[name].integer();
  if (!tokens || *tokens < 0 || *tokens > kTokensMax) return std::nullopt;
  return tokens;
}

}  // namespace

std::optional<Usage> ReportedUsage(const json::Value& usage,
                                   const UsageNames& names) {
  const std::optional<std::int64_t> input = TokensIn(usage, names.input);
  if (!input) return std::nullopt;
  const json::Value details =
      names.input_details.empty() ? usage : usage[names.input_details];
  Usage result = {.input_uncached = input,
                  .cache_read = TokensIn(details, names.cache_read),
                  .cache_write = TokensIn(usage, names.cache_write),
                  .output = TokensIn(usage, names.output),
                  .reasoning = TokensIn(usage, names.reasoning)};
  if (names.is_input_whole) {
    const std::int64_t cached =
        result.cache_read.value_or(0) + result.cache_write.value_or(0);
    if (cached > *input) return std::nullopt;
    result.input_uncached = *input - cached;
  }
  if (names.is_reasoning_apart && result.output) {
    *result.output += result.reasoning.value_or(0);
  }
  return result;
}

}  // namespace clerestory
