// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/decide.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/engine/policy_document.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Format kAnthropic = Format::kAnthropicMessages;
constexpr TimeMicros kStart = 1'000 * kMicrosPerSecond;

// What the models cost: `m` as PlainPrices says, `dear` ten times as much.
PriceBook Prices(bool is_bound = false) {
  ModelPrices plain = PlainPrices();
  plain.reasoning_prefix_bound = is_bound;
  plain.long_ttl_seconds = 3'600;
  plain.long_write = 20;
  ModelPrices dear = plain;
  dear.model = "dear";
  for (PicoUsd* price : {&dear.input, &dear.write, &dear.read, &dear.output}) {
    *price *= 10;
  }
  ModelPrices unknown = PlainPrices();
  unknown.model = "";
  return PriceBook(0,
                   {{.model = "m", .rows = {{.from = 0, .prices = plain}}},
                    {.model = "dear", .rows = {{.from = 0, .prices = dear}}}},
                   {.model = "", .rows = {{.from = 0, .prices = unknown}}}, {});
}

SessionHeader HeaderOf(Format format) {
  SessionHeader header;
  header.key = {.tenant = "t", .session = "s"};
  header.format = format;
  header.model = "m";
  return header;
}

// Masks as soon as it may.
Policy Eager() {
  Policy policy = PlainPolicy();
  policy.mode = Mode::kEveryTurn;
  return policy;
}

Usage UsageOf(std::int64_t uncached, std::int64_t read, std::int64_t written,
              std::int64_t output) {
  Usage usage;
  usage.input_uncached = uncached;
  usage.cache_read = read;
  usage.cache_write = written;
  usage.output = output;
  return usage;
}

// A report of the input alone, without a word about caches.
Usage InputOf(std::int64_t tokens) {
  Usage usage;
  usage.input_uncached = tokens;
  return usage;
}

BuildViewRequest RequestOn(const std::string& model) {
  BuildViewRequest request;
  request.model = model;
  return request;
}

BuildViewRequest RequestWith(const UsageInput& usage,
                             const std::string& model = "") {
  BuildViewRequest request = RequestOn(model);
  request.usage = usage;
  return request;
}

BuildViewRequest RequestWith(const UsageInput& usage,
                             std::vector<Bytes> messages,
                             std::optional<std::int64_t> sequence = {}) {
  BuildViewRequest request = RequestWith(usage);
  request.append.messages = std::move(messages);
  request.append.expected_sequence = sequence;
  return request;
}

