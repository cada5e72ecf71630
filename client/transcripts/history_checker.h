// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_HISTORY_CHECKER_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_HISTORY_CHECKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/transcripts/transcript.h"

namespace clerestory {

// For tests: the rules of the providers, written without a look at the
// importers.

// What the provider of `transcript` would refuse in it, by message; "" if
// nothing. Calls of the last message may be open. With `blank_is_valid` it says
// nothing of texts without a word, which messages arrays keep.
std::string FaultOf(const Transcript& transcript, bool blank_is_valid = false);

struct HistoryCounts {
  std::int64_t messages = 0;
  std::int64_t answers = 0;  // Messages of the assistant or the model.
  std::int64_t calls = 0;
  std::int64_t results = 0;
};

HistoryCounts CountsOf(const std::vector<Transcript>& transcripts);

// The bytes of each message.
std::vector<std::string> BytesOf(const Transcript& transcript);

// The issues as text: "LINE WHAT; LINE WHAT".
std::string TextOf(const std::vector<ReadIssue>& issues);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_HISTORY_CHECKER_H_
