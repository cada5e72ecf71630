// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/content.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr std::int64_t kMediaBytesPerToken = 1'000;
constexpr std::int64_t kOpaqueBytesPerToken = 5;

// The inside of a string literal.
absl::string_view Inside(const json::Value& value) {
  const absl::string_view raw = value.raw();
  return raw.substr(1, raw.size() - 2);
}

absl::string_view NameOf(json::Kind kind) {
  if (kind == json::Kind::kObject) return "an object";
  return kind == json::Kind::kArray ? "an array" : "a string";
}

}  // namespace

absl::StatusOr<json::Document> ParseObject(absl::string_view message,
                                           int tree_depth) {
  absl::StatusOr<json::Document> document =
      json::Document::Parse(message, {.depth_max = kJsonDepthMax,
                                      .tree_depth = tree_depth,
                                      .tree_size_max = kJsonValuesMax});
  if (document.ok() && !document->root().is_object()) {
    return InvalidMessage("message", "expected a JSON object");
  }
  return document;
}

absl::Status InvalidMessage(absl::string_view path, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, Reason::kMessageInvalid,
                   absl::StrCat(path, ": ", what));
}

std::string PathOf(absl::string_view path, absl::string_view name) {
  return path.empty() ? std::string(name) : absl::StrCat(path, ".", name);
}

absl::StatusOr<std::string> RequiredString(const json::Value& parent,
                                           absl::string_view name,
                                           absl::string_view path,
                                           std::int64_t bytes_max) {
  const json::Value value = parent[name];
  const std::string where = PathOf(path, name);
  if (!value.exists()) return InvalidMessage(where, "missing");
  if (!value.is_string()) return InvalidMessage(where, "expected a string");
  std::string text = value.string();
  if (static_cast<std::int64_t>(text.size()) > bytes_max) {
    return InvalidMessage(where,
                          absl::StrCat("longer than ", bytes_max, " bytes"));
  }
  return text;
}

absl::StatusOr<std::string> OptionalString(const json::Value& parent,
                                           absl::string_view name,
                                           absl::string_view path,
                                           std::int64_t bytes_max) {
  if (IsAbsentOrNull(parent[name])) return std::string();
  return RequiredString(parent, name, path, bytes_max);
}

absl::Status CheckKind(const json::Value& parent, absl::string_view name,
                       absl::string_view path, json::Kind kind) {
  const json::Value value = parent[name];
  if (IsAbsentOrNull(value) || value.is(kind)) return absl::OkStatus();
  return InvalidMessage(PathOf(path, name),
                        absl::StrCat("expected ", NameOf(kind)));
}

bool IsAbsentOrNull(const json::Value& value) {
  return !value.exists() || value.is(json::Kind::kNull);
}

bool IsHeld(const json::Value& block) {
  const json::Value caller = block["caller"];
  return !IsAbsentOrNull(block["cache_control"]) ||
         (!IsAbsentOrNull(caller) && !caller["type"].equals("direct"));
}

ByteSpan ToByteSpan(json::Span span) {
  return {.offset = span.offset, .size = span.size};
}

std::int64_t StringTokens(const json::Value& value,
                          const TokenCounter& counter) {
  if (!value.is_string()) return 0;
  return counter.CountText(Inside(value), TextForm::kJsonEscaped);
}

std::int64_t JsonTokens(const json::Value& value, const TokenCounter& counter) {
  return counter.CountText(value.raw(), TextForm::kPlain);
}

std::int64_t LineCount(const json::Value& value) {
  if (!value.is_string()) return 0;
  const absl::string_view text = Inside(value);
  if (text.empty()) return 0;
  std::int64_t lines = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') continue;
    ++i;  // A valid literal has a character behind each backslash.
    if (text[i] == 'n' || absl::StartsWithIgnoreCase(text.substr(i), "u000a")) {
      ++lines;
    }
  }
  return lines;
}

std::int64_t ImageTokens(const json::Value& data_or_url, ImageFormula formula,
                         const TokenCounter& counter) {
  if (!data_or_url.is_string()) return counter.CountImage("", formula);
  absl::string_view text = Inside(data_or_url);
  std::string unescaped;  // Some writers spell each slash of base64 as "\/".
  if (absl::StrContains(text, '\\')) {
    unescaped = data_or_url.string();
    text = unescaped;
  }
  if (absl::StartsWith(text, "http")) return counter.CountImage("", formula);
  if (absl::StartsWith(text, "data:")) {
    const std::size_t comma = text.find(',');
    text = comma == absl::string_view::npos ? "" : text.substr(comma + 1);
  }
  return counter.CountImage(text, formula);
}

std::int64_t MediaTokens(const json::Value& data) {
  return std::max<std::int64_t>(
      1, data.is_string() ? static_cast<std::int64_t>(Inside(data).size()) /
                                kMediaBytesPerToken
                          : 0);
}

std::int64_t OpaqueTokens(const json::Value& data) {
  if (!data.is_string()) return 0;
  return static_cast<std::int64_t>(data.span().size) / kOpaqueBytesPerToken;
}

std::string TextContent(absl::string_view message, const ParsedResult& result,
                        absl::string_view text) {
  if (result.cache_mark.size == 0) return json::Quote(text);
  return absl::StrCat(
      R"([{"type":"text","text":)", json::Quote(text), R"(,"cache_control":)",
      message.substr(result.cache_mark.offset, result.cache_mark.size), "}]");
}

}  // namespace clerestory
