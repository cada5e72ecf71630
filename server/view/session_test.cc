// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/view/session.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/naive_session.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Format kFormats[] = {Format::kAnthropicMessages, Format::kOpenaiChat};

// A session with an example of everything that is recorded.
ScriptedSession EventfulSession(Format format) {
  ScriptedSession s(format);
  s.preamble_tokens = 40;
  s.Ask(30);
  s.Batch({LiteralOf(300), LiteralOf(20), R"("")"});
  s.Turns(4, 200);
  s.Serve();
  s.Report({.input_uncached = 5,
            .cache_read = std::nullopt,
            .cache_write = 7,
            .output = std::nullopt,
            .reasoning = std::nullopt});
  s.Turns(3, 500);
  s.Serve();
  s.Serve();
  s.now += 3'600 * kMicrosPerSecond;
  s.Turn(50);
  s.Serve();
  s.model = "another";
  s.Turn(50);
  s.Serve();
  s.Report({.input_uncached = 1,
            .cache_read = 2,
            .cache_write = std::nullopt,
            .output = std::nullopt,
            .reasoning = std::nullopt});
  s.Answer(20);
  return s;
}

absl::StatusOr<std::vector<ParsedMessage>> CheckAppend(
    const Session& session, const std::vector<std::string>& messages,
    std::size_t first_index = 0) {
  std::vector<Bytes> bytes;
  for (const std::string& message : messages) bytes.push_back(ToBytes(message));
  return session.CheckAppend(bytes, first_index);
}

// --- Appending ---------------------------------------------------------------

TEST(AppendTest, FindsTheObservationsWithTheirTools) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.Append(AssistantMessage(
        format, "",
        {{.id = "a", .tool = "read"}, {.id = "b", .tool = "bash"}}));
    s.Append(ResultMessages(format, {{.id = "b", .content = LiteralOf(10)},
                                     {.id = "a", .content = LiteralOf(20)}}));
    const std::vector<Observation>& all = s.session().observations();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].tool, "bash");
    EXPECT_EQ(all[1].tool, "read");
    EXPECT_EQ(all[0].turn, all[1].turn) << "they are a batch";
    const bool one = format == Format::kAnthropicMessages;
    EXPECT_EQ(all[0].sequence, 1);
    EXPECT_EQ(all[1].sequence, one ? 1 : 2);
    EXPECT_EQ(all[1].index, one ? 1 : 0);
    EXPECT_EQ(all[1].view_tokens_before, 4 + 2 + 4 + 2 + 10);
  }
}

TEST(AppendTest, AReusedIdIsTheLatestCallOfThatId) {
  ScriptedSession s(Format::kOpenaiChat);
  for (const std::string tool : {"read", "bash"}) {
    s.Append(AssistantMessage(Format::kOpenaiChat, "",
                              {{.id = "call_0", .tool = tool}}));
    s.Append(ResultMessages(Format::kOpenaiChat,
                            {{.id = "call_0", .content = LiteralOf(10)}}));
  }
  EXPECT_EQ(s.session().observations()[0].tool, "read");
  EXPECT_EQ(s.session().observations()[1].tool, "bash");
}

TEST(AppendTest, CountsTokensBytesTurnsAndRecords) {
  ScriptedSession s;
  s.Ask(30);
  s.Turn(100);
  s.Answer(7);
  const Session& session = s.session();
  EXPECT_EQ(session.raw_tokens(),
            (StageTokens{
                .user = 30, .assistant = 7, .calls = 3, .observations = 100}));
  EXPECT_EQ(session.view_tokens(), 140);
  std::int64_t bytes = 0;
  for (const std::string& message : s.view()) {
    bytes += static_cast<std::int64_t>(message.size());
  }
  EXPECT_EQ(session.view_bytes(), bytes);
  EXPECT_EQ(session.turn_count(), 2);
  EXPECT_EQ(session.message_count(), 4);
  EXPECT_EQ(session.version(), 4);
  EXPECT_GT(session.memory_bytes(), bytes);
}

