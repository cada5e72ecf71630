// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_FORMATS_CONTENT_H_
#define CLERESTORY_SERVER_FORMATS_CONTENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {

// What the adapters of all formats share: measuring text and pictures, and
// saying what is wrong with a message.

// Returns `message` as JSON of which `tree_depth` levels can be walked, under
// the limits of messages. INVALID_ARGUMENT with kMessageInvalid if it is no
// JSON object. `message` must outlive it.
absl::StatusOr<json::Document> ParseObject(absl::string_view message,
                                           int tree_depth);

// INVALID_ARGUMENT with kMessageInvalid: "`path`: `what`".
absl::Status InvalidMessage(absl::string_view path, absl::string_view what);

// Where the member `name` of what stands at `path` stands.
std::string PathOf(absl::string_view path, absl::string_view name);

// Returns the string at `parent[name]`, which must be one of at most
// `bytes_max` bytes; `path` is where `parent` stands, for the error.
absl::StatusOr<std::string> RequiredString(const json::Value& parent,
                                           absl::string_view name,
                                           absl::string_view path,
                                           std::int64_t bytes_max);

// The same, but "" where it is absent or null.
absl::StatusOr<std::string> OptionalString(const json::Value& parent,
                                           absl::string_view name,
                                           absl::string_view path,
                                           std::int64_t bytes_max);

// Fails unless `parent[name]` is absent, null or of `kind`, which is an object,
// an array or a string; `path` is where `parent` stands, for the error.
absl::Status CheckKind(const json::Value& parent, absl::string_view name,
                       absl::string_view path, json::Kind kind);

bool IsAbsentOrNull(const json::Value& value);

// Whether a block says that somebody must find it again: it bears a cache mark,
// or was called from code that still runs, so that its caller is not "direct".
bool IsHeld(const json::Value& block);

// `span`, as a part of a message.
ByteSpan ToByteSpan(json::Span span);

// The tokens of a string value, as the model sees it; 0 for any other value.
std::int64_t StringTokens(const json::Value& value,
                          const TokenCounter& counter);

// The tokens of any other value, which the model is shown as JSON text.
std::int64_t JsonTokens(const json::Value& value, const TokenCounter& counter);

// The lines of the text in a string value: 1 more than its line breaks, 0 if it
// is empty or no string.
std::int64_t LineCount(const json::Value& value);

// The tokens by `formula` of a picture given as `data:image/png;base64,...`, as
// bare base64, or by reference.
std::int64_t ImageTokens(const json::Value& data_or_url, ImageFormula formula,
                         const TokenCounter& counter);

// The tokens of sound or film in base64: a guess, one for each 1,000 bytes, and
// 1 by reference. The vendors charge by the second, which only a decoder knows.
std::int64_t MediaTokens(const json::Value& data);

// The tokens of what is encrypted, or else not text in its base64: a guess, one
// for each five bytes of a string, 0 for any other value.
std::int64_t OpaqueTokens(const json::Value& data);

// The JSON value that shows `text` and carries on the cache mark that stands at
// `result.cache_mark` of `message`, if there is one: a string, or one text
// block. What it is in both formats that have a mark inside content.
std::string TextContent(absl::string_view message, const ParsedResult& result,
                        absl::string_view text);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_FORMATS_CONTENT_H_
