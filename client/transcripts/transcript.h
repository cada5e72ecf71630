// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_TRANSCRIPT_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_TRANSCRIPT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/record.h"

namespace clerestory {

// One message of a session that an agent left behind.
struct TranscriptMessage {
  // One element of the provider's messages array.
  std::string bytes;
  // When its first record was written; 0 if the file does not say.
  TimeMicros time = 0;
  // Of an assistant message, the model that the file names, or "".
  std::string model;
  // What the file says that the call used which this message answers, or is the
  // first to: the prompt is what stands before it.
  std::optional<Usage> usage = {};
};

// A session: the messages in the order in which the provider saw them.
struct Transcript {
  // The kind of file: one of TranscriptSources().
  std::string source;
  // Which session of its file: "" if there is one only, else "#1", "#2", ...
  std::string name;
  Format format = Format::kUnspecified;
  std::vector<TranscriptMessage> messages;
};

// Something in a file that was not read as it stands, or that a reader of the
// result should know. Names lines and call ids, never content.
struct ReadIssue {
  // Counted from 1; 0 if it is the file as a whole.
  std::int64_t line = 0;
  std::string what;
};

struct ReadResult {
  std::vector<Transcript> transcripts;
  std::vector<ReadIssue> issues;
};

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_TRANSCRIPT_H_
