// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_meter.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/engine/policy_registry.h"
#include "server/engine/session_engine.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/memory/memory_store.h"
#include "server/store/session_store.h"
#include "server/store/store_errors.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

constexpr Format kFormat = Format::kAnthropicMessages;
constexpr TimeMicros kNow = 1'000 * kMicrosPerSecond;

// Fails to write when it is told to.
class FailingStore final : public ForwardingStore {
 public:
  absl::Status Write(const SessionKey& key, std::int64_t expected_version,
                     const std::vector<Record>& records,
                     Durability durability) override {
    if (fails) return StoreUnavailableError("the disk is gone");
    return ForwardingStore::Write(key, expected_version, records, durability);
  }

  bool fails = false;
};

class SessionMeterTest : public ::testing::Test {
 protected:
  SessionMeterTest() { Restart(); }

  // Another engine on the same store, with the metrics as they are.
  void Restart() {
    Policy policy;
    policy.mode = Mode::kEveryTurn;
    policy.keep_observations = 3;
    engine_ = std::make_unique<SessionEngine>(
        store_, CharacterCounter(),
        SessionEngine::Options{.policy = policy, .metrics = &metrics_});
  }

  static SessionKey Key(const std::string& tenant, const std::string& session) {
    return {.tenant = tenant, .session = session};
  }

  // Creates the session and serves it `turns` views, of which each but the
  // first shows one more result; the last call's usage is reported each time.
  void Run(const SessionKey& key, int turns) {
    SessionHeader header;
    header.key = key;
    header.format = kFormat;
    header.model = "m";
    ASSERT_THAT(engine_->CreateSession(header), IsOk());
    for (int turn = 0; turn < turns; ++turn) {
      BuildViewRequest request;
      request.append.now = kNow + turn * kMicrosPerSecond;
      const std::string id = absl::StrCat("c", turn);
      request.append.messages = {ToBytes(UserMessage(kFormat, "do it"))};
      if (turn > 0) {
        request.append.messages = {
            ToBytes(AssistantMessage(kFormat, "t", {{.id = id}})),
            ToBytes(ResultMessages(
                kFormat, {{.id = id, .content = LiteralOf(400)}})[0])};
        request.usage = Usage{.input_uncached = 10,
                              .cache_read = 20,
                              .cache_write = 30,
                              .output = 4,
                              .reasoning = {}};
      }
      ASSERT_THAT(engine_->BuildView(key, request), IsOk());
    }
  }

  Ledger LedgerOf(const SessionKey& key) {
    const auto summary = engine_->GetSession(key);
    EXPECT_THAT(summary, IsOk());
    return summary.ok() ? summary->ledger : Ledger();
  }

  std::vector<MetricSeries> Read(Metric metric) const {
    return metrics_.Read().at(static_cast<std::size_t>(metric));
  }

  std::int64_t Value(Metric metric, const std::vector<std::string>& labels) {
    for (const MetricSeries& series : Read(metric)) {
      if (series.labels == labels) return series.value;
    }
    return -1;
  }

  FailingStore store_;
  ServerMetrics metrics_;
  std::unique_ptr<SessionEngine> engine_;
};

TEST_F(SessionMeterTest, MetricsAreTheSumsOfTheLedgers) {
  Run(Key("t", "a"), 9);
  Run(Key("t", "b"), 6);
  Run(Key("u", "a"), 5);
  const Ledger a = LedgerOf(Key("t", "a"));
  const Ledger b = LedgerOf(Key("t", "b"));
  EXPECT_EQ(Value(Metric::kViews, {"t"}), 15);
  EXPECT_EQ(Value(Metric::kViews, {"u"}), 5);
  EXPECT_EQ(Value(Metric::kFullTokens, {"t"}),
            a.raw_call.total() + b.raw_call.total());
  EXPECT_EQ(Value(Metric::kViewTokens, {"t"}),
            a.view_call.total() + b.view_call.total());
  EXPECT_EQ(
      Value(Metric::kSavedTokens, {"t"}),
      Value(Metric::kFullTokens, {"t"}) - Value(Metric::kViewTokens, {"t"}));
  EXPECT_GT(Value(Metric::kSavedTokens, {"t"}), 0);
  EXPECT_EQ(Value(Metric::kPromptTokens, {"t", "read"}),
            a.view_call.read + b.view_call.read);
  EXPECT_EQ(Value(Metric::kPromptTokens, {"t", "write"}),
            a.view_call.written + b.view_call.written);
  EXPECT_EQ(Value(Metric::kReportedTokens, {"t", "cache_read"}), 20 * 13);
  EXPECT_EQ(Value(Metric::kReportedTokens, {"t", "output"}), 4 * 13);
  EXPECT_EQ(Value(Metric::kReportedTokens, {"t", "reasoning"}), 0);
  EXPECT_EQ(Value(Metric::kReportedCost, {"t"}), a.usage_cost + b.usage_cost);
  EXPECT_EQ(Value(Metric::kFullCost, {"t"}), a.raw_cost + b.raw_cost);
  EXPECT_EQ(Value(Metric::kViewCost, {"t"}), a.view_cost + b.view_cost);
  EXPECT_EQ(Value(Metric::kOutputCost, {"t"}), a.output_cost + b.output_cost);
  EXPECT_EQ(Value(Metric::kMasks, {"t", "observation"}),
            a.mask_count + b.mask_count);
  EXPECT_GT(a.mask_count, 0);
  EXPECT_EQ(Value(Metric::kMasks, {"t", "dropped"}), 0);
  EXPECT_EQ(Value(Metric::kComparedCalls, {"t"}), 13);
  EXPECT_EQ(Value(Metric::kComparedInputTokens, {"t"}), 60 * 13);
  EXPECT_EQ(Value(Metric::kEstimatedInputTokens, {"t"}),
            a.estimated_tokens + b.estimated_tokens);
  EXPECT_EQ(Value(Metric::kEstimateErrorTokens, {"t"}),
            a.error_tokens + b.error_tokens);
}

