// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_TRANSCRIPTS_READ_TRANSCRIPT_H_
#define CLERESTORY_CLIENT_TRANSCRIPTS_READ_TRANSCRIPT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"

namespace clerestory {

// The kinds of files that can be read, in the order in which they are tried.
std::vector<std::string> TranscriptSources();

// Reads the sessions in `contents`, the bytes of a file of kind `source`, or of
// the kind that it looks like if `source` is "auto".
//
// What cannot be read is left out and becomes an issue with its line; the rest
// goes on.
//
// Valid: each transcript is a history that its provider accepts: every call is
// answered before the next assistant message, every result answers a call. Only
// the calls of the very last message may be open. (In the Responses format each
// item is a message: a call is answered somewhere behind it, and those that the
// model made last may be open.) Where the file is broken,
// calls without results, results without calls, and messages that this leaves
// empty are dropped, with an issue each. Kinds that hold the provider's own
// messages array (`anthropic`, `openai-chat`) are the exception: their messages
// keep their bytes, and what the provider would refuse is only reported.
//
// Returns INVALID_ARGUMENT with kFieldInvalid: field `source` if there is no
// such kind; field `contents` if it holds no JSON, is of no known kind, or has
// no message of the kind asked for.
//
// Pure, and linear in the size of `contents`; safe from any thread.
absl::StatusOr<ReadResult> ReadTranscript(absl::string_view contents,
                                          absl::string_view source);

// Reads the file `path` in the same way. If it is a folder, its regular files
// `*.json` are read, sorted by name, as if each were a line of one file; in
// issues a line is then the number of a file. Other files and folders in it are
// ignored.
//
// Returns INVALID_ARGUMENT with kFieldInvalid and field `path` if it cannot be
// read, or is a folder without such files, with more than 20,000 of them, or
// with more than 1 GiB in them; and else what ReadTranscript returns.
absl::StatusOr<ReadResult> ReadTranscriptFile(const std::string& path,
                                              absl::string_view source);

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_TRANSCRIPTS_READ_TRANSCRIPT_H_
