// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of other systems reported about ids that are not unique. The
// number of a test is that of the report; what failed there is said above it.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/served_views.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

constexpr Format kAnthropic = Format::kAnthropicMessages;
constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

ScriptedSession EagerSession(Format format) {
  ScriptedSession s(format);
  s.policy.mode = Mode::kEveryTurn;
  return s;
}

ResultSpec Result(absl::string_view id, std::size_t tokens = 100) {
  return {.id = std::string(id), .content = LiteralOf(tokens)};
}

void ExpectValidHistory(const ScriptedSession& s) {
  EXPECT_THAT(CheckValidHistory(s.session().header().format, HistoryOf(s)),
              IsOk());
}

// charmbracelet/crush#3121: a provider's id came again in later turns, and each
// repeat sent the results of all of them: 2,228 copies.
TEST(ReportTest, N25_AnIdOfEveryTurnIsPairedByTurn) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    for (int turn = 0; turn < 60; ++turn) {
      s.Append(AssistantMessage(
          format, "",
          {{.id = "dup_id_0001", .tool = absl::StrCat("tool", turn)}}));
      s.Append(ResultMessages(format, {Result("dup_id_0001")}));
      views.Serve();
      EXPECT_EQ(s.session().observations().back().tool,
                absl::StrCat("tool", turn));
    }
    ExpectValidHistory(s);
    EXPECT_EQ(CountOf("dup_id_0001", views.last()), 120U);
    EXPECT_EQ(s.masked().size(), 57U);
  }
}

// ducks/claux#40: empty and repeated ids wedged a session for ever.
TEST(ReportTest, N27_EmptyAndEqualIdsStopNothing) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    s.Append(AssistantMessage(
        format, "",
        {{.id = "", .tool = "a"}, {.id = "q", .tool = "b"}, {.id = "q"}}));
    s.Append(ResultMessages(format, {Result(""), Result("q"), Result("q")}));
    for (int i = 0; i < 10; ++i) {
      s.Turn(100);
      views.Serve();
    }
    EXPECT_EQ(s.session().observations()[0].tool, "a");
    EXPECT_EQ(s.session().observations()[1].tool, "b");
    EXPECT_EQ(s.session().observations()[2].tool, "r");
    EXPECT_EQ(s.masked().size(), 10U);
  }
}

// craft-ai-agents/craft-agents-oss#753: `call_0` began anew in each answer, and
// the session was dead.
TEST(ReportTest, N28_AnIdThatBeginsAnewInEachAnswerKeysNothing) {
  for (const Format format : kFormats) {
    ScriptedSession s = EagerSession(format);
    ServedViews views(s);
    for (std::size_t turn = 0; turn < 8; ++turn) {
      s.Append(
          AssistantMessage(format, "", {{.id = "call_0"}, {.id = "call_1"}}));
      s.Append(ResultMessages(
          format, {Result("call_0", 100 + turn), Result("call_1", 50 + turn)}));
      views.Serve();
    }
    ExpectValidHistory(s);
    ASSERT_EQ(s.masked().size(), 12U) << "two of the newest three, as batches";
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(s.session().observations()[i].batch,
                static_cast<std::int64_t>(i / 2 + 1));
    }
    EXPECT_EQ(SessionText(s.Replayed()), SessionText(s.session()));
  }
}

// anthropics/claude-code#20901: a retry doubled calls, whose ids are then no
// longer unique. Appending is checked without effect, so that it may be done
// again; that a retry stores nothing is the engine's to hold.
TEST(ReportTest, N29_AnAppendThatIsOnlyCheckedAddsNothing) {
  ScriptedSession s;
  s.Turn(100);
  const std::string before = SessionText(s.session());
  const Bytes call =
      ToBytes(AssistantMessage(kAnthropic, "", {{.id = "toolu_1"}}));
  EXPECT_THAT(s.session().CheckAppend({call}), IsOk());
  EXPECT_THAT(s.session().CheckAppend({call}), IsOk());
  EXPECT_EQ(SessionText(s.session()), before);
}

}  // namespace
}  // namespace clerestory
