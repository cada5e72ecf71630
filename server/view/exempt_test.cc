// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/exempt.h"

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/formats/recall_tool.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/policy/policy.h"
#include "server/view/pinned_resources.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A session that masks in every turn all but the newest three observations.
ScriptedSession EagerSession(bool has_recall_tool = false) {
  ScriptedSession s(Format::kAnthropicMessages, has_recall_tool);
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

void CallTool(ScriptedSession& s, const std::string& tool,
              const std::string& arguments = "{}") {
  s.Call({.id = "", .tool = tool, .arguments = arguments}, LiteralOf(100));
}

// --- Pins --------------------------------------------------------------------

TEST(PinTest, APinnedObservationIsNotMaskedAndOthersAre) {
  ScriptedSession s = EagerSession();
  s.Turns(5, 100);
  s.PinObservation(0);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
  s.PinObservation(0, /*is_pinned=*/false);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(PinTest, NothingOfAPinnedToolIsMaskedWhateverComesLater) {
  ScriptedSession s = EagerSession();
  s.SetPin({.tool = "a"});
  for (const char* tool : {"a", "b", "a", "b", "a", "b", "b", "b"}) {
    CallTool(s, tool);
  }
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1, 3));
}

TEST(PinTest, WhatIsPinnedForTwoReasonsStaysForTheOther) {
  ScriptedSession s = EagerSession();
  s.Turns(4, 100);
  s.PinObservation(0);
  s.PinObservation(0);
  s.SetPin({.tool = "r"});
  s.SetPin({.tool = "r"}, /*is_pinned=*/false);
  s.Serve();
  EXPECT_THAT(s.masked(), IsEmpty());
  s.PinObservation(0, /*is_pinned=*/false);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0)) << "pinned twice is pinned";
}

TEST(PinTest, NotEvenTheWindowMasksWhatIsPinned) {
  ScriptedSession s = EagerSession();
  s.policy.keep_observations = 10;
  s.Turns(8, 100);
  s.PinObservation(1);
  s.PinObservation(3);
  s.policy.window_tokens = 1;
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kWindow);
  EXPECT_THAT(s.masked(), ElementsAre(0, 2, 4));
}

TEST(PinTest, AnEarlierCopyThatIsPinnedStays) {
  ScriptedSession s = EagerSession();
  s.policy.keep_observations = 10;
  s.policy.duplicates = DuplicateRule::kIdentical;
  s.Turns(3, 100);  // Of one content.
  s.PinObservation(0);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
}

TEST(PinTest, APinOfAResourceThatNoCallReadsPinsNothing) {
  ScriptedSession s = EagerSession();
  s.SetPin({.resource = "/elsewhere/"});
  CallTool(s, "Read", R"({"file_path":"/here/a.cc"})");
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(PinTest, APinOfAPathMeansAllItsSpellings) {
  for (const char* const pin :
       {"./a.cc", "src//a.cc", "/r/lib/../src/a.cc", "/r//src/", "./src/"}) {
    ScriptedSession s = EagerSession();
    s.SetPin({.resource = pin});
    CallTool(s, "Read", R"({"file_path":"/r/src/a.cc"})");
    CallTool(s, "Read", R"({"file_path":"/r/b.cc"})");
    s.Turns(3, 100);
    s.Serve();
    EXPECT_THAT(s.masked(), ElementsAre(1)) << pin;
  }
}

TEST(PinTest, WhatACallReadsIsFoundOnceByTheRuleOfThen) {
  ScriptedSession s = EagerSession();
  s.policy.tools = {{.tool = "get"}};
  s.policy.tools[0].access.resource_argument = "p";
  CallTool(s, "get", R"({"p":"/r/a.cc","q":"/r/b.cc"})");
  CallTool(s, "get", R"({"p":"/r/b.cc","q":"/r/a.cc"})");
  s.Turns(3, 100);
  s.SetPin({.resource = "a.cc"});
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
  s.policy.tools[0].access.resource_argument = "q";
  s.now += 3'600 * kMicrosPerSecond;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1));
  // Other pins are looked for among the same resources.
  s.SetPin({.resource = "a.cc"}, /*is_pinned=*/false);
  s.SetPin({.resource = "b.cc"});
  s.now += 3'600 * kMicrosPerSecond;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

TEST(PinTest, WhichResourcesAPinMeans) {
  struct Case {
    absl::string_view resource;
    absl::string_view pin;
    bool is_pinned;
  };
  constexpr Case kCases[] = {
      {"/r/a.cc", "/r/a.cc", true},
      {"/r/a.cc", "/r/b.cc", false},
      {"/r/a.cc", "/r/a.c", false},
      {"/r/a.cc", "/r/a.ccc", false},
      {"/r/a.cc", "/R/a.cc", false},
      // One of them relative: what ends with it, by whole names.
      {"/r/src/a.cc", "a.cc", true},
      {"/r/src/a.cc", "src/a.cc", true},
      {"/r/src/a.cc", "rc/a.cc", false},
      {"/r/src/ba.cc", "a.cc", false},
      {"a.cc", "/r/src/a.cc", true},
      {"src/a.cc", "/r/src/a.cc", true},
      {"rc/a.cc", "/r/src/a.cc", false},
      {"src/a.cc", "a.cc", true},
      {"a.cc", "src/a.cc", true},
      {"lib/a.cc", "src/a.cc", false},
      {"/a.cc", "/r/a.cc", false},
      {"/r/a.cc", "/a.cc", false},
      // Below a directory, not beside one of the same beginning.
      {"/r/src/a.cc", "/r/", true},
      {"/r/src/a.cc", "/r/src/", true},
      {"/r/src/a.cc", "/", true},
      {"/r/src", "/r/sr", false},
      {"/r/src2/a.cc", "/r/src/", false},
      {"/r/src/a.cc", "/r/src", false},
      {"/r/src/a.cc", "src/", true},
      {"/r/mysrc/a.cc", "src/", false},
      {"src/a.cc", "src/", true},
      {"mysrc/a.cc", "src/", false},
      {"/r/src/", "/r/src/", true},
      // Neither paths nor nothing.
      {"https://e/x/y", "https://e/x/y", true},
      {"https://e/x/y", "https://e/", true},
      {"https://e/x/y", "https://e/x", false},
      {"https://example/", "https://e/", false},
      {"", "a.cc", false},
      {"a.cc", "", false},
      {"", "", false},
      {"", "/", false},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(IsPinnedResource(c.resource, c.pin), c.is_pinned)
        << c.resource << " pinned as " << c.pin;
  }
}

// --- Tools that are not masked any more --------------------------------------

TEST(UnmaskedToolTest, WhatTheBreakerSaysIsNotMaskedFromNowOn) {
  ScriptedSession s = EagerSession();
  for (const char* tool : {"a", "b", "a", "b"}) CallTool(s, tool);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
  s.unmasked_tools = {"a"};
  for (int i = 0; i < 3; ++i) CallTool(s, "b");
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 3))
      << "the third stays, and the first as it is";
  s.unmasked_tools = {};
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3));
}

