// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_RECALL_TOOL_H_
#define CLERESTORY_SERVER_FORMATS_RECALL_TOOL_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/model/message.h"

namespace clerestory {

// The tool by which a model reads an output back that was masked. A client that
// has it sends this definition with its own, and answers its calls with what
// RecallObservation returns.

// Its name, and those of its arguments: the id that the placeholder says, and
// where in the output to go on.
inline constexpr absl::string_view kRecallToolName = "recall_tool_output";
inline constexpr absl::string_view kRecallIdArgument = "id";
inline constexpr absl::string_view kRecallOffsetArgument = "offset";

// The definition of the tool as an element of the array of tools of `format`,
// compact JSON: the same for ever, since it stands in front of all that is
// cached. REQUIRES: not kUnspecified.
std::string RecallToolDefinition(Format format);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_RECALL_TOOL_H_
