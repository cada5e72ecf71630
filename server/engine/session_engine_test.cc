// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_engine.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Format kFormat = Format::kAnthropicMessages;
constexpr TimeMicros kNow = 1'000 * kMicrosPerSecond;

// What a write does that fails.
enum class Failure { kNone, kNothingWritten, kAllWritten };

// A store that remembers how it was written, and fails when it is told to.
class RecordingStore final : public ForwardingStore {
 public:
  struct Written {
    std::int64_t expected_version = 0;
    std::vector<Record> records;
    Durability durability = Durability::kSynced;
  };

  absl::Status Write(const SessionKey& key, std::int64_t expected_version,
                     const std::vector<Record>& records,
                     Durability durability) override {
    writes.push_back({expected_version, records, durability});
    const Failure failure = std::exchange(next_failure, Failure::kNone);
    if (failure != Failure::kNothingWritten) {
      CLERESTORY_RETURN_IF_ERROR(
          ForwardingStore::Write(key, expected_version, records, durability));
    }
    if (failure == Failure::kNone) return absl::OkStatus();
    return StoreUnavailableError("the disk is gone");
  }

  std::vector<Written> writes;
  Failure next_failure = Failure::kNone;
};

// Masks at every third observation that is older than the newest three.
Policy BlockPolicy() {
  Policy policy;
  policy.mode = Mode::kBlock;
  policy.keep_observations = 3;
  policy.block_size = 3;
  return policy;
}

SessionHeader HeaderOf(absl::string_view session = "s") {
  SessionHeader header;
  header.key = {.tenant = "t", .session = std::string(session)};
  header.format = kFormat;
  header.model = "m";
  header.create_time = kNow;
  return header;
}

Bytes User(absl::string_view text) {
  return ToBytes(UserMessage(kFormat, text));
}

// An assistant message with a call, and its result of 400 tokens.
std::vector<Bytes> Turn(int number) {
  const std::string id = absl::StrCat("c", number);
  return {ToBytes(AssistantMessage(kFormat, "t", {{.id = id}})),
          ToBytes(ResultMessages(kFormat,
                                 {{.id = id, .content = LiteralOf(400)}})[0])};
}

AppendRequest At(std::optional<std::int64_t> expected_sequence,
                 std::vector<Bytes> messages) {
  AppendRequest request;
  request.now = kNow;
  request.expected_sequence = expected_sequence;
  request.messages = std::move(messages);
  return request;
}

BuildViewRequest ViewOf(AppendRequest append,
                        std::optional<UsageInput> usage = std::nullopt) {
  BuildViewRequest request;
  request.append = std::move(append);
  request.usage = std::move(usage);
  request.preamble_tokens = 7;
  return request;
}

Usage OutputOf(std::int64_t tokens) {
  Usage usage;
  usage.output = tokens;
  return usage;
}

class SessionEngineTest : public ::testing::Test {
 protected:
  SessionEngineTest() : engine_(store_, CharacterCounter(), options_) {
    EXPECT_THAT(engine_.CreateSession(HeaderOf()), IsOk());
  }

  // The history, as the engine tells it and as another one would after a
  // restart.
  std::vector<std::string> History() {
    std::vector<std::string> texts = HistoryOf(engine_);
    SessionEngine restarted(store_, CharacterCounter(), options_);
    EXPECT_EQ(HistoryOf(restarted), texts);
    return texts;
  }

  std::string LedgerOfSession() {
    const auto summary = engine_.GetSession(key_);
    EXPECT_THAT(summary, IsOk());
    return summary.ok() ? LedgerText(summary->ledger) : "";
  }

  // Serves five turns, one after the other: the sixth masks.
  void ServeFiveTurns() {
    for (int turn = 0; turn < 5; ++turn) {
      ASSERT_THAT(engine_.BuildView(key_, ViewOf(At(2 * turn, Turn(turn)))),
                  IsOk());
    }
    store_.writes.clear();
  }

  std::vector<std::string> HistoryOf(SessionEngine& engine) {
    std::vector<std::string> texts;
    const auto history = engine.ReadHistory(key_, 0);
    EXPECT_THAT(history, IsOk());
    if (!history.ok()) return texts;
    for (const HistoryEntry& entry : *history) texts.push_back(*entry.message);
    return texts;
  }

