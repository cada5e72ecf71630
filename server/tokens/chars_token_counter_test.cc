// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/chars_token_counter.h"

#include <string>

#include "gtest/gtest.h"
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

TEST(CharsTokenCounterTest, CountsCodePointsRoundedDown) {
  const CharsTokenCounter counter(4);
  EXPECT_EQ(counter.CountText("", TextForm::kPlain), 0);
  EXPECT_EQ(counter.CountText("abc", TextForm::kPlain), 1);
  EXPECT_EQ(counter.CountText("abcdefg", TextForm::kPlain), 1);
  EXPECT_EQ(counter.CountText("abcdefgh", TextForm::kPlain), 2);
  EXPECT_EQ(counter.CountText("\u00e9\u4f60\u597d\U0001f680", TextForm::kPlain),
            1);
  EXPECT_EQ(CharsTokenCounter(1).CountText("\u00e9\u4f60\u597d\U0001f680",
                                           TextForm::kPlain),
            4);
}

TEST(CharsTokenCounterTest, CountsEscapesAsTheCharactersThatTheyStandFor) {
  const CharsTokenCounter counter(1);
  EXPECT_EQ(counter.CountText(R"(\n\"\\\/\u00e9)", TextForm::kJsonEscaped), 5);
  EXPECT_EQ(counter.CountText(R"(\ud83d\ude80)", TextForm::kJsonEscaped), 1);
  EXPECT_EQ(counter.CountText(R"(\ud83d\ude80)", TextForm::kPlain), 12);
}

TEST(CharsTokenCounterTest, CountsAnyBytes) {
  const CharsTokenCounter counter(4);
  EXPECT_EQ(counter.CountText("\x80\x80\x80", TextForm::kPlain), 1);
  EXPECT_EQ(counter.CountText("\\u12", TextForm::kJsonEscaped), 1);
  EXPECT_EQ(counter.CountText(std::string(8, '\xff'), TextForm::kPlain), 2);
}

TEST(CharsTokenCounterTest, PicturesAreAllAlike) {
  const CharsTokenCounter counter(4);
  EXPECT_EQ(counter.CountImage("", ImageFormula::kAnthropic),
            kUnknownImageTokens);
  EXPECT_EQ(counter.CountImage("R0lGODlhZAAyAA==", ImageFormula::kAnthropic),
            kUnknownImageTokens);
  EXPECT_EQ(counter.CountImage("R0lGODlhZAAyAA==", ImageFormula::kOpenai),
            kOpenaiImageTokensMax);
  EXPECT_EQ(counter.CountImage("", ImageFormula::kGemini), kGeminiImageTokens);
}

}  // namespace
}  // namespace clerestory
