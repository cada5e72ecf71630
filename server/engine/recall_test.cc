// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/recall.h"

#include <cstdint>
#include <string>
#include <variant>
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
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/engine/decide.h"
#include "server/engine/session_engine.h"
#include "server/formats/recall_tool.h"
#include "server/formats/typed_content.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/session_store.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Format kFormat = Format::kAnthropicMessages;
constexpr TimeMicros kNow = 1'000 * kMicrosPerSecond;
constexpr int kTokens = 400;  // Of each output.

// A store that remembers what was written.
class RecordingStore final : public ForwardingStore {
 public:
  absl::Status Write(const SessionKey& key, std::int64_t expected_version,
                     const std::vector<Record>& records,
                     Durability durability) override {
    written.insert(written.end(), records.begin(), records.end());
    return ForwardingStore::Write(key, expected_version, records, durability);
  }

  std::vector<Record> written;
};

// Masks all but the newest three, in every turn.
Policy Eager() {
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  policy.keep_observations = 3;
  return policy;
}

class RecallTest : public ::testing::Test {
 protected:
  void Create(bool has_recall_tool) {
    SessionHeader header;
    header.key = key_;
    header.format = kFormat;
    header.model = "m";
    header.create_time = kNow;
    header.has_recall_tool = has_recall_tool;
    ASSERT_THAT(engine_.CreateSession(header), IsOk());
    Build({ToBytes(UserMessage(kFormat, "do it"))});
  }

  BuiltView Build(std::vector<Bytes> messages, const std::string& model = "") {
    BuildViewRequest request;
    request.append.now = now_ += kMicrosPerSecond;
    request.append.messages = std::move(messages);
    request.model = model;
    request.preamble_tokens = 7;
    auto built = engine_.BuildView(key_, request);
    EXPECT_THAT(built, IsOk());
    return built.ok() ? *std::move(built) : BuiltView();
  }

  // The observation of the n-th turn, counted from 1, is `2n.0`.
  BuiltView ServeTurns(int count, const std::string& tool = "r") {
    BuiltView built;
    for (int i = 0; i < count; ++i) {
      const std::string id = absl::StrCat("c", ++turns_);
      built = Build(
          {ToBytes(AssistantMessage(kFormat, "t", {{.id = id, .tool = tool}})),
           ToBytes(ResultMessages(
               kFormat, {{.id = id, .content = LiteralOf(kTokens)}})[0])});
    }
    store_.written.clear();
    return built;
  }

  absl::StatusOr<RecalledPage> Recall(std::int64_t sequence,
                                      std::int64_t offset = 0,
                                      std::int64_t limit = 1'000'000) {
    return engine_.Recall(key_, {.id = {.sequence = sequence},
                                 .offset = offset,
                                 .limit = limit,
                                 .now = now_});
  }

  absl::StatusOr<PinResult> SetPin(const Pin& pin, bool is_pinned = true) {
    return engine_.SetPin(key_, pin, is_pinned, now_);
  }

  SessionSummary Summary() {
    const auto summary = engine_.GetSession(key_);
    EXPECT_THAT(summary, IsOk());
    // After a restart it is the same.
    SessionEngine restarted(store_, CharacterCounter(), {.policy = Eager()});
    const auto again = restarted.GetSession(key_);
    EXPECT_THAT(again, IsOk());
    EXPECT_EQ(again->pins, summary->pins);
    EXPECT_EQ(again->tools.size(), summary->tools.size());
    for (std::size_t i = 0; i < summary->tools.size(); ++i) {
      EXPECT_EQ(again->tools[i].tally.recall_count,
                summary->tools[i].tally.recall_count);
      EXPECT_EQ(again->tools[i].tally.lost, summary->tools[i].tally.lost);
      EXPECT_EQ(again->tools[i].is_unmasked, summary->tools[i].is_unmasked);
    }
    return *summary;
  }