  const SessionKey key_ = HeaderOf().key;
  const SessionEngine::Options options_ = {.policy = BlockPolicy()};
  RecordingStore store_;
  SessionEngine engine_;
};

void ExpectSameView(const BuiltView& a, const BuiltView& b) {
  EXPECT_EQ(Texts(a.view.messages), Texts(b.view.messages));
  EXPECT_EQ(a.view.whole.digest, b.view.whole.digest);
  EXPECT_EQ(a.view.whole.token_count, b.view.whole.token_count);
  EXPECT_EQ(a.view.stable.message_count, b.view.stable.message_count);
  EXPECT_EQ(a.view.stable.byte_count, b.view.stable.byte_count);
  EXPECT_EQ(a.view.stable.token_count, b.view.stable.token_count);
  EXPECT_EQ(a.view.stable.digest, b.view.stable.digest);
  EXPECT_EQ(a.view.frontier, b.view.frontier);
  EXPECT_EQ(a.view.cache_marks, b.view.cache_marks);
  EXPECT_EQ(a.view.decision, b.view.decision);
  EXPECT_EQ(a.masked_count, b.masked_count);
  EXPECT_EQ(a.saved_tokens, b.saved_tokens);
  EXPECT_EQ(a.over_window_tokens, b.over_window_tokens);
  EXPECT_EQ(a.policy_digest, b.policy_digest);
}

TEST_F(SessionEngineTest, CreatingASessionAgainReturnsTheOneThatIsThere) {
  SessionHeader later = HeaderOf();
  later.create_time = kNow + 1;
  const auto again = engine_.CreateSession(later);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, HeaderOf());
}

TEST_F(SessionEngineTest, CreatingASessionWithTheRecallToolIsAnother) {
  SessionHeader header = HeaderOf();
  header.has_recall_tool = true;
  EXPECT_THAT(
      engine_.CreateSession(header),
      FailsWith(absl::StatusCode::kAlreadyExists, Reason::kSessionExists));
  header.key.session = "with";
  EXPECT_THAT(engine_.CreateSession(header), IsOk());
  const auto again = engine_.CreateSession(header);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->has_recall_tool);
}

TEST_F(SessionEngineTest, CreatingASessionWithAnotherFormatOrModelIsRefused) {
  SessionHeader format = HeaderOf();
  format.format = Format::kOpenaiChat;
  EXPECT_THAT(
      engine_.CreateSession(format),
      FailsWith(absl::StatusCode::kAlreadyExists, Reason::kSessionExists));
  SessionHeader model = HeaderOf();
  model.model = "n";
  EXPECT_THAT(
      engine_.CreateSession(model),
      FailsWith(absl::StatusCode::kAlreadyExists, Reason::kSessionExists));
}

TEST_F(SessionEngineTest, AppendedMessagesAreTheHistoryByteForByte) {
  EXPECT_THAT(engine_.AppendMessages(key_, At(0, {User("a"), User("b")})),
              IsOk());
  const auto next = engine_.AppendMessages(key_, At({}, {User("c")}));
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(*next, 3);
  EXPECT_THAT(History(), ElementsAre(*User("a"), *User("b"), *User("c")));
}

TEST_F(SessionEngineTest, AppendingEqualBytesAgainSucceedsAndWritesNothing) {
  const AppendRequest request = At(0, {User("a"), User("b")});
  ASSERT_THAT(engine_.AppendMessages(key_, request), IsOk());
  const auto again = engine_.AppendMessages(key_, request);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, 2);
  EXPECT_THAT(store_.writes, SizeIs(1));
}

TEST_F(SessionEngineTest, ALongerRepeatAppendsOnlyTheRest) {
  ASSERT_THAT(engine_.AppendMessages(key_, At(0, {User("a"), User("b")})),
              IsOk());
  const auto next =
      engine_.AppendMessages(key_, At(1, {User("b"), User("c"), User("d")}));
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(*next, 4);
  EXPECT_THAT(History(),
              ElementsAre(*User("a"), *User("b"), *User("c"), *User("d")));
}

