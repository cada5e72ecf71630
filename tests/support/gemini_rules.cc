// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/status.h"
#include "server/json/document.h"
#include "tests/support/history_rules.h"

namespace clerestory {
namespace {

// A name as Google's documents write it, and as its libraries do too.
struct FieldName {
  absl::string_view camel;
  absl::string_view snake;
};

constexpr FieldName kCall = {"functionCall", "function_call"};
constexpr FieldName kResponse = {"functionResponse", "function_response"};
constexpr FieldName kSignature = {"thoughtSignature", "thought_signature"};
constexpr FieldName kInlineData = {"inlineData", "inline_data"};
constexpr FieldName kFileData = {"fileData", "file_data"};

// What a part may be.
constexpr std::array<FieldName, 9> kKinds = {
    {{"text", "text"},
     kInlineData,
     kFileData,
     kCall,
     kResponse,
     {"executableCode", "executable_code"},
     {"codeExecutionResult", "code_execution_result"},
     {"toolCall", "tool_call"},
     {"toolResponse", "tool_response"}}};

json::Value Field(const json::Value& object, const FieldName& name) {
  const json::Value value = object[name.camel];
  return value.exists() ? value : object[name.snake];
}

absl::Status CheckMedia(const json::Value& part, absl::string_view path) {
  const json::Value data = Field(part, kInlineData);
  if (data.exists() && (!data["data"].is_string() ||
                        !HasText(Field(data, {"mimeType", "mime_type"})))) {
    return Refused(path, "inlineData without data or mimeType");
  }
  const json::Value file = Field(part, kFileData);
  if (file.exists() && !HasText(Field(file, {"fileUri", "file_uri"}))) {
    return Refused(path, "fileData without fileUri");
  }
  return absl::OkStatus();
}

// The rules of Gemini's generateContent.
class GeminiRules final : public HistoryRules {
 public:
  absl::Status Add(const json::Value& message, std::size_t index) override {
    const std::string path = MessagePath(index);
    const json::Value parts = message["parts"];
    const std::string role =
        message["role"].exists() ? message["role"].string() : "user";
    if (role != "user" && role != "model" && role != "function") {
      return Refused(path, "Please use a valid role: user, model");
    }
    if (!parts.is_array() || parts.children().empty()) {
      return Refused(path, "contents.parts must not be empty");
    }
    turn_ = {};
    std::size_t at = 0;
    for (const json::Value& part : parts.children()) {
      CLERESTORY_RETURN_IF_ERROR(
          AddPart(part, role, absl::StrCat(path, ".parts.", at++)));
    }
    CLERESTORY_RETURN_IF_ERROR(CheckResponses(path));
    if (!turn_.calls.empty() && last_role_ != "user") {
      return Refused(path,
                     "Please ensure that function call turn comes immediately "
                     "after a user turn or after a function response turn.");
    }
    waiting_ = turn_.calls;
    last_role_ = role == "model" ? "model" : "user";
    if (last_role_ == "user" && turn_.has_text) unsigned_call_.clear();
    return absl::OkStatus();
  }

  absl::Status End() const override {
    if (!waiting_.empty()) return CountDiffers("messages");
    if (has_signature_ && !unsigned_call_.empty()) {
      return Refused(unsigned_call_,
                     "Function call is missing a thought_signature in "
                     "functionCall parts.");
    }
    return absl::OkStatus();
  }

 private:
  struct Named {
    std::string id;
    std::string name;
  };
  struct Turn {
    std::vector<Named> calls;
    std::vector<Named> responses;
    bool has_text = false;
  };

  static absl::Status CountDiffers(absl::string_view path) {
    return Refused(path,
                   "Please ensure that the number of function response parts "
                   "is equal to the number of function call parts of the "
                   "function call turn.");
  }

