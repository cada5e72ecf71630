// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_STORE_TOOL_CODEC_H_
#define CLERESTORY_SERVER_STORE_TOOL_CODEC_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/store/session_store.h"

namespace clerestory {

// What was learned of a tool, as the bytes that a store keeps: a message of
// `proto/clerestory/storage/v1/tool.proto` in a frame (message_frame.h). Pure
// and safe from any thread.

std::string EncodeTool(const StoredTool& tool);

// Returns what was learned of the tool of `tenant`, which `value` encodes;
// nothing if it is damaged, is that of another tool or has a newer format, for
// it can be learned again.
std::optional<StoredTool> DecodeTool(absl::string_view value,
                                     absl::string_view tenant,
                                     absl::string_view tool);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_STORE_TOOL_CODEC_H_
