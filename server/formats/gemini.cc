// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/gemini.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/status.h"
#include "server/formats/content.h"
#include "server/formats/format.h"
#include "server/json/document.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

// The members that a response has by convention.
constexpr absl::string_view kOutput = "output";
constexpr absl::string_view kError = "error";

// A name in both spellings that the API reads.
struct Name {
  absl::string_view camel;
  absl::string_view snake;
};

constexpr Name kMimeType = {"mimeType", "mime_type"};
constexpr Name kSignature = {"thoughtSignature", "thought_signature"};
constexpr Name kResolution = {"mediaResolution", "media_resolution"};

// Members of a Part (python-genai, types.py, 2026-08), as far as they are told
// apart here. All others, those of server tools among them, are passed on
// untouched.
enum class Part { kText, kCall, kResponse, kData, kFile, kOther };

struct PartRule {
  Name name;
  Part part = Part::kOther;
};

constexpr PartRule kParts[] = {
    {{"functionCall", "function_call"}, Part::kCall},
    {{"functionResponse", "function_response"}, Part::kResponse},
    {{"inlineData", "inline_data"}, Part::kData},
    {{"fileData", "file_data"}, Part::kFile},
    {{"text", "text"}, Part::kText},
};

struct ResolutionRule {
  absl::string_view level;
  std::int64_t token_count = 0;
};

// What a picture counts in the resolution that its part asks for.
constexpr ResolutionRule kResolutions[] = {
    {"MEDIA_RESOLUTION_LOW", 280},
    {"MEDIA_RESOLUTION_MEDIUM", 560},
    {"MEDIA_RESOLUTION_HIGH", 1120},
    {"MEDIA_RESOLUTION_ULTRA_HIGH", 2240},
};

// A member, and how its name is spelled there.
struct Member {
  absl::string_view name;
  json::Value value;
};

Member MemberOf(const json::Value& parent, const Name& name) {
  const json::Value camel = parent[name.camel];
  if (!IsAbsentOrNull(camel)) return {.name = name.camel, .value = camel};
  return {.name = name.snake, .value = parent[name.snake]};
}

struct Found {
  Part part = Part::kOther;
  Member member;
};

Found FindPart(const json::Value& part) {
  for (const PartRule& rule : kParts) {
    const Member member = MemberOf(part, rule.name);
    if (!IsAbsentOrNull(member.value)) {
      return {.part = rule.part, .member = member};
    }
  }
  return {};
}

enum class Media { kImage, kStream, kDocument };

// What `inlineData` or `fileData` holds.
struct Measure {
  Media media = Media::kDocument;
  std::int64_t token_count = 0;
};

Measure MeasureData(const json::Value& part, const Member& data,
                    const TokenCounter& counter) {
  const std::string type = MemberOf(data.value, kMimeType).value.string();
  const json::Value bytes = data.value["data"];  // None in `fileData`.
  if (absl::StartsWith(type, "image/")) {
    const json::Value resolution = MemberOf(part, kResolution).value;
    for (const ResolutionRule& rule : kResolutions) {
      if (resolution["level"].equals(rule.level)) {
        return {.media = Media::kImage, .token_count = rule.token_count};
      }
    }
    return {.media = Media::kImage,
            .token_count = ImageTokens(bytes, ImageFormula::kGemini, counter)};
  }
  if (absl::StartsWith(type, "audio/") || absl::StartsWith(type, "video/")) {
    return {.media = Media::kStream, .token_count = MediaTokens(bytes)};
  }
  return {
      .media = Media::kDocument,
      .token_count = bytes.is_string() && type != "application/pdf"
                         ? OpaqueTokens(bytes)
                         : ImageTokens(bytes, ImageFormula::kGemini, counter)};
}

// One pass over a message.
class Scan {
 public:
  explicit Scan(const TokenCounter& counter) : counter_(counter) {}

