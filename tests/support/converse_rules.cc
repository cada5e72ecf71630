// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "tests/support/history_rules.h"

namespace clerestory {
namespace {

constexpr std::size_t kNameSizeMax = 64;
constexpr int kCachePointsMax = 4;
constexpr int kDocumentsMax = 5;

constexpr std::array<absl::string_view, 6> kResultKinds = {
    "json", "text", "image", "document", "video", "searchResult"};

bool IsName(absl::string_view text, absl::string_view marks) {
  return !text.empty() && text.size() <= kNameSizeMax &&
         std::all_of(text.begin(), text.end(), [marks](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  marks.find(c) != absl::string_view::npos;
         });
}

bool HasSource(const json::Value& media) {
  return HasText(media["format"]) && media["source"].is_object() &&
         media["source"].children().size() == 1;
}

// The rules of Bedrock's Converse.
class ConverseRules final : public HistoryRules {
 public:
  absl::Status Add(const json::Value& message, std::size_t index) override {
    const std::string path = MessagePath(index);
    const std::string role = message["role"].string();
    const json::Value content = message["content"];
    if (!content.is_array() || content.children().empty()) {
      return Refused(path, "The content field is empty");
    }
    if (role == "system") {
      if (!calls_.empty()) return Missing(path);
    } else {
      CLERESTORY_RETURN_IF_ERROR(BeginTurn(role, path));
    }
    document_count_ = 0;
    std::size_t at = 0;
    for (const json::Value& block : content.children()) {
      CLERESTORY_RETURN_IF_ERROR(
          AddBlock(block, role, absl::StrCat(path, ".content.", at++)));
    }
    return role == "user" ? EndResults(path) : absl::OkStatus();
  }

  absl::Status End() const override {
    return calls_.empty() ? absl::OkStatus() : Missing("messages");
  }

 private:
  absl::Status BeginTurn(absl::string_view role, absl::string_view path) {
    if (role != "user" && role != "assistant") return Refused(path, "role");
    if (role_.empty() && role != "user") {
      return Refused(path, "A conversation must start with a user message.");
    }
    if (role == role_) {
      return Refused(path,
                     "A conversation must alternate between user and "
                     "assistant roles.");
    }
    role_ = std::string(role);
    return absl::OkStatus();
  }

  absl::Status Missing(absl::string_view path) const {
    return Refused(path, absl::StrCat("Expected toolResult blocks at ", path,
                                      ".content for the following Ids: ",
                                      *calls_.begin()));
  }

  absl::Status EndResults(absl::string_view path) {
    if (!calls_.empty()) return Missing(path);
    answered_.clear();
    return absl::OkStatus();
  }

