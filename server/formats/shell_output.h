// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_SHELL_OUTPUT_H_
#define CLERESTORY_SERVER_FORMATS_SHELL_OUTPUT_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/formats/format.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// The `output` of a `shell_call_output` of OpenAI's Responses API: an entry for
// each command, with `stdout`, `stderr` and an `outcome`.

// Sets in `result` what `output` holds. It is an error if a command ran out of
// time or left with another code than 0, and maskable if there is any text and
// a `stdout` to put the placeholder in.
//
// Returns INVALID_ARGUMENT with kMessageInvalid if `output` is not an array of
// objects, or a `stdout` or `stderr` in it not a string.
absl::Status MeasureShellOutput(const json::Value& output,
                                const TokenCounter& counter,
                                ParsedResult& result);

// What to replace in the message that holds `output`, in order: the first
// `stdout` by `placeholder`, and all other text by "". The entries and their
// outcomes stay.
std::vector<Replacement> MaskShellOutput(const json::Value& output,
                                         absl::string_view placeholder);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_SHELL_OUTPUT_H_
