// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/format.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/json/document.h"
#include "server/json/literal.h"
#include "server/model/message.h"
#include "tests/support/form_token_counter.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

constexpr std::uint64_t kSeed = 20261130;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat,
                               Format::kOpenaiResponses, Format::kGemini,
                               Format::kBedrockConverse};

TEST(FormatTest, EveryFormatHasANameAndAnAdapter) {
  EXPECT_EQ(FormatName(Format::kAnthropicMessages), "ANTHROPIC_MESSAGES");
  EXPECT_EQ(FormatName(Format::kOpenaiChat), "OPENAI_CHAT");
  EXPECT_EQ(FormatName(Format::kOpenaiResponses), "OPENAI_RESPONSES");
  EXPECT_EQ(FormatName(Format::kGemini), "GEMINI");
  EXPECT_EQ(FormatName(Format::kBedrockConverse), "BEDROCK_CONVERSE");
  EXPECT_EQ(FormatName(Format::kUnspecified), "FORMAT_UNSPECIFIED");
  const FormTokenCounter counter;
  constexpr absl::string_view kTool =
      R"({"role":"tool","tool_call_id":"c","content":"a"})";
  for (const Format format : kFormats) {
    EXPECT_EQ(AdapterFor(format).Parse(kTool, counter).ok(),
              format == Format::kOpenaiChat);
  }
}

TEST(FormatTest, ReasoningIsRefusedOrDroppedWhereItIsBound) {
  EXPECT_EQ(StaleReasoningOf(Format::kAnthropicMessages),
            StaleReasoning::kRefused);
  EXPECT_EQ(StaleReasoningOf(Format::kBedrockConverse),
            StaleReasoning::kRefused);
  EXPECT_EQ(StaleReasoningOf(Format::kOpenaiResponses),
            StaleReasoning::kDropped);
  EXPECT_EQ(StaleReasoningOf(Format::kOpenaiChat), StaleReasoning::kNone);
  EXPECT_EQ(StaleReasoningOf(Format::kGemini), StaleReasoning::kNone);
}

TEST(FormatDeathTest, AnUnspecifiedFormatHasNoAdapter) {
  EXPECT_DEATH(AdapterFor(Format::kUnspecified), "kUnspecified");
}

TEST(FormatTest, SpliceReplacesPartsAndKeepsTheRest) {
  EXPECT_EQ(Splice("", {}), "");
  EXPECT_EQ(Splice("abcdef", {}), "abcdef");
  EXPECT_EQ(Splice("abcdef", {{.at = {.offset = 2, .size = 2}, .value = "X"}}),
            "abXef");
  EXPECT_EQ(Splice("abcdef", {{.at = {.offset = 0, .size = 1}, .value = ""},
                              {.at = {.offset = 1, .size = 2}, .value = "long"},
                              {.at = {.offset = 5, .size = 1}, .value = "Z"}}),
            "longdeZ");
  EXPECT_EQ(Splice("abc", {{.at = {.offset = 0, .size = 3}, .value = "x"}}),
            "x");
  EXPECT_EQ(Splice("abc", {{.at = {.offset = 3, .size = 0}, .value = "x"}}),
            "abcx");
}

TEST(FormatDeathTest, PartsThatOverlapOrLieOutsideBreakAnInvariant) {
  EXPECT_DEATH(
      Splice("abcdef", {{.at = {.offset = 2, .size = 2}, .value = ""},
                        {.at = {.offset = 3, .size = 1}, .value = ""}}),
      "broken invariant");
  EXPECT_DEATH(
      Splice("abcdef", {{.at = {.offset = 4, .size = 1}, .value = ""},
                        {.at = {.offset = 0, .size = 1}, .value = ""}}),
      "broken invariant");
  EXPECT_DEATH(Splice("abc", {{.at = {.offset = 2, .size = 2}, .value = "xy"}}),
               "broken invariant");
}