  absl::StatusOr<ParsedMessage> Run(const json::Value& root) {
    CLERESTORY_RETURN_IF_ERROR(SetRole(root["role"]));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(root, "parts", "", json::Kind::kArray));
    for (const json::Value& part : root["parts"].children()) {
      const std::string path = absl::StrCat("parts[", message_.part_count, "]");
      if (!part.is_object()) return InvalidMessage(path, "expected an object");
      CLERESTORY_RETURN_IF_ERROR(AddPart(part, path));
      ++message_.part_count;
    }
    return std::move(message_);
  }

 private:
  absl::Status SetRole(const json::Value& role) {
    if (role.equals("model")) {
      message_.role = Role::kAssistant;
    } else if (IsAbsentOrNull(role) || role.equals("user") ||
               role.equals("function")) {
      message_.role = Role::kUser;
    } else {
      return InvalidMessage("role", "expected user, model or function");
    }
    return absl::OkStatus();
  }

  absl::Status AddPart(const json::Value& part, absl::string_view path) {
    const json::Value signature = MemberOf(part, kSignature).value;
    const bool is_signed = !IsAbsentOrNull(signature) && !signature.equals("");
    if (is_signed || part["thought"].is_true()) message_.has_thinking = true;
    const Found found = FindPart(part);
    const std::string member_path = PathOf(path, found.member.name);
    if (found.part == Part::kCall) {
      return AddCall(part, found.member.value, is_signed, member_path);
    }
    if (found.part == Part::kResponse) {
      return AddResult(part, found.member.value, is_signed, member_path);
    }
    std::int64_t& own_tokens = message_.role == Role::kAssistant
                                   ? message_.tokens.assistant
                                   : message_.tokens.user;
    if (found.part == Part::kText) {
      own_tokens += StringTokens(found.member.value, counter_);
    } else if (found.part == Part::kOther) {
      own_tokens += JsonTokens(part, counter_);
    } else {
      const Measure measure = MeasureData(part, found.member, counter_);
      own_tokens += measure.token_count;
      if (measure.media == Media::kImage) ++message_.image_count;
    }
    return absl::OkStatus();
  }

  absl::Status AddCall(const json::Value& part, const json::Value& function,
                       bool is_signed, absl::string_view path) {
    if (message_.role != Role::kAssistant) {
      return InvalidMessage(path, "in a message that is not the model's");
    }
    ParsedCall call;
    CLERESTORY_ASSIGN_OR_RETURN(
        call.id, OptionalString(function, "id", path, kCallIdBytesMax));
    CLERESTORY_ASSIGN_OR_RETURN(
        call.tool, RequiredString(function, "name", path, kToolNameBytesMax));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(function, "args", path, json::Kind::kObject));
    const json::Value arguments = function["args"];
    if (arguments.is_object()) call.arguments = ToByteSpan(arguments.span());
    call.element = ToByteSpan(part.span());
    call.is_removable = !is_signed;
    call.token_count = counter_.CountText(call.tool, TextForm::kPlain) +
                       JsonTokens(arguments, counter_);
    call.tokens_before = message_.tokens.total();
    message_.tokens.calls += call.token_count;
    message_.calls.push_back(std::move(call));
    return absl::OkStatus();
  }

  absl::Status AddResult(const json::Value& part, const json::Value& function,
                         bool is_signed, absl::string_view path) {
    if (message_.role != Role::kUser) {
      return InvalidMessage(path, "in a message that is the model's");
    }
    ParsedResult result;
    CLERESTORY_ASSIGN_OR_RETURN(
        result.call_id, OptionalString(function, "id", path, kCallIdBytesMax));
    CLERESTORY_ASSIGN_OR_RETURN(
        result.tool, RequiredString(function, "name", path, kToolNameBytesMax));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(function, "response", path, json::Kind::kObject));
    CLERESTORY_RETURN_IF_ERROR(
        CheckKind(function, "parts", path, json::Kind::kArray));
    result.element = ToByteSpan(part.span());
    result.is_removable = !is_signed;
    result.tokens_before = message_.tokens.total();
    const json::Value response = function["response"];
    MeasureResponse(response, result);
    CLERESTORY_RETURN_IF_ERROR(
        MeasureAttachments(function["parts"], PathOf(path, "parts"), result));
    result.maskable = response.is_object() && (!response.children().empty() ||
                                               result.attachments.size > 0);
    message_.tokens.observations += result.token_count;
    message_.results.push_back(std::move(result));
    return absl::OkStatus();
  }

  void MeasureResponse(const json::Value& response,
                       ParsedResult& result) const {
    result.content = ToByteSpan(response.span());
    result.is_error =
        !IsAbsentOrNull(response[kError]) && IsAbsentOrNull(response[kOutput]);
    for (const json::Value& value : response.children()) {
      // The name that every response has, a placeholder's too, is no part of
      // what masking removes.
      const std::string name = value.key();
      if (name != kOutput && name != kError) {
        result.token_count += counter_.CountText(name, TextForm::kPlain);
      }
      result.token_count += value.is_string() ? StringTokens(value, counter_)
                                              : JsonTokens(value, counter_);
      result.line_count += LineCount(value);
    }
  }

  absl::Status MeasureAttachments(const json::Value& attachments,
                                  absl::string_view path,
                                  ParsedResult& result) const {
    std::size_t index = 0;
    for (const json::Value& part : attachments.children()) {
      if (!part.is_object()) {
        return InvalidMessage(absl::StrCat(path, "[", index, "]"),
                              "expected an object");
      }
      ++index;
      const Found found = FindPart(part);
      if (found.part != Part::kData && found.part != Part::kFile) {
        result.token_count += JsonTokens(part, counter_);
        continue;
      }
      const Measure measure = MeasureData(part, found.member, counter_);
      result.token_count += measure.token_count;
      if (measure.media == Media::kImage) ++result.image_count;
      if (measure.media == Media::kDocument) ++result.document_count;
    }
    if (index > 0) result.attachments = ToByteSpan(attachments.span());
    return absl::OkStatus();
  }

  const TokenCounter& counter_;
  ParsedMessage message_;
};

}  // namespace

absl::StatusOr<ParsedMessage> Gemini::Parse(absl::string_view message,
                                            const TokenCounter& counter) const {
  // Down to contents[].parts[].functionResponse.parts[].inlineData.data.
  CLERESTORY_ASSIGN_OR_RETURN(const json::Document document,
                              ParseObject(message, 8));
  return Scan(counter).Run(document.root());
}

std::vector<Replacement> Gemini::Mask(absl::string_view /*message*/,
                                      const ParsedResult& result,
                                      absl::string_view placeholder) const {
  std::vector<Replacement> replacements = {
      {.at = result.content,
       .value = absl::StrCat(result.is_error ? R"({"error":)" : R"({"output":)",
                             json::Quote(placeholder), "}")}};
  if (result.attachments.size > 0) {
    const bool before = result.attachments.offset < result.content.offset;
    replacements.insert(before ? replacements.begin() : replacements.end(),
                        Replacement{.at = result.attachments, .value = "[]"});
  }
  return replacements;
}

}  // namespace clerestory
