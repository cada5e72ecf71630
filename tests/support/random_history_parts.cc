// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// The turns and results of Responses, Gemini and Converse.

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/model/message.h"
#include "tests/support/messages.h"
#include "tests/support/random_session.h"

namespace clerestory {
namespace {

constexpr absl::string_view kPng = "iVBORw0KGgo=";

// What a call of this kind has beside its type and call_id.
std::string CallBody(absl::string_view kind, absl::string_view id,
                     absl::string_view arguments) {
  const std::string text = Literal(arguments);
  if (kind == "custom_tool_call") {
    return absl::StrCat(R"(,"name":"sh","input":)", text);
  }
  if (kind == "shell_call") {
    return absl::StrCat(R"(,"action":{"commands":[)", text, "]}");
  }
  if (kind == "apply_patch_call") {
    return absl::StrCat(R"(,"status":"completed","operation":)",
                        R"({"type":"delete_file","path":)", text, "}");
  }
  if (kind == "local_shell_call") {
    return absl::StrCat(R"(,"status":"completed","id":")", id,
                        R"(","action":{"type":"exec","env":{},"command":[)",
                        text, "]}");
  }
  return absl::StrCat(R"(,"status":"completed","id":")", id,
                      R"(","pending_safety_checks":[],)",
                      R"("action":{"type":"wait"})");
}

}  // namespace

std::string RandomHistory::Finish(std::string message) {
  if (is_anthropic() || options_.format == Format::kOpenaiChat) return message;
  if (random_.OneIn(10) && options_.has_unknown) {
    message.pop_back();
    absl::StrAppend(&message, R"(,"from_the_future":{"n":1.0e2}})");
  }
  return random_.OneIn(3) ? Respell(message) : message;
}

std::string RandomHistory::MediaPart() {
  const bool is_image = random_.OneIn(2);
  switch (options_.format) {
    case Format::kOpenaiResponses:
      return is_image
                 ? absl::StrCat(R"({"type":"input_image","detail":"auto",)",
                                R"("image_url":"data:image/png;base64,)", kPng,
                                R"("})")
                 : R"({"type":"input_file","filename":"a","file_id":"f"})";
    case Format::kGemini:
      return is_image
                 ? absl::StrCat(R"({"inlineData":{"mimeType":"image/png",)",
                                R"("data":")", kPng, R"("}})")
                 : R"({"file_data":{"mime_type":"application/pdf",)"
                   R"("file_uri":"https://example.com/f"}})";
    case Format::kBedrockConverse:
      return is_image ? absl::StrCat(
                            R"({"image":{"format":"png","source":{"bytes":")",
                            kPng, R"("}}})")
                      : R"({"document":{"format":"pdf","name":"a","source":)"
                        R"({"bytes":"JVBERi0="}}})";
    case Format::kAnthropicMessages:
    case Format::kOpenaiChat:
    case Format::kUnspecified:
      break;
  }
  CLERESTORY_CHECK(false);
  return "";
}

std::string RandomHistory::Result(const RandomCall& call) {
  if (is_anthropic()) return AnthropicResult(call.id);
  if (options_.format == Format::kOpenaiChat) return ChatResult(call.id);
  const std::string text =
      absl::StrCat("\"x", Text(random_.Size(options_.result_size_max)), "\"");
  if (is_gemini()) return GeminiResult(call, text);
  if (is_converse()) return ConverseResult(call, text);
  return Finish(OutputItem(call, text));
}

std::string RandomHistory::GeminiResult(const RandomCall& call,
                                        const std::string& text) {
  const std::string id =
      call.id.empty() ? "" : absl::StrCat(R"("id":")", call.id, "\",");
  std::string response;
  switch (random_.Between(0, 5)) {
    case 0:
      response = absl::StrCat(R"({"error":)", text, "}");
      break;
    case 1:
      response = absl::StrCat(R"({"lines":[)", text, R"(],"n":1.0e2})");
      break;
    case 2:
      response = "{}";
      break;
    default:
      response = absl::StrCat(R"({"output":)", text, "}");
      break;
  }
  const std::string media =
      options_.has_images && random_.OneIn(3)
          ? absl::StrCat(R"("parts":[)", MediaPart(), "],")
          : "";
  const bool first = random_.OneIn(2);
  return absl::StrCat(random_.OneIn(6) ? R"({"function_response":{)"
                                       : R"({"functionResponse":{)",
                      id, first ? media : "", R"("response":)", response, ",",
                      first ? "" : media, R"("name":")", call.tool, "\"}}");
}

std::string RandomHistory::ConverseResult(const RandomCall& call,
                                          const std::string& text) {
  std::vector<std::string> parts;
  if (random_.OneIn(4)) {
    parts.push_back(
        absl::StrCat(R"({"json":{"n":1.0e2,"lines":[)", text, "]}}"));
  }
  if (parts.empty() || random_.OneIn(3)) {
    parts.push_back(absl::StrCat(R"({"text":)", text, "}"));
  }
  if (options_.has_images && random_.OneIn(3)) {
    parts.push_back(absl::StrCat(
        R"({"image":{"format":"png","source":{"bytes":")", kPng, R"("}}})"));
  }
  // A message may have five documents, and a step has more results.
  if (options_.has_images && call.index == 0 && random_.OneIn(3)) {
    parts.emplace_back(R"({"document":{"format":"pdf","name":"a","source":)"
                       R"({"bytes":"JVBERi0="}}})");
  }
  std::string status;
  if (random_.OneIn(6)) {
    status = R"("status":"error",)";
  } else if (random_.OneIn(2)) {
    status = R"("status":"success",)";
  } else if (random_.OneIn(12)) {
    parts.clear();
  }
  return absl::StrCat(R"({"toolResult":{)", status, R"("toolUseId":")", call.id,
                      R"(","content":[)", absl::StrJoin(parts, ","), "]}}");
}

