// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/json/document.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "tests/support/status_matchers.h"

namespace clerestory::json {
namespace {

using ::testing::ElementsAre;

// The message of the error that `text` is refused with; "" if it is not.
std::string ErrorOf(absl::string_view text, const ParseOptions& options = {}) {
  const absl::StatusOr<Document> document = Document::Parse(text, options);
  if (document.ok()) return "";
  EXPECT_THAT(document, FailsWith(absl::StatusCode::kInvalidArgument,
                                  Reason::kMessageInvalid));
  return std::string(document.status().message());
}

std::string Nested(std::size_t levels, absl::string_view innermost = "") {
  return absl::StrCat(std::string(levels, '['), innermost,
                      std::string(levels, ']'));
}

// Every kind of value, every escape, and whitespace in every place.
constexpr absl::string_view kSample =
    "\r\n\t {\"role\" : \"user\",\"n\":[ -0.5e+10 ,0, 1E2,true,false , null],"
    "\"\\u0065\\\"\\\\\\/\\b\\f\\n\\r\\t\":\"\\ud83d\\ude00 é €\",\"o\":{ },"
    "\"a\":[\t],\"deep\":{\"x\":[[{\"y\":\"\"}]]}}";

// --- what is refused -------------------------------------------------------

TEST(DocumentTest, RefusesWhatIsNoObjectOrArray) {
  EXPECT_EQ(ErrorOf(""), "empty, expected a JSON object");
  EXPECT_EQ(ErrorOf(" \t\r\n"), "empty, expected a JSON object");
  for (const absl::string_view text :
       {"null", "true", "1", "\"text\"", "hello", "<html>", "]", "}", ":", ",",
        "'a'", "\x01", "\f{}"}) {
    EXPECT_EQ(ErrorOf(text), "expected a JSON object") << text;
  }
}

TEST(DocumentTest, RefusesAByteOrderMark) {
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF{}"), "a byte order mark at byte 0");
  EXPECT_NE(ErrorOf(absl::string_view("\xFF\xFE{\0}\0", 6)), "");
}

TEST(DocumentTest, RefusesASampleCutAtEveryByte) {
  ASSERT_EQ(ErrorOf(kSample), "");
  for (std::size_t size = 0; size < kSample.size(); ++size) {
    EXPECT_NE(ErrorOf(kSample.substr(0, size)), "") << kSample.substr(0, size);
  }
}

TEST(DocumentTest, RefusesTextBehindTheValue) {
  EXPECT_EQ(ErrorOf("{} x"), "more text after the JSON value at byte 2");
  EXPECT_EQ(ErrorOf("[1]{}"), "more text after the JSON value at byte 3");
  EXPECT_EQ(ErrorOf("{}\n{}"), "more text after the JSON value at byte 2");
  EXPECT_NE(ErrorOf("{}}"), "");
  EXPECT_NE(ErrorOf("{},"), "");
  EXPECT_NE(ErrorOf(absl::string_view("{}\0", 3)), "");
  EXPECT_EQ(ErrorOf("{} \r\n\t"), "");
}

TEST(DocumentTest, RefusesNamesThatOccurTwice) {
  EXPECT_EQ(ErrorOf(R"({"a":1,"b":2,"a":3})"),
            "a name that occurs twice in an object at byte 13");
  EXPECT_EQ(ErrorOf(R"({"a":1,"\u0061":2})"),
            "a name that occurs twice in an object at byte 7");
  EXPECT_EQ(ErrorOf(R"({"":1,"":2})"),
            "a name that occurs twice in an object at byte 6");
  // The first that is repeated, whatever its letters.
  for (const absl::string_view text :
       {R"({"z":1,"a":2,"z":3,"a":4})", R"({"a":1,"z":2,"a":3,"z":4})"}) {
    EXPECT_EQ(ErrorOf(text),
              "a name that occurs twice in an object at byte 13");
  }
  // In other objects they are other names.
  EXPECT_EQ(ErrorOf(R"({"a":{"a":[{"a":1},{"a":2}]},"b":{"a":1}})"), "");
  EXPECT_EQ(ErrorOf(R"([{"a":1},{"a":{"b":1},"b":{"b":2,"b":3}}])"),
            "a name that occurs twice in an object at byte 33");
}

TEST(DocumentTest, DoesNotCompareNamesWhoseValuesCannotBeWalked) {
  constexpr absl::string_view kText = R"({"a":{"b":1,"b":2}})";
  EXPECT_EQ(ErrorOf(kText, {.tree_depth = 2}), "");
  EXPECT_NE(ErrorOf(kText, {.tree_depth = 3}), "");
}

TEST(DocumentTest, RefusesLoneSurrogates) {
  constexpr absl::string_view kError =
      "a string with a bad escape or a lone surrogate at byte ";
  for (const absl::string_view body :
       {R"(\ud800)", R"(\udbff)", R"(\udc00)", R"(\udfff)", R"(\ud83dx)",
        R"(\ud83d\n)", R"(\ud83d\u0041)", R"(\ud83d\ud83d)", R"(\ud83d\ue000)",
        R"(\ude00\ud83d)", R"(\ud83d\ude0)", R"(\ud83d\\ude00)",
        R"(\ud83d \ude00)", R"(\ud83d\ude00\ud83d)"}) {
    EXPECT_EQ(ErrorOf(absl::StrCat(R"({"a":")", body, R"("})")),
              absl::StrCat(kError, 5))
        << body;
    EXPECT_EQ(ErrorOf(absl::StrCat(R"({")", body, R"(":1})")),
              absl::StrCat(kError, 1))
        << body;
    // Below the levels that can be walked, too.
    EXPECT_EQ(ErrorOf(absl::StrCat(R"([[[{"k":[")", body, R"("]}]]])"),
                      {.tree_depth = 1}),
              absl::StrCat(kError, 9))
        << body;
  }
  EXPECT_EQ(ErrorOf(R"({"a":"\ud83d\ude00\uD83D\uDE00\udbff\udfff"})"), "");
}

TEST(DocumentTest, RefusesBadEscapes) {
  for (const absl::string_view body :
       {R"(\x41)", R"(\u12)", R"(\u12g4)", R"(\u 123)", R"(\u+123)",
        R"(\U0041)", R"(\')", R"(\0)", R"(\ )", "\\\xC3\xA9"}) {
    EXPECT_EQ(ErrorOf(absl::StrCat(R"(["ok",")", body, R"("])")),
              "a string with a bad escape or a lone surrogate at byte 6")
        << body;
  }
}

TEST(DocumentTest, RefusesWhatIsNotUtf8) {
  for (const absl::string_view bytes :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\xBD\xED\xB8\x80",
        "\xF0\x80\x80\xAF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
        "\xE2\x82", "\xF0\x9F\x98"}) {
    EXPECT_EQ(ErrorOf(absl::StrCat("{\"é\":\"", bytes, "\"}")),
              "not valid UTF-8 at byte 7");
  }
  EXPECT_EQ(ErrorOf("[\xFF]"), "not valid UTF-8 at byte 1");
  EXPECT_EQ(ErrorOf("[\"\xF4\x8F\xBF\xBF \xEF\xBF\xBF\"]"), "");
}

TEST(DocumentTest, RefusesControlCharactersInStrings) {
  for (char c = 0; c < 0x20; ++c) {
    const std::string byte(1, c);
    EXPECT_EQ(ErrorOf(absl::StrCat(R"({"a":"\"\\b)", byte, R"("})")),
              "a control character that is not escaped in a string at byte 11");
    EXPECT_EQ(ErrorOf(absl::StrCat(R"({"a)", byte, R"(":1})")),
              "a control character that is not escaped in a string at byte 3");
    EXPECT_EQ(ErrorOf(absl::StrCat(R"(["\)", byte, R"("])")),
              "a control character that is not escaped in a string at byte 3");
    // Between values only the four kinds of whitespace.
    EXPECT_EQ(ErrorOf(absl::StrCat("[", byte, "1]")).empty(),
              c == '\t' || c == '\n' || c == '\r')
        << static_cast<int>(c);
  }
  EXPECT_EQ(ErrorOf("[\"\x7F\"]"), "");
}

TEST(DocumentTest, RefusesStringsThatAreNotClosed) {
  EXPECT_EQ(ErrorOf(R"({"a":"b})"), "a string that is not closed at byte 5");
  EXPECT_EQ(ErrorOf(R"({"a":"b\"})"), "a string that is not closed at byte 5");
  EXPECT_EQ(ErrorOf(R"({"a)"), "a string that is not closed at byte 1");
}

TEST(DocumentTest, RefusesBadStructure) {
  for (const absl::string_view text :
       {"[1,]",       "[,1]",        "[1 2]",
        "[1,,2]",     "[1:2]",       "[1}",
        R"({"a":1])", "[",           "{",
        "[[]",        R"({"a"})",    R"({"a":})",
        R"({"a" 1})", R"({"a":1,})", R"({,"a":1})",
        "{a:1}",      "{1:2}",       "{null:1}",
        "{'a':1}",    R"({"a"::1})", R"({"a":1;})",
        R"(["a"b])",  R"([a"b"])",   R"(["a" "b"])",
        "[//1]",      "[1 /**/]",    R"({"a":1 "b":2})",
        "{[]:1}",     "{{}:1}",      R"([\n])",
        R"([\"])",    R"({"a":{})",  "[[}]",
        "[]]",        R"(["a""b"])"}) {
    EXPECT_NE(ErrorOf(text), "") << text;
  }
  EXPECT_EQ(ErrorOf(R"({"a":[1,]})"), "not valid JSON at byte 8");
}

TEST(DocumentTest, RefusesBadLiterals) {
  for (const absl::string_view word :
       {"nul",       "nulll",     "Null",   "NULL", "tru",       "truee",
        "true1",     "fals",      "falsey", "True", "undefined", "NaN",
        "Infinity",  "-Infinity", "nullx",  "n",    "t",         "f",
        "truefalse", "null null", "None"}) {
    EXPECT_NE(ErrorOf(absl::StrCat("[", word, "]")), "") << word;
    EXPECT_NE(ErrorOf(absl::StrCat("{\"a\":", word, "}")), "") << word;
  }
}

TEST(DocumentTest, RefusesBadNumbers) {
  for (const absl::string_view number :
       {"01",    "00",    "-",    "-a",   "+1",  ".5",   "5.",  "1.e5",
        "1e",    "1e+",   "1E-",  "0x10", "1_0", "1a",   "--1", "-01",
        "1.2.3", "1e5.5", "1e5e", "1 2",  "-.5", "1,0,", "1f",  "0b1",
        "1e0x",  "-00",   "0.",   "1..2", "1+2", "1-2",  "½",   "٣"}) {
    EXPECT_NE(ErrorOf(absl::StrCat("[", number, "]")), "") << number;
    EXPECT_NE(ErrorOf(absl::StrCat("{\"a\":", number, "}")), "") << number;
  }
}

TEST(DocumentTest, SaysNothingOfWhatTheTextHolds) {
  for (const absl::string_view text :
       {R"({"hunter2":"hunter2)", R"({"hunter2":hunter2})", "hunter2",
        R"({"hunter2":"\ud800hunter2"})", R"({"hunter2":1,"hunter2":2})",
        "{\"hunter2\":\"hunter2\xFF\"}", R"({"a":1}hunter2)"}) {
    EXPECT_FALSE(absl::StrContains(ErrorOf(text), "hunter2")) << ErrorOf(text);
    EXPECT_NE(ErrorOf(text), "");
  }
}

// --- bounds ----------------------------------------------------------------

TEST(DocumentTest, AcceptsJustAsManyLevelsAsAreAllowed) {
  EXPECT_EQ(ErrorOf(Nested(511)), "");
  EXPECT_EQ(ErrorOf(Nested(512)), "");
  EXPECT_EQ(ErrorOf(Nested(513)), "nested deeper than 512 levels at byte 512");
  // A scalar is a level, like any value.
  EXPECT_EQ(ErrorOf(Nested(511, "1")), "");
  EXPECT_EQ(ErrorOf(Nested(512, "1")),
            "nested deeper than 512 levels at byte 512");
  EXPECT_EQ(ErrorOf(R"({"a":{"b":[]}})", {.depth_max = 3}), "");
  EXPECT_EQ(ErrorOf(R"({"a":{"b":[]}})", {.depth_max = 2}),
            "nested deeper than 2 levels at byte 10");
}

TEST(DocumentTest, RefusesDepthBombs) {
  constexpr absl::string_view kError = "nested deeper than 512 levels at byte ";
  EXPECT_EQ(ErrorOf(Nested(100'000)), absl::StrCat(kError, 512));
  EXPECT_EQ(ErrorOf(std::string(100'000, '[')), absl::StrCat(kError, 512));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&objects, "{\"a\":");
  EXPECT_EQ(ErrorOf(objects), absl::StrCat(kError, 512 * 5));
}

TEST(DocumentTest, RefusesMoreValuesThanAreAllowedToBeWalked) {
  constexpr absl::string_view kText = R"([1,[2,[3,4]],{"a":5}])";
  EXPECT_EQ(ErrorOf(kText, {.tree_size_max = 9}), "");
  EXPECT_EQ(ErrorOf(kText, {.tree_size_max = 8}),
            "more than 8 values at byte 18");
  // Those that cannot be walked do not count.
  EXPECT_EQ(ErrorOf(kText, {.tree_depth = 2, .tree_size_max = 4}), "");
  EXPECT_EQ(ErrorOf(kText, {.tree_depth = 2, .tree_size_max = 3}),
            "more than 3 values at byte 13");
}

TEST(DocumentTest, AcceptsNumbersOfAnySizeAndPrecision) {
  for (const absl::string_view number :
       {"0", "-0", "0.0", "-0.0e-0", "10", "9223372036854775807",
        "18446744073709551615", "18446744073709551616",
        "-99999999999999999999999999999999", "1e400", "-1E+99999", "1e-99999",
        "3.141592653589793238462643383279502884197169399375105820974944"}) {
    const std::string text = absl::StrCat("{\"n\":", number, " ,\"m\":1}");
    const absl::StatusOr<Document> document = Document::Parse(text);
    ASSERT_THAT(document, IsOk()) << number;
    EXPECT_EQ(document->root()["n"].raw(), number);
    EXPECT_EQ(document->root()["m"].integer(), 1);
  }
  EXPECT_EQ(ErrorOf(absl::StrCat("[", std::string(1'000'000, '7'), "]")), "");
  EXPECT_EQ(ErrorOf(absl::StrCat("[0.", std::string(1'000'000, '7'), "]")), "");
}

TEST(DocumentTest, AcceptsLongStrings) {
  const std::string plain(1 << 20, 'x');
  std::string escaped;
  for (int i = 0; i < 1 << 18; ++i) absl::StrAppend(&escaped, "\\n");
  const std::string text =
      absl::StrCat("{\"a\":\"", plain, "\",\"b\":\"", escaped, "\"}");
  const absl::StatusOr<Document> document = Document::Parse(text);
  ASSERT_THAT(document, IsOk());
  EXPECT_EQ(document->root()["a"].string(), plain);
  EXPECT_EQ(document->root()["b"].string(), std::string(1 << 18, '\n'));
}

// Were a step of it quadratic, the test would not come back.
TEST(DocumentTest, TakesLinearTimeForManyNames) {
  constexpr int kCount = 100'000;
  for (const absl::string_view prefix : {"name_", "\\u006eame_"}) {
    std::string text = "{";
    for (int i = 0; i < kCount; ++i) {
      absl::StrAppend(&text, "\"", prefix, i, "\":", i, ",");
    }
    text.back() = '}';
    const absl::StatusOr<Document> document = Document::Parse(text);
    ASSERT_THAT(document, IsOk());
    EXPECT_EQ(document->root().children().size(), std::size_t{kCount});
    EXPECT_EQ(document->root()["name_99999"].integer(), 99'999);
    EXPECT_FALSE(document->root()["name_100000"].exists());
  }
}

// --- what is found ---------------------------------------------------------

TEST(DocumentTest, SpansAreWhereTheValuesStand) {
  constexpr absl::string_view kText =
      " { \"a\" : [ 1 , \"é\\\"\" ,{} ,[ ] , true ] ,\"b\":\n{\"c\":null } } ";
  const absl::StatusOr<Document> document = Document::Parse(kText);
  ASSERT_THAT(document, IsOk());
  const Value root = document->root();
  EXPECT_EQ(root.span(), (Span{.offset = 1, .size = kText.size() - 2}));
  EXPECT_EQ(root.span().end(), kText.size() - 1);
  const Value a = root["a"];
  EXPECT_EQ(a.raw(), "[ 1 , \"é\\\"\" ,{} ,[ ] , true ]");
  EXPECT_EQ(a.span().offset, kText.find('['));
  std::vector<std::pair<std::size_t, absl::string_view>> elements;
  for (const Value& element : a.children()) {
    elements.emplace_back(element.span().offset, element.raw());
    EXPECT_EQ(kText.substr(element.span().offset, element.span().size),
              element.raw());
  }
  const auto at = [&](absl::string_view raw) {
    return std::pair(kText.find(raw), raw);
  };
  EXPECT_THAT(elements, ElementsAre(at("1"), at("\"é\\\"\""), at("{}"),
                                    at("[ ]"), at("true")));
  EXPECT_EQ(root["b"].raw(), "{\"c\":null }");
  EXPECT_EQ(root["b"]["c"].raw(), "null");
  EXPECT_EQ(root["b"]["c"].span().offset, kText.find("null"));
}

TEST(DocumentTest, FindsMembersByNameHoweverItIsSpelled) {
  constexpr absl::string_view kText =
      R"({"plain":1,"esc\u0061p\u0065d":2,"":3,"a\"b":4,"ab":5,"\ud83d\ude00":6})";
  const absl::StatusOr<Document> document = Document::Parse(kText);
  ASSERT_THAT(document, IsOk());
  const Value root = document->root();
  EXPECT_EQ(root["plain"].integer(), 1);
  EXPECT_EQ(root["escaped"].integer(), 2);
  EXPECT_EQ(root[""].integer(), 3);
  EXPECT_EQ(root["a\"b"].integer(), 4);
  EXPECT_EQ(root["ab"].integer(), 5);
  EXPECT_EQ(root["😀"].integer(), 6);
  // A name is a text, and not its spelling.
  EXPECT_FALSE(root[R"(esc\u0061p\u0065d)"].exists());
  EXPECT_FALSE(root[R"(a\"b)"].exists());
  EXPECT_FALSE(root["plai"].exists());
  EXPECT_FALSE(root["plain "].exists());
  EXPECT_EQ(root["escaped"].key(), "escaped");
  EXPECT_EQ(root["a\"b"].key(), "a\"b");
}

TEST(DocumentTest, WhatIsNotThereDoesNotExistAndIsEmpty) {
  const absl::StatusOr<Document> document =
      Document::Parse(R"({"a":[1],"s":"x"})");
  ASSERT_THAT(document, IsOk());
  const Value none = document->root()["b"]["c"];
  EXPECT_FALSE(none.exists());
  EXPECT_FALSE(none.is(Kind::kNull));
  EXPECT_EQ(none.span(), Span());
  EXPECT_EQ(none.raw(), "");
  EXPECT_EQ(none.key(), "");
  EXPECT_EQ(none.string(), "");
  EXPECT_FALSE(none.equals(""));
  EXPECT_FALSE(none.is_true());
  EXPECT_EQ(none.integer(), std::nullopt);
  EXPECT_TRUE(none.children().empty());
  // Members are those of objects.
  EXPECT_FALSE(document->root()["a"]["0"].exists());
  EXPECT_FALSE(document->root()["s"]["x"].exists());
  EXPECT_EQ(document->root()["a"].children()[0].key(), "");
  EXPECT_FALSE(Document().root().exists());
}

TEST(DocumentTest, ScalarsAreReadAsWhatTheyAre) {
  constexpr absl::string_view kText =
      R"(["","a\nb",true,false,null,-7,9223372036854775808,1.0,1e2,"true"])";
  const absl::StatusOr<Document> document = Document::Parse(kText);
  ASSERT_THAT(document, IsOk());
  const std::vector<Value> values = document->root().children();
  EXPECT_TRUE(values[0].equals(""));
  EXPECT_EQ(values[1].string(), "a\nb");
  EXPECT_TRUE(values[1].equals("a\nb"));
  EXPECT_FALSE(values[1].equals(R"(a\nb)"));
  EXPECT_TRUE(values[2].is_true());
  EXPECT_TRUE(values[3].is(Kind::kBool));
  EXPECT_FALSE(values[3].is_true());
  EXPECT_TRUE(values[4].is(Kind::kNull));
  EXPECT_EQ(values[5].integer(), -7);
  // Neither rounded nor clamped.
  EXPECT_EQ(values[6].integer(), std::nullopt);
  EXPECT_EQ(values[7].integer(), std::nullopt);
  EXPECT_EQ(values[8].integer(), std::nullopt);
  EXPECT_FALSE(values[9].is_true());
  EXPECT_EQ(values[2].string(), "");
}

TEST(DocumentTest, ValuesBelowTheTreeAreSeenAsAWhole) {
  constexpr absl::string_view kText = R"({"a":{"b":{"c":[1,2]}}})";
  const absl::StatusOr<Document> document =
      Document::Parse(kText, {.tree_depth = 3});
  ASSERT_THAT(document, IsOk());
  const Value b = document->root()["a"]["b"];
  EXPECT_EQ(b.raw(), R"({"c":[1,2]})");
  EXPECT_TRUE(b.children().empty());
  EXPECT_FALSE(b["c"].exists());
}

TEST(DocumentTest, MayBeMovedOnceItIsRead) {
  const std::string text = R"({"a":"b"})";
  absl::StatusOr<Document> document = Document::Parse(text);
  ASSERT_THAT(document, IsOk());
  const Document moved = *std::move(document);
  EXPECT_TRUE(moved.root()["a"].equals("b"));
}

}  // namespace
}  // namespace clerestory::json
