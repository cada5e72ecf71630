// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/typed_content.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/utf8.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

using Parts = std::vector<ContentPart>;

ContentPart Text(std::string value) { return {true, std::move(value)}; }
ContentPart Json(std::string value) { return {false, std::move(value)}; }

constexpr char kImage[] =
    R"({"type":"image", "source":{"type":"base64","data":"aGk="}})";

TEST(TypedContentTest, AStringIsItsText) {
  EXPECT_THAT(TypedContent(R"("a\n\u00e9\ud83d\ude00\"")", ""),
              ElementsAre(Text("a\né😀\"")));
}

TEST(TypedContentTest, WhatIsEmptyHasNoParts) {
  for (const char* const content : {"", "null", R"("")", "[]", R"([""])",
                                    R"([{"type":"text","text":""}])"}) {
    EXPECT_THAT(TypedContent(content, ""), IsEmpty()) << content;
  }
}

TEST(TypedContentTest, BlocksOfTextAreTextAndOthersStandAsTheyAre) {
  EXPECT_THAT(
      TypedContent(absl::StrCat(R"([{"type":"text","text":"a\tb"}, )", kImage,
                                R"(,{"text":"c","type":"text"}])"),
                   ""),
      ElementsAre(Text("a\tb"), Json(kImage), Text("c")));
}

TEST(TypedContentTest, EveryFormatHasItsNameForText) {
  EXPECT_THAT(
      TypedContent(R"([{"text":"converse"},{"type":"input_text","text":"r"},)"
                   R"({"type":"output_text","text":"o"},"bare"])",
                   ""),
      ElementsAre(Text("converse"), Text("r"), Text("o"), Text("bare")));
}

TEST(TypedContentTest, ATextThatSaysMoreKeepsWhatItSays) {
  // A cache mark is none of the text, nor is what is absent.
  EXPECT_THAT(TypedContent(R"([{"type":"text","text":"a","citations":null,)"
                           R"("annotations":[],)"
                           R"("cache_control":{"type":"ephemeral"}}])",
                           ""),
              ElementsAre(Text("a")));
  for (const char* const block :
       {R"({"type":"text","text":"a","citations":[{"url":"u"}]})",
        R"({"type":"search_result","text":"a"})",
        R"({"type":"text","text":7})"}) {
    EXPECT_THAT(TypedContent(absl::StrCat("[", block, "]"), ""),
                ElementsAre(Json(block)));
  }
}

TEST(TypedContentTest, AnObjectOfOneStringIsItsText) {
  EXPECT_THAT(TypedContent(R"({"output":"a\nb"})", ""),
              ElementsAre(Text("a\nb")));
  for (const char* const object :
       {R"({"output":"a","exit_code":0})", R"({"output":{"a":1}})", "{}"}) {
    EXPECT_THAT(TypedContent(object, ""), ElementsAre(Json(object)));
  }
}

TEST(TypedContentTest, AttachmentsComeBehindTheContent) {
  const std::string part = R"({"inlineData":{"mimeType":"image/png"}})";
  EXPECT_THAT(TypedContent(R"({"output":"a"})", absl::StrCat("[", part, "]")),
              ElementsAre(Text("a"), Json(part)));
}

TEST(TypedContentTest, WhatCannotBeLookedIntoIsOnePart) {
  const std::string deep = std::string(600, '[') + std::string(600, ']');
  for (const std::string& content :
       {deep, std::string("17"), std::string("[1,"), std::string("x")}) {
    EXPECT_THAT(TypedContent(content, ""), ElementsAre(Json(content)));
  }
}

// --- pages -----------------------------------------------------------------

// What the pages of `parts` are when each has `limit` bytes.
std::vector<Parts> Pages(const Parts& parts, std::int64_t limit) {
  std::vector<Parts> pages;
  std::int64_t offset = 0;
  do {
    const std::optional<ContentPage> page = PageOf(parts, offset, limit);
    if (!page.has_value()) {
      ADD_FAILURE() << "no page at " << offset;
      return pages;
    }
    pages.push_back(page->parts);
    EXPECT_TRUE(page->next_offset == 0 || page->next_offset > offset);
    offset = page->next_offset;
  } while (offset != 0);
  return pages;
}

TEST(PageOfTest, NothingHasOneEmptyPage) {
  const std::optional<ContentPage> page = PageOf({}, 0, 10);
  ASSERT_TRUE(page.has_value());
  EXPECT_THAT(page->parts, IsEmpty());
  EXPECT_EQ(page->next_offset, 0);
  EXPECT_EQ(page->total_bytes, 0);
}

TEST(PageOfTest, TextIsCutBetweenCharacters) {
  EXPECT_THAT(
      Pages({Text("aé😀z")}, 3),
      ElementsAre(Parts{Text("aé")}, Parts{Text("😀")}, Parts{Text("z")}));
}

TEST(PageOfTest, ACharacterThatIsLongerThanThePageIsGivenWhole) {
  EXPECT_THAT(Pages({Text("😀é")}, 1),
              ElementsAre(Parts{Text("😀")}, Parts{Text("é")}));
}

TEST(PageOfTest, JsonIsGivenWholeAndOnItsOwnWhereItIsLarge) {
  EXPECT_THAT(Pages({Text("ab"), Json("[1,2]"), Text("cd"), Json("{}")}, 4),
              ElementsAre(Parts{Text("ab")}, Parts{Json("[1,2]")},
                          Parts{Text("cd"), Json("{}")}));
}

TEST(PageOfTest, APageEndsWhereItIsFull) {
  EXPECT_THAT(Pages({Text("ab"), Text("é"), Text("c")}, 3),
              ElementsAre(Parts{Text("ab")}, Parts{Text("é"), Text("c")}));
}

TEST(PageOfTest, OffsetsAreOfAllPartsWhateverTheLimit) {
  const Parts parts = {Text("abc"), Json("[1]"), Text("é")};
  const std::optional<ContentPage> page = PageOf(parts, 2, 100);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(page->parts, (Parts{Text("c"), Json("[1]"), Text("é")}));
  EXPECT_EQ(page->total_bytes, 8);
  EXPECT_EQ(PageOf(parts, 3, 1)->next_offset, 6);
  EXPECT_THAT(PageOf(parts, 8, 1)->parts, IsEmpty());
}

TEST(PageOfTest, NoPageBeginsInsideOfACharacterOrOfJson) {
  const Parts parts = {Text("é"), Json("[1]")};
  for (const std::int64_t offset : {-1, 1, 3, 4, 6}) {
    EXPECT_EQ(PageOf(parts, offset, 10), std::nullopt) << offset;
  }
}

TEST(PageOfTest, PagesOfAnySizeAreTogetherTheWhole) {
  const Parts parts = {Text("äb😀\n"), Json(kImage), Text("x"),
                       Json("[]"),     Text("ñü"),   Text("e\u0301")};
  std::string whole;
  for (const ContentPart& part : parts) whole += part.value;
  for (std::int64_t limit = 1; limit < 80; ++limit) {
    std::string read;
    for (const Parts& page : Pages(parts, limit)) {
      std::size_t bytes = 0;
      for (const ContentPart& part : page) {
        read += part.value;
        bytes += part.value.size();
        EXPECT_TRUE(IsUtf8(part.value));
        if (!part.is_text) {
          EXPECT_THAT(parts, ::testing::Contains(part));
        }
      }
      EXPECT_TRUE(page.size() == 1 || bytes <= static_cast<std::size_t>(limit));
    }
    EXPECT_EQ(read, whole) << limit;
  }
}

}  // namespace
}  // namespace clerestory
