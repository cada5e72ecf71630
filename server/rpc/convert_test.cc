// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/convert.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "clerestory/v1/usage.pb.h"
#include "clerestory/v1/view_service.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/timestamp.pb.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/decide.h"
#include "server/engine/session_engine.h"
#include "server/formats/recall_tool.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

// Refused as the field `name` of the request.
MATCHER_P(IsRefusedAs, name, "is kFieldInvalid with this field") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "whose status is " << status;
  return status.code() == absl::StatusCode::kInvalidArgument &&
         DetailOf(status).reason == Reason::kFieldInvalid &&
         MetadataOf(status, "field") == name;
}

google::protobuf::Timestamp Timestamp(std::int64_t seconds,
                                      std::int32_t nanos) {
  google::protobuf::Timestamp out;
  out.set_seconds(seconds);
  out.set_nanos(nanos);
  return out;
}

// --- session ids, models, formats, outcomes --------------------------------

TEST(ConvertTest, SessionIdsOfTheAllowedCharactersAreAccepted) {
  const std::string longest(kSessionIdBytesMax, 'x');
  for (const std::string& id :
       {std::string("a"), std::string("0"), std::string("AZaz09._:~-"),
        std::string("."), std::string("--"), longest}) {
    EXPECT_THAT(CheckSessionId(id), IsOk()) << id;
  }
}

TEST(ConvertTest, OtherSessionIdsAreRefused) {
  EXPECT_THAT(CheckSessionId(""), IsRefusedAs("session_id"));
  EXPECT_THAT(CheckSessionId(std::string(kSessionIdBytesMax + 1, 'x')),
              IsRefusedAs("session_id"));
  constexpr absl::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:~-";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const absl::Status status = CheckSessionId(std::string{'a', c, 'b'});
    if (kAllowed.find(c) != absl::string_view::npos) {
      EXPECT_THAT(status, IsOk()) << byte;
    } else {
      EXPECT_THAT(status, IsRefusedAs("session_id")) << byte;
    }
  }
}

TEST(ConvertTest, ModelsAreAcceptedUpToTheirLength) {
  EXPECT_THAT(CheckModel(""), IsOk());
  EXPECT_THAT(CheckModel(std::string(kModelBytesMax, 'm')), IsOk());
  EXPECT_THAT(CheckModel(std::string(kModelBytesMax + 1, 'm')),
              IsRefusedAs("model"));
}

TEST(ConvertTest, FormatsAreEqualNumberByNumber) {
  ASSERT_EQ(v1::Format_descriptor()->value_count(), 6);
  EXPECT_EQ(static_cast<int>(Format::kUnspecified), v1::FORMAT_UNSPECIFIED);
  EXPECT_EQ(static_cast<int>(Format::kAnthropicMessages),
            v1::FORMAT_ANTHROPIC_MESSAGES);
  EXPECT_EQ(static_cast<int>(Format::kOpenaiChat), v1::FORMAT_OPENAI_CHAT);
  EXPECT_EQ(*ToFormat(v1::FORMAT_ANTHROPIC_MESSAGES),
            Format::kAnthropicMessages);
  EXPECT_EQ(*ToFormat(v1::FORMAT_OPENAI_CHAT), Format::kOpenaiChat);
  EXPECT_EQ(*ToFormat(v1::FORMAT_OPENAI_RESPONSES), Format::kOpenaiResponses);
  EXPECT_EQ(*ToFormat(v1::FORMAT_GEMINI), Format::kGemini);
  EXPECT_EQ(*ToFormat(v1::FORMAT_BEDROCK_CONVERSE), Format::kBedrockConverse);
  for (const int unknown : {0, 6, -1, 1000}) {
    EXPECT_THAT(ToFormat(static_cast<v1::Format>(unknown)),
                IsRefusedAs("format"))
        << unknown;
  }
}

