// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/records.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/model/session_totals.h"

namespace clerestory {

SessionHeader OpenHeader(const SessionKey& key) {
  SessionHeader header;
  header.key = key;
  header.format = Format::kOpenaiChat;
  header.model = "model-1";
  header.create_time = 1'790'000'000'000'001;
  header.has_recall_tool = true;
  header.labels = {{"app", "demo"}, {"team/name", "\xc3\xa4"}};
  return header;
}

Record MessageRecord(std::string message) {
  return MessageAppended{
      .time = 1'790'000'000'000'002,
      .message = std::make_shared<const std::string>(std::move(message))};
}

std::string MessageOf(const Record& record) {
  const auto* const appended = std::get_if<MessageAppended>(&record);
  if (appended == nullptr) {
    ADD_FAILURE() << "not a message";
    return "";
  }
  return *appended->message;
}

SessionTotals FullTotals() {
  return {.arm = SessionArm::kMixed,
          .turn_count = 1,
          .call_count = 2,
          .raw_tokens = 1LL << 50,
          .view_tokens = 3,
          .raw_cost = 4,
          .view_cost = 5,
          .output_cost = 6,
          .usage_cost = 7,
          .observation_count = 8,
          .masked_count = 9,
          .refetched_count = 10,
          .repeats = {11, 12, 13, 14, 15, 16},
          .recall_count = 17,
          .lost = 18,
          .tools = {{.tool = std::string("t\0\xff", 3),
                     .observation_count = 19,
                     .token_count = 20,
                     .masked_count = 21,
                     .refetched_count = 22,
                     .judged_count = 23,
                     .unreferenced_count = 24,
                     .unreferenced_tokens = 25,
                     .identical_call_count = 26},
                    {}}};
}

std::vector<Record> FullRecords() {
  ViewServed view;
  view.time = 1'790'000'000'000'003;
  view.model = "model-2";
  view.message_count = 17;
  view.is_new_call = false;
  view.eligible_count = 5;
  view.read_price = 300'000;
  view.break_reason = BreakReason::kSchedule;
  view.break_price = 4'000'000'000'000;
  view.break_rent = 4'000'000'000'001;
  view.masks = {
      {.sequence = 2, .index = 1, .placeholder = "[masked: 3 lines]"},
      {.sequence = 4, .index = 0, .placeholder = std::string("\0\xff\n", 3)}};
  view.masks.push_back({.sequence = 5, .index = 2, .is_restored = true});
  view.is_control = true;
  view.strip_from = 3;
  view.preamble_tokens = 6000;
  view.raw_tokens = {
      .user = 1, .assistant = 2, .calls = 3, .observations = 1LL << 40};
  view.view_tokens = {.user = 5, .assistant = 6, .calls = 7, .observations = 8};
  view.raw_call = {.read = 9, .written = 10, .uncached = 17};
  view.view_call = {.read = 11, .written = 12, .uncached = 18};
  view.raw_cost = 13;
  view.view_cost = -14;
  view.output_tokens = 15;
  view.output_cost = 16;
  view.preamble_digest = "of the preamble";
  view.token_scale_ppm = 1'250'000;
  view.cache_time = 1'790'000'000'000'002;
  view.every_turn_call = {.read = 19, .written = 20, .uncached = 21};
  view.every_turn_saving = 22;
  view.every_turn_cost = 23;
  UsageReported usage;
  usage.time = 1'790'000'000'000'004;
  usage.model = "model-3";
  usage.usage = {.input_uncached = 1,
                 .cache_read = 2,
                 .cache_write = 3,
                 .output = 4,
                 .reasoning = 5};
  usage.cost = 24;
  return {MessageRecord(R"({"role":"user","content":"caf\u00e9 1.0e+2"})"),
          view,
          usage,
          ObservationRepeated{.time = 1'790'000'000'000'006,
                              .later = {.sequence = 6, .index = 1},
                              .earlier = {.sequence = 2, .index = 3},
                              .kind = RepeatKind::kRefetch,
                              .cost = 25},
          ObservationRecalled{.time = 1'790'000'000'000'007,
                              .observation = {.sequence = 8, .index = 1},
                              .cost = 26},
          PinChanged{.time = 1'790'000'000'000'008,
                     .pin = {.observation = ObservationId{8, 1}}},
          PinChanged{.time = 9, .pin = {.tool = "t\xff"}, .is_pinned = false},
          PinChanged{.time = 10, .pin = {.resource = "/a/b"}},
          SessionClosed{.time = 1'790'000'000'000'005,
                        .outcome = Outcome::kAbandoned,
                        .totals = FullTotals()}};
}

std::vector<Record> DefaultRecords() {
  UsageReported zero;
  zero.usage = {.input_uncached = 0,
                .cache_read = 0,
                .cache_write = 0,
                .output = 0,
                .reasoning = 0};
  return {MessageAppended{.time = 0,
                          .message = std::make_shared<const std::string>()},
          ViewServed{},
          UsageReported{},
          zero,
          ObservationRepeated{},
          ObservationRecalled{},
          PinChanged{.pin = {.observation = ObservationId{}}},
          SessionClosed{}};
}

bool SameRecord(const Record& a, const Record& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&b](const auto& left) {
        using Kind = std::decay_t<decltype(left)>;
        const Kind& right = std::get<Kind>(b);
        if constexpr (std::is_same_v<Kind, MessageAppended>) {
          return left.time == right.time && *left.message == *right.message;
        } else {
          return left == right;
        }
      },
      a);
}

}  // namespace clerestory
