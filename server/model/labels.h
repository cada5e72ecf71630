// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_MODEL_LABELS_H_
#define CLERESTORY_SERVER_MODEL_LABELS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// What a label of a session may be is what a policy may ask for, so that every
// one can be matched. Each returns what is wrong and what to write instead; ""
// if nothing is. Both pure.
//
// A key has 1 to kLabelKeyBytesMax letters, digits, `_`, `-`, `.` and `/`.
std::string LabelKeyProblem(absl::string_view key);

// A value has 1 to kLabelValueBytesMax letters, digits, `_`, `-`, `.`, `/`,
// `:`, `@` and `+`.
std::string LabelValueProblem(absl::string_view value);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_MODEL_LABELS_H_
