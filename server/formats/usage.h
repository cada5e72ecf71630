// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_USAGE_H_
#define CLERESTORY_SERVER_FORMATS_USAGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/model/message.h"
#include "server/model/record.h"

namespace clerestory {

// Returns what the usage object `json` of a provider that speaks `format` says
// in our classes, between which the vendors draw different lines: Anthropic's
// and Bedrock's input tokens leave out what was cached, OpenAI's and Gemini's
// hold it; Gemini's answer leaves out the thoughts. Where Anthropic gives
// `iterations`, they are summed, since the totals beside them leave out
// compaction. Where Anthropic or Bedrock tell what was written only by the
// lives of the cache, that is summed too. Gemini's usage may be that of its
// Interactions API, and OpenAI's that of Anthropic's endpoint for its clients.
//
// What is absent or null stays absent. Unknown fields are passed over.
//
// Returns INVALID_ARGUMENT with kUsageInvalid and the metadata `field`
// ("usage", "usage.output_tokens") if `json` is no object, if a known field is
// not of its type, or negative, fractional or above kTokensMax, and if the
// input tokens of OpenAI or Gemini are fewer than the cached ones among them.
//
// Pure. REQUIRES: `format` is not kUnspecified.
absl::StatusOr<Usage> ParseUsage(Format format, absl::string_view json);

// Returns the same error, naming the field as the API does
// ("usage.cache_read_tokens"), if a class of `usage` is negative or above
// kTokensMax.
absl::Status CheckUsage(const Usage& usage);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_USAGE_H_