  absl::Status AddPart(const json::Value& part, absl::string_view role,
                       absl::string_view path) {
    std::size_t known = 0;
    for (const FieldName& kind : kKinds) {
      if (Field(part, kind).exists()) ++known;
    }
    const bool is_signed = Field(part, kSignature).exists();
    if (!part.is_object() || part.children().empty()) {
      return Refused(path, "a part must have one initialized field");
    }
    if (known > 1) return Refused(path, "oneof field 'data' is already set");
    CLERESTORY_RETURN_IF_ERROR(CheckMedia(part, path));
    if (is_signed && !HasText(Field(part, kSignature))) {
      return Refused(path, "Invalid thought signature");
    }
    const json::Value text = part["text"];
    if (text.exists()) {
      if (!text.is_string()) return Refused(path, "text is no string");
      if (!is_signed && !HasText(text)) return Refused(path, "empty text");
      turn_.has_text = true;
    }
    const json::Value call = Field(part, kCall);
    if (call.exists()) return AddCall(call, is_signed, role, path);
    const json::Value response = Field(part, kResponse);
    if (response.exists()) return AddResponse(response, role, path);
    return absl::OkStatus();
  }

  absl::Status AddCall(const json::Value& call, bool is_signed,
                       absl::string_view role, absl::string_view path) {
    if (role != "model") return Refused(path, "functionCall of the user");
    if (!HasText(call["name"])) {
      return Refused(path, "function_call.name: Name cannot be empty");
    }
    if (call["args"].exists() && !call["args"].is_object()) {
      return Refused(path, "args is no object");
    }
    const std::string id = call["id"].string();
    for (const Named& other : turn_.calls) {
      if (!id.empty() && other.id == id) {
        return Refused(path, absl::StrCat("id is repeated: ", id));
      }
    }
    // Of parallel calls only the first is signed.
    if (is_signed) has_signature_ = true;
    if (turn_.calls.empty() && !is_signed && unsigned_call_.empty()) {
      unsigned_call_ = std::string(path);
    }
    turn_.calls.push_back({.id = id, .name = call["name"].string()});
    return absl::OkStatus();
  }

  absl::Status AddResponse(const json::Value& response, absl::string_view role,
                           absl::string_view path) {
    if (role == "model") return Refused(path, "functionResponse of the model");
    if (!HasText(response["name"])) {
      return Refused(path, "function_response.name: Name cannot be empty");
    }
    if (!response["response"].is_object()) {
      return Refused(path, "response is no object");
    }
    const json::Value parts = response["parts"];
    if (parts.exists() && !parts.is_array()) return Refused(path, "parts");
    for (const json::Value& part : parts.children()) {
      if (Field(part, kInlineData).exists() ==
          Field(part, kFileData).exists()) {
        return Refused(path, "a response's part is either of two");
      }
      CLERESTORY_RETURN_IF_ERROR(CheckMedia(part, path));
    }
    turn_.responses.push_back(
        {.id = response["id"].string(), .name = response["name"].string()});
    return absl::OkStatus();
  }

  // The responses answer the calls of the content before: by id, and where a
  // side has none, by name.
  absl::Status CheckResponses(absl::string_view path) const {
    if (turn_.responses.size() != waiting_.size()) return CountDiffers(path);
    std::vector<Named> open = waiting_;
    for (const Named& response : turn_.responses) {
      auto call = open.begin();
      while (call != open.end() &&
             (call->name != response.name ||
              (!response.id.empty() && call->id != response.id))) {
        ++call;
      }
      if (call == open.end()) {
        return Refused(path, absl::StrCat("a function response of no call: ",
                                          response.name, " ", response.id));
      }
      open.erase(call);
    }
    return absl::OkStatus();
  }

  Turn turn_;                   // The content that is being read.
  std::vector<Named> waiting_;  // The calls of the content before it.
  std::string last_role_;
  bool has_signature_ = false;
  // The first of the current turn's steps that lacks one; empty if none does.
  std::string unsigned_call_;
};

}  // namespace

std::unique_ptr<HistoryRules> NewGeminiRules() {
  return std::make_unique<GeminiRules>();
}

}  // namespace clerestory