TEST(CheckAppendTest, NamesTheFirstBadMessageByItsPosition) {
  const std::string good = UserMessage(Format::kAnthropicMessages, "hi");
  struct Case {
    std::string message;
    Reason reason;
  };
  const Case cases[] = {
      {std::string(static_cast<std::size_t>(kMessageBytesMax) + 1, ' '),
       Reason::kMessageTooLarge},
      {"{", Reason::kMessageInvalid},
      {"[]", Reason::kMessageInvalid},
      {R"({"role":"robot","content":"hi"})", Reason::kMessageInvalid},
      {R"({"role":"user","content":"\ud800"})", Reason::kMessageInvalid},
      {"{\"role\":\"user\",\"content\":\"\xff\"}", Reason::kMessageInvalid},
      {ResultMessages(Format::kAnthropicMessages,
                      {{.id = "x", .content = R"("1")"}})[0],
       Reason::kResultWithoutCall},
  };
  ScriptedSession s;
  s.Turn(100);
  const std::string before = SessionText(s.session());
  for (const Case& bad : cases) {
    const absl::Status status =
        CheckAppend(s.session(), {good, good, bad.message, "{"}).status();
    EXPECT_THAT(status,
                FailsWith(absl::StatusCode::kInvalidArgument, bad.reason));
    EXPECT_EQ(MetadataOf(status, "field"), "messages[2]");
    EXPECT_THAT(status.message(), HasSubstr("messages[2]: "));
    EXPECT_EQ(MetadataOf(CheckAppend(s.session(), {bad.message}, 7).status(),
                         "field"),
              "messages[7]");
  }
  EXPECT_EQ(SessionText(s.session()), before) << "nothing is appended in part";
}

TEST(CheckAppendTest, TheLargestMessageIsAccepted) {
  const ScriptedSession s;
  std::string message = UserMessage(Format::kAnthropicMessages, "hi");
  message.append(static_cast<std::size_t>(kMessageBytesMax) - message.size(),
                 ' ');
  EXPECT_THAT(CheckAppend(s.session(), {message}), IsOk());
}

TEST(CheckAppendTest, AResultMayAnswerACallOfTheSameAppendThatStandsBefore) {
  for (const Format format : kFormats) {
    const ScriptedSession s(format);
    const std::string call = AssistantMessage(format, "", {{.id = "a"}});
    const std::string result =
        ResultMessages(format, {{.id = "a", .content = R"("1")"}})[0];
    EXPECT_THAT(CheckAppend(s.session(), {call, result}), IsOk());
    EXPECT_THAT(CheckAppend(s.session(), {result, call}),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          Reason::kResultWithoutCall));
  }
}

TEST(CheckAppendTest, LateAndRepeatedResultsAreAccepted) {
  for (const Format format : kFormats) {
    ScriptedSession s(format);
    s.Append(AssistantMessage(format, "", {{.id = "a"}}));
    s.Turn(100);
    const std::string result =
        ResultMessages(format, {{.id = "a", .content = R"("1")"}})[0];
    EXPECT_THAT(CheckAppend(s.session(), {result, result}), IsOk());
  }
}

// --- The view that it keeps --------------------------------------------------

TEST(ViewDigestTest, IsTheChainOfTheMessagesDigests) {
  for (const Format format : kFormats) {
    const ScriptedSession s = EventfulSession(format);
    ASSERT_FALSE(s.masked().empty());
    const std::vector<std::string> view = s.view();
    for (std::size_t count = 0; count <= view.size(); ++count) {
      const std::vector<std::string> part(
          view.begin(), view.begin() + static_cast<std::ptrdiff_t>(count));
      EXPECT_EQ(
          s.session().ViewDigest(static_cast<std::int64_t>(count)).ToHex(),
          ChainDigest(part));
    }
  }
}

