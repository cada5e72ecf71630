// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_VALID_HISTORY_H_
#define CLERESTORY_TESTS_SUPPORT_VALID_HISTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/model/message.h"

namespace clerestory {

// Whether the provider of `format` would accept `messages` as the messages of a
// request: roles, blocks, and the pairing of calls and results. Knows nothing
// of the service's own adapters.
//
// INVALID_ARGUMENT if it would not, naming the first place: "messages.3.
// content.0: ...".
absl::Status CheckValidHistory(Format format,
                               const std::vector<std::string>& messages);

// Whether `view`, made of `history` in Responses' format, still has before each
// item with an id the reasoning that the model had before it. An array does not
// say itself what it lacks, but the provider remembers.
//
// INVALID_ARGUMENT if one is gone, naming the item.
absl::Status CheckReasoningKept(const std::vector<std::string>& history,
                                const std::vector<std::string>& view);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_VALID_HISTORY_H_