TEST(UnmaskedToolTest, TheWindowMasksItAllTheSame) {
  ScriptedSession s = EagerSession();
  s.Turns(8, 100);
  s.unmasked_tools = {"r"};
  s.policy.window_tokens = 1;
  EXPECT_EQ(s.Serve().decision.break_reason, BreakReason::kWindow);
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3, 4));
}

TEST(UnmaskedToolTest, AToolIsNotMaskedAfterSoManyReFetches) {
  ScriptedSession s = EagerSession();
  s.policy.refetch_session_limit = 2;
  s.Turns(4, 100);
  s.Serve();
  for (const RepeatKind kind :
       {RepeatKind::kDuplicate, RepeatKind::kRefresh, RepeatKind::kPaging,
        RepeatKind::kPoll, RepeatKind::kRefetch}) {
    s.NoteRepeat(3, 0, kind);
  }
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1)) << "only one was a re-fetch";
  s.NoteRepeat(4, 1);
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
  const Exempt exempt(s.session(), s.policy, nullptr);
  EXPECT_TRUE(exempt.IsUnmasked("r"));
  EXPECT_FALSE(exempt.IsUnmasked("s"));
  EXPECT_TRUE(exempt.ShowsAny());
}

TEST(UnmaskedToolTest, ReFetchesOfOtherToolsDoNotCount) {
  ScriptedSession s = EagerSession();
  for (const char* tool : {"a", "b", "a", "b", "b", "b"}) CallTool(s, tool);
  s.Serve();
  s.NoteRepeat(5, 0);
  s.NoteRepeat(5, 1);
  const Exempt exempt(s.session(), s.policy, nullptr);
  EXPECT_FALSE(exempt.IsUnmasked("a"));
  EXPECT_FALSE(exempt.IsUnmasked("b"));
  EXPECT_FALSE(exempt.ShowsAny());
}

TEST(UnmaskedToolTest, ARecallCountsAsAReFetch) {
  ScriptedSession s = EagerSession();
  s.Turns(5, 100);
  s.Serve();
  s.NoteRecall(0);
  s.NoteRecall(0);
  EXPECT_FALSE(Exempt(s.session(), s.policy, nullptr).IsUnmasked("r"))
      << "reading it on is one recall";
  s.NoteRepeat(4, 1);
  EXPECT_TRUE(Exempt(s.session(), s.policy, nullptr).IsUnmasked("r"));
}

TEST(UnmaskedToolTest, WithoutALimitAToolMayBeFetchedAgainHoweverOften) {
  ScriptedSession s = EagerSession();
  s.policy.refetch_session_limit = 0;
  s.Turns(4, 100);
  s.Serve();
  for (int i = 0; i < 9; ++i) s.NoteRepeat(3, 0);
  EXPECT_FALSE(Exempt(s.session(), s.policy, nullptr).ShowsAny());
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

// --- What a recall gave ------------------------------------------------------

TEST(KeptForRecallTest, WhatARecallGaveStaysForSoManyTurns) {
  ScriptedSession s = EagerSession(/*has_recall_tool=*/true);
  s.policy.recall_keep_turns = 6;
  CallTool(s, std::string(kRecallToolName));
  s.Turns(5, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(1, 2));
  s.Turn(100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1, 2, 3));
}

TEST(KeptForRecallTest, IsNotShownAgainAndTheWindowMasksIt) {
  ScriptedSession s = EagerSession(/*has_recall_tool=*/true);
  CallTool(s, std::string(kRecallToolName));
  s.Turns(4, 100);
  const Exempt exempt(s.session(), s.policy, nullptr);
  EXPECT_TRUE(exempt.IsExempt(0, /*is_forced=*/false));
  EXPECT_FALSE(exempt.IsExempt(0, /*is_forced=*/true));
  EXPECT_FALSE(exempt.IsShownAgain(0));
  EXPECT_FALSE(exempt.ShowsAny());
  s.policy.window_tokens = 1;
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0, 1));
}

TEST(KeptForRecallTest, AToolOfThatNameIsAnyToolWhereNoneWasDeclared) {
  ScriptedSession s = EagerSession(/*has_recall_tool=*/false);
  CallTool(s, std::string(kRecallToolName));
  s.Turns(3, 100);
  s.Serve();
  EXPECT_THAT(s.masked(), ElementsAre(0));
}

}  // namespace
}  // namespace clerestory
