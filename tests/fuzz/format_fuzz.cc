// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a message of one format: what is accepted can be masked, and
// then differs in nothing else; and its results can be read in pages.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/utf8.h"
#include "server/formats/edit.h"
#include "server/formats/format.h"
#include "server/formats/typed_content.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/tokens/class_token_counter.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr Format kFormat = CLERESTORY_FUZZ_FORMAT;
constexpr absl::string_view kPlaceholder = "[\"m\\\"]";

void CheckSpan(absl::string_view message, ByteSpan span) {
  CLERESTORY_CHECK(span.offset + span.size <= message.size());
}

void CheckParsed(absl::string_view message, const ParsedMessage& parsed) {
  std::int64_t tokens = parsed.tokens.total();
  CLERESTORY_CHECK(tokens >= 0);
  for (const ParsedCall& call : parsed.calls) {
    CheckSpan(message, call.arguments);
    CheckSpan(message, call.element);
    CLERESTORY_CHECK(call.token_count >= 0 && call.tokens_before >= 0);
  }
  for (const ParsedResult& result : parsed.results) {
    CheckSpan(message, result.content);
    CheckSpan(message, result.attachments);
    CheckSpan(message, result.element);
    CheckSpan(message, result.cache_mark);
    CLERESTORY_CHECK(result.token_count >= 0 && result.tokens_before >= 0);
    tokens -= result.token_count;
  }
  CLERESTORY_CHECK(tokens >= 0);
}

// All that may be masked is, and the message is as it was but for that.
void CheckMasking(absl::string_view message, const ParsedMessage& parsed,
                  const TokenCounter& counter) {
  const FormatAdapter& adapter = AdapterFor(kFormat);
  std::vector<Replacement> edits;
  for (const ParsedResult& result : parsed.results) {
    if (!result.maskable) continue;
    for (Replacement& edit : adapter.Mask(message, result, kPlaceholder)) {
      edits.push_back(std::move(edit));
    }
  }
  const std::string view = Splice(message, edits);
  const absl::StatusOr<ParsedMessage> masked = adapter.Parse(view, counter);
  CLERESTORY_CHECK(masked.ok());
  CLERESTORY_CHECK(masked->role == parsed.role);
  CLERESTORY_CHECK(masked->calls.size() == parsed.calls.size());
  CLERESTORY_CHECK(masked->results.size() == parsed.results.size());
  CLERESTORY_CHECK(masked->part_count == parsed.part_count);
  CLERESTORY_CHECK(masked->tokens.calls == parsed.tokens.calls);
  CLERESTORY_CHECK(masked->tokens.assistant == parsed.tokens.assistant);
  CLERESTORY_CHECK(masked->tokens.user == parsed.tokens.user);
  for (std::size_t i = 0; i < parsed.results.size(); ++i) {
    CLERESTORY_CHECK(masked->results[i].call_id == parsed.results[i].call_id);
    CLERESTORY_CHECK(masked->results[i].is_error == parsed.results[i].is_error);
  }
}

// What may be dropped beside others leaves a message behind.
void CheckDropping(absl::string_view message, const ParsedMessage& parsed,
                   const TokenCounter& counter) {
  std::vector<ByteSpan> elements;
  for (const ParsedCall& call : parsed.calls) {
    if (call.is_removable) elements.push_back(call.element);
  }
  for (const ParsedResult& result : parsed.results) {
    if (result.is_removable) elements.push_back(result.element);
  }
  const auto dropped = static_cast<std::int64_t>(elements.size());
  if (dropped == 0 || dropped == parsed.part_count) return;
  std::ranges::sort(elements, {}, &ByteSpan::offset);
  const std::string view = Splice(message, RemoveElements(message, elements));
  const absl::StatusOr<ParsedMessage> left =
      AdapterFor(kFormat).Parse(view, counter);
  if (!left.ok()) return;  // As where all calls of a chat message go.
  CLERESTORY_CHECK(left->part_count + dropped == parsed.part_count);
}

void CheckArguments(absl::string_view message, const ParsedMessage& parsed,
                    const TokenCounter& counter) {
  std::vector<Replacement> edits;
  for (const ParsedCall& call : parsed.calls) {
    std::string arguments = MaskArguments(
        message.substr(call.arguments.offset, call.arguments.size), 1,
        [](std::int64_t) { return std::string("m"); }, counter);
    if (arguments.empty()) continue;
    edits.push_back({.at = call.arguments, .value = std::move(arguments)});
  }
  CLERESTORY_CHECK(
      AdapterFor(kFormat).Parse(Splice(message, edits), counter).ok());
}

// Pages of what a result holds are together all of it.
void CheckPages(absl::string_view message, const ParsedResult& result) {
  const auto part_of = [&](ByteSpan span) {
    return message.substr(span.offset, span.size);
  };
  const std::vector<ContentPart> parts =
      TypedContent(part_of(result.content), part_of(result.attachments));
  std::string whole;
  for (const ContentPart& part : parts) {
    CLERESTORY_CHECK(!part.value.empty());
    whole += part.value;
  }
  // Few pages, however large it is.
  const std::int64_t limit = 7 + std::ssize(whole) / 16;
  std::string read;
  std::int64_t offset = 0;
  do {
    const std::optional<ContentPage> page = PageOf(parts, offset, limit);
    CLERESTORY_CHECK(page.has_value());
    CLERESTORY_CHECK(page->total_bytes == std::ssize(whole));
    for (const ContentPart& part : page->parts) {
      CLERESTORY_CHECK(!part.is_text || IsUtf8(part.value));
      read += part.value;
    }
    CLERESTORY_CHECK(page->next_offset == 0 || page->next_offset > offset);
    offset = page->next_offset;
  } while (offset != 0);
  CLERESTORY_CHECK(read == whole);
}

}  // namespace
}  // namespace clerestory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace clerestory;
  const TokenCounter& counter = ClassTokenCounter();
  const absl::string_view message(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(kFormat).Parse(message, counter);
  if (!parsed.ok()) return 0;
  CheckParsed(message, *parsed);
  CheckMasking(message, *parsed, counter);
  CheckDropping(message, *parsed, counter);
  CheckArguments(message, *parsed, counter);
  for (const ParsedResult& result : parsed->results) {
    CheckPages(message, result);
  }
  return 0;
}