TEST_F(SessionMeterTest, BreaksAndTheirPricesAreThoseOfTheLedger) {
  Run(Key("t", "a"), 9);
  const Ledger ledger = LedgerOf(Key("t", "a"));
  std::int64_t count = 0;
  std::int64_t price = 0;
  for (const MetricSeries& series : Read(Metric::kCacheBreaks)) {
    count += series.value;
  }
  for (const MetricSeries& series : Read(Metric::kBreakPrice)) {
    price += series.value;
  }
  std::int64_t expected_price = 0;
  for (const BreakEntry& entry : ledger.break_entries) {
    expected_price += entry.price;
  }
  ASSERT_GT(ledger.break_entries.size(), 0U);
  EXPECT_EQ(count, static_cast<std::int64_t>(ledger.break_entries.size()));
  EXPECT_EQ(price, expected_price);
  EXPECT_GT(price, 0);
}

TEST_F(SessionMeterTest, WhatIsSavedLessWhatIsLostIsTheDifferenceOfTheCosts) {
  Run(Key("t", "a"), 9);
  const Ledger ledger = LedgerOf(Key("t", "a"));
  EXPECT_EQ(Value(Metric::kCostSaved, {"t"}) -
                Value(Metric::kCostPenalty, {"t", "cache_break"}),
            ledger.raw_cost - ledger.view_cost);
  // A break costs more, in the call that it is made for.
  EXPECT_GT(Value(Metric::kCostPenalty, {"t", "cache_break"}), 0);
}

TEST_F(SessionMeterTest, WhatCouldNotBeStoredIsNotCounted) {
  Run(Key("t", "a"), 5);
  const std::int64_t views = Value(Metric::kViews, {"t"});
  store_.fails = true;
  BuildViewRequest request;
  request.append.now = kNow;
  request.append.messages = {ToBytes(UserMessage(kFormat, "more"))};
  EXPECT_FALSE(engine_->BuildView(Key("t", "a"), request).ok());
  EXPECT_EQ(Value(Metric::kViews, {"t"}), views);
  store_.fails = false;
  EXPECT_THAT(engine_->BuildView(Key("t", "a"), request), IsOk());
  EXPECT_EQ(Value(Metric::kViews, {"t"}), views + 1);
}

TEST_F(SessionMeterTest, LoadingASessionAndAskingAgainCountNothing) {
  Run(Key("t", "a"), 5);
  const std::int64_t tokens = Value(Metric::kViewTokens, {"t"});
  Restart();
  LedgerOf(Key("t", "a"));
  BuildViewRequest request;
  request.append.now = kNow + 5 * kMicrosPerSecond;
  EXPECT_THAT(engine_->BuildView(Key("t", "a"), request), IsOk());
  request.dry_run = true;
  request.append.messages = {ToBytes(UserMessage(kFormat, "more"))};
  EXPECT_THAT(engine_->BuildView(Key("t", "a"), request), IsOk());
  EXPECT_EQ(Value(Metric::kViews, {"t"}), 5);
  EXPECT_EQ(Value(Metric::kViewTokens, {"t"}), tokens);
}

TEST_F(SessionMeterTest, ASessionIsCountedOnceWhenItEndsByOutcomeAndArm) {
  Run(Key("t", "a"), 5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(engine_->CloseSession(Key("t", "a"), Outcome::kResolved, kNow),
                IsOk());
  }
  const Ledger a = LedgerOf(Key("t", "a"));
  const std::vector<std::string> masked = {"t", "resolved", "masked"};
  EXPECT_EQ(Value(Metric::kSessionsClosed, masked), 1);
  EXPECT_EQ(Value(Metric::kClosedSessionCost, masked),
            a.view_cost + a.output_cost);
  EXPECT_EQ(Value(Metric::kClosedSessionFullCost, masked),
            a.raw_cost + a.output_cost);

  ASSERT_THAT(engine_->policies().Set("t",
                                      "policies:\n  - name: main\n"
                                      "    control: {share_permille: 1000}\n",
                                      "", kNow),
              IsOk());
  Run(Key("t", "b"), 2);
  EXPECT_THAT(engine_->CloseSession(Key("t", "b"), Outcome::kFailed, kNow),
              IsOk());
  EXPECT_EQ(Value(Metric::kSessionsClosed, {"t", "failed", "control"}), 1);
  EXPECT_EQ(Value(Metric::kSessionsClosed, {"t", "failed", "masked"}), 0);
}

TEST(SessionMeterWithoutMetricsTest, NothingIsCounted) {
  ScriptedSession scripted;
  scripted.Ask(10);
  const SessionMeter meter(nullptr, scripted.session());
  scripted.Serve();
  meter.Stored(scripted.session(), scripted.records());
}

}  // namespace
}  // namespace clerestory