std::string RandomHistory::OutputItem(const RandomCall& call,
                                      const std::string& text) {
  const std::string head =
      absl::StrCat(R"({"type":")", call.kind, R"(_output",")",
                   call.kind == "local_shell_call" ? "id" : "call_id", R"(":")",
                   call.id, "\"");
  if (call.kind == "computer_call") {
    return absl::StrCat(head, R"(,"output":{"type":"computer_screenshot",)",
                        R"("image_url":"data:image/png;base64,)", kPng,
                        R"("}})");
  }
  if (call.kind == "shell_call") {
    return absl::StrCat(head, R"(,"output":[{"stdout":)", text,
                        R"(,"stderr":"","outcome":)",
                        random_.OneIn(4) ? R"({"type":"timeout"})"
                                         : R"({"type":"exit","exit_code":1})",
                        "}]}");
  }
  if (call.kind == "apply_patch_call") {
    return absl::StrCat(
        head, R"(,"status":)",
        random_.OneIn(3) ? R"("failed")" : R"("completed")",
        random_.OneIn(4) ? "" : absl::StrCat(R"(,"output":)", text), "}");
  }
  if (call.kind == "local_shell_call" || random_.OneIn(2)) {
    return absl::StrCat(head, R"(,"output":)", text, "}");
  }
  std::vector<std::string> parts = {
      absl::StrCat(R"({"type":"input_text","text":)", text, "}")};
  if (options_.has_images && random_.OneIn(2)) parts.push_back(MediaPart());
  return absl::StrCat(R"({"output":[)", absl::StrJoin(parts, ","), "],",
                      head.substr(1), "}");
}

void RandomHistory::AddItems(const std::vector<RandomCall>& calls,
                             const std::string& text,
                             const std::vector<CallSpec>& specs, bool thinks,
                             std::vector<std::string>& messages) {
  if (thinks) {
    messages.push_back(
        Finish(absl::StrCat(R"({"type":"reasoning","id":"rs_)", item_count_++,
                            R"(","summary":[],"encrypted_content":"gAAA"})")));
  }
  if (!text.empty()) {
    messages.push_back(Finish(
        random_.OneIn(2)
            ? AssistantMessage(options_.format, text)
            : absl::StrCat(R"({"type":"message","id":"msg_)", item_count_++,
                           R"(","status":"completed","role":"assistant",)",
                           R"("phase":"commentary","content":[{"type":)",
                           R"("output_text","annotations":[],"text":)",
                           Literal(text), "}]}")));
  }
  if (random_.OneIn(12)) {
    messages.push_back(
        Finish(R"({"type":"mcp_call","id":"mcp_1","server_label":"s",)"
               R"("name":"f","arguments":"{}","output":"done"})"));
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const RandomCall& call = calls[i];
    if (call.kind == "function_call") {
      std::string item = AssistantMessage(options_.format, "", {specs[i]});
      if (random_.OneIn(2)) {
        item.pop_back();
        absl::StrAppend(&item, R"(,"id":"fc_)", item_count_++, R"("})");
      }
      messages.push_back(Finish(item));
      continue;
    }
    const std::string body = CallBody(call.kind, call.id, specs[i].arguments);
    messages.push_back(
        Finish(absl::StrCat(R"({"type":")", call.kind, R"(","call_id":")",
                            call.id, "\"", body, "}")));
  }
}

std::string RandomHistory::PartsOf(const std::string& text,
                                   const std::vector<CallSpec>& specs,
                                   bool thinks) {
  std::vector<std::string> parts;
  if (thinks) {
    parts.push_back(is_gemini() ? R"({"thought":true,"text":"hm"})"
                                : Thinking());
  }
  if (!text.empty()) {
    parts.push_back(absl::StrCat(R"({"text":)", Literal(text), "}"));
  }
  for (const CallSpec& spec : specs) {
    std::string call = AssistantMessage(options_.format, "", {spec});
    // The part alone: what the message has around it is longer on the left.
    const std::size_t begin = call.find('[') + 1;
    call = call.substr(begin, call.rfind(']') - begin);
    // Of parallel calls the first is signed, in each step of the session.
    if (is_gemini() && options_.has_thinking && &spec == specs.data()) {
      call.pop_back();
      absl::StrAppend(&call, R"(,"thoughtSignature":"Q3M="})");
    }
    parts.push_back(call);
  }
  if (is_converse() && Marks(12)) {
    parts.emplace_back(R"({"cachePoint":{"type":"default"}})");
  }
  return absl::StrCat(R"({"role":")", is_gemini() ? "model" : "assistant",
                      R"(",")", is_gemini() ? "parts" : "content", R"(":[)",
                      absl::StrJoin(parts, ","), "]}");
}

}  // namespace clerestory
