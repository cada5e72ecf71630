// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/edit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/formats/content.h"
#include "server/formats/format.h"
#include "server/json/document.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

using PlaceholderFor = absl::FunctionRef<std::string(std::int64_t tokens)>;

// How deep arguments are looked into; what is deeper stays.
constexpr int kArgumentsDepth = 16;

void AddMasks(const json::Value& value, std::int64_t tokens_min,
              PlaceholderFor placeholder, const TokenCounter& counter,
              std::vector<Replacement>& masks) {
  if (value.is_string()) {
    const std::int64_t tokens = StringTokens(value, counter);
    if (tokens < tokens_min) return;
    std::string masked = json::Quote(placeholder(tokens));
    if (masked.size() < value.span().size) {
      masks.push_back(
          {.at = ToByteSpan(value.span()), .value = std::move(masked)});
    }
    return;
  }
  for (const json::Value& child : value.children()) {
    AddMasks(child, tokens_min, placeholder, counter, masks);
  }
}

// `text` with its long strings masked; "" if it is no object or has none.
std::string MaskObject(absl::string_view text, std::int64_t tokens_min,
                       PlaceholderFor placeholder,
                       const TokenCounter& counter) {
  const absl::StatusOr<json::Document> document =
      ParseObject(text, kArgumentsDepth);
  if (!document.ok()) return "";
  std::vector<Replacement> masks;
  AddMasks(document->root(), tokens_min, placeholder, counter, masks);
  return masks.empty() ? "" : Splice(text, masks);
}

void AddStrings(const json::Value& value, std::vector<std::string>& strings) {
  if (value.is_string()) strings.push_back(value.string());
  for (const json::Value& child : value.children()) {
    AddStrings(child, strings);
  }
}

// The string values in `arguments`, an object or a string that holds one.
std::vector<std::string> Strings(absl::string_view arguments) {
  std::string inside;
  absl::string_view object = arguments;
  if (!arguments.empty() && arguments.front() == '"') {
    inside = json::Unquote(arguments);
    object = inside;
  }
  std::vector<std::string> strings;
  const absl::StatusOr<json::Document> document =
      ParseObject(object, kArgumentsDepth);
  if (document.ok()) AddStrings(document->root(), strings);
  return strings;
}

// A JSON string without its quotes.
std::string Inside(const std::string& literal) {
  return literal.substr(1, literal.size() - 2);
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The first byte at or behind `at` that is no white space.
std::size_t SkipSpace(absl::string_view text, std::size_t at) {
  while (at < text.size() && IsSpace(text[at])) ++at;
  return at;
}

}  // namespace

std::string MaskArguments(absl::string_view arguments, std::int64_t tokens_min,
                          PlaceholderFor placeholder,
                          const TokenCounter& counter) {
  if (arguments.empty() || arguments.front() != '"') {
    return MaskObject(arguments, tokens_min, placeholder, counter);
  }
  const std::string inside = json::Unquote(arguments);
  const std::string masked =
      MaskObject(inside, tokens_min, placeholder, counter);
  if (masked.empty()) return "";
  std::string quoted = json::Quote(masked);
  return quoted.size() < arguments.size() ? quoted : "";
}

std::vector<std::string> NewStrings(absl::string_view before,
                                    absl::string_view after) {
  std::vector<std::string> old = Strings(before);
  std::ranges::sort(old);
  std::vector<std::string> added = Strings(after);
  std::erase_if(added, [&](const std::string& text) {
    return std::ranges::binary_search(old, text);
  });
  return added;
}

std::vector<std::string> EscapedForms(absl::string_view text) {
  const std::string once = Inside(json::Quote(text));
  return {once, Inside(json::Quote(once))};
}

std::vector<Replacement> RemoveElements(absl::string_view message,
                                        const std::vector<ByteSpan>& elements) {
  std::vector<Replacement> removals;
  std::size_t next = 0;
  while (next < elements.size()) {
    // A run of neighbours, with nothing but commas between them.
    const std::size_t begin = elements[next].offset;
    std::size_t end = begin + elements[next].size;
    std::size_t comma = SkipSpace(message, end);
    for (++next; next < elements.size(); ++next) {
      if (comma >= message.size() || message[comma] != ',' ||
          SkipSpace(message, comma + 1) != elements[next].offset) {
        break;
      }
      end = elements[next].offset + elements[next].size;
      comma = SkipSpace(message, end);
    }
    // With the comma behind it, or else the one before it.
    std::size_t from = begin;
    if (comma < message.size() && message[comma] == ',') {
      end = SkipSpace(message, comma + 1);
    } else {
      while (from > 0 && IsSpace(message[from - 1])) --from;
      if (from > 0 && message[from - 1] == ',') --from;
    }
    removals.push_back(
        {.at = {.offset = from, .size = end - from}, .value = ""});
  }
  return removals;
}

}  // namespace clerestory
