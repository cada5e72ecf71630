// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/format.h"

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

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

TEST(FormatTest, EveryFormatHasANameAndAnAdapter) {
  EXPECT_EQ(FormatName(Format::kAnthropicMessages), "ANTHROPIC_MESSAGES");
  EXPECT_EQ(FormatName(Format::kOpenaiChat), "OPENAI_CHAT");
  EXPECT_EQ(FormatName(Format::kUnspecified), "FORMAT_UNSPECIFIED");
  const FormTokenCounter counter;
  constexpr absl::string_view kTool =
      R"({"role":"tool","tool_call_id":"c","content":"a"})";
  EXPECT_FALSE(
      AdapterFor(Format::kAnthropicMessages).Parse(kTool, counter).ok());
  EXPECT_TRUE(AdapterFor(Format::kOpenaiChat).Parse(kTool, counter).ok());
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
    if (format == Format::kOpenaiChat) {
      std::vector<std::string> members = {
          R"("role":"tool")", R"("tool_call_id":"c\u00e9")",
          absl::StrCat(Pick({"\"content\"", "\"c\\u006fntent\""}), Blank(), ":",
                       Blank(), Content(format))};
      return Object(members);
    }
    std::vector<std::string> blocks;
    for (std::size_t count = 1 + Below(4); count > 0; --count) {
      std::vector<std::string> members = {
          R"("type":"tool_result")",
          absl::StrCat(R"("tool_use_id":"t\/)", Below(3), "\""),
          absl::StrCat(R"("content")", Blank(), ":", Blank(), Content(format))};
      if (Below(3) == 0) members.push_back(R"("is_error":true)");
      if (Below(3) == 0) members.push_back(R"("toolset_name":"br\u006fwser")");
      if (Below(3) == 0) members.push_back(Mark());
      blocks.push_back(Object(members));
      if (Below(3) == 0) blocks.push_back(R"({"type":"text","text":"after"})");
    }
    std::vector<std::string> members = {
        R"("role":"us\u0065r")",
        absl::StrCat(R"("content":[)", Blank(), absl::StrJoin(blocks, " ,\n"),
                     Blank(), "]")};
    return Object(members);
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

  std::string Content(Format format) {
    if (Below(2) == 0) {
      return std::string(Pick({R"("")", R"("plain")", R"("a\nb\u000ac\\n")",
                               R"("é \ud83d\ude00 \"}]\" ")", "null", "[]"}));
    }
    std::vector<std::string> blocks;
    for (std::size_t count = 1 + Below(3); count > 0; --count) {
      std::vector<std::string> members = {R"("type":"text")",
                                          R"("text":"t\u0065xt ]}\"")"};
      if (Below(4) == 0) {
        members =
            format == Format::kAnthropicMessages
                ? std::vector<
                      std::
                          string>{R"("type":"image")",
                                  R"("source":{"type":"base64","data":"iV\/O"})"}
                : std::vector<std::string>{
                      R"("type":"image_url")",
                      R"("image_url":{"url":"https:\/\/e.com"})"};
      }
      if (Below(3) == 0) members.push_back(Mark());
      blocks.push_back(Object(members));
    }
    return absl::StrCat("[", absl::StrJoin(blocks, ", "), Blank(), "]");
  }

  std::mt19937_64 rng_;
};

absl::string_view At(absl::string_view message, const ByteSpan& span) {
  return message.substr(span.offset, span.size);
}

// What the model reads in `content`, which must be a string or one text block.
std::string TextOf(absl::string_view content) {
  const std::string text = absl::StrCat("{\"v\":", content, "}");
  const absl::StatusOr<json::Document> document = json::Document::Parse(text);
  EXPECT_THAT(document, IsOk()) << content;
  const json::Value value = document->root()["v"];
  if (value.is_string()) return value.string();
  EXPECT_EQ(value.children().size(), 1U) << content;
  EXPECT_TRUE(value.children()[0]["type"].equals("text")) << content;
  return value.children()[0]["text"].string();
}

TEST(FormatTest, MaskingChangesTheContentOfResultsAndNoOtherByte) {
  const FormTokenCounter counter;
  for (const Format format : kFormats) {
    const FormatAdapter& adapter = AdapterFor(format);
    Writer writer(kSeed);
    int masked_count = 0;
    for (int round = 0; round < 3'000; ++round) {
      SCOPED_TRACE(absl::StrCat("seed ", kSeed, " round ", round));
      const std::string message = writer.Results(format);
      const absl::StatusOr<ParsedMessage> before =
          adapter.Parse(message, counter);
      ASSERT_THAT(before, IsOk()) << message;
      ASSERT_EQ(Splice(message, {}), message);

      const std::string placeholder = writer.Placeholder();
      std::vector<Replacement> replacements;
      std::vector<bool> masked;
      for (const ParsedResult& result : before->results) {
        masked.push_back(result.maskable && writer.Below(2) == 0);
        if (!masked.back()) continue;
        ++masked_count;
        for (Replacement& replacement :
             adapter.Mask(message, result, placeholder)) {
          replacements.push_back(std::move(replacement));
        }
      }
      const std::string view = Splice(message, replacements);

      const absl::StatusOr<ParsedMessage> after = adapter.Parse(view, counter);
      ASSERT_THAT(after, IsOk()) << view;
      ASSERT_EQ(after->role, before->role);
      ASSERT_EQ(after->results.size(), before->results.size());
      absl::string_view rest = message;
      absl::string_view view_rest = view;
      std::size_t behind = 0;
      std::size_t view_behind = 0;
      for (std::size_t i = 0; i < masked.size(); ++i) {
        const ParsedResult& was = before->results[i];
        const ParsedResult& is = after->results[i];
        ASSERT_EQ(is.call_id, was.call_id);
        ASSERT_EQ(is.is_error, was.is_error);
        ASSERT_EQ(is.maskable, was.maskable);
        ASSERT_EQ(At(view, is.cache_mark), At(message, was.cache_mark));
        // All between the contents is as it was.
        ASSERT_EQ(
            view_rest.substr(view_behind, is.content.offset - view_behind),
            rest.substr(behind, was.content.offset - behind));
        behind = was.content.offset + was.content.size;
        view_behind = is.content.offset + is.content.size;
        if (masked[i]) {
          ASSERT_EQ(TextOf(At(view, is.content)), placeholder);
        } else {
          ASSERT_EQ(At(view, is.content), At(message, was.content));
        }
      }
      ASSERT_EQ(view_rest.substr(view_behind), rest.substr(behind));
    }
    EXPECT_GT(masked_count, 500);
  }
}

}  // namespace
}  // namespace clerestory
