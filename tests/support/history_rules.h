// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_HISTORY_RULES_H_
#define CLERESTORY_TESTS_SUPPORT_HISTORY_RULES_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/json/document.h"

namespace clerestory {

// The rules of one provider, told the messages of a history one by one.
class HistoryRules {
 public:
  virtual ~HistoryRules() = default;

  // The next message, an object. INVALID_ARGUMENT if it may not stand here.
  virtual absl::Status Add(const json::Value& message, std::size_t index) = 0;
  // INVALID_ARGUMENT if the history may not end here.
  virtual absl::Status End() const = 0;
};

std::unique_ptr<HistoryRules> NewAnthropicRules();
std::unique_ptr<HistoryRules> NewChatRules();
std::unique_ptr<HistoryRules> NewResponsesRules();
std::unique_ptr<HistoryRules> NewGeminiRules();
std::unique_ptr<HistoryRules> NewConverseRules();

// What a rule returns: where it was broken and, in the provider's words where
// they are known, how.
absl::Status Refused(absl::string_view path, absl::string_view why);

// "messages.3".
std::string MessagePath(std::size_t index);

// Whether `text` is empty or white space.
bool IsBlank(absl::string_view text);

// Whether `value` is a string with something in it.
bool HasText(const json::Value& value);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_HISTORY_RULES_H_