const Usage kUsage = UsageOf(10, 100, 1'000, 5);
constexpr PicoUsd kUsageCost = 10 * 10 + 100 * 1 + 1'000 * 11 + 5 * 50;

class DecideTest : public ::testing::Test {
 protected:
  // Begins another session.
  void Begin(Format format, const Policy& policy) {
    format_ = format;
    session_ = std::make_unique<Session>(HeaderOf(format), CharacterCounter());
    SetPolicy(policy);
  }
  void SetPolicy(const Policy& policy) {
    document_ = PolicyDocument::BuiltIn(policy);
  }

  template <typename Work>
  auto WithRules(Work work) {
    const auto scale_of = [&](const std::string& model) {
      return scales_[model];
    };
    records_.clear();
    learned_.reset();
    return work(Rules{
        .policies = *document_, .prices = prices_, .token_scale_of = scale_of});
  }

  absl::StatusOr<BuiltView> TryBuild(BuildViewRequest request) {
    now_ += kMicrosPerSecond;
    request.append.now = now_;
    return WithRules([&](const Rules& rules) {
      return Decide(request, rules, *session_, records_, learned_);
    });
  }
  BuiltView Build(BuildViewRequest request = {}) {
    absl::StatusOr<BuiltView> built = TryBuild(std::move(request));
    EXPECT_THAT(built, IsOk());
    return built.ok() ? *std::move(built) : BuiltView();
  }
  BuiltView BuildOn(const std::string& model) {
    return Build(RequestOn(model));
  }

  absl::StatusOr<Usage> Report(const UsageInput& usage,
                               const std::string& model = "") {
    return WithRules([&](const Rules& rules) {
      return TakeUsage(usage, model, now_, rules, *session_, records_,
                       learned_);
    });
  }

  void Add(const std::string& message) {
    WithRules([&](const Rules& rules) {
      AppendRequest request;
      request.now = now_;
      request.messages = {ToBytes(message)};
      EXPECT_THAT(Append(request, rules, *session_, records_), IsOk());
    });
  }
  // A call of `tool`, after `thinking` if there is any, and a result of 100
  // tokens.
  void AddTurn(const std::string& tool = "r", bool is_thinking = false) {
    const std::string id = absl::StrCat("c", turn_count_++);
    const CallSpec call = {.id = id, .tool = tool};
    if (is_thinking) {
      Add(AnthropicAssistant(
          {ThinkingBlock(), absl::StrCat(R"({"type":"tool_use","id":")", id,
                                         R"(","name":"r","input":{}})")}));
    } else {
      Add(AssistantMessage(format_, "", {call}));
    }
    for (const std::string& message :
         ResultMessages(format_, {{.id = id, .content = LiteralOf(100)}})) {
      Add(message);
    }
  }
  void AddTurns(int count) {
    for (int i = 0; i < count; ++i) AddTurn();
  }

  const Ledger& ledger() const { return session_->ledger(); }
  // What was stored of usage by the last call; one report.
  UsageReported stored() const {
    std::vector<UsageReported> reports;
    for (const Record& record : records_) {
      const auto* report = std::get_if<UsageReported>(&record);
      if (report != nullptr) reports.push_back(*report);
    }
    EXPECT_THAT(reports, SizeIs(1));
    return reports.empty() ? UsageReported() : reports.front();
  }

  Format format_ = kAnthropic;
  PriceBook prices_ = Prices();
  std::shared_ptr<const PolicyDocument> document_ =
      PolicyDocument::BuiltIn(Eager());
  std::map<std::string, std::int64_t> scales_;
  std::unique_ptr<Session> session_ =
      std::make_unique<Session>(HeaderOf(kAnthropic), CharacterCounter());
  std::vector<Record> records_;
  std::optional<LearnedSample> learned_;
  TimeMicros now_ = kStart;
  int turn_count_ = 0;
};

// --- usage
// --------------------------------------------------------------------

TEST_F(DecideTest, UsageIsOfTheModelOfTheViewBeforeNotOfTheNext) {
  BuildOn("dear");
  Build(RequestWith(kUsage, "m"));
  EXPECT_EQ(stored().model, "dear");
  EXPECT_EQ(stored().cost, 10 * kUsageCost);
  Build(RequestWith(UsageOf(1, 0, 0, 1), "dear"));
  EXPECT_EQ(stored().model, "m");
  EXPECT_EQ(stored().cost, 10 + 50);
  EXPECT_EQ(ledger().usage_cost, 10 * kUsageCost + 60);
}

TEST_F(DecideTest, UsageBeforeAnyViewIsOfTheSessionsModel) {
  EXPECT_THAT(Report(kUsage), IsOk());
  EXPECT_EQ(stored().model, "m");
  EXPECT_EQ(stored().cost, kUsageCost);
}

TEST_F(DecideTest, UsageOfANamedModelHasItsPrices) {
  BuildOn("m");
  EXPECT_THAT(Report(kUsage, "dear"), IsOk());
  EXPECT_EQ(stored().model, "dear");
  EXPECT_EQ(stored().cost, 10 * kUsageCost);
}

TEST_F(DecideTest, WhatIsWrittenForTheLongLifeCostsWhatThatDoes) {
  Policy policy = Eager();
  policy.cache_life = CacheLife::kLong;
  SetPolicy(policy);
  EXPECT_THAT(Report(kUsage), IsOk());
  EXPECT_EQ(stored().cost, kUsageCost + 1'000 * (20 - 11));
}

TEST_F(DecideTest, UsageThatLeavesOutWhatIsChargedHasNoCost) {
  EXPECT_THAT(Report(InputOf(10)), IsOk());
  EXPECT_EQ(stored().cost, std::nullopt);
  EXPECT_EQ(ledger().usage_cost, 0);
  EXPECT_EQ(ledger().usage_count, 1);
}

TEST_F(DecideTest, AProvidersOwnUsageIsUnderstood) {
  const absl::StatusOr<Usage> understood =
      Report(R"({"input_tokens":10,"cache_read_input_tokens":100,)"
             R"("cache_creation_input_tokens":1000,"output_tokens":5})");
  ASSERT_THAT(understood, IsOk());
  EXPECT_EQ(*understood, kUsage);
  EXPECT_EQ(stored().cost, kUsageCost);
}

TEST_F(DecideTest, AReportThatIsRepeatedCountsOnce) {
  Build();
  EXPECT_THAT(Report(kUsage), IsOk());
  EXPECT_THAT(Report(kUsage), IsOk());
  EXPECT_THAT(records_, IsEmpty());
  Build(RequestWith(kUsage));
  EXPECT_EQ(ledger().usage_count, 1);
  EXPECT_EQ(ledger().usage_cost, kUsageCost);
}

TEST_F(DecideTest, EqualUsageOfTwoCallsCountsTwice) {
  Build();
  EXPECT_THAT(Report(kUsage), IsOk());
  Build(RequestWith(kUsage, {ToBytes(UserMessage(kAnthropic, "so?"))}));
  EXPECT_EQ(ledger().usage_count, 2);
  EXPECT_EQ(ledger().usage_cost, 2 * kUsageCost);
}

TEST_F(DecideTest, ARequestThatIsSentAgainCountsItsUsageOnce) {
  Build();
  const BuildViewRequest request =
      RequestWith(kUsage, {ToBytes(UserMessage(kAnthropic, "so?"))}, 0);
  Build(request);
  const std::int64_t calls = ledger().call_count;
  Build(request);
  EXPECT_EQ(ledger().usage_count, 1);
  EXPECT_EQ(ledger().call_count, calls);
}

// --- what is learned
// ----------------------------------------------------------

TEST_F(DecideTest, TheFirstReportTeachesWhatThePromptHadOfItsModel) {
  Add(UserMessage(kAnthropic, std::string(3'000, 'x')));
  BuildViewRequest request = RequestOn("dear");
  request.preamble_tokens = 1'000;
  Build(std::move(request));
  EXPECT_EQ(learned_, std::nullopt);
  EXPECT_THAT(Report(InputOf(5'200)), IsOk());
  ASSERT_TRUE(learned_.has_value());
  EXPECT_EQ(learned_->model, "dear");
  EXPECT_EQ(learned_->sample, (CalibrationSample{.reported_tokens = 5'200,
                                                 .estimated_tokens = 4'000}));
  EXPECT_THAT(Report(InputOf(5'200)), IsOk());
  EXPECT_EQ(learned_, std::nullopt) << "the same again";
}

TEST_F(DecideTest, WithoutAPreambleOnlyWhatWasAddedTeaches) {
  Add(UserMessage(kAnthropic, std::string(1'000, 'x')));
  Build();
  Build(RequestWith(InputOf(9'000)));
  EXPECT_EQ(learned_, std::nullopt);
  Add(UserMessage(kAnthropic, std::string(2'000, 'x')));
  Build();
  Build(RequestWith(InputOf(11'600)));
  ASSERT_TRUE(learned_.has_value());
  EXPECT_EQ(learned_->sample, (CalibrationSample{.reported_tokens = 2'600,
                                                 .estimated_tokens = 2'000}));
}

TEST_F(DecideTest, WhatWasLearnedOfAModelScalesItsEstimates) {
  Add(UserMessage(kAnthropic, std::string(1'000, 'x')));
  scales_["m"] = 1'300'000;
  EXPECT_EQ(BuildOn("m").view.decision.view_call.total(), 1'300);
  EXPECT_EQ(session_->last_view()->view_tokens.total(), 1'000)
      << "what was estimated is stored as it was";
  Begin(kAnthropic, Eager());
  Add(UserMessage(kAnthropic, std::string(1'000, 'x')));
  EXPECT_EQ(BuildOn("dear").view.decision.view_call.total(), 1'000);
}

// --- policies
// -----------------------------------------------------------------

TEST_F(DecideTest, NothingIsMaskedInASessionOfTheControlGroup) {
  Policy policy = Eager();
  policy.control_permille = 1'000;
  SetPolicy(policy);
  AddTurns(8);
  const BuiltView built = Build();
  EXPECT_TRUE(built.is_control);
  EXPECT_EQ(built.masked_count, 0);
  EXPECT_EQ(built.policy_digest, PolicyDigest(policy));
  EXPECT_EQ(built.view.decision.view_cost, built.view.decision.raw_cost);
}

TEST_F(DecideTest, WhatWasMaskedBeforeASessionIsOfTheControlGroupStays) {
  AddTurns(8);
  const BuiltView before = Build();
  EXPECT_FALSE(before.is_control);
  ASSERT_EQ(before.masked_count, 5);
  EXPECT_GT(before.saved_tokens, 0);
  Policy policy = Eager();
  policy.control_permille = 1'000;
  SetPolicy(policy);
  AddTurns(3);
  const BuiltView after = Build();
  EXPECT_TRUE(after.is_control);
  EXPECT_EQ(after.masked_count, 5);
  EXPECT_EQ(after.saved_tokens, 0);
  ASSERT_GE(after.view.messages.size(), before.view.messages.size());
  for (std::size_t i = 0; i < before.view.messages.size(); ++i) {
    EXPECT_EQ(*after.view.messages[i], *before.view.messages[i]);
  }
}

Policy Delegating() {
  Policy policy;
  policy.mode = Mode::kDelegate;
  policy.keep_observations = 4;
  policy.threshold_tokens = 200;
  policy.reclaim_tokens_min = 50;
  policy.exclude = {"secret_*"};
  return policy;
}

TEST_F(DecideTest, ADelegatedSessionIsMaskedByItsProvider) {
  Begin(kAnthropic, Delegating());
  AddTurn("secret_b");
  AddTurn("secret_a");
  AddTurns(8);
  const BuiltView built = Build();
  EXPECT_EQ(built.masked_count, 0);
  EXPECT_EQ(built.view.decision.break_reason, BreakReason::kNone);
  ASSERT_THAT(built.view.messages, SizeIs(20));
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(*built.view.messages[i], *session_->messages()[i].raw);
  }
  EXPECT_EQ(built.context_management,
            R"({"edits":[{"type":"clear_tool_uses_20250919",)"
            R"("trigger":{"type":"input_tokens","value":200},)"
            R"("keep":{"type":"tool_uses","value":4},)"
            R"("clear_at_least":{"type":"input_tokens","value":50},)"
            R"("exclude_tools":["secret_a","secret_b"]}]})");
}

TEST_F(DecideTest, OtherProvidersAreDelegatedNothingAndNothingIsMasked) {
  for (const Format format : {Format::kOpenaiChat, Format::kOpenaiResponses,
                              Format::kGemini, Format::kBedrockConverse}) {
    Begin(format, Delegating());
    AddTurns(8);
    const BuiltView built = Build();
    EXPECT_EQ(built.context_management, "");
    EXPECT_EQ(built.masked_count, 0);
  }
}

TEST_F(DecideTest, OtherModesDelegateNothing) {
  AddTurns(8);
  EXPECT_EQ(Build().context_management, "");
}

TEST_F(DecideTest, ADropBlockIsNeededOnceReasoningIsStaleWhereItIsBound) {
  Policy policy = Eager();
  policy.thinking = ThinkingRule::kDropBlock;
  for (const bool is_bound : {true, false}) {
    Begin(kAnthropic, policy);
    prices_ = Prices(is_bound);
    AddTurns(2);
    AddTurn("r", /*is_thinking=*/true);
    EXPECT_FALSE(Build().needs_drop_block) << "nothing is masked";
    AddTurns(3);
    const BuiltView built = Build();
    EXPECT_EQ(built.masked_count, 3);
    EXPECT_EQ(built.view.decision.strip_from, std::nullopt);
    EXPECT_EQ(built.needs_drop_block, is_bound);
    EXPECT_EQ(Build().needs_drop_block, is_bound) << "from now on";
    EXPECT_FALSE(BuildOn("other").needs_drop_block) << "which binds nothing";
  }
}

TEST_F(DecideTest, NoDropBlockIsNeededWhereReasoningIsLeftOut) {
  prices_ = Prices(/*is_bound=*/true);
  AddTurns(2);
  AddTurn("r", /*is_thinking=*/true);
  AddTurns(3);
  const BuiltView built = Build();
  EXPECT_EQ(built.view.decision.strip_from, 4);
  EXPECT_FALSE(built.needs_drop_block);
}

TEST_F(DecideTest, AModelWithoutPricesIsFlagged) {
  EXPECT_TRUE(BuildOn("").is_model_known);
  EXPECT_EQ(BuildOn("").model, "m");
  EXPECT_TRUE(BuildOn("dear").is_model_known);
  const BuiltView built = BuildOn("other");
  EXPECT_FALSE(built.is_model_known);
  EXPECT_EQ(built.model, "other") << "although it is the same call again";
}

// --- errors
// -------------------------------------------------------------------

TEST_F(DecideTest, AnErrorChangesNothing) {
  AddTurns(8);
  Build(RequestWith(kUsage));
  const Bytes good = ToBytes(UserMessage(kAnthropic, "so?"));
  const Bytes bad = ToBytes("{}");
  const Usage usage = UsageOf(7, 0, 0, 7);
  const std::string before = SessionText(*session_);
  const auto expect_error = [&](BuildViewRequest request, absl::StatusCode code,
                                Reason reason) {
    EXPECT_THAT(TryBuild(std::move(request)), FailsWith(code, reason));
    EXPECT_THAT(records_, IsEmpty());
    EXPECT_EQ(learned_, std::nullopt);
    EXPECT_EQ(SessionText(*session_), before);
  };
  Usage negative;
  negative.output = -1;
  expect_error(RequestWith("[]", {good}), absl::StatusCode::kInvalidArgument,
               Reason::kUsageInvalid);
  expect_error(RequestWith(negative, {good}),
               absl::StatusCode::kInvalidArgument, Reason::kUsageInvalid);
  expect_error(RequestWith(usage, {good, bad}),
               absl::StatusCode::kInvalidArgument, Reason::kMessageInvalid);
  expect_error(RequestWith(usage, {good}, 17), absl::StatusCode::kAborted,
               Reason::kSequenceGap);
  expect_error(RequestWith(usage, {good}, 0), absl::StatusCode::kAborted,
               Reason::kAppendConflict);
  EXPECT_THAT(
      Report("{\"output_tokens\":-1}"),
      FailsWith(absl::StatusCode::kInvalidArgument, Reason::kUsageInvalid));
  EXPECT_THAT(records_, IsEmpty());
  EXPECT_EQ(SessionText(*session_), before);
}

}  // namespace
}  // namespace clerestory
