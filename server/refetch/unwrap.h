// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_REFETCH_UNWRAP_H_
#define CLERESTORY_SERVER_REFETCH_UNWRAP_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace clerestory {

// What is behind the first so many bytes of an observation's text is not looked
// at.
inline constexpr std::size_t kTextBytesMax = std::size_t{2} << 20;

// The text that a model reads in an observation whose content is the JSON value
// `content`, without what agents wrap around it: blocks, objects with an
// `output`, `content`, `stdout` or the like, also where a string holds them;
// Python's repr of MCP results; the tags, heads and feet of known agents;
// reminders. Cut behind kTextBytesMax bytes.
//
// `content` must be valid JSON in UTF-8, or empty. Pure; takes time linear in
// its size.
std::string UnwrappedText(absl::string_view content);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_REFETCH_UNWRAP_H_