// Writes messages as no client would but any could: with members in any order,
// blanks, escapes, numbers and unknown fields of all kinds.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : rng_(seed) {}

  std::size_t Below(std::size_t bound) { return rng_() % bound; }

  // A message with results.
  std::string Results(Format format) {
    switch (format) {
      case Format::kUnspecified:
        break;
      case Format::kAnthropicMessages:
        return ListOf("us\\u0065r", "content", &Writer::AnthropicBlock);
      case Format::kOpenaiChat:
        return Object(
            {R"("role":"tool")", R"("tool_call_id":"c\u00e9")",
             Member(Pick({"content", "c\\u006fntent"}), Content(format))});
      case Format::kOpenaiResponses:
        return ResponsesItem();
      case Format::kGemini:
        return ListOf("user", "p\\u0061rts", &Writer::GeminiPart);
      case Format::kBedrockConverse:
        return ListOf("user", "content", &Writer::ConverseBlock);
    }
    return "";
  }

  std::string Placeholder() {
    return std::string(
        Pick({"[m]", "[tool output masked: 47 lines, 1832 tokens]",
              "\"quoted\" \\ back\nslash", "é 😀", "]}", "\x01\x1f"}));
  }

 private:
  absl::string_view Pick(const std::vector<absl::string_view>& choices) {
    return choices[Below(choices.size())];
  }

  std::string Blank() { return std::string(Pick({"", "", " ", "\r\n\t"})); }

  std::string Mark() {
    return absl::StrCat(
        R"("cache_control":)", Blank(),
        Pick({R"({"type":"ephemeral"})", R"({ "ttl":"1h","type":"ephemeral" })",
              R"({"type":"\u0065phemeral", "n":1E+2})"}));
  }

  std::string Object(std::vector<std::string> members) {
    constexpr absl::string_view kUnknown[] = {
        R"("n":-0.10E+05)", R"("big":123456789012345678901234567890)",
        R"("\u0078":"\ud83d\ude00\/")", R"("o":{"a" : [1,2 ,{}],"b":null})",
        R"("caller":{"type":"direct"})"};
    for (const absl::string_view unknown : kUnknown) {
      if (Below(4) == 0) members.emplace_back(unknown);
    }
    for (std::size_t i = members.size(); i > 1; --i) {
      std::swap(members[i - 1], members[Below(i)]);
    }
    return absl::StrCat("{", Blank(),
                        absl::StrJoin(members, absl::StrCat(Blank(), ",")),
                        Blank(), "}");
  }

  std::string Member(absl::string_view name, absl::string_view value) {
    return absl::StrCat("\"", name, "\"", Blank(), ":", Blank(), value);
  }

  // A message that is a list of what `write` writes.
  std::string ListOf(absl::string_view role, absl::string_view list,
                     std::string (Writer::*write)()) {
    std::vector<std::string> parts;
    for (std::size_t count = 1 + Below(4); count > 0; --count) {
      parts.push_back((this->*write)());
    }
    return Object(
        {absl::StrCat(R"("role":")", role, "\""),
         Member(list, absl::StrCat("[", Blank(), absl::StrJoin(parts, " ,\n"),
                                   Blank(), "]"))});
  }

  std::string AnthropicBlock() {
    if (Below(4) == 0) return R"({"type":"text","text":"after"})";
    std::vector<std::string> members = {
        R"("type":"tool_result")",
        absl::StrCat(R"("tool_use_id":"t\/)", Below(3), "\""),
        Member("content", Content(Format::kAnthropicMessages))};
    if (Below(3) == 0) members.push_back(R"("is_error":true)");
    if (Below(3) == 0) members.push_back(R"("toolset_name":"br\u006fwser")");
    if (Below(3) == 0) members.push_back(Mark());
    return Object(std::move(members));
  }

  std::string ResponsesItem() {
    if (Below(2) == 0) {
      std::string output = Content(Format::kOpenaiResponses);
      if (output == "null") output = R"("")";
      return Object(
          {absl::StrCat(R"("type":")",
                        Pick({"function_call_output", "apply_patch_call_output",
                              "custom_tool\\u005fcall_output"}),
                        "\""),
           R"("call_id":"c\u00e9")", Member("output", output)});
    }
    std::vector<std::string> entries;
    for (std::size_t count = Below(4); count > 0; --count) {
      entries.push_back(Object(
          {absl::StrCat(R"("stdout":)", Pick({R"("")", R"("a\n")"})),
           absl::StrCat(R"("std\u0065rr":)", Pick({R"("")", R"("]}\"")"})),
           absl::StrCat(R"("outcome" : )",
                        Pick({R"({"type":"timeout"})",
                              R"({ "exit_code":0, "type":"exit"})"}))}));
    }
    return Object(
        {R"("type":"shell_call_output")", R"("call_id":"")",
         Member("output", absl::StrCat("[", Blank(),
                                       absl::StrJoin(entries, " , "), "]"))});
  }

  std::string GeminiPart() {
    if (Below(4) == 0) return R"({"text":"after"})";
    std::vector<std::string> members = {R"("name":"re\u0061d")"};
    if (Below(2) == 0) members.push_back(R"("id":"c")");
    if (Below(8) != 0) {
      members.push_back(
          Member(Pick({"response", "r\\u0065sponse"}),
                 Pick({"{}", R"({ "output":"a\n]}\"" })", R"({"error" : "no"})",
                       R"({"result":[{}, 1E+2],"error":null})", "null"})));
    }
    if (Below(3) == 0) {
      members.push_back(Member(
          "parts",
          Pick({"[]", "[ ]", "null",
                R"([ {"inlineData":{"mimeType":"image/png","data":"iV\/O"}} ])",
                R"([{"fileData":{"mimeType":"a/pdf","fileUri":"]}"}},{}])"})));
    }
    return Object({Member(Pick({"functionResponse", "function_response"}),
                          Object(std::move(members)))});
  }

  std::string ConverseBlock() {
    if (Below(4) == 0) return R"({"cachePoint":{"type":"default"}})";
    std::vector<std::string> members = {R"("toolUseId":"t")"};
    if (Below(8) != 0) {
      members.push_back(Member(
          "content",
          Pick({"[]", "null", R"([{"text":"a\n]}\""}])", R"([{"text":""}])",
                R"([ {"json":{"a":[1,{}]}}, {"text":"b"} ])",
                R"([{"image":{"source":{"bytes":"iV\/O"}}}])"})));
    }
    if (Below(2) == 0) {
      members.push_back(
          absl::StrCat(R"("status":)", Pick({R"("error")", R"("success")"})));
    }
    return Object({Member("toolResult", Object(std::move(members)))});
  }

  // Content of the formats in which it is text or blocks with a type.
  std::string Content(Format format) {
    if (Below(2) == 0) {
      return std::string(Pick({R"("")", R"("plain")", R"("a\nb\u000ac\\n")",
                               R"("é \ud83d\ude00 \"}]\" ")", "null", "[]"}));
    }
    std::vector<std::string> blocks;
    for (std::size_t count = 1 + Below(3); count > 0; --count) {
      std::vector<std::string> members = {R"("type":"text")",
                                          R"("text":"t\u0065xt ]}\"")"};
      if (Below(4) == 0) members = Picture(format);
      if (Below(3) == 0) members.push_back(Mark());
      blocks.push_back(Object(members));
    }
    return absl::StrCat("[", absl::StrJoin(blocks, ", "), Blank(), "]");
  }

  static std::vector<std::string> Picture(Format format) {
    if (format == Format::kAnthropicMessages) {
      return {R"("type":"image")",
              R"("source":{"type":"base64","data":"iV\/O"})"};
    }
    return {R"("type":"image_url")",
            R"("image_url":{"url":"https:\/\/e.com"})"};
  }

  std::mt19937_64 rng_;
};