TEST(ViewSumsTest, AreThoseOfTheMessagesAsShown) {
  for (const Format format : kFormats) {
    const ScriptedSession s = EventfulSession(format);
    const Session& session = s.session();
    std::int64_t bytes = 0;
    std::int64_t tokens = 0;
    for (std::int64_t m = 0; m < session.message_count(); ++m) {
      EXPECT_EQ(session.ViewBytes(m), bytes);
      EXPECT_EQ(session.ViewTokens(m), tokens);
      const SessionMessage& message =
          session.messages()[static_cast<std::size_t>(m)];
      bytes += static_cast<std::int64_t>(message.view->size());
      tokens += session.adapter()
                    .Parse(*message.view, CharacterCounter())
                    ->tokens.total();
    }
    EXPECT_EQ(session.ViewBytes(session.message_count()), bytes);
    EXPECT_EQ(session.ViewTokens(session.message_count()), tokens);
    EXPECT_EQ(session.view_bytes(), bytes);
    EXPECT_EQ(session.view_tokens(), tokens);
  }
}

TEST(ViewSumsTest, AnObservationKnowsWhatStandsBeforeItInTheView) {
  for (const Format format : kFormats) {
    const ScriptedSession s = EventfulSession(format);
    const Session& session = s.session();
    for (const Observation& observation : session.observations()) {
      const SessionMessage& message =
          session.messages()[static_cast<std::size_t>(observation.sequence)];
      const absl::StatusOr<ParsedMessage> shown =
          session.adapter().Parse(*message.view, CharacterCounter());
      ASSERT_THAT(shown, IsOk());
      const auto i = static_cast<std::size_t>(observation.index);
      EXPECT_EQ(observation.view_tokens_before,
                session.ViewTokens(observation.sequence) +
                    shown->results[i].tokens_before);
    }
  }
}

TEST(MemoryTest, CountsEveryMaskedMessageOnceMoreHoweverOftenItIsRendered) {
  ScriptedSession s;
  s.policy.mode = Mode::kEveryTurn;
  s.policy.placeholder = "[a placeholder of 30 characters]";
  s.Turn(20);
  s.Turns(4, 100);
  const std::int64_t before = s.session().memory_bytes();
  s.Serve();
  s.policy.placeholder = "[masked]";
  s.Serve();  // A break before the one that was made.
  ASSERT_THAT(s.masked(), ElementsAre(0, 1));
  std::size_t placeholders = 0;
  for (const std::size_t i : s.masked()) {
    placeholders += s.session().observations()[i].placeholder->size();
  }
  EXPECT_EQ(s.session().memory_bytes() - before,
            static_cast<std::int64_t>(s.view()[1].size() + s.view()[3].size() +
                                      placeholders));
}

TEST(ObservationTest, SaysSinceWhenAndWhyItIsMasked) {
  ScriptedSession s;
  s.Turns(4, 100);
  s.Serve();
  const Observation& observation = s.session().observations()[0];
  EXPECT_EQ(observation.placeholder, "[masked]");
  EXPECT_EQ(observation.placeholder_tokens, 8);
  EXPECT_EQ(observation.mask_time, s.now);
  EXPECT_EQ(observation.mask_reason, BreakReason::kCacheCold);
}

// --- The ledger --------------------------------------------------------------

ViewServed FirstView(const ScriptedSession& s) {
  for (const Record& record : s.records()) {
    if (const auto* view = std::get_if<ViewServed>(&record)) return *view;
  }
  return {};
}

