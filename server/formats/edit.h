// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_EDIT_H_
#define CLERESTORY_SERVER_FORMATS_EDIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// Edits that are the same in all formats. Pure.

// Returns the JSON value `arguments` with each string value in it of at least
// `tokens_min` tokens replaced by what `placeholder` makes of its tokens, and
// every other byte as it was: names, structure and numbers stay. Arguments that
// are a JSON string with a JSON object inside are edited inside, and are a
// string again. A string whose placeholder would not be shorter stays.
//
// Returns "" if that changes nothing, or if `arguments` are neither an object
// nor a string that holds one.
std::string MaskArguments(
    absl::string_view arguments, std::int64_t tokens_min,
    absl::FunctionRef<std::string(std::int64_t tokens)> placeholder,
    const TokenCounter& counter);

// The string values of the JSON value `after` that `before` does not hold, as
// they are, in order: what MaskArguments put there.
std::vector<std::string> NewStrings(absl::string_view before,
                                    absl::string_view after);

// `text` as the inside of a JSON string, and as the inside of one that is
// itself inside of one, as arguments are that are a string. The same if there
// is nothing to escape.
std::vector<std::string> EscapedForms(absl::string_view text);

// Returns what takes `elements` out of the arrays of `message` in which they
// stand, with the commas that go with them, in order. REQUIRES: each is a whole
// element of an array; they are in order and do not overlap.
std::vector<Replacement> RemoveElements(absl::string_view message,
                                        const std::vector<ByteSpan>& elements);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_EDIT_H_
