// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How prices, and what is learned of tokens, come to what the engine serves.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/engine/session_engine.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/store/memory/memory_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

constexpr Format kFormat = Format::kAnthropicMessages;
constexpr TimeMicros kNow = 1'000 * kMicrosPerSecond;
constexpr std::int64_t kTokens = 9'000;

// A book in which every model costs `factor` times what PlainPrices says.
std::shared_ptr<const PriceBook> Book(PicoUsd factor) {
  ModelPrices prices = PlainPrices();
  for (PicoUsd* price :
       {&prices.input, &prices.write, &prices.read, &prices.output}) {
    *price *= factor;
  }
  return std::make_shared<const PriceBook>(
      0,
      std::vector<PricedModel>{
          {.model = "m", .rows = {{.from = 0, .prices = prices}}}},
      PricedModel{.model = "", .rows = {{.from = 0, .prices = prices}}},
      std::map<std::string, PriceFamily>());
}

class SessionEngineEconomicsTest : public ::testing::Test {
 protected:
  SessionEngineEconomicsTest() { Restart(); }

  // Another engine on the same store.
  void Restart() {
    engine_ = std::make_unique<SessionEngine>(store_, CharacterCounter(),
                                              SessionEngine::Options());
    EXPECT_THAT(engine_->calibrations().Load(), IsOk());
    engine_->SetPrices(Book(1));
  }

  static SessionKey KeyOf(absl::string_view session) {
    return {.tenant = "t", .session = std::string(session)};
  }

  // Creates the session, and serves a view of kTokens.
  BuiltView Begin(absl::string_view session) {
    SessionHeader header;
    header.key = KeyOf(session);
    header.format = kFormat;
    header.model = "m";
    EXPECT_THAT(engine_->CreateSession(header), IsOk());
    BuildViewRequest request;
    request.append.messages = {
        ToBytes(UserMessage(kFormat, std::string(kTokens - 1'000, 'x')))};
    return Build(session, std::move(request));
  }

  BuiltView Build(absl::string_view session, BuildViewRequest request) {
    request.append.now = kNow;
    request.preamble_tokens = 1'000;
    auto built = engine_->BuildView(KeyOf(session), request);
    EXPECT_THAT(built, IsOk());
    return built.ok() ? *std::move(built) : BuiltView();
  }

  // A report that tells 1.3 times what was estimated.
  static Usage Report() {
    Usage usage;
    usage.input_uncached = kTokens * 13 / 10;
    return usage;
  }

  MemoryStore store_;
  std::unique_ptr<SessionEngine> engine_;
};

TEST_F(SessionEngineEconomicsTest, PricesHoldFromTheNextViewOn) {
  const BuiltView first = Begin("s");
  EXPECT_EQ(first.view.decision.view_cost, kTokens * 11);
  engine_->SetPrices(Book(3));
  BuildViewRequest request;
  request.append.messages = {ToBytes(UserMessage(kFormat, "so?"))};
  const BuiltView second = Build("s", request);
  EXPECT_EQ(second.view.decision.view_cost, kTokens * 3 + 3 * 33);
  const auto summary = engine_->GetSession(KeyOf("s"));
  ASSERT_THAT(summary, IsOk());
  EXPECT_EQ(summary->ledger.view_cost, kTokens * 11 + kTokens * 3 + 3 * 33)
      << "what was served keeps its cost";
}

TEST_F(SessionEngineEconomicsTest, WhatIsLearnedHelpsNewSessionsAndARestart) {
  EXPECT_EQ(Begin("a").view.decision.view_call.total(), kTokens);
  EXPECT_THAT(engine_->ReportUsage(KeyOf("a"), Report(), "", kNow), IsOk());
  Begin("b");
  BuildViewRequest request;
  request.usage = Report();
  Build("b", request);
  EXPECT_THAT(engine_->calibrations().ScaleOf("t", "m"),
              AllOf(Ge(1'274'000), Le(1'326'000)));
  EXPECT_THAT(Begin("c").view.decision.view_call.total(),
              AllOf(Ge(11'466), Le(11'934)));
  Restart();
  EXPECT_THAT(engine_->calibrations().ScaleOf("t", "m"),
              AllOf(Ge(1'274'000), Le(1'326'000)));
  EXPECT_THAT(Begin("d").view.decision.view_call.total(),
              AllOf(Ge(11'466), Le(11'934)));
}

TEST_F(SessionEngineEconomicsTest, ADryRunTeachesNothing) {
  for (const absl::string_view session : {"a", "b", "c"}) {
    Begin(session);
    BuildViewRequest request;
    request.usage = Report();
    request.dry_run = true;
    Build(session, request);
    const auto summary = engine_->GetSession(KeyOf(session));
    ASSERT_THAT(summary, IsOk());
    EXPECT_EQ(summary->ledger.usage_count, 0);
  }
  EXPECT_EQ(engine_->calibrations().ScaleOf("t", "m"), 0);
}

}  // namespace
}  // namespace clerestory