  ListedObservation Listed(std::size_t index) {
    const auto listed = engine_.ListObservations(key_, index, 1);
    EXPECT_THAT(listed, IsOk());
    EXPECT_THAT(*listed, SizeIs(1));
    return listed->front();
  }

  const SessionKey key_ = {.tenant = "t", .session = "s"};
  RecordingStore store_;
  SessionEngine engine_{store_, CharacterCounter(), {.policy = Eager()}};
  TimeMicros now_ = kNow;
  int turns_ = 0;
};

// --- placeholders ----------------------------------------------------------

TEST_F(RecallTest, PlaceholdersNameTheIdWhereTheToolIs) {
  Create(/*has_recall_tool=*/true);
  ServeTurns(6);
  EXPECT_EQ(Listed(0).observation.placeholder,
            "[tool output masked: 1 line, 400 tokens] (recall id 2.0)");
  EXPECT_THAT(*Listed(1).observation.placeholder, EndsWith("(recall id 4.0)"));
}

TEST_F(RecallTest, PlaceholdersAreAsEverWhereItIsNot) {
  Create(/*has_recall_tool=*/false);
  ServeTurns(6);
  EXPECT_EQ(Listed(0).observation.placeholder,
            "[tool output masked: 1 line, 400 tokens]");
}

TEST_F(RecallTest, AnOutputThatIsShorterThanItsPlaceholderWithTheIdStays) {
  Create(/*has_recall_tool=*/true);
  // "[tool output masked: 1 line, 45 tokens] (recall id 2.0)" is longer, and
  // without the id it would not be.
  Build({ToBytes(AssistantMessage(kFormat, "t", {{.id = "x"}})),
         ToBytes(ResultMessages(kFormat,
                                {{.id = "x", .content = LiteralOf(45)}})[0])});
  ServeTurns(6);
  EXPECT_FALSE(Listed(0).observation.placeholder.has_value());
  EXPECT_TRUE(Listed(1).observation.placeholder.has_value());
}

// --- recalling -------------------------------------------------------------

TEST_F(RecallTest, TheFirstPageOfWhatIsMaskedCountsAndNoOther) {
  Create(/*has_recall_tool=*/true);
  const BuiltView served = ServeTurns(6);
  const auto first = Recall(2, 0, 100);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(first->page.parts,
              ElementsAre(ContentPart{true, std::string(100, 'o')}));
  EXPECT_EQ(first->page.next_offset, 100);
  EXPECT_EQ(first->page.total_bytes, kTokens);
  EXPECT_TRUE(first->is_masked);
  EXPECT_EQ(first->tool, "r");
  EXPECT_FALSE(first->is_error);
  ASSERT_THAT(store_.written, SizeIs(1));
  const auto& record = std::get<ObservationRecalled>(store_.written.front());
  EXPECT_EQ(record.observation, (ObservationId{.sequence = 2, .index = 0}));
  // The prompt read, a few words that ask, and the output written.
  const ModelPrices& prices = BuiltInPrices().Of("m", now_);
  const std::int64_t prompt = served.view.decision.view_call.total();
  const TokenRates rates = RatesFor(prices, prompt, /*is_long_life=*/false);
  EXPECT_EQ(record.cost,
            prompt * rates.read + 60 * rates.output +
                Listed(0).observation.result.token_count * rates.write);

  for (const std::int64_t offset : {100, 0, 300}) {
    EXPECT_THAT(Recall(2, offset, 100), IsOk());
  }
  EXPECT_THAT(store_.written, SizeIs(1));
  const SessionSummary summary = Summary();
  ASSERT_THAT(summary.tools, SizeIs(1));
  EXPECT_EQ(summary.tools[0].tally.recall_count, 1);
  EXPECT_EQ(summary.tools[0].tally.refetched_count, 1);
  EXPECT_EQ(summary.tools[0].tally.lost, record.cost);
  EXPECT_TRUE(Listed(0).observation.is_recalled);
  EXPECT_TRUE(Listed(0).observation.is_refetched);
  EXPECT_FALSE(Listed(1).observation.is_recalled);
}

