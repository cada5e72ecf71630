// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/recall_tool.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

constexpr absl::string_view kName = R"("name":"recall_tool_output")";
constexpr absl::string_view kDescription =
    R"("description":"Returns the output of an earlier tool call that a )"
    R"(placeholder with a recall id stands for. Long outputs come in parts.")";
constexpr absl::string_view kSchema =
    R"({"type":"object","properties":{"id":{"type":"string","description":)"
    R"("The recall id in the placeholder."},"offset":{"type":"integer",)"
    R"("description":"Where to go on: the next_offset of the part before."}},)"
    R"("required":["id"]})";

}  // namespace

// The shapes are those of the vendors' references for tools: Anthropic
// Messages, OpenAI Chat Completions and Responses, Gemini's function
// declarations, and Bedrock's ToolSpecification.
std::string RecallToolDefinition(Format format) {
  switch (format) {
    case Format::kAnthropicMessages:
      return absl::StrCat("{", kName, ",", kDescription, R"(,"input_schema":)",
                          kSchema, "}");
    case Format::kOpenaiChat:
      return absl::StrCat(R"({"type":"function","function":{)", kName, ",",
                          kDescription, R"(,"parameters":)", kSchema, "}}");
    case Format::kOpenaiResponses:
      return absl::StrCat(R"({"type":"function",)", kName, ",", kDescription,
                          R"(,"parameters":)", kSchema, R"(,"strict":false})");
    case Format::kGemini:
      return absl::StrCat(R"({"functionDeclarations":[{)", kName, ",",
                          kDescription, R"(,"parametersJsonSchema":)", kSchema,
                          "}]}");
    case Format::kBedrockConverse:
      return absl::StrCat(R"({"toolSpec":{)", kName, ",", kDescription,
                          R"(,"inputSchema":{"json":)", kSchema, "}}}");
    case Format::kUnspecified:
      break;
  }
  CLERESTORY_CHECK(false);
  return "";
}

}  // namespace clerestory
