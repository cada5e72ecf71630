// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/content.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "tests/support/form_token_counter.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

// A JSON value, and the text in which it stands.
class Json {
 public:
  explicit Json(absl::string_view value)
      : text_(absl::StrCat("{\"v\":", value, "}")),
        document_(json::Document::Parse(text_).value()) {}
  json::Value value() const { return document_.root()["v"]; }
  json::Value root() const { return document_.root(); }

 private:
  std::string text_;
  json::Document document_;
};

std::int64_t Lines(absl::string_view literal) {
  return LineCount(Json(literal).value());
}

TEST(ContentTest, LinesAreOneMoreThanLineBreaks) {
  EXPECT_EQ(Lines(R"("")"), 0);
  EXPECT_EQ(Lines(R"("one")"), 1);
  EXPECT_EQ(Lines(R"("one\ntwo\n")"), 3);
  EXPECT_EQ(Lines(R"("\n")"), 2);
  EXPECT_EQ(Lines(R"("one\r\ntwo")"), 2);
  EXPECT_EQ(Lines(R"("a\u0020n")"), 1);
}

TEST(ContentTest, ALineBreakCountsHoweverItIsSpelled) {
  EXPECT_EQ(Lines(R"("one\u000atwo\u000Athree")"), 3);
  EXPECT_EQ(Lines(R"("\u000b\u00a0\u0a00")"), 1);
}

TEST(ContentTest, AnEscapedBackslashBeginsNoLineBreak) {
  EXPECT_EQ(Lines(R"("C:\\new")"), 1);
  EXPECT_EQ(Lines(R"("\\\n\\\\n")"), 2);
  EXPECT_EQ(Lines(R"("\\u000a")"), 1);
}

TEST(ContentTest, OnlyStringsHaveLinesAndText) {
  const FormTokenCounter counter;
  for (const absl::string_view value : {"null", "1", "[\"a\"]", "{\"a\":1}"}) {
    EXPECT_EQ(Lines(value), 0) << value;
    EXPECT_EQ(StringTokens(Json(value).value(), counter), 0) << value;
  }
  EXPECT_EQ(LineCount(json::Value()), 0);
  EXPECT_EQ(StringTokens(json::Value(), counter), 0);
}

TEST(ContentTest, StringsCountAsTextAndOtherValuesAsJson) {
  const FormTokenCounter counter;
  EXPECT_EQ(StringTokens(Json(R"("a\nb")").value(), counter), 4'000);
  EXPECT_EQ(JsonTokens(Json(R"({"a": 1})").value(), counter), 8);
  EXPECT_EQ(JsonTokens(json::Value(), counter), 0);
}

TEST(ContentTest, PicturesCountByTheirDataAlone) {
  const FormTokenCounter counter;
  const auto tokens = [&](absl::string_view value) {
    return ImageTokens(Json(value).value(), counter);
  };
  constexpr std::int64_t kUnknown = 1'000'000;
  EXPECT_EQ(tokens(R"("iVBO")"), 5'000'000);
  EXPECT_EQ(tokens(R"("data:image/png;base64,iVBO")"), 5'000'000);
  // JPEG begins with "/9j/", and some writers escape each slash.
  EXPECT_EQ(tokens(R"("\/9j\/")"), 5'000'000);
  EXPECT_EQ(tokens(R"("data:image\/jpeg;base64,\/9j\/")"), 5'000'000);
  EXPECT_EQ(tokens(R"("https://example.com/a.png")"), kUnknown);
  EXPECT_EQ(tokens(R"("http:\/\/example.com\/a.png")"), kUnknown);
  EXPECT_EQ(tokens(R"("data:image/png")"), kUnknown);
  EXPECT_EQ(tokens(R"("")"), kUnknown);
  EXPECT_EQ(tokens("null"), kUnknown);
  EXPECT_EQ(ImageTokens(json::Value(), counter), kUnknown);
}

TEST(ContentTest, RequiredStringsAreStringsOfBoundedSize) {
  const Json json(R"("a\u00e9")");
  const absl::StatusOr<std::string> text =
      RequiredString(json.root(), "v", "path", 3);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, "aé");
  EXPECT_THAT(RequiredString(Json(R"("")").root(), "v", "", 3), IsOk());

  const auto error = [](const Json& parent, absl::string_view name,
                        absl::string_view path) {
    const absl::StatusOr<std::string> result =
        RequiredString(parent.root(), name, path, 2);
    EXPECT_THAT(result, FailsWith(absl::StatusCode::kInvalidArgument,
                                  Reason::kMessageInvalid));
    return std::string(result.status().message());
  };
  EXPECT_EQ(error(json, "w", "content[0]"), "content[0].w: missing");
  EXPECT_EQ(error(json, "w", ""), "w: missing");
  EXPECT_EQ(error(Json("1"), "v", "p"), "p.v: expected a string");
  EXPECT_EQ(error(Json("null"), "v", "p"), "p.v: expected a string");
  EXPECT_EQ(error(json, "v", "p"), "p.v: longer than 2 bytes");
}

TEST(ContentTest, InvalidMessageSaysWhereAndWhat) {
  const absl::Status status = InvalidMessage("role", "missing");
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kMessageInvalid));
  EXPECT_EQ(status.message(), "role: missing");
}

TEST(ContentTest, TextContentIsAStringUnlessThereIsACacheMark) {
  constexpr absl::string_view kMessage =
      R"({"content":[{"cache_control": {"ttl":"1h", "type":"ephemeral"}}]})";
  ParsedResult result;
  EXPECT_EQ(TextContent(kMessage, result, "[\"masked\"\n]"),
            R"("[\"masked\"\n]")");
  const std::size_t start = kMessage.find("{\"ttl\"");
  result.cache_mark = {.offset = start, .size = kMessage.find("}]") - start};
  EXPECT_EQ(TextContent(kMessage, result, "[\"masked\"]"),
            R"([{"type":"text","text":"[\"masked\"]","cache_control":)"
            R"({"ttl":"1h", "type":"ephemeral"}}])");
}

}  // namespace
}  // namespace clerestory