TEST_F(RecallTest, WhatIsShownIsAnsweredAndNotCounted) {
  Create(/*has_recall_tool=*/true);
  ServeTurns(6);
  const auto page = Recall(12);
  ASSERT_THAT(page, IsOk());
  EXPECT_FALSE(page->is_masked);
  EXPECT_EQ(page->page.next_offset, 0);
  EXPECT_THAT(store_.written, IsEmpty());
  // It counts once it is masked.
  ServeTurns(4);
  EXPECT_TRUE(Recall(12)->is_masked);
  EXPECT_THAT(store_.written, SizeIs(1));
}

TEST_F(RecallTest, AClosedSessionAnswersAndCountsNothing) {
  Create(/*has_recall_tool=*/true);
  ServeTurns(6);
  ASSERT_THAT(engine_.CloseSession(key_, Outcome::kFailed, now_), IsOk());
  store_.written.clear();
  EXPECT_TRUE(Recall(2)->is_masked);
  EXPECT_THAT(store_.written, IsEmpty());
}

TEST_F(RecallTest, TwoRecallsKeepTheToolsOutputsFromThenOn) {
  Create(/*has_recall_tool=*/true);
  EXPECT_THAT(ServeTurns(6).unmasked_tools, IsEmpty());
  EXPECT_THAT(Recall(2), IsOk());
  EXPECT_THAT(ServeTurns(1).unmasked_tools, IsEmpty());
  EXPECT_FALSE(Summary().tools[0].is_unmasked);
  EXPECT_THAT(Recall(4), IsOk());
  EXPECT_TRUE(Summary().tools[0].is_unmasked);
  const BuiltView view = ServeTurns(6);
  EXPECT_THAT(view.unmasked_tools, ElementsAre("r"));
  // It masked nothing more, and broke nothing to show what is masked.
  EXPECT_EQ(view.masked_count, 4);
  // At a break that is free it does: another model has nothing cached.
  const BuiltView free = Build({}, "other");
  EXPECT_EQ(free.masked_count, 0);
  EXPECT_EQ(Summary().ledger.restore_count, 4);
}

TEST_F(RecallTest, WhatARecallBroughtStaysForSomeTurns) {
  Create(/*has_recall_tool=*/true);
  ServeTurns(1, std::string(kRecallToolName));
  ServeTurns(8);
  EXPECT_FALSE(Listed(0).observation.placeholder.has_value());
  EXPECT_TRUE(Listed(1).observation.placeholder.has_value());
  ServeTurns(4);
  EXPECT_TRUE(Listed(0).observation.placeholder.has_value());
}

TEST_F(RecallTest, AnUnknownIdIsToldWhy) {
  Create(/*has_recall_tool=*/true);
  ServeTurns(2);
  const auto expect = [&](std::int64_t sequence, std::int64_t index,
                          const std::string& why) {
    const auto page = engine_.Recall(
        key_, {.id = {.sequence = sequence, .index = index}, .now = now_});
    EXPECT_THAT(page, FailsWith(absl::StatusCode::kNotFound,
                                Reason::kObservationNotFound));
    EXPECT_EQ(page.status().message(), why);
    EXPECT_EQ(MetadataOf(page.status(), "observation_id"),
              absl::StrCat(sequence, ".", index));
  };
  expect(99, 0, "the session has no message 99; the last one is 4");
  expect(0, 0, "message 0 holds no tool result");
  expect(2, 1, "message 2 holds no tool result 1; the last one is 2.0");
  EXPECT_THAT(engine_.Recall({.tenant = "other", .session = "s"}, {}),
              FailsWith(absl::StatusCode::kNotFound, Reason::kSessionNotFound));
}

