// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/valid_history.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "tests/support/history_rules.h"

namespace clerestory {
namespace {

std::unique_ptr<HistoryRules> NewRules(Format format) {
  switch (format) {
    case Format::kAnthropicMessages:
      return NewAnthropicRules();
    case Format::kOpenaiChat:
      return NewChatRules();
    case Format::kOpenaiResponses:
      return NewResponsesRules();
    case Format::kGemini:
      return NewGeminiRules();
    case Format::kBedrockConverse:
      return NewConverseRules();
    case Format::kUnspecified:
      break;
  }
  CLERESTORY_CHECK(false);
  return nullptr;
}

}  // namespace

absl::Status Refused(absl::string_view path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

std::string MessagePath(std::size_t index) {
  return absl::StrCat("messages.", index);
}

bool IsBlank(absl::string_view text) {
  return text.find_first_not_of(" \t\r\n") == absl::string_view::npos;
}

bool HasText(const json::Value& value) { return !value.string().empty(); }

absl::Status CheckValidHistory(Format format,
                               const std::vector<std::string>& messages) {
  if (messages.empty()) return Refused("messages", "at least one is required");
  const std::unique_ptr<HistoryRules> rules = NewRules(format);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(messages[i], {.tree_depth = 12});
    if (!document.ok()) {
      return Refused(MessagePath(i), document.status().message());
    }
    if (!document->root().is_object()) return Refused(MessagePath(i), "object");
    CLERESTORY_RETURN_IF_ERROR(rules->Add(document->root(), i));
  }
  return rules->End();
}

}  // namespace clerestory