absl::string_view At(absl::string_view message, const ByteSpan& span) {
  return message.substr(span.offset, span.size);
}

// What the model reads in `content`: a string, or the only string in a list or
// an object.
std::string TextOf(absl::string_view content) {
  const std::string text = absl::StrCat("{\"v\":", content, "}");
  const absl::StatusOr<json::Document> document = json::Document::Parse(text);
  EXPECT_THAT(document, IsOk()) << content;
  std::string found;
  std::vector<json::Value> left = {document->root()["v"]};
  while (!left.empty()) {
    const json::Value value = left.back();
    left.pop_back();
    // What stands beside the text, and what any writer adds.
    constexpr absl::string_view kOthers[] = {
        "type", "outcome", "cache_control", "caller", "x", "o"};
    const bool is_ours =
        std::ranges::find(kOthers, value.key()) == std::ranges::end(kOthers);
    if (is_ours) found += value.string();
    if (!is_ours) continue;
    for (const json::Value& child : value.children()) left.push_back(child);
  }
  return found;
}

// Whether `part` lies within `whole`.
bool IsWithin(const ByteSpan& part, const ByteSpan& whole) {
  return whole.size > 0 && part.offset >= whole.offset &&
         part.offset + part.size <= whole.offset + whole.size;
}

// A message of which some results are masked.
struct MaskedMessage {
  std::vector<bool> is_masked;
  std::string view;
};

MaskedMessage MaskSome(const FormatAdapter& adapter, absl::string_view message,
                       const ParsedMessage& parsed,
                       absl::string_view placeholder, Writer& writer) {
  MaskedMessage masked;
  std::vector<Replacement> replacements;
  for (const ParsedResult& result : parsed.results) {
    masked.is_masked.push_back(result.maskable && writer.Below(2) == 0);
    if (!masked.is_masked.back()) continue;
    for (Replacement& replacement :
         adapter.Mask(message, result, placeholder)) {
      EXPECT_TRUE(IsWithin(replacement.at, result.content) ||
                  IsWithin(replacement.at, result.attachments));
      replacements.push_back(std::move(replacement));
    }
  }
  masked.view = Splice(message, replacements);
  return masked;
}