TEST_F(SessionEngineTest, AConflictNamesTheFirstDifferenceAndTheEnd) {
  ASSERT_THAT(
      engine_.AppendMessages(key_, At(0, {User("a"), User("b"), User("c")})),
      IsOk());
  const auto conflict = engine_.AppendMessages(
      key_, At(0, {User("a"), User("x"), User("y"), User("z")}));
  ASSERT_THAT(conflict,
              FailsWith(absl::StatusCode::kAborted, Reason::kAppendConflict));
  EXPECT_EQ(MetadataOf(conflict.status(), "sequence"), "1");
  EXPECT_EQ(MetadataOf(conflict.status(), "next_sequence"), "3");
  EXPECT_THAT(History(), ElementsAre(*User("a"), *User("b"), *User("c")));
}

TEST_F(SessionEngineTest, AGapNamesTheEndAndChangesNothing) {
  ASSERT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), IsOk());
  const auto gap = engine_.AppendMessages(key_, At(2, {User("c")}));
  ASSERT_THAT(gap, FailsWith(absl::StatusCode::kAborted, Reason::kSequenceGap));
  EXPECT_EQ(MetadataOf(gap.status(), "next_sequence"), "1");
  EXPECT_THAT(History(), ElementsAre(*User("a")));
}

TEST_F(SessionEngineTest, ANegativeSequenceIsRefusedAndChangesNothing) {
  const auto negative = engine_.AppendMessages(key_, At(-1, {User("a")}));
  ASSERT_THAT(negative, FailsWith(absl::StatusCode::kInvalidArgument,
                                  Reason::kFieldInvalid));
  EXPECT_EQ(MetadataOf(negative.status(), "field"), "expected_sequence");
  EXPECT_THAT(History(), IsEmpty());
}

TEST_F(SessionEngineTest, ABadMessageInTheMiddleStoresNoneOfThem) {
  const auto bad =
      engine_.AppendMessages(key_, At(0, {User("a"), ToBytes("{"), User("c")}));
  ASSERT_THAT(bad, FailsWith(absl::StatusCode::kInvalidArgument,
                             Reason::kMessageInvalid));
  EXPECT_EQ(MetadataOf(bad.status(), "field"), "messages[1]");
  EXPECT_THAT(store_.writes, IsEmpty());
  EXPECT_THAT(History(), IsEmpty());
}

TEST_F(SessionEngineTest, ABadMessageIsNamedByItsPlaceInTheRequest) {
  ASSERT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), IsOk());
  const auto bad =
      engine_.AppendMessages(key_, At(0, {User("a"), User("b"), ToBytes("{")}));
  EXPECT_EQ(MetadataOf(bad.status(), "field"), "messages[2]");
}

TEST_F(SessionEngineTest, AClosedSessionAcceptsOnlyARepeatOfWhatIsThere) {
  ASSERT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), IsOk());
  ASSERT_THAT(engine_.CloseSession(key_, Outcome::kResolved, kNow), IsOk());
  const auto closed =
      FailsWith(absl::StatusCode::kFailedPrecondition, Reason::kSessionClosed);
  EXPECT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), IsOk());
  EXPECT_THAT(engine_.AppendMessages(key_, At(1, {User("b")})), closed);
  EXPECT_THAT(engine_.BuildView(key_, ViewOf(At(1, {User("b")}))), closed);
  EXPECT_THAT(engine_.ReportUsage(key_, OutputOf(1), "", kNow), closed);
  EXPECT_THAT(History(), ElementsAre(*User("a")));
}

TEST_F(SessionEngineTest, ClosingAgainWithTheSameOutcomeKeepsTheFirstTime) {
  ASSERT_THAT(engine_.CloseSession(key_, Outcome::kResolved, kNow), IsOk());
  const auto again = engine_.CloseSession(key_, Outcome::kResolved, kNow + 1);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->header.outcome, Outcome::kResolved);
  EXPECT_EQ(again->header.close_time, kNow);
  EXPECT_THAT(store_.writes, SizeIs(1));
}

TEST_F(SessionEngineTest, ClosingWithAnotherOutcomeIsRefused) {
  ASSERT_THAT(engine_.CloseSession(key_, Outcome::kResolved, kNow), IsOk());
  EXPECT_THAT(
      engine_.CloseSession(key_, Outcome::kFailed, kNow),
      FailsWith(absl::StatusCode::kFailedPrecondition, Reason::kSessionClosed));
}

