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

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_VALID_HISTORY_H_