TEST(ConvertTest, OutcomesAreEqualNumberByNumber) {
  ASSERT_EQ(v1::Outcome_descriptor()->value_count(), 4);
  EXPECT_EQ(static_cast<int>(Outcome::kOpen), v1::OUTCOME_UNSPECIFIED);
  EXPECT_EQ(static_cast<int>(Outcome::kResolved), v1::OUTCOME_RESOLVED);
  EXPECT_EQ(static_cast<int>(Outcome::kFailed), v1::OUTCOME_FAILED);
  EXPECT_EQ(static_cast<int>(Outcome::kAbandoned), v1::OUTCOME_ABANDONED);
  EXPECT_EQ(*ToOutcome(v1::OUTCOME_RESOLVED), Outcome::kResolved);
  EXPECT_EQ(*ToOutcome(v1::OUTCOME_FAILED), Outcome::kFailed);
  EXPECT_EQ(*ToOutcome(v1::OUTCOME_ABANDONED), Outcome::kAbandoned);
  for (const int unknown : {0, 4, -1, 1000}) {
    EXPECT_THAT(ToOutcome(static_cast<v1::Outcome>(unknown)),
                IsRefusedAs("outcome"))
        << unknown;
  }
}

TEST(ConvertTest, BreakReasonsAreEqualNumberByNumber) {
  ASSERT_EQ(v1::BreakReason_descriptor()->value_count(),
            static_cast<int>(kBreakReasonCount));
  EXPECT_EQ(static_cast<int>(BreakReason::kNone), v1::BREAK_REASON_UNSPECIFIED);
  EXPECT_EQ(static_cast<int>(BreakReason::kPays), v1::BREAK_REASON_PAYS);
  EXPECT_EQ(static_cast<int>(BreakReason::kCacheCold),
            v1::BREAK_REASON_CACHE_COLD);
  EXPECT_EQ(static_cast<int>(BreakReason::kModelChanged),
            v1::BREAK_REASON_MODEL_CHANGED);
  EXPECT_EQ(static_cast<int>(BreakReason::kWindow), v1::BREAK_REASON_WINDOW);
  EXPECT_EQ(static_cast<int>(BreakReason::kSchedule),
            v1::BREAK_REASON_SCHEDULE);
  EXPECT_EQ(static_cast<int>(BreakReason::kPreambleChanged),
            v1::BREAK_REASON_PREAMBLE_CHANGED);
  EXPECT_EQ(static_cast<int>(BreakReason::kCacheMissed),
            v1::BREAK_REASON_CACHE_MISSED);
}

TEST(ConvertTest, CacheStatusesAreEqualNumberByNumber) {
  ASSERT_EQ(v1::CacheStatus_descriptor()->value_count(), 4);
  EXPECT_EQ(static_cast<int>(CacheStatus::kUnknown),
            v1::CACHE_STATUS_UNSPECIFIED);
  EXPECT_EQ(static_cast<int>(CacheStatus::kWorks), v1::CACHE_STATUS_WORKS);
  EXPECT_EQ(static_cast<int>(CacheStatus::kMisses), v1::CACHE_STATUS_MISSES);
  EXPECT_EQ(static_cast<int>(CacheStatus::kAbsent), v1::CACHE_STATUS_ABSENT);
}

// --- times -----------------------------------------------------------------