TEST_F(RecallTest, AnOffsetWhereNoPageBeginsIsRefused) {
  Create(/*has_recall_tool=*/true);
  ServeTurns(6);
  for (const std::int64_t offset : {-1, kTokens + 1}) {
    const auto page = Recall(2, offset);
    EXPECT_THAT(page, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
    EXPECT_EQ(MetadataOf(page.status(), "field"), "offset");
  }
  EXPECT_THAT(store_.written, IsEmpty());
}

// --- pins ------------------------------------------------------------------

TEST_F(RecallTest, APinIsSetOnceAndTakenAwayOnce) {
  Create(/*has_recall_tool=*/false);
  ServeTurns(6);
  const Pin pins[] = {{.observation = ObservationId{.sequence = 2}},
                      {.tool = "never called"},
                      {.resource = "src/"}};
  for (const Pin& pin : pins) {
    EXPECT_TRUE(SetPin(pin)->is_changed);
    EXPECT_FALSE(SetPin(pin)->is_changed);
  }
  EXPECT_EQ(SetPin(pins[0])->pin_count, 3);
  EXPECT_THAT(store_.written, SizeIs(3));
  EXPECT_THAT(Summary().pins, SizeIs(3));
  EXPECT_TRUE(Listed(0).is_pinned);
  EXPECT_FALSE(Listed(1).is_pinned);
  for (const Pin& pin : pins) {
    EXPECT_TRUE(SetPin(pin, false)->is_changed);
    EXPECT_FALSE(SetPin(pin, false)->is_changed);
  }
  EXPECT_THAT(store_.written, SizeIs(6));
  EXPECT_THAT(Summary().pins, IsEmpty());
}

TEST_F(RecallTest, WhatIsPinnedIsNotMaskedAndIsShownAgainAtAFreeBreak) {
  Create(/*has_recall_tool=*/false);
  ServeTurns(6);
  ASSERT_TRUE(Listed(0).observation.placeholder.has_value());
  EXPECT_THAT(SetPin({.observation = ObservationId{.sequence = 2}}), IsOk());
  EXPECT_THAT(SetPin({.observation = ObservationId{.sequence = 8}}), IsOk());
  ServeTurns(3);
  // No cache is broken for it.
  EXPECT_TRUE(Listed(0).observation.placeholder.has_value());
  EXPECT_FALSE(Listed(3).observation.placeholder.has_value());
  EXPECT_TRUE(Listed(4).observation.placeholder.has_value());
  const BuiltView free = Build({}, "other");
  EXPECT_FALSE(Listed(0).observation.placeholder.has_value());
  ASSERT_THAT(free.view.decision.masks, SizeIs(1));
  EXPECT_TRUE(free.view.decision.masks[0].is_restored);
  // And masked again once it is unpinned.
  EXPECT_THAT(SetPin({.observation = ObservationId{.sequence = 2}}, false),
              IsOk());
  Build({}, "m");
  EXPECT_TRUE(Listed(0).observation.placeholder.has_value());
}

TEST_F(RecallTest, APinThatIsNoneIsRefused) {
  Create(/*has_recall_tool=*/false);
  ServeTurns(2);
  const auto expect_refused = [&](const Pin& pin, const std::string& field) {
    for (const bool is_pinned : {true, false}) {
      const auto result = SetPin(pin, is_pinned);
      EXPECT_THAT(result, FailsWith(absl::StatusCode::kInvalidArgument,
                                    Reason::kFieldInvalid));
      EXPECT_EQ(MetadataOf(result.status(), "field"), field);
    }
  };
  expect_refused({}, "target");
  expect_refused({.tool = "a", .resource = "b"}, "target");
  expect_refused({.tool = std::string(kToolNameBytesMax + 1, 'a')}, "tool");
  expect_refused({.resource = std::string(kPinResourceBytesMax + 1, 'a')},
                 "resource");
  expect_refused({.resource = "\xff"}, "resource");
  EXPECT_THAT(
      SetPin({.observation = ObservationId{.sequence = 1}}),
      FailsWith(absl::StatusCode::kNotFound, Reason::kObservationNotFound));
  EXPECT_THAT(store_.written, IsEmpty());
  EXPECT_THAT(SetPin({.resource = std::string(kPinResourceBytesMax, 'a')}),
              IsOk());
}

TEST_F(RecallTest, PinsAreBounded) {
  Create(/*has_recall_tool=*/false);
  for (std::size_t i = 0; i < kSessionPinsMax; ++i) {
    ASSERT_THAT(SetPin({.tool = absl::StrCat("t", i)}), IsOk());
  }
  const auto more = SetPin({.tool = "one more"});
  EXPECT_THAT(more, FailsWith(absl::StatusCode::kInvalidArgument,
                              Reason::kFieldInvalid));
  EXPECT_THAT(more.status().message(), HasSubstr("has 1000 pins"));
  // What is there can be set again, and makes room when it goes.
  EXPECT_FALSE(SetPin({.tool = "t7"})->is_changed);
  EXPECT_TRUE(SetPin({.tool = "t7"}, false)->is_changed);
  EXPECT_TRUE(SetPin({.tool = "one more"})->is_changed);
}

TEST_F(RecallTest, PinsOfResourcesAreFewer) {
  Create(/*has_recall_tool=*/false);
  for (int i = 0; i < 32; ++i) {
    ASSERT_THAT(SetPin({.resource = absl::StrCat("/r/", i)}), IsOk());
  }
  const auto more = SetPin({.resource = "/r/one more"});
  EXPECT_THAT(more, FailsWith(absl::StatusCode::kInvalidArgument,
                              Reason::kFieldInvalid));
  EXPECT_EQ(MetadataOf(more.status(), "field"), "resource");
  EXPECT_THAT(more.status().message(), HasSubstr("32 pins of resources"));
  EXPECT_THAT(more.status().message(), HasSubstr("pin a folder"));
  EXPECT_THAT(SetPin({.tool = "t"}), IsOk()) << "others are not";
  EXPECT_TRUE(SetPin({.resource = "/r/7"}, false)->is_changed);
  EXPECT_TRUE(SetPin({.resource = "/r/one more"})->is_changed);
}

TEST_F(RecallTest, ChangesOfPinsAreBounded) {
  Create(/*has_recall_tool=*/false);
  store_.written.clear();
  ASSERT_THAT(SetPin({.tool = "other"}), IsOk());
  for (int i = 1; i < 10'000; ++i) {
    ASSERT_THAT(SetPin({.tool = "t"}, /*is_pinned=*/i % 2 == 1), IsOk());
  }
  ASSERT_EQ(store_.written.size(), 10'000U);
  const auto more = SetPin({.tool = "u"});
  EXPECT_THAT(more, FailsWith(absl::StatusCode::kInvalidArgument,
                              Reason::kFieldInvalid));
  EXPECT_EQ(MetadataOf(more.status(), "field"), "tool");
  EXPECT_THAT(more.status().message(), HasSubstr("changed 10000 times"));
  EXPECT_FALSE(SetPin({.tool = "other"})->is_changed) << "is there";
  EXPECT_TRUE(SetPin({.tool = "other"}, false)->is_changed) << "may go";
  EXPECT_THAT(SetPin({.tool = "other"}), Not(IsOk()));
}

TEST_F(RecallTest, AClosedSessionTakesNoPins) {
  Create(/*has_recall_tool=*/false);
  ASSERT_THAT(engine_.CloseSession(key_, Outcome::kResolved, now_), IsOk());
  for (const bool is_pinned : {true, false}) {
    EXPECT_THAT(SetPin({.tool = "r"}, is_pinned),
                FailsWith(absl::StatusCode::kFailedPrecondition,
                          Reason::kSessionClosed));
  }
}

}  // namespace
}  // namespace clerestory
