// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/formats/edit.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "tests/support/form_token_counter.h"

namespace clerestory {
namespace {

std::string Masked(absl::string_view arguments) {
  const FormTokenCounter counter;
  return MaskArguments(
      arguments, 20'000,
      [](std::int64_t tokens) {
        return absl::StrCat("[", tokens / 1'000, "]");
      },
      counter);
}

constexpr absl::string_view kLong = "abcdefghijklmnopqrstuvwxyz";

TEST(MaskArgumentsTest, LongStringsAreReplacedAndNoOtherByte) {
  EXPECT_EQ(Masked(absl::StrCat(R"({ "path" : "a.cc", "n":1.0e2, "text":")",
                                kLong, R"(" , "more":[true, ")", kLong,
                                R"(",{"x":null}]})")),
            R"({ "path" : "a.cc", "n":1.0e2, "text":"[26]" , )"
            R"("more":[true, "[26]",{"x":null}]})");
}

TEST(MaskArgumentsTest, NamesAreNeverReplaced) {
  EXPECT_EQ(Masked(absl::StrCat("{\"", kLong, "\":1}")), "");
}

TEST(MaskArgumentsTest, AStringThatHoldsAnObjectIsEditedInside) {
  EXPECT_EQ(Masked(absl::StrCat(R"("{\"path\": \"a\", \"text\": \")", kLong,
                                R"(\"}")")),
            R"("{\"path\": \"a\", \"text\": \"[26]\"}")");
}

TEST(MaskArgumentsTest, WhatIsNoObjectStays) {
  EXPECT_EQ(Masked(""), "");
  EXPECT_EQ(Masked(absl::StrCat("\"", kLong, "\"")), "");
  EXPECT_EQ(Masked(absl::StrCat("[\"", kLong, "\"]")), "");
  EXPECT_EQ(Masked(R"("{\"text\": \"cut off")"), "");
}

TEST(MaskArgumentsTest, AStringWhosePlaceholderIsNotShorterStays) {
  const FormTokenCounter counter;
  EXPECT_EQ(MaskArguments(
                R"({"a":"bcd"})", 1,
                [](std::int64_t) { return std::string("wxyz"); }, counter),
            "");
}

TEST(NewStringsTest, ManyStringsTakeNoLongTime) {
  std::string list = R"({"a":[0)";
  for (int i = 0; i < 60'000; ++i) absl::StrAppend(&list, ",\"s", i, "\"");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(NewStrings(absl::StrCat(list, R"(,"old"]})"),
                       absl::StrCat(list, R"(,"new"]})")),
            std::vector<std::string>{"new"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

// `text` without the parts that `elements` name.
std::string Without(absl::string_view text,
                    const std::vector<absl::string_view>& elements) {
  std::vector<ByteSpan> spans;
  for (const absl::string_view element : elements) {
    spans.push_back({.offset = text.find(element), .size = element.size()});
  }
  return Splice(text, RemoveElements(text, spans));
}

TEST(RemoveElementsTest, TheCommaGoesWithTheElement) {
  constexpr absl::string_view kText = R"({"c":[ {"a":1} , {"b":2}, {"c":3} ]})";
  EXPECT_EQ(Without(kText, {R"({"a":1})"}), R"({"c":[ {"b":2}, {"c":3} ]})");
  EXPECT_EQ(Without(kText, {R"({"b":2})"}), R"({"c":[ {"a":1} , {"c":3} ]})");
  EXPECT_EQ(Without(kText, {R"({"c":3})"}), R"({"c":[ {"a":1} , {"b":2} ]})");
}

TEST(RemoveElementsTest, NeighboursGoTogether) {
  constexpr absl::string_view kText = R"([{"a":1},{"b":2},{"c":3},{"d":4}])";
  EXPECT_EQ(Without(kText, {R"({"a":1})", R"({"b":2})"}),
            R"([{"c":3},{"d":4}])");
  EXPECT_EQ(Without(kText, {R"({"c":3})", R"({"d":4})"}),
            R"([{"a":1},{"b":2}])");
  EXPECT_EQ(Without(kText, {R"({"a":1})", R"({"c":3})", R"({"d":4})"}),
            R"([{"b":2}])");
}

}  // namespace
}  // namespace clerestory