TEST(ConvertTest, TimesFrom1970To9999AreAccepted) {
  EXPECT_EQ(*ToTime(Timestamp(0, 0)), 0);
  EXPECT_EQ(*ToTime(Timestamp(0, 999)), 0);
  EXPECT_EQ(*ToTime(Timestamp(0, 1000)), 1);
  EXPECT_EQ(*ToTime(Timestamp(1, 999'999'999)), 1'999'999);
  EXPECT_EQ(*ToTime(Timestamp(253'402'300'799, 999'999'999)),
            253'402'300'799'999'999);
}

TEST(ConvertTest, OtherTimesAreRefused) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::pair<std::int64_t, std::int32_t>> times = {
      {-1, 0},    {kLeast, 0}, {253'402'300'800, 0},
      {kMost, 0}, {0, -1},     {0, 1'000'000'000}};
  for (const auto& [seconds, nanos] : times) {
    EXPECT_THAT(ToTime(Timestamp(seconds, nanos)), IsRefusedAs("call_time"))
        << seconds << " " << nanos;
  }
}

TEST(ConvertTest, ATimeComesBackAsItWas) {
  for (const TimeMicros time :
       {TimeMicros{0}, TimeMicros{1}, TimeMicros{999'999},
        TimeMicros{1'000'000}, TimeMicros{1'767'225'599'123'456},
        TimeMicros{253'402'300'799'999'999}}) {
    const auto back = ToTime(FromTime(time));
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(*back, time);
  }
}

// --- observations ----------------------------------------------------------

TEST(ConvertTest, AnObservationIdIsASequenceAndAnIndex) {
  EXPECT_EQ(*ToObservationId("12.0"), (ObservationId{12, 0}));
  EXPECT_EQ(*ToObservationId("0.0"), (ObservationId{0, 0}));
  EXPECT_EQ(*ToObservationId("0.31"), (ObservationId{0, 31}));
  EXPECT_EQ(*ToObservationId("9223372036854775807.9223372036854775807"),
            (ObservationId{std::numeric_limits<std::int64_t>::max(),
                           std::numeric_limits<std::int64_t>::max()}));
}

TEST(ConvertTest, WhatNoObservationIsCalledIsRefused) {
  for (const char* id : {"",
                         ".",
                         "1",
                         "1.",
                         ".1",
                         "1.2.3",
                         "1..2",
                         "-1.0",
                         "0.-1",
                         "-0.0",
                         "+1.0",
                         "1.+0",
                         " 1.0",
                         "1.0 ",
                         "1. 0",
                         "01.0",
                         "1.00",
                         "0x1.0",
                         "a.b",
                         "1,0",
                         "1.0\n",
                         "9223372036854775808.0",
                         "0.9223372036854775808"}) {
    EXPECT_THAT(ToObservationId(id), IsRefusedAs("observation_id")) << id;
  }
}

TEST(ConvertTest, AnObservationIsFoundByItsId) {
  Observation observation;
  observation.sequence = 12;
  observation.index = 3;
  const v1::Observation out = FromObservation(observation, false);
  EXPECT_EQ(out.observation_id(), "12.3");
  const auto id = ToObservationId(out.observation_id());
  ASSERT_THAT(id, IsOk());
  EXPECT_EQ(id->sequence, observation.sequence);
  EXPECT_EQ(id->index, observation.index);
  EXPECT_FALSE(out.has_mask_time());
}

TEST(ConvertTest, AnObservationSaysHowItWasMissedAndKept) {
  Observation observation;
  observation.is_refetched = true;
  v1::Observation out = FromObservation(observation, false);
  EXPECT_TRUE(out.is_refetched());
  EXPECT_FALSE(out.is_recalled());
  EXPECT_FALSE(out.is_pinned());
  observation.is_recalled = true;
  out = FromObservation(observation, true);
  EXPECT_TRUE(out.is_recalled());
  EXPECT_TRUE(out.is_pinned());
}

TEST(ConvertTest, RepeatKindsAreEqualNumberByNumber) {
  ASSERT_EQ(v1::RepeatKind_descriptor()->value_count(),
            static_cast<int>(kRepeatKindCount));
  const std::pair<RepeatKind, v1::RepeatKind> kinds[] = {
      {RepeatKind::kNone, v1::REPEAT_KIND_UNSPECIFIED},
      {RepeatKind::kRefetch, v1::REPEAT_KIND_REFETCH},
      {RepeatKind::kDuplicate, v1::REPEAT_KIND_DUPLICATE},
      {RepeatKind::kRefresh, v1::REPEAT_KIND_REFRESH},
      {RepeatKind::kPaging, v1::REPEAT_KIND_PAGING},
      {RepeatKind::kPoll, v1::REPEAT_KIND_POLL}};
  for (const auto& [ours, theirs] : kinds) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  }
}

// --- views, tools ------------------------------------------------------------

TEST(ConvertTest, WhatIsShownAgainHasNoPlaceholder) {
  BuiltView built;
  built.view.decision.break_reason = BreakReason::kCacheCold;
  built.view.decision.masks = {
      {.sequence = 2, .placeholder = "[was]", .is_restored = true},
      {.sequence = 4, .placeholder = "[is]"}};
  built.unmasked_tools = {"bash", "read"};
  const v1::ViewReport report = FromView(built);
  const v1::Break& broken = report.break_();
  ASSERT_EQ(broken.masks_size(), 2);
  EXPECT_TRUE(broken.masks(0).is_restored());
  EXPECT_EQ(broken.masks(0).placeholder(), "");
  EXPECT_FALSE(broken.masks(1).is_restored());
  EXPECT_EQ(broken.masks(1).placeholder(), "[is]");
  ASSERT_EQ(report.unmasked_tools_size(), 2);
  EXPECT_EQ(report.unmasked_tools(1), "read");
}

TEST(ConvertTest, OnlyASessionWithTheRecallToolShowsItsDefinition) {
  SessionHeader header;
  header.format = Format::kGemini;
  EXPECT_FALSE(FromHeader(header).recall_tool());
  EXPECT_EQ(FromHeader(header).recall_tool_definition(), "");
  header.has_recall_tool = true;
  EXPECT_TRUE(FromHeader(header).recall_tool());
  EXPECT_EQ(FromHeader(header).recall_tool_definition(),
            RecallToolDefinition(Format::kGemini));
}

TEST(ConvertTest, TheLedgerHasALineForEachToolAndOneForTheRest) {
  SessionSummary summary;
  summary.ledger.restore_count = 3;
  summary.control_call_count = 4;
  summary.pins = {
      {.observation = ObservationId{2, 1}}, {.tool = "t"}, {.resource = "r"}};
  ToolTally tally;
  tally.observation_count = 9;
  tally.mask_count = 8;
  tally.refetched_count = 7;
  tally.repeats = {0, 2, 0, 0, 0, 5};
  tally.recall_count = 6;
  tally.refetch_turns = 11;
  tally.masked_tokens = 12;
  tally.saved = -13;
  tally.lost = 14;
  summary.tools = {{.tool = "bash", .tally = tally, .is_unmasked = true},
                   {.is_other = true}};
  const v1::Ledger out = FromLedger(summary);
  EXPECT_EQ(out.restore_count(), 3);
  EXPECT_EQ(out.control_call_count(), 4);
  ASSERT_EQ(out.pins_size(), 3);
  EXPECT_EQ(out.pins(0).observation_id(), "2.1");
  EXPECT_EQ(out.pins(1).tool(), "t");
  EXPECT_EQ(out.pins(2).resource(), "r");
  ASSERT_EQ(out.tools_size(), 2);
  EXPECT_EQ(out.tools(0).ShortDebugString(),
            "tool: \"bash\" observation_count: 9 masked_once_count: 8 "
            "refetched_count: 7 repeats { kind: REPEAT_KIND_REFETCH count: 2 } "
            "repeats { kind: REPEAT_KIND_POLL count: 5 } recall_count: 6 "
            "refetch_turns_sum: 11 masked_tokens: 12 saved_pico_usd: -13 "
            "lost_pico_usd: 14 is_unmasked: true");
  EXPECT_EQ(out.tools(1).ShortDebugString(), "is_other: true");
}

TEST(ConvertTest, AMaskedObservationSaysByWhatWhenAndWhy) {
  Observation observation;
  observation.placeholder = "[masked]";
  observation.mask_time = 2'000'001;
  observation.mask_reason = BreakReason::kWindow;
  const v1::Observation out = FromObservation(observation, false);
  EXPECT_EQ(out.placeholder(), "[masked]");
  EXPECT_EQ(*ToTime(out.mask_time()), 2'000'001);
  EXPECT_EQ(out.mask_reason(), v1::BREAK_REASON_WINDOW);
}

// --- sessions, usage, ledgers ----------------------------------------------

TEST(ConvertTest, OnlyAClosedSessionHasACloseTime) {
  SessionHeader header;
  header.key = {.tenant = "t", .session = "s"};
  header.format = Format::kOpenaiChat;
  header.model = "m";
  header.create_time = 5;
  const v1::Session open = FromHeader(header);
  EXPECT_EQ(open.session_id(), "s");
  EXPECT_EQ(open.format(), v1::FORMAT_OPENAI_CHAT);
  EXPECT_EQ(open.model(), "m");
  EXPECT_EQ(*ToTime(open.create_time()), 5);
  EXPECT_EQ(open.outcome(), v1::OUTCOME_UNSPECIFIED);
  EXPECT_FALSE(open.has_close_time());

  header.outcome = Outcome::kAbandoned;
  header.close_time = 7;
  const v1::Session closed = FromHeader(header);
  EXPECT_EQ(closed.outcome(), v1::OUTCOME_ABANDONED);
  EXPECT_EQ(*ToTime(closed.close_time()), 7);
}

TEST(ConvertTest, UsageKeepsWhatIsAbsentAbsentAndZeroZero) {
  Usage usage;
  usage.cache_read = 0;
  usage.output = 7;
  const v1::Usage out = FromUsage(usage);
  EXPECT_FALSE(out.has_input_uncached_tokens());
  EXPECT_TRUE(out.has_cache_read_tokens());
  EXPECT_FALSE(out.has_cache_write_tokens());
  EXPECT_EQ(out.output_tokens(), 7);
  EXPECT_FALSE(out.has_reasoning_tokens());
  EXPECT_EQ(std::get<Usage>(ToUsageInput(out)), usage);

  const Usage full = {.input_uncached = 1,
                      .cache_read = 2,
                      .cache_write = 3,
                      .output = 4,
                      .reasoning = 5};
  EXPECT_EQ(std::get<Usage>(ToUsageInput(FromUsage(full))), full);
}

TEST(ConvertTest, TheProvidersOwnUsageGoesBeforeOurFields) {
  v1::Usage usage;
  usage.set_provider_json("{}");
  usage.set_output_tokens(1);
  EXPECT_EQ(std::get<std::string>(ToUsageInput(usage)), "{}");
}

TEST(ConvertTest, ALedgerWithoutReportsHasNoUsageAndNoBreaks) {
  const v1::Ledger out = FromLedger(SessionSummary());
  EXPECT_FALSE(out.usage().has_input_uncached_tokens());
  EXPECT_FALSE(out.usage().has_cache_read_tokens());
  EXPECT_FALSE(out.usage().has_cache_write_tokens());
  EXPECT_FALSE(out.usage().has_output_tokens());
  EXPECT_FALSE(out.usage().has_reasoning_tokens());
  EXPECT_EQ(out.breaks_size(), 0);
}

TEST(ConvertTest, ALedgerTellsEverySum) {
  Ledger ledger;
  ledger.call_count = 1;
  ledger.preamble_tokens = 2;
  ledger.raw_tokens = {
      .user = 3, .assistant = 4, .calls = 5, .observations = 6};
  ledger.view_tokens = {
      .user = 7, .assistant = 8, .calls = 9, .observations = 10};
  ledger.raw_call = {.read = 11, .written = 12};
  ledger.view_call = {.read = 13, .written = 14};
  ledger.raw_cost = 15;
  ledger.view_cost = 16;
  ledger.output_tokens = 17;
  ledger.output_cost = 18;
  ledger.breaks = {99, 0, 19, 0, 0, 20};
  ledger.mask_count = 21;
  ledger.usage_count = 22;
  ledger.usage.output = 23;
  ledger.every_turn_call = {.read = 24, .written = 25, .uncached = 26};
  ledger.every_turn_cost = 27;
  ledger.break_entries = {{.time = 28,
                           .message_count = 29,
                           .first_sequence = 30,
                           .reason = BreakReason::kPays,
                           .price = 31,
                           .rent = 32,
                           .mask_count = 33,
                           .saved_tokens = 34,
                           .read_price_sum = 35}};
  ledger.usage_cost = 36;
  ledger.compared_count = 37;
  ledger.estimated_tokens = 38;
  ledger.reported_tokens = 39;
  ledger.error_tokens = 40;
  SessionSummary summary;
  summary.ledger = ledger;
  summary.read_price_sum = 45;
  summary.cache_status = CacheStatus::kAbsent;
  EXPECT_EQ(FromLedger(summary).ShortDebugString(),
            "call_count: 1 preamble_tokens: 2 "
            "raw_tokens { user: 3 assistant: 4 calls: 5 observations: 6 } "
            "view_tokens { user: 7 assistant: 8 calls: 9 observations: 10 } "
            "raw_call { read: 11 written: 12 } "
            "view_call { read: 13 written: 14 } "
            "raw_cost_pico_usd: 15 view_cost_pico_usd: 16 output_tokens: 17 "
            "output_cost_pico_usd: 18 "
            "breaks { reason: BREAK_REASON_CACHE_COLD count: 19 } "
            "breaks { reason: BREAK_REASON_SCHEDULE count: 20 } "
            "mask_count: 21 usage_count: 22 usage { output_tokens: 23 } "
            "every_turn_call { read: 24 written: 25 uncached: 26 } "
            "every_turn_cost_pico_usd: 27 "
            "break_entries { time { nanos: 28000 } message_count: 29 "
            "sequence: 30 reason: BREAK_REASON_PAYS price_pico_usd: 31 "
            "rent_pico_usd: 32 mask_count: 33 saved_tokens: 34 "
            "saved_so_far_pico_usd: 340 } usage_cost_pico_usd: 36 "
            "estimate_error { call_count: 37 estimated_tokens: 38 "
            "reported_tokens: 39 error_tokens: 40 } "
            "cache_status: CACHE_STATUS_ABSENT");
}

}  // namespace
}  // namespace clerestory