  absl::Status AddBlock(const json::Value& block, absl::string_view role,
                        absl::string_view path) {
    if (!block.is_object() || block.children().size() != 1) {
      return Refused(path, "a ContentBlock has exactly one member");
    }
    const json::Value value = block.children()[0];
    const std::string kind = value.key();
    if (kind == "text") {
      if (!value.is_string() || IsBlank(value.string())) {
        return Refused(path, absl::StrCat("The text field in the ContentBlock "
                                          "object at ",
                                          path, " is blank"));
      }
    } else if (kind == "toolUse") {
      return AddCall(value, role, path);
    } else if (kind == "toolResult") {
      return AddResult(value, role, path);
    } else if (kind == "cachePoint") {
      return AddCachePoint(value, path);
    } else if (kind == "reasoningContent") {
      return CheckReasoning(value, role, path);
    } else if (kind == "image" || kind == "video" || kind == "document") {
      return CheckMedia(value, kind, path);
    } else if (!value.is_object()) {
      return Refused(path, absl::StrCat(kind, " is no structure"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckMedia(const json::Value& media, absl::string_view kind,
                          absl::string_view path) {
    if (!HasSource(media)) {
      return Refused(path, absl::StrCat(kind, " without format or source"));
    }
    if (kind != "document") return absl::OkStatus();
    if (!HasText(media["name"])) return Refused(path, "document without name");
    if (++document_count_ > kDocumentsMax) {
      return Refused(path, "too many documents in a message");
    }
    return absl::OkStatus();
  }

  static absl::Status CheckReasoning(const json::Value& value,
                                     absl::string_view role,
                                     absl::string_view path) {
    if (role != "assistant") return Refused(path, "reasoningContent");
    const json::Value text = value["reasoningText"];
    if (value.children().size() != 1 ||
        (!text["text"].is_string() && !HasText(value["redactedContent"]))) {
      return Refused(path, "reasoningContent is text or redacted");
    }
    return absl::OkStatus();
  }

  absl::Status AddCachePoint(const json::Value& point, absl::string_view path) {
    const json::Value ttl = point["ttl"];
    if (!point["type"].equals("default") ||
        (ttl.exists() && !ttl.equals("5m") && !ttl.equals("1h"))) {
      return Refused(path, "cachePoint of another type or ttl");
    }
    if (++cache_point_count_ > kCachePointsMax) {
      return Refused(path, "more than 4 cachePoint elements");
    }
    return absl::OkStatus();
  }

  absl::Status AddCall(const json::Value& call, absl::string_view role,
                       absl::string_view path) {
    if (role != "assistant") return Refused(path, "toolUse of the user");
    const std::string id = call["toolUseId"].string();
    if (!IsName(id, "_.:-")) {
      return Refused(path, absl::StrCat("toolUseId failed to satisfy "
                                        "[a-zA-Z0-9_.:-]{1,64}: ",
                                        id));
    }
    if (!IsName(call["name"].string(), "_-")) {
      return Refused(path, "name failed to satisfy [a-zA-Z0-9_-]{1,64}");
    }
    if (!call["input"].is_object()) return Refused(path, "input");
    if (!calls_.insert(id).second) {
      return Refused(path, absl::StrCat("toolUseId is repeated: ", id));
    }
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& result, absl::string_view role,
                         absl::string_view path) {
    if (role != "user") return Refused(path, "toolResult of the assistant");
    const std::string id = result["toolUseId"].string();
    if (calls_.erase(id) == 0) {
      return Refused(path, answered_.contains(id)
                               ? "each toolUse must have a single result"
                               : "The number of toolResult blocks exceeds the "
                                 "number of toolUse blocks of previous turn");
    }
    answered_.insert(id);
    const json::Value status = result["status"];
    if (status.exists() && !status.equals("success") &&
        !status.equals("error")) {
      return Refused(path, "status");
    }
    const json::Value content = result["content"];
    if (!content.is_array()) {
      return Refused(path, "Missing required parameter: content");
    }
    if (status.equals("error") && content.children().empty()) {
      return Refused(path, absl::StrCat("The content field at ", path,
                                        ".toolResult cannot be empty when "
                                        "status value is error."));
    }
    for (const json::Value& part : content.children()) {
      CLERESTORY_RETURN_IF_ERROR(CheckPart(part, path));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPart(const json::Value& part, absl::string_view path) {
    if (!part.is_object() || part.children().size() != 1) {
      return Refused(path, "a ToolResultContentBlock has exactly one member");
    }
    const json::Value value = part.children()[0];
    const std::string kind = value.key();
    if (std::find(kResultKinds.begin(), kResultKinds.end(), kind) ==
        kResultKinds.end()) {
      return Refused(path, absl::StrCat("a result of kind: ", kind));
    }
    if (kind == "text" && !value.is_string()) return Refused(path, "text");
    if (kind == "image" || kind == "video" || kind == "document") {
      return CheckMedia(value, kind, path);
    }
    return absl::OkStatus();
  }

  std::string role_;
  std::set<std::string> calls_;  // Of the last assistant message, unanswered.
  std::set<std::string> answered_;
  int cache_point_count_ = 0;
  int document_count_ = 0;  // Of the message.
};

}  // namespace

std::unique_ptr<HistoryRules> NewConverseRules() {
  return std::make_unique<ConverseRules>();
}

}  // namespace clerestory
