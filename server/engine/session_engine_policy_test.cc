// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// How the policies of tenants decide what the engine serves.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/backtest/price_source.h"
#include "server/base/reason.h"
#include "server/base/time.h"
#include "server/engine/decide.h"
#include "server/engine/policy_trial.h"
#include "server/engine/session_engine.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/memory/memory_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Format kFormat = Format::kAnthropicMessages;
constexpr TimeMicros kNow = 1'000 * kMicrosPerSecond;

constexpr char kMasksAtOnce[] =
    "policies:\n"
    "  - name: main\n"
    "    mode: every_turn\n"
    "    keep: {observations: 3}\n";
constexpr char kMasksNothing[] =
    "policies:\n"
    "  - name: main\n"
    "    mode: off\n";

Policy Off() {
  Policy policy;
  policy.mode = Mode::kOff;
  return policy;
}

SessionHeader HeaderOf(const std::string& tenant) {
  SessionHeader header;
  header.key = {.tenant = tenant, .session = "s"};
  header.format = kFormat;
  header.model = "m";
  header.create_time = kNow;
  return header;
}

class SessionEnginePolicyTest : public ::testing::Test {
 protected:
  // Serves one more turn to the tenant's session: a view, and then its answer
  // with a call, and the result.
  BuiltView ServeTurn(const std::string& tenant) {
    const int turn = turns_++;
    BuildViewRequest request;
    request.append.now = kNow + turn * kMicrosPerSecond;
    request.preamble_tokens = 7;
    if (turn == 0) {
      request.append.messages = {ToBytes(UserMessage(kFormat, "do it"))};
    } else {
      const std::string id = absl::StrCat("c", turn);
      request.append.messages = {
          ToBytes(AssistantMessage(kFormat, "t", {{.id = id}})),
          ToBytes(ResultMessages(kFormat,
                                 {{.id = id, .content = LiteralOf(400)}})[0])};
    }
    auto built = engine_.BuildView(HeaderOf(tenant).key, request);
    EXPECT_THAT(built, IsOk());
    return built.ok() ? *std::move(built) : BuiltView();
  }

  MemoryStore store_;
  SessionEngine engine_{store_, CharacterCounter(), {.policy = Off()}};
  int turns_ = 0;
};

TEST_F(SessionEnginePolicyTest, AChangedPolicyHoldsFromTheNextViewOn) {
  ASSERT_THAT(engine_.CreateSession(HeaderOf("t")), IsOk());
  BuiltView built;
  for (int i = 0; i < 8; ++i) built = ServeTurn("t");
  EXPECT_EQ(built.masked_count, 0);
  EXPECT_EQ(built.policy_digest, PolicyDigest(Off()));

  ASSERT_THAT(engine_.policies().Set("t", kMasksAtOnce, "", kNow), IsOk());
  built = ServeTurn("t");
  EXPECT_GT(built.masked_count, 0);
  EXPECT_EQ(built.policy_digest,
            engine_.policies().For("t")->policies().policies().front().digest);
}

TEST_F(SessionEnginePolicyTest, WhatIsMaskedStaysMaskedWhenThePolicyChanges) {
  ASSERT_THAT(engine_.CreateSession(HeaderOf("t")), IsOk());
  ASSERT_THAT(engine_.policies().Set("t", kMasksAtOnce, "", kNow), IsOk());
  BuiltView before;
  for (int i = 0; i < 8; ++i) before = ServeTurn("t");
  ASSERT_GT(before.masked_count, 0);
  ASSERT_THAT(engine_.policies().Set("t", kMasksNothing, std::nullopt, kNow),
              IsOk());
  for (int i = 0; i < 5; ++i) {
    const BuiltView after = ServeTurn("t");
    EXPECT_EQ(after.masked_count, before.masked_count);
    EXPECT_EQ(after.policy_digest, PolicyDigest(Off()));
    ASSERT_GE(after.view.messages.size(), before.view.messages.size());
    for (std::size_t m = 0; m < before.view.messages.size(); ++m) {
      EXPECT_EQ(*after.view.messages[m], *before.view.messages[m]);
    }
    before = after;
  }
}