TEST(LedgerTest, SumsWhatEveryNewCallWasEstimatedToCost) {
  const ScriptedSession s = EventfulSession(Format::kAnthropicMessages);
  Ledger sum;
  for (const Record& record : s.records()) {
    const auto* const view = std::get_if<ViewServed>(&record);
    if (view == nullptr) continue;
    if (view->break_reason != BreakReason::kNone) {
      ++sum.breaks.at(static_cast<std::size_t>(view->break_reason));
    }
    sum.mask_count += static_cast<std::int64_t>(view->masks.size());
    if (!view->is_new_call) continue;
    ++sum.call_count;
    sum.preamble_tokens += view->preamble_tokens;
    sum.raw_tokens += view->raw_tokens;
    sum.view_tokens += view->view_tokens;
    sum.raw_call.read += view->raw_call.read;
    sum.raw_call.written += view->raw_call.written;
    sum.view_call.read += view->view_call.read;
    sum.view_call.written += view->view_call.written;
    sum.raw_cost += view->raw_cost;
    sum.view_cost += view->view_cost;
    sum.every_turn_call.read += view->every_turn_call.read;
    sum.every_turn_call.written += view->every_turn_call.written;
    sum.every_turn_cost += view->every_turn_cost;
    sum.output_tokens += view->output_tokens;
    sum.output_cost += view->output_cost;
  }
  sum.usage_count = 2;
  sum.usage = {.input_uncached = 6,
               .cache_read = 2,
               .cache_write = 7,
               .output = std::nullopt,
               .reasoning = std::nullopt};
  sum.compared_count = 2;
  sum.estimated_tokens = FirstView(s).view_call.total() +
                         s.session().last_view()->view_call.total();
  sum.reported_tokens = 12 + 3;
  sum.error_tokens = sum.estimated_tokens - sum.reported_tokens;
  EXPECT_EQ(LedgerText(s.session().ledger()), LedgerText(sum));
  EXPECT_EQ(sum.call_count, 4);
}

TEST(LedgerTest, AUsageClassThatWasNeverReportedStaysAbsent) {
  Usage sum;
  AddUsage({}, sum);
  EXPECT_EQ(sum, Usage());
  Usage zero;
  zero.output = 0;
  AddUsage(zero, sum);
  EXPECT_EQ(sum.output, 0) << "reported zero is not absent";
  EXPECT_FALSE(sum.input_uncached.has_value());
}

// --- Replay ------------------------------------------------------------------

TEST(ReplayTest, GivesTheSessionThatWroteTheRecords) {
  for (const Format format : kFormats) {
    ScriptedSession s = EventfulSession(format);
    EXPECT_EQ(SessionText(s.Replayed()), SessionText(s.session()));
    s.Close(Outcome::kResolved);
    const Session again = s.Replayed();
    EXPECT_EQ(SessionText(again), SessionText(s.session()));
    EXPECT_EQ(again.header(), s.session().header());
    EXPECT_EQ(again.header().outcome, Outcome::kResolved);
    EXPECT_EQ(again.header().close_time, s.now);
  }
}

TEST(ReplayTest, TakesAClosedSessionsHeaderAsTheStoreHasIt) {
  ScriptedSession s = EventfulSession(Format::kAnthropicMessages);
  s.Close(Outcome::kFailed);
  Session again(s.session().header(), CharacterCounter());
  for (const Record& record : s.records()) {
    EXPECT_THAT(again.Replay(record), IsOk());
  }
  EXPECT_EQ(SessionText(again), SessionText(s.session()));
}

TEST(ReplayTest, GoesOnAsIfNothingHadHappened) {
  ScriptedSession s = EventfulSession(Format::kAnthropicMessages);
  const Session again = s.Replayed();
  EXPECT_EQ(PlanView(again, s.policy, s.prices,
                     {.now = s.now,
                      .model = s.model,
                      .preamble_tokens = s.preamble_tokens}),
            s.Plan());
}

TEST(ReplayTest, ACopyKnowsNothingOfTheOriginalsFuture) {
  ScriptedSession s = EventfulSession(Format::kAnthropicMessages);
  Session copy = s.session();
  const std::string before = SessionText(copy);
  s.Turns(9, 100);
  s.now += 3'600 * kMicrosPerSecond;
  s.Serve();
  EXPECT_EQ(SessionText(copy), before);
}