TEST_F(SessionEngineTest, ADeletedSessionIsNotFoundAndBeginsAnew) {
  ASSERT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), IsOk());
  ASSERT_THAT(engine_.DeleteSession(key_), IsOk());
  const auto not_found =
      FailsWith(absl::StatusCode::kNotFound, Reason::kSessionNotFound);
  EXPECT_THAT(engine_.GetSession(key_), not_found);
  EXPECT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), not_found);
  EXPECT_THAT(engine_.DeleteSession(key_), not_found);
  ASSERT_THAT(engine_.CreateSession(HeaderOf()), IsOk());
  EXPECT_THAT(History(), IsEmpty());
}

TEST_F(SessionEngineTest, AppendUsageAndDecisionAreOneSyncedWrite) {
  ASSERT_THAT(engine_.BuildView(
                  key_, ViewOf(At(0, {User("a"), User("b")}), OutputOf(5))),
              IsOk());
  ASSERT_THAT(store_.writes, SizeIs(1));
  const RecordingStore::Written& write = store_.writes[0];
  EXPECT_EQ(write.expected_version, 0);
  EXPECT_EQ(write.durability, Durability::kSynced);
  ASSERT_THAT(write.records, SizeIs(4));
  EXPECT_TRUE(std::holds_alternative<MessageAppended>(write.records[0]));
  EXPECT_TRUE(std::holds_alternative<MessageAppended>(write.records[1]));
  EXPECT_TRUE(std::holds_alternative<UsageReported>(write.records[2]));
  EXPECT_TRUE(std::holds_alternative<ViewServed>(write.records[3]));
}

TEST_F(SessionEngineTest, AViewThatOnlyReportsIsSynced) {
  ASSERT_THAT(engine_.AppendMessages(key_, At(0, {User("a")})), IsOk());
  ASSERT_THAT(engine_.BuildView(key_, ViewOf(At({}, {}), OutputOf(5))), IsOk());
  ASSERT_THAT(store_.writes, SizeIs(2));
  EXPECT_EQ(store_.writes[1].durability, Durability::kSynced);
}

TEST_F(SessionEngineTest, AViewThatOnlyMasksIsSynced) {
  ServeFiveTurns();
  ASSERT_THAT(engine_.AppendMessages(key_, At(10, Turn(5))), IsOk());
  const auto built = engine_.BuildView(key_, ViewOf(At({}, {})));
  ASSERT_THAT(built, IsOk());
  EXPECT_EQ(built->masked_count, 3);
  ASSERT_THAT(store_.writes, SizeIs(2));
  EXPECT_THAT(store_.writes[1].records, SizeIs(1));
  EXPECT_EQ(store_.writes[1].durability, Durability::kSynced);
}

TEST_F(SessionEngineTest, AViewThatIsOnlyServedAgainIsBuffered) {
  ASSERT_THAT(engine_.BuildView(key_, ViewOf(At(0, {User("a")}))), IsOk());
  ASSERT_THAT(engine_.BuildView(key_, ViewOf(At(0, {User("a")}))), IsOk());
  ASSERT_THAT(store_.writes, SizeIs(2));
  EXPECT_THAT(store_.writes[1].records, SizeIs(1));
  EXPECT_EQ(store_.writes[1].durability, Durability::kBuffered);
}

TEST_F(SessionEngineTest, ABreakIsInTheStoreWhenItsViewIsReturned) {
  ServeFiveTurns();
  const auto built = engine_.BuildView(key_, ViewOf(At(10, Turn(5))));
  ASSERT_THAT(built, IsOk());
  ASSERT_THAT(built->view.decision.masks, SizeIs(3));
  EXPECT_EQ(built->view.decision.break_reason, BreakReason::kSchedule);
  const auto stored = store_.Read(key_);
  ASSERT_THAT(stored, IsOk());
  const auto* last = std::get_if<ViewServed>(&stored->records.back());
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(*last, built->view.decision);
}

