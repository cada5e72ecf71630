// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/typed_content.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/formats/content.h"
#include "server/json/document.h"
#include "server/json/literal.h"

namespace clerestory {
namespace {

void AddText(std::string text, std::vector<ContentPart>& parts) {
  if (text.empty()) return;
  parts.push_back({.is_text = true, .value = std::move(text)});
}

void AddJson(absl::string_view value, std::vector<ContentPart>& parts) {
  parts.push_back({.is_text = false, .value = std::string(value)});
}

// Whether a member of a block of text says nothing that the text does not.
bool SaysNothing(const json::Value& member) {
  const std::string name = member.key();
  return name == "text" || name == "type" || name == "cache_control" ||
         IsAbsentOrNull(member) ||
         (member.is_array() && member.children().empty());
}

// Whether `block` is nothing but text: of Converse, or with the type that the
// others have for it.
bool IsText(const json::Value& block) {
  if (!block.is_object() || !block["text"].is_string()) return false;
  const json::Value type = block["type"];
  return (!type.exists() || type.equals("text") || type.equals("input_text") ||
          type.equals("output_text")) &&
         std::ranges::all_of(block.children(), SaysNothing);
}

void AddValue(absl::string_view value, std::vector<ContentPart>& parts) {
  if (value.empty() || value == "null") return;
  if (absl::StartsWith(value, "\"")) {
    AddText(json::Unquote(value), parts);
    return;
  }
  // Down to what the members of an array's blocks hold.
  const absl::StatusOr<json::Document> document =
      json::Document::Parse(value, {.depth_max = kJsonDepthMax,
                                    .tree_depth = 4,
                                    .tree_size_max = kJsonValuesMax});
  if (!document.ok()) {
    AddJson(value, parts);
    return;
  }
  const std::vector<json::Value> children = document->root().children();
  if (document->root().is_object()) {
    if (children.size() == 1 && children.front().is_string()) {
      AddText(children.front().string(), parts);
    } else {
      AddJson(value, parts);
    }
    return;
  }
  for (const json::Value& block : children) {
    if (block.is_string()) {
      AddText(block.string(), parts);
    } else if (IsText(block)) {
      AddText(block["text"].string(), parts);
    } else {
      AddJson(block.raw(), parts);
    }
  }
}

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// Where to cut `text`, which is UTF-8: behind the last character from `begin`
// on that ends by `limit`, or behind the first if none does.
std::size_t CutBy(absl::string_view text, std::size_t begin,
                  std::size_t limit) {
  if (limit >= text.size()) return text.size();
  std::size_t end = limit;
  while (end > begin && IsContinuation(text[end])) --end;
  if (end > begin) return end;
  end = begin + 1;
  while (end < text.size() && IsContinuation(text[end])) ++end;
  return end;
}

}  // namespace

std::vector<ContentPart> TypedContent(absl::string_view content,
                                      absl::string_view attachments) {
  std::vector<ContentPart> parts;
  AddValue(content, parts);
  AddValue(attachments, parts);
  return parts;
}

std::optional<ContentPage> PageOf(std::vector<ContentPart> parts,
                                  std::int64_t offset, std::int64_t limit) {
  ContentPage page;
  for (const ContentPart& part : parts) {
    page.total_bytes += static_cast<std::int64_t>(part.value.size());
  }
  if (offset < 0 || offset > page.total_bytes) return std::nullopt;
  const auto first = static_cast<std::size_t>(offset);
  const auto bytes_max = static_cast<std::size_t>(limit);
  std::size_t before = 0;  // Bytes of the parts before this one.
  std::size_t bytes = 0;   // Of the page.
  for (ContentPart& part : parts) {
    const std::size_t size = part.value.size();
    const std::size_t begin = first > before ? first - before : 0;
    before += size;
    if (begin >= size) continue;
    const bool is_cut = begin > 0;
    if (is_cut && (!part.is_text || IsContinuation(part.value[begin]))) {
      return std::nullopt;
    }
    const std::size_t room = bytes_max - std::min(bytes, bytes_max);
    if (bytes > 0 && (room == 0 || (!part.is_text && size > room))) break;
    std::size_t end = size;
    if (part.is_text && size - begin > room) {
      end = CutBy(part.value, begin, begin + room);
      // Less than a character has room behind what is there.
      if (bytes > 0 && end - begin > room) break;
    }
    bytes += end - begin;
    if (is_cut || end < size)
      part.value = part.value.substr(begin, end - begin);
    page.parts.push_back(std::move(part));
    if (end < size) break;
  }
  const auto next = offset + static_cast<std::int64_t>(bytes);
  page.next_offset = next < page.total_bytes ? next : 0;
  return page;
}

}  // namespace clerestory