// Four observations in messages 1, 3, 5 and 7, of which the first is masked.
ScriptedSession SessionToCorrupt() {
  ScriptedSession s;
  s.Turns(4, 100);
  s.Serve();
  s.Append(AssistantMessage(Format::kAnthropicMessages, "", {{.id = "e"}}));
  s.Append(AnthropicUser({R"({"type":"tool_result","tool_use_id":"e"})"}));
  return s;
}

ViewServed ViewOfAll(const ScriptedSession& s) {
  ViewServed view;
  view.message_count = s.session().message_count();
  view.break_reason = BreakReason::kPays;
  return view;
}

TEST(ReplayTest, ARecordThatCannotFollowIsDataLoss) {
  const ScriptedSession s = SessionToCorrupt();
  std::vector<Record> corrupt = {
      MessageAppended{.time = 1, .message = ToBytes("{")},
      MessageAppended{.time = 1,
                      .message = ToBytes(ResultMessages(
                          Format::kAnthropicMessages,
                          {{.id = "nobody", .content = R"("1")"}})[0])},
  };
  const auto with_masks = [&](std::vector<Mask> masks) {
    ViewServed view = ViewOfAll(s);
    view.masks = std::move(masks);
    corrupt.emplace_back(view);
  };
  with_masks({{.sequence = -1, .index = 0, .placeholder = "p"}});
  with_masks({{.sequence = 10, .index = 0, .placeholder = "p"}});
  with_masks({{.sequence = 3, .index = -1, .placeholder = "p"}});
  with_masks({{.sequence = 3, .index = 1, .placeholder = "p"}});
  with_masks({{.sequence = 2, .index = 0, .placeholder = "p"}});
  // Masked already; twice in one record; out of order; without a content.
  with_masks({{.sequence = 1, .index = 0, .placeholder = "p"}});
  with_masks({{.sequence = 3, .index = 0, .placeholder = "p"},
              {.sequence = 3, .index = 0, .placeholder = "p"}});
  with_masks({{.sequence = 5, .index = 0, .placeholder = "p"},
              {.sequence = 3, .index = 0, .placeholder = "p"}});
  with_masks({{.sequence = 9, .index = 0, .placeholder = "p"}});
  for (const std::int64_t count : {-1, 3, 11}) {
    ViewServed view = ViewOfAll(s);
    view.message_count = count;
    corrupt.emplace_back(view);
  }
  ViewServed view = ViewOfAll(s);
  view.eligible_count = 6;
  corrupt.emplace_back(view);
  view = ViewOfAll(s);
  view.break_reason = static_cast<BreakReason>(kBreakReasonCount);
  corrupt.emplace_back(view);

  Session session = s.Replayed();
  const std::string before = SessionText(session);
  for (std::size_t i = 0; i < corrupt.size(); ++i) {
    EXPECT_THAT(session.Replay(corrupt[i]),
                FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt))
        << i;
    EXPECT_EQ(SessionText(session), before) << i;
  }
  view = ViewOfAll(s);
  view.masks = {{.sequence = 3, .index = 0, .placeholder = "p"},
                {.sequence = 5, .index = 0, .placeholder = "p"}};
  EXPECT_THAT(session.Replay(view), IsOk()) << "so much for the others";
}

TEST(ReplayTest, NothingFollowsTheEnd) {
  ScriptedSession s;
  s.Ask(10);
  s.Close(Outcome::kAbandoned);
  Session session = s.Replayed();
  for (const Record& record :
       {s.records()[0], Record(ViewOfAll(s)), Record(UsageReported()),
        Record(SessionClosed())}) {
    EXPECT_THAT(session.Replay(record),
                FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt));
  }
}

TEST(ReplayTest, AnErrorQuotesNoContent) {
  Session session = ScriptedSession().Replayed();
  const absl::Status status = session.Replay(
      MessageAppended{.time = 1, .message = ToBytes("\"secret\"")});
  EXPECT_THAT(status.message(), ::testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace clerestory