TEST_F(SessionEngineTest, ARepeatedViewIsEqualAndCountsUsageAndCallOnce) {
  ServeFiveTurns();
  const BuildViewRequest request = ViewOf(At(10, Turn(5)), OutputOf(5));
  const auto first = engine_.BuildView(key_, request);
  ASSERT_THAT(first, IsOk());
  ASSERT_GT(first->saved_tokens, 0);
  const std::string ledger = LedgerOfSession();
  const auto again = engine_.BuildView(key_, request);
  ASSERT_THAT(again, IsOk());
  ExpectSameView(*first, *again);
  EXPECT_EQ(LedgerOfSession(), ledger);

  SessionEngine restarted(store_, CharacterCounter(), options_);
  const auto after_restart = restarted.BuildView(key_, request);
  ASSERT_THAT(after_restart, IsOk());
  ExpectSameView(*first, *after_restart);
}

TEST_F(SessionEngineTest, ADryRunAnswersWhatWouldBeAndChangesNothing) {
  ServeFiveTurns();
  const std::string ledger = LedgerOfSession();
  BuildViewRequest request = ViewOf(At(10, Turn(5)), OutputOf(5));
  request.dry_run = true;
  const auto trial = engine_.BuildView(key_, request);
  ASSERT_THAT(trial, IsOk());
  EXPECT_THAT(store_.writes, IsEmpty());
  EXPECT_THAT(History(), SizeIs(10));
  EXPECT_EQ(LedgerOfSession(), ledger);
  request.dry_run = false;
  const auto real = engine_.BuildView(key_, request);
  ASSERT_THAT(real, IsOk());
  ExpectSameView(*trial, *real);
}

TEST_F(SessionEngineTest, AReportCountsOnceUntilAMessageFollows) {
  ASSERT_TRUE(engine_.ReportUsage(key_, OutputOf(5), "", kNow).ok());
  ASSERT_TRUE(engine_.ReportUsage(key_, OutputOf(5), "", kNow).ok());
  EXPECT_EQ(engine_.GetSession(key_)->ledger.usage_count, 1);
  ASSERT_TRUE(engine_.ReportUsage(key_, OutputOf(6), "", kNow).ok());
  EXPECT_EQ(engine_.GetSession(key_)->ledger.usage_count, 2);
  const Bytes message =
      std::make_shared<const std::string>(R"({"role":"user","content":"x"})");
  ASSERT_TRUE(engine_
                  .AppendMessages(key_, {.now = kNow,
                                         .expected_sequence = std::nullopt,
                                         .messages = {message}})
                  .ok());
  ASSERT_TRUE(engine_.ReportUsage(key_, OutputOf(6), "", kNow).ok());
  EXPECT_EQ(engine_.GetSession(key_)->ledger.usage_count, 3);
}

TEST_F(SessionEngineTest, UsageThatIsInvalidAppendsNothing) {
  EXPECT_THAT(
      engine_.BuildView(key_, ViewOf(At(0, {User("a")}), OutputOf(-1))),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kUsageInvalid));
  EXPECT_THAT(store_.writes, IsEmpty());
  EXPECT_THAT(History(), IsEmpty());
}

TEST_F(SessionEngineTest, AfterAFailedWriteTheSessionIsWhatIsStored) {
  for (const Failure failure :
       {Failure::kNothingWritten, Failure::kAllWritten}) {
    SCOPED_TRACE(static_cast<int>(failure));
    const std::string id = absl::StrCat("f", static_cast<int>(failure));
    const SessionKey key = HeaderOf(id).key;
    ASSERT_THAT(engine_.CreateSession(HeaderOf(id)), IsOk());
    const BuildViewRequest request = ViewOf(At(0, {User("a")}), OutputOf(5));
    store_.next_failure = failure;
    EXPECT_THAT(
        engine_.BuildView(key, request),
        FailsWith(absl::StatusCode::kUnavailable, Reason::kStoreUnavailable));
    const auto between = engine_.GetSession(key);
    ASSERT_THAT(between, IsOk());
    EXPECT_EQ(between->message_count, failure == Failure::kAllWritten ? 1 : 0);

    const auto again = engine_.BuildView(key, request);
    ASSERT_THAT(again, IsOk());
    EXPECT_THAT(Texts(again->view.messages), ElementsAre(*User("a")));
    const auto after = engine_.GetSession(key);
    ASSERT_THAT(after, IsOk());
    EXPECT_EQ(after->ledger.call_count, 1);
    EXPECT_EQ(after->ledger.usage_count, 1);
  }
}

}  // namespace
}  // namespace clerestory
