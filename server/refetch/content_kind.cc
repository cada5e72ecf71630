// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/refetch/content_kind.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace clerestory {
namespace {

// A message is no longer than this, but for what it quotes at its end.
constexpr std::size_t kMessageMax = 700;
constexpr std::size_t kHeadSize = 300;
constexpr std::ptrdiff_t kMessageBreaksMax = 3;

constexpr absl::string_view kDone[] = {
    "has been updated", "has been edited",        "successfully",
    "file created",     "applied edit",           "success. updated",
    "text replaced",    "result of running `cat",
};

constexpr absl::string_view kRefusals[] = {
    "doesn't want to proceed",
    "does not want to proceed",
    "was rejected",
    "rejected by",
    "patch rejected",
    "user rejected",
    "user denied",
    "not allowed to",
    "operation cancelled",
    "operation canceled",
    "cancelled by user",
    "canceled by user",
    "has not been read yet",
    "been modified since read",
    "string to replace not found",
    "string not found",
    "no replacement was performed",
    "did not appear verbatim",
    "no changes to make",
    "0 occurrences found",
    "could not find the string",
    "could not find the old",
    "failed to find expected lines",
    "failed to find context",
    "failed in sandbox",
    "patch does not apply",
    "patch failed",
    "verification failed",
    "requested permissions",
    "inputvalidationerror",
    "invalid arguments",
    "invalid parameters",
    "missing required",
};

constexpr absl::string_view kFailures[] = {
    "timed out",
    "command not found",
    "no such file or directory",
    "file does not exist",
    "does not exist",
    "file not found",
    "exceeds maximum allowed",
    "is too large",
    "permission denied",
    "tool_use_error",
    "aborted",
    "an error occurred",
    "is not recognized as",
    "sibling tool call errored",
};

constexpr absl::string_view kFailureStarts[] = {
    "error:",
    "error ",
    "failed to ",
    "exception:",
    "fatal:",
    "<tool_use_error>",
    "failed in sandbox",
    "no replacement was performed",
};

constexpr absl::string_view kEmptyStarts[] = {
    "no matches",
    "no files",
    "no results",
    "no output",
    "(no output",
    "(no content",
    "(empty",
    "no matching",
    "no lines",
    "found 0 ",
    "0 matches",
    "tool ran without output",
    "<system>tool ran",
    "no such entries",
    "no entries",
    "your command ran successfully and did not produce any output",
    "[no output",
    "<no output",
    "no todos",
    "(no matches",
    "(none)",
};

bool HasAny(absl::string_view text, const auto& words) {
  for (const absl::string_view word : words) {
    if (absl::StrContains(text, word)) return true;
  }
  return false;
}

bool BeginsWithAny(absl::string_view text, const auto& words) {
  for (const absl::string_view word : words) {
    if (absl::StartsWith(text, word)) return true;
  }
  return false;
}

}  // namespace

ContentKind ContentKindOf(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return ContentKind::kEmpty;
  const std::string head = absl::AsciiStrToLower(text.substr(0, kHeadSize));
  // What is refused is often quoted behind the words for it.
  const bool quotes = BeginsWithAny(head, kFailureStarts);
  if (text.size() > kMessageMax && !quotes) return ContentKind::kGiven;
  if (HasAny(head, kDone)) return ContentKind::kGiven;
  const std::string all =
      absl::AsciiStrToLower(text.substr(0, 4 * kMessageMax));
  if (BeginsWithAny(all, kEmptyStarts)) return ContentKind::kEmpty;
  // Code has such words, too.
  if (!quotes && std::count(all.begin(), all.end(), '\n') > kMessageBreaksMax) {
    return ContentKind::kGiven;
  }
  if (HasAny(all, kRefusals)) return ContentKind::kRefused;
  if (quotes || HasAny(all, kFailures)) return ContentKind::kFailed;
  return ContentKind::kGiven;
}

}  // namespace clerestory
