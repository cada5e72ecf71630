// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/reasoning_binding.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "tests/support/history_rules.h"

namespace clerestory {
namespace {

// The signature of `block` if it is reasoning of `format`, or "".
std::string SignatureOf(Format format, const json::Value& block) {
  if (format == Format::kAnthropicMessages) {
    if (block["type"].equals("thinking")) return block["signature"].string();
    if (block["type"].equals("redacted_thinking")) {
      return block["data"].string();
    }
    return "";
  }
  if (format != Format::kBedrockConverse) return "";
  const json::Value reasoning = block["reasoningContent"];
  const std::string redacted = reasoning["redactedContent"].string();
  return redacted.empty() ? reasoning["reasoningText"]["signature"].string()
                          : redacted;
}

}  // namespace

ReasoningBinding::Parts ReasoningBinding::PartsOf(
    const std::string& message) const {
  const absl::StatusOr<json::Document> document =
      json::Document::Parse(message, {.tree_depth = 12});
  CLERESTORY_CHECK(document.ok());
  const json::Value root = document->root();
  Parts parts;
  const std::string role = root["role"].string();
  parts.is_assistant = role == "assistant";
  const json::Value content = root["content"];
  std::string rest;
  if (content.is_string()) rest = std::string(content.raw());
  for (const json::Value& block : content.children()) {
    const std::string signature = SignatureOf(format_, block);
    if (signature.empty()) {
      absl::StrAppend(&rest, block.raw(), ",");
    } else {
      parts.reasoning.push_back(signature);
    }
    parts.has_calls |=
        block["type"].equals("tool_use") || block["toolUse"].is_object();
  }
  if (!rest.empty()) parts.rest = absl::StrCat(role, ":", rest);
  return parts;
}

std::string ReasoningBinding::Then(const std::string& prefix,
                                   const Parts& parts) {
  if (parts.rest.empty()) return prefix;
  return Digest::Of(absl::StrCat(prefix, parts.rest)).ToHex();
}

void ReasoningBinding::Sent(const std::vector<std::string>& view) {
  prefix_.clear();
  last_.clear();
  for (const std::string& message : view) {
    const Parts parts = PartsOf(message);
    prefix_ = Then(prefix_, parts);
    if (!parts.reasoning.empty()) last_ = parts.reasoning.back();
  }
}

void ReasoningBinding::Appended(const std::string& message) {
  const Parts parts = PartsOf(message);
  for (const std::string& signature : parts.reasoning) {
    const bool is_new =
        bindings_.insert({signature, {prefix_, last_, parts.reasoning}}).second;
    CLERESTORY_CHECK(is_new);
    last_ = signature;
  }
  prefix_ = Then(prefix_, parts);
  if (parts.is_assistant && !is_in_turn_) {
    turn_.clear();
    has_calls_ = false;
  }
  is_in_turn_ = parts.is_assistant;
  if (!parts.is_assistant) return;
  has_calls_ |= parts.has_calls;
  turn_.insert(turn_.end(), parts.reasoning.begin(), parts.reasoning.end());
}

absl::Status ReasoningBinding::Check(
    const std::vector<std::string>& view) const {
  std::string prefix;
  std::string last;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const Parts parts = PartsOf(view[i]);
    const std::string path = MessagePath(i);
    for (const std::string& signature : parts.reasoning) {
      const auto found = bindings_.find(signature);
      if (found == bindings_.end()) {
        return Refused(path, "Invalid `signature` in `thinking` block");
      }
      const Binding& binding = found->second;
      if (binding.prefix != prefix) {
        return Refused(path,
                       "Invalid `signature` in `thinking` block. The block is "
                       "bound to a different conversation: a message before it "
                       "was changed");
      }
      if (!last.empty() && binding.previous != last) {
        return Refused(path,
                       "Invalid `signature` in `thinking` block. The block is "
                       "bound to a different conversation: the block before it "
                       "was removed");
      }
      if (binding.siblings != parts.reasoning) {
        return Refused(path, "`thinking` blocks cannot be modified");
      }
      last = signature;
    }
    prefix = Then(prefix, parts);
  }
  return absl::OkStatus();
}

absl::Status ReasoningBinding::CheckLastTurn(
    const std::vector<std::string>& view) const {
  if (!has_calls_) return absl::OkStatus();
  std::vector<std::string> shown;
  for (const std::string& message : view) {
    const Parts parts = PartsOf(message);
    shown.insert(shown.end(), parts.reasoning.begin(), parts.reasoning.end());
  }
  for (const std::string& signature : turn_) {
    if (std::find(shown.begin(), shown.end(), signature) == shown.end()) {
      return Refused("messages",
                     absl::StrCat("the turn that goes on lacks ", signature));
    }
  }
  return absl::OkStatus();
}

}  // namespace clerestory