TEST_F(SessionEnginePolicyTest, APolicyIsOfItsTenantAlone) {
  ASSERT_THAT(engine_.CreateSession(HeaderOf("other")), IsOk());
  ASSERT_THAT(engine_.policies().Set("t", kMasksAtOnce, "", kNow), IsOk());
  BuiltView built;
  for (int i = 0; i < 8; ++i) built = ServeTurn("other");
  EXPECT_EQ(built.masked_count, 0);
}

TEST_F(SessionEnginePolicyTest, ASessionOfTheControlGroupIsNeverMasked) {
  ASSERT_THAT(engine_.CreateSession(HeaderOf("t")), IsOk());
  ASSERT_THAT(
      engine_.policies().Set(
          "t",
          std::string(kMasksAtOnce) + "    control: {share_permille: 1000}\n",
          "", kNow),
      IsOk());
  BuiltView built;
  for (int i = 0; i < 8; ++i) built = ServeTurn("t");
  EXPECT_EQ(built.masked_count, 0);
  EXPECT_EQ(built.policy_digest,
            engine_.policies().For("t")->policies().policies().front().digest);
}

TEST_F(SessionEnginePolicyTest, TheProviderIsToldOfSoManyToolsAndNoMore) {
  ASSERT_THAT(engine_.CreateSession(HeaderOf("t")), IsOk());
  ASSERT_THAT(engine_.policies().Set("t",
                                     "policies:\n"
                                     "  - name: main\n"
                                     "    mode: delegate\n"
                                     "    tools: {exclude: [\"kept_*\"]}\n",
                                     "", kNow),
              IsOk());
  BuildViewRequest request;
  request.append.now = kNow;
  request.append.messages = {ToBytes(UserMessage(kFormat, "do it"))};
  std::string first;
  for (std::size_t i = 0; i < 2 * kDelegatedToolsMax; ++i) {
    const std::string id = absl::StrCat("c", i);
    request.append.messages.push_back(ToBytes(AssistantMessage(
        kFormat, "t", {{.id = id, .tool = absl::StrCat("kept_", 1'000 + i)}})));
    request.append.messages.push_back(ToBytes(
        ResultMessages(kFormat, {{.id = id, .content = LiteralOf(4)}})[0]));
    if (i >= kDelegatedToolsMax) continue;
    absl::StrAppend(&first, i == 0 ? "" : ",", "\"kept_", 1'000 + i, "\"");
  }
  const auto built = engine_.BuildView(HeaderOf("t").key, request);
  ASSERT_THAT(built, IsOk());
  EXPECT_THAT(built->context_management,
              HasSubstr(absl::StrCat("\"exclude_tools\":[", first, "]")));
}

TEST_F(SessionEnginePolicyTest,
       WhatAPinKeepsIsListedByTheTenantsRuleOfTheTool) {
  const std::string id = "c";
  for (const std::string tenant : {"t", "other"}) {
    const SessionKey key = HeaderOf(tenant).key;
    if (tenant == "t") {
      const char kRule[] =
          "policies: [{name: p, tools: {rules: [{tool: get, class: read, "
          "resource: what}]}}]\n";
      ASSERT_THAT(engine_.policies().Set(tenant, kRule, "", kNow), IsOk());
    }
    ASSERT_THAT(engine_.CreateSession(HeaderOf(tenant)), IsOk());
    BuildViewRequest request;
    request.append.now = kNow;
    request.append.messages = {
        ToBytes(UserMessage(kFormat, "do it")),
        ToBytes(AssistantMessage(
            kFormat, "t",
            {{.id = id, .tool = "get", .arguments = R"({"what":"/r/a.cc"})"}})),
        ToBytes(
            ResultMessages(kFormat, {{.id = id, .content = LiteralOf(4)}})[0])};
    ASSERT_THAT(engine_.BuildView(key, request), IsOk());
    ASSERT_THAT(
        engine_.SetPin(key, {.resource = "a.cc"}, /*is_pinned=*/true, kNow),
        IsOk());
    const auto listed = engine_.ListObservations(key, 0, 1);
    ASSERT_THAT(listed, IsOk());
    EXPECT_EQ(listed->front().is_pinned, tenant == "t");
    const auto read = engine_.ReadObservation(key, 2, 0, 0, 1);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->is_pinned, tenant == "t");
  }
}

TEST_F(SessionEnginePolicyTest, PoliciesMatchByLabel) {
  SessionHeader header = HeaderOf("t");
  header.labels = {{"app", "demo"}};
  ASSERT_THAT(engine_.CreateSession(header), IsOk());
  ASSERT_THAT(engine_.policies().Set("t",
                                     "policies:\n"
                                     "  - name: demo\n"
                                     "    match: {labels: {app: demo}}\n"
                                     "    mode: every_turn\n"
                                     "    keep: {observations: 3}\n",
                                     "", kNow),
              IsOk());
  BuiltView built;
  for (int i = 0; i < 8; ++i) built = ServeTurn("t");
  EXPECT_GT(built.masked_count, 0);
}

TEST_F(SessionEnginePolicyTest, LabelsArePartOfWhatASessionIsCreatedWith) {
  SessionHeader header = HeaderOf("t");
  header.labels = {{"app", "demo"}};
  ASSERT_THAT(engine_.CreateSession(header), IsOk());
  const auto again = engine_.CreateSession(header);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->labels, header.labels);
  header.labels["app"] = "other";
  EXPECT_THAT(
      engine_.CreateSession(header),
      FailsWith(absl::StatusCode::kAlreadyExists, Reason::kSessionExists));
}

TEST_F(SessionEnginePolicyTest, ASessionPlayedAgainBreaksWhereItDid) {
  ASSERT_THAT(engine_.CreateSession(HeaderOf("t")), IsOk());
  ASSERT_THAT(engine_.policies().Set("t", kMasksAtOnce, "", kNow), IsOk());
  std::vector<ViewServed> served;
  for (int i = 0; i < 9; ++i) {
    served.push_back(ServeTurn("t").view.decision);
  }
  const auto input = engine_.ReadForTrial(HeaderOf("t").key);
  ASSERT_THAT(input, IsOk());
  EXPECT_EQ(input->preamble_tokens, 7);
  const Policy policy =
      engine_.policies().For("t")->policies().policies().front().policy;
  const auto trial =
      TryPolicy(*input, policy, CharacterCounter(), ListPrices());
  ASSERT_THAT(trial, IsOk());
  // The last view has no answer yet.
  EXPECT_EQ(trial->call_count, 8);
  std::vector<ViewServed> breaks;
  for (std::size_t i = 0; i < 8; ++i) {
    if (served[i].break_reason != BreakReason::kNone) {
      breaks.push_back(served[i]);
    }
  }
  ASSERT_THAT(breaks, Not(IsEmpty()));
  ASSERT_THAT(trial->breaks, SizeIs(breaks.size()));
  PicoUsd view_cost = 0;
  PicoUsd raw_cost = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    view_cost += served[i].view_cost;
    raw_cost += served[i].raw_cost;
  }
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    EXPECT_EQ(trial->breaks[i].view.masks, breaks[i].masks);
    EXPECT_EQ(trial->breaks[i].view.time, breaks[i].time);
    EXPECT_EQ(trial->breaks[i].view.message_count, breaks[i].message_count);
    EXPECT_GT(trial->breaks[i].saved_tokens, 0);
  }
  EXPECT_EQ(trial->raw_cost - trial->cost, raw_cost - view_cost);

  const auto off = TryPolicy(*input, Off(), CharacterCounter(), ListPrices());
  ASSERT_THAT(off, IsOk());
  EXPECT_THAT(off->breaks, IsEmpty());
  EXPECT_EQ(off->cost, off->raw_cost);
  EXPECT_EQ(off->raw_cost, trial->raw_cost);
}

TEST_F(SessionEnginePolicyTest, WhatIsNotThereCannotBePlayed) {
  EXPECT_THAT(engine_.ReadForTrial(HeaderOf("t").key),
              FailsWith(absl::StatusCode::kNotFound, Reason::kSessionNotFound));
}

}  // namespace
}  // namespace clerestory
