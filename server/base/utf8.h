// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_UTF8_H_
#define CLERESTORY_SERVER_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace clerestory {

// Returns how many bytes from the start of `text` are UTF-8 by RFC 3629: no
// surrogates, no overlong forms, nothing above U+10FFFF, no character cut off.
// All of them if it is valid. Pure.
std::size_t Utf8PrefixSize(absl::string_view text);

// Whether all of `text` is UTF-8.
bool IsUtf8(absl::string_view text);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_UTF8_H_
