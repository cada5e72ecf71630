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
#include "server/tokens/token_counter.h"
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
    return ImageTokens(Json(value).value(), ImageFormula::kAnthropic, counter);
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
  EXPECT_EQ(ImageTokens(json::Value(), ImageFormula::kAnthropic, counter),
            kUnknown);
  EXPECT_EQ(ImageTokens(json::Value(), ImageFormula::kGemini, counter),
            kUnknown + 200'000);
}

TEST(ContentTest, SoundAndEncryptedDataCountByTheirSize) {
  const auto data = [](std::size_t size) {
    return Json(absl::StrCat("\"", std::string(size, 'A'), "\""));
  };
  EXPECT_EQ(MediaTokens(data(3'999).value()), 3);
  EXPECT_EQ(MediaTokens(data(10).value()), 1);
  EXPECT_EQ(MediaTokens(json::Value()), 1);
  EXPECT_EQ(OpaqueTokens(data(13).value()), 3);
  EXPECT_EQ(OpaqueTokens(data(0).value()), 0);
  EXPECT_EQ(OpaqueTokens(Json("12345678").value()), 0);
  EXPECT_EQ(OpaqueTokens(json::Value()), 0);
}

TEST(ContentTest, OptionalStringsMayBeAbsentOrNull) {
  const Json json(R"("ab")");
  EXPECT_EQ(OptionalString(json.root(), "v", "", 2).value(), "ab");
  EXPECT_EQ(OptionalString(json.root(), "w", "", 2).value(), "");
  EXPECT_EQ(OptionalString(Json("null").root(), "v", "", 2).value(), "");
  EXPECT_EQ(OptionalString(Json("1").root(), "v", "p", 2).status().message(),
            "p.v: expected a string");
}

TEST(ContentTest, KindsAreCheckedWhereThereIsAValue) {
  EXPECT_THAT(CheckKind(Json("{}").root(), "v", "", json::Kind::kObject),
              IsOk());
  EXPECT_THAT(CheckKind(Json("null").root(), "v", "", json::Kind::kArray),
              IsOk());
  EXPECT_THAT(CheckKind(Json("{}").root(), "w", "", json::Kind::kArray),
              IsOk());
  const Json number("1");
  const auto error = [&number](json::Kind kind) {
    return std::string(CheckKind(number.root(), "v", "p", kind).message());
  };
  EXPECT_EQ(error(json::Kind::kObject), "p.v: expected an object");
  EXPECT_EQ(error(json::Kind::kArray), "p.v: expected an array");
  EXPECT_EQ(error(json::Kind::kString), "p.v: expected a string");
}

TEST(ContentTest, MarkedBlocksAndThoseOfRunningCodeAreHeld) {
  for (const absl::string_view block :
       {R"({"cache_control":{"type":"ephemeral"}})",
        R"({"caller":{"type":"code_execution_20250825"}})", R"({"caller":{}})",
        R"({"caller":"direct"})"}) {
    EXPECT_TRUE(IsHeld(Json(block).value())) << block;
  }
  for (const absl::string_view block :
       {"{}", R"({"cache_control":null,"caller":null})",
        R"({"caller":{"type":"direct"}})"}) {
    EXPECT_FALSE(IsHeld(Json(block).value())) << block;
  }
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
