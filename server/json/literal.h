// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_JSON_LITERAL_H_
#define CLERESTORY_SERVER_JSON_LITERAL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace clerestory::json {

// Returns the text of the JSON string literal `literal`, quotes included, which
// must be valid.
std::string Unquote(absl::string_view literal);

// Returns `text`, which must be UTF-8, as a JSON string literal. Escapes only
// what must be escaped.
std::string Quote(absl::string_view text);

}  // namespace clerestory::json

#endif  // CLERESTORY_SERVER_JSON_LITERAL_H_
