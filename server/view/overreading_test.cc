// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/overreading.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using testing::ElementsAre;

constexpr auto kNotJudged = Overreading::Verdict::kNotJudged;
constexpr auto kReferenced = Overreading::Verdict::kReferenced;
constexpr auto kUnreferenced = Overreading::Verdict::kUnreferenced;

// Of more than 50 tokens, and six words that are in no other number's.
std::string Listing(int number) {
  std::string text = "what there is:\n";
  for (const char* const word :
       {"apple", "bread", "candy", "dough", "eggs_", "flour"}) {
    absl::StrAppend(&text, word, number, "\n");
  }
  return text;
}

class OverreadingTest : public testing::Test {
 protected:
  void Read(const std::string& content, const std::string& path = "x",
            bool is_error = false) {
    session_.Call({.id = "",
                   .tool = "read",
                   .arguments = absl::StrCat("{\"path\":", Literal(path), "}")},
                  Literal(content), is_error);
  }
  void Say(const std::string& text) {
    session_.Append(AssistantMessage(Format::kAnthropicMessages, text));
  }
  std::vector<Overreading::Verdict> Verdicts() const {
    return FindOverreading(session_.session()).observations;
  }

  ScriptedSession session_;
};

TEST_F(OverreadingTest, WhatTheAssistantNamesLaterIsReferenced) {
  Read(Listing(1));
  Read(Listing(2));
  Say("Take candy1, of course.");
  EXPECT_THAT(Verdicts(), ElementsAre(kReferenced, kUnreferenced));
}

TEST_F(OverreadingTest, ArgumentsOfACallReferToo) {
  Read(Listing(1));
  Read(Listing(2), "flour1");
  Say("done");
  EXPECT_THAT(Verdicts(), ElementsAre(kReferenced, kUnreferenced));
}

TEST_F(OverreadingTest, WhatWasSaidBeforeItCameDoesNotReferToIt) {
  Say("I look for candy1.");
  Read(Listing(1));
  Say("There was candy1.");
  EXPECT_THAT(Verdicts(), ElementsAre(kUnreferenced));
}

TEST_F(OverreadingTest, AWordIsOfTheFirstThatHoldsIt) {
  Read(Listing(1));
  Read(Listing(1) + Listing(2));
  Say("Take candy1.");
  EXPECT_THAT(Verdicts(), ElementsAre(kReferenced, kUnreferenced));
}

TEST_F(OverreadingTest, WhatIsNotFollowedByTheAssistantIsNotJudged) {
  Read(Listing(1));
  session_.Ask(20);
  EXPECT_THAT(Verdicts(), ElementsAre(kNotJudged));
}

TEST_F(OverreadingTest, TinyOnesErrorsAndRepetitionsAreNotJudged) {
  Read("apple bread candy dough flour");
  Read(Listing(1), "x", /*is_error=*/true);
  Read(Listing(2));
  Read(Listing(2));
  Read(std::string(200, '-'));
  Say("done");
  EXPECT_THAT(Verdicts(), ElementsAre(kNotJudged, kNotJudged, kUnreferenced,
                                      kNotJudged, kNotJudged));
}

TEST_F(OverreadingTest, PathsAreWordsThoughTheirPartsAreShort) {
  Read(absl::StrCat(Listing(1), "src/a/b.cc\nsrc/a/d.cc"));
  Read(absl::StrCat(Listing(2), "src/x/e.cc"));
  Read(Listing(3), "/src/x/e.cc");
  Say("I would change src/a/b.cc.");
  EXPECT_THAT(Verdicts(), ElementsAre(kReferenced, kReferenced, kUnreferenced));
}

// So many words that no listing has, and one of the first.
std::string Speech(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    absl::StrAppend(&text, "w", 100'000'000 + i, " ");
  }
  return text + "candy1";
}

TEST_F(OverreadingTest, NothingIsJudgedByAMessageOfTooManyWords) {
  Read(Listing(1));
  Say(Speech(kSpokenWordsMax));
  EXPECT_THAT(Verdicts(), ElementsAre(kNotJudged)) << "and keeps no more";
}

TEST_F(OverreadingTest, WhatStandsBeforeAMessageOfFewerWordsIsJudged) {
  Read(Listing(1));
  Say(Speech(kSpokenWordsMax / 2));
  Read(Listing(2));
  Say(Speech(kSpokenWordsMax));
  EXPECT_THAT(Verdicts(), ElementsAre(kReferenced, kNotJudged));
}

TEST_F(OverreadingTest, EscapesArePartOfNoWord) {
  Read(absl::StrCat(Listing(1), "\tnothing_else\n\"quoted_word\"\n"));
  Read(Listing(2), "a\nnothing_else");
  Say("done");
  EXPECT_THAT(Verdicts(), ElementsAre(kReferenced, kUnreferenced));
}

TEST_F(OverreadingTest, AStringInAStringHasTheSameWords) {
  ScriptedSession chat(Format::kOpenaiChat);
  chat.Call({.id = "", .arguments = "{}"}, Literal("one\ntwo\n" + Listing(1)));
  chat.Call({.id = "", .arguments = R"({"text":"see\nbread1"})"},
            Literal(Listing(2)));
  chat.Append(AssistantMessage(Format::kOpenaiChat, "done"));
  EXPECT_THAT(FindOverreading(chat.session()).observations,
              ElementsAre(kReferenced, kUnreferenced));
}

TEST_F(OverreadingTest, ResultsOfOneMessageAreJudgedApart) {
  session_.Batch({Literal(Listing(1)), Literal(Listing(2))});
  Say("bread2 it is");
  EXPECT_THAT(Verdicts(), ElementsAre(kUnreferenced, kReferenced));
}

TEST_F(OverreadingTest, EqualBytesOfOneToolsArgumentsAreIdenticalCalls) {
  Read("a", "x");
  Read("b", "y");
  Read("c", "x");
  session_.Call({.id = "", .tool = "write", .arguments = "{\"path\":\"x\"}"},
                "\"d\"");
  Read("e", "x");
  EXPECT_THAT(FindOverreading(session_.session()).identical_calls,
              ElementsAre(false, false, true, false, true));
}

TEST_F(OverreadingTest, AHistoryOfNothingHasNothing) {
  const Overreading found = FindOverreading(session_.session());
  EXPECT_TRUE(found.observations.empty());
  EXPECT_TRUE(found.identical_calls.empty());
}

}  // namespace
}  // namespace clerestory
