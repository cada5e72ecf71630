// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/placeholder.h"

#include <string>

#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/policy/policy.h"

namespace clerestory {
namespace {

TEST(PlaceholderForTest, StatesLinesAndTokens) {
  ParsedResult result;
  result.line_count = 47;
  result.token_count = 1832;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            "[tool output masked: 47 lines, 1832 tokens]");
}

TEST(PlaceholderForTest, HasAnotherTextForAnError) {
  ParsedResult result;
  result.line_count = 2;
  result.token_count = 30;
  result.is_error = true;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            "[tool error masked: 2 lines, 30 tokens]");
}

TEST(PlaceholderForTest, CountsOneWithoutAPlural) {
  ParsedResult result;
  result.line_count = 1;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            "[tool output masked: 1 line, 0 tokens]");
  result.line_count = 0;
  result.image_count = 1;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            "[tool output masked: 1 image, 0 tokens]");
}

TEST(PlaceholderForTest, NamesImagesBesideLines) {
  ParsedResult result;
  result.image_count = 2;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            "[tool output masked: 2 images, 0 tokens]");
  result.line_count = 3;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            "[tool output masked: 3 lines and 2 images, 0 tokens]");
}

TEST(PlaceholderForTest, FillsEveryMarkOfTheTemplateAndNoOther) {
  Policy policy;
  policy.placeholder = "{size}, {size} {tokens} {lines} {{tokens}}";
  ParsedResult result;
  result.line_count = 2;
  result.token_count = 5;
  EXPECT_EQ(PlaceholderFor(result, policy), "2 lines, 2 lines 5 {lines} {5}");
}

TEST(PlaceholderForTest, DependsOnTheResultAndThePolicyAlone) {
  ParsedResult result;
  result.line_count = 4;
  result.token_count = 90;
  ParsedResult elsewhere = result;
  elsewhere.call_id = "c7";
  elsewhere.content = {.offset = 400, .size = 900};
  elsewhere.tokens_before = 12;
  EXPECT_EQ(PlaceholderFor(result, Policy()),
            PlaceholderFor(elsewhere, Policy()));
}

TEST(RecallMarkTest, NamesTheObservation) {
  EXPECT_EQ(RecallMark({.sequence = 12, .index = 3}), " (recall id 12.3)");
}

TEST(PlaceholderForTest, IsNeverEmpty) {
  for (const bool is_error : {false, true}) {
    ParsedResult result;
    result.is_error = is_error;
    EXPECT_FALSE(PlaceholderFor(result, Policy()).empty());
  }
}

}  // namespace
}  // namespace clerestory
