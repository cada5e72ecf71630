// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/recall_tool.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/json/document.h"
#include "server/model/message.h"

namespace clerestory {
namespace {

// What all of them say. The text is the contract: it stands in front of all
// that is cached.
constexpr absl::string_view kNameAndDescription =
    R"("name":"recall_tool_output","description":"Returns the output of an )"
    R"(earlier tool call that a placeholder with a recall id stands for. Long )"
    R"(outputs come in parts.")";
constexpr absl::string_view kSchema =
    R"({"type":"object","properties":{"id":{"type":"string","description":)"
    R"("The recall id in the placeholder."},"offset":{"type":"integer",)"
    R"("description":"Where to go on: the next_offset of the part before."}},)"
    R"("required":["id"]})";

struct Golden {
  Format format = Format::kUnspecified;
  std::string before;
  std::string between;
  std::string after;
  // Where the name and the schema stand.
  std::vector<std::string> declaration;
  std::vector<std::string> schema;
};

std::vector<Golden> Goldens() {
  return {
      {Format::kAnthropicMessages,
       "{",
       R"(,"input_schema":)",
       "}",
       {},
       {"input_schema"}},
      {Format::kOpenaiChat,
       R"({"type":"function","function":{)",
       R"(,"parameters":)",
       "}}",
       {"function"},
       {"parameters"}},
      {Format::kOpenaiResponses,
       R"({"type":"function",)",
       R"(,"parameters":)",
       R"(,"strict":false})",
       {},
       {"parameters"}},
      {Format::kGemini,
       R"({"functionDeclarations":[{)",
       R"(,"parametersJsonSchema":)",
       "}]}",
       {"functionDeclarations", "0"},
       {"parametersJsonSchema"}},
      {Format::kBedrockConverse,
       R"({"toolSpec":{)",
       R"(,"inputSchema":{"json":)",
       "}}}",
       {"toolSpec"},
       {"inputSchema", "json"}},
  };
}

json::Value At(json::Value value, const std::vector<std::string>& path) {
  for (const std::string& step : path) {
    value = step == "0" ? value.children().at(0) : value[step];
  }
  return value;
}

TEST(RecallToolTest, TheDefinitionIsTheSameBytesForEver) {
  for (const Golden& golden : Goldens()) {
    EXPECT_EQ(RecallToolDefinition(golden.format),
              absl::StrCat(golden.before, kNameAndDescription, golden.between,
                           kSchema, golden.after));
  }
}

TEST(RecallToolTest, TheDefinitionIsJsonWithTheNamesThatAreUsed) {
  for (const Golden& golden : Goldens()) {
    const std::string text = RecallToolDefinition(golden.format);
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(text, {.tree_depth = 12});
    ASSERT_TRUE(document.ok()) << text;
    const json::Value tool = At(document->root(), golden.declaration);
    EXPECT_TRUE(tool["name"].equals(kRecallToolName)) << text;
    EXPECT_TRUE(tool["description"].is_string()) << text;
    const json::Value schema = At(tool, golden.schema);
    EXPECT_TRUE(schema["type"].equals("object")) << text;
    EXPECT_TRUE(
        schema["properties"][kRecallIdArgument]["type"].equals("string"));
    EXPECT_TRUE(
        schema["properties"][kRecallOffsetArgument]["type"].equals("integer"));
    ASSERT_EQ(schema["required"].children().size(), 1U);
    EXPECT_TRUE(schema["required"].children()[0].equals(kRecallIdArgument));
  }
}

// The narrowest rule for names is OpenAI's and Bedrock's.
TEST(RecallToolTest, TheNameIsOneThatEveryProviderTakes) {
  EXPECT_LE(kRecallToolName.size(), 64U);
  EXPECT_EQ(kRecallToolName.find_first_not_of(
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                "0123456789_-"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace clerestory
