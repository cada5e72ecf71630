// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_TYPED_CONTENT_H_
#define CLERESTORY_SERVER_FORMATS_TYPED_CONTENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clerestory {

// What a tool result holds, taken out of its provider's JSON so that it can be
// given to a model anew, as the result of another call.

// A part of it.
struct ContentPart {
  // Whether `value` is text, without quotes and escapes; else it is a JSON
  // value, byte for byte as it was appended.
  bool is_text = true;
  std::string value;

  friend bool operator==(const ContentPart&, const ContentPart&) = default;
};

// Returns the parts of the result with `content` and `attachments`, which are
// JSON values of a message that was checked, or empty; those of the content
// come first.
//
// Text are a string; a block of an array that is text and says nothing else but
// its type and its cache mark; and the only member of an object if it is a
// string, as in Gemini's {"output":"..."}. Any other block of an array, and any
// other value, is one part of JSON. A null and an empty text are none.
//
// Total and pure: what is not JSON is one part of JSON as it stands.
std::vector<ContentPart> TypedContent(absl::string_view content,
                                      absl::string_view attachments);

// A page of such parts. Offsets count the bytes of the values of all parts, one
// after the other.
struct ContentPage {
  std::vector<ContentPart> parts;
  std::int64_t next_offset = 0;  // 0 at the end.
  std::int64_t total_bytes = 0;
};

// Returns the page of `parts` from `offset` on with about `limit` bytes: of
// text no more, but for a first character that is longer; a part of JSON as a
// whole, and not after anything unless it fits. So a page that is not the last
// holds something, and pages that are put together are the whole.
//
// Nothing if no page begins at `offset`: it is negative, behind the end, inside
// of a character or inside of JSON. REQUIRES: `limit` > 0. Pure.
std::optional<ContentPage> PageOf(std::vector<ContentPart> parts,
                                  std::int64_t offset, std::int64_t limit);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_TYPED_CONTENT_H_