// Expects that the results of `after` are those of `before` but for what
// masking changes.
void ExpectMasked(absl::string_view message, const ParsedMessage& before,
                  const MaskedMessage& masked, const ParsedMessage& after,
                  absl::string_view placeholder) {
  ASSERT_EQ(after.role, before.role);
  ASSERT_EQ(after.part_count, before.part_count);
  ASSERT_EQ(after.results.size(), before.results.size());
  const absl::string_view view = masked.view;
  std::size_t behind = 0;
  std::size_t view_behind = 0;
  for (std::size_t i = 0; i < before.results.size(); ++i) {
    const ParsedResult& was = before.results[i];
    const ParsedResult& is = after.results[i];
    ASSERT_EQ(is.call_id, was.call_id);
    ASSERT_EQ(is.tool, was.tool);
    ASSERT_EQ(is.is_error, was.is_error);
    ASSERT_EQ(is.maskable, was.maskable);
    ASSERT_EQ(is.is_removable, was.is_removable);
    ASSERT_EQ(At(view, is.cache_mark), At(message, was.cache_mark));
    // All between the results is as it was.
    ASSERT_EQ(view.substr(view_behind, is.element.offset - view_behind),
              message.substr(behind, was.element.offset - behind));
    behind = was.element.offset + was.element.size;
    view_behind = is.element.offset + is.element.size;
    if (masked.is_masked[i]) {
      ASSERT_EQ(TextOf(At(view, is.content)), placeholder);
      ASSERT_EQ(is.attachments, ByteSpan());
    } else {
      ASSERT_EQ(At(view, is.element), At(message, was.element));
    }
  }
  ASSERT_EQ(view.substr(view_behind), message.substr(behind));
}

TEST(FormatTest, MaskingChangesTheContentOfResultsAndNoOtherByte) {
  const FormTokenCounter counter;
  for (const Format format : kFormats) {
    const FormatAdapter& adapter = AdapterFor(format);
    Writer writer(kSeed);
    std::ptrdiff_t masked_count = 0;
    for (int round = 0; round < 3'000; ++round) {
      SCOPED_TRACE(
          absl::StrCat(FormatName(format), " seed ", kSeed, " round ", round));
      const std::string message = writer.Results(format);
      const absl::StatusOr<ParsedMessage> before =
          adapter.Parse(message, counter);
      ASSERT_THAT(before, IsOk()) << message;
      ASSERT_EQ(Splice(message, {}), message);

      const std::string placeholder = writer.Placeholder();
      const MaskedMessage masked =
          MaskSome(adapter, message, *before, placeholder, writer);
      masked_count += std::ranges::count(masked.is_masked, true);
      const absl::StatusOr<ParsedMessage> after =
          adapter.Parse(masked.view, counter);
      ASSERT_THAT(after, IsOk()) << masked.view;
      ASSERT_NO_FATAL_FAILURE(
          ExpectMasked(message, *before, masked, *after, placeholder))
          << message << "\n"
          << masked.view;
      // Masked once more it is the same.
      std::vector<Replacement> again;
      for (std::size_t i = 0; i < masked.is_masked.size(); ++i) {
        if (!masked.is_masked[i]) continue;
        for (Replacement& replacement :
             adapter.Mask(masked.view, after->results[i], placeholder)) {
          again.push_back(std::move(replacement));
        }
      }
      ASSERT_EQ(Splice(masked.view, again), masked.view);
    }
    EXPECT_GT(masked_count, 500);
  }
}

// What a call, a result or its content is worth cannot be more than the
// message.
TEST(FormatTest, ResultsAreMeasuredWithinTheirMessage) {
  const FormTokenCounter counter;
  for (const Format format : kFormats) {
    Writer writer(kSeed);
    for (int round = 0; round < 1'000; ++round) {
      const std::string message = writer.Results(format);
      const absl::StatusOr<ParsedMessage> parsed =
          AdapterFor(format).Parse(message, counter);
      ASSERT_THAT(parsed, IsOk()) << message;
      std::int64_t observations = 0;
      const ByteSpan whole = {.offset = 0, .size = message.size()};
      for (const ParsedResult& result : parsed->results) {
        ASSERT_GE(result.tokens_before, observations) << message;
        ASSERT_TRUE(IsWithin(result.element, whole)) << message;
        ASSERT_EQ(message[result.element.offset], '{') << message;
        for (const ByteSpan& part : {result.content, result.attachments}) {
          ASSERT_TRUE(part.size == 0 || IsWithin(part, result.element));
        }
        observations += result.token_count;
      }
      ASSERT_EQ(observations, parsed->tokens.observations) << message;
      ASSERT_GE(parsed->part_count,
                static_cast<std::int64_t>(parsed->results.size()));
    }
  }
}

}  // namespace
}  // namespace clerestory
