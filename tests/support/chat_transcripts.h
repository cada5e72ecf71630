// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_CHAT_TRANSCRIPTS_H_
#define CLERESTORY_TESTS_SUPPORT_CHAT_TRANSCRIPTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/transcripts/transcript.h"

namespace clerestory {

// For the tests of importers that make Chat Completions histories.

// Reads `contents` as whatever it looks like, and expects that to be `source`
// and its histories to be valid. Nothing if it cannot be read.
ReadResult ReadChat(const std::string& contents, absl::string_view source);

// The messages of the first history.
std::vector<std::string> Messages(const ReadResult& result);

// The message of a role without calls.
std::string Said(absl::string_view role, absl::string_view text);

// An answer with `content` (JSON) and the calls `calls`.
std::string Answer(absl::string_view content,
                   const std::vector<std::string>& calls);
std::string Call(absl::string_view id, absl::string_view name,
                 absl::string_view arguments);

// The message with the result `content` (JSON) of the call `id`.
std::string ResultOf(absl::string_view id, absl::string_view content);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_CHAT_TRANSCRIPTS_H_
