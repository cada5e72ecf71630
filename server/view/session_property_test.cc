// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Random sessions in which observations are fetched again, recalled and pinned,
// compared at every step with a naive model. CLERESTORY_SEED
// plays one again, CLERESTORY_SEEDS says how many to try.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/cost/prices.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/session_parts.h"
#include "server/view/view.h"
#include "tests/support/messages.h"
#include "tests/support/naive_ledger.h"
#include "tests/support/naive_session.h"
#include "tests/support/random_notes.h"
#include "tests/support/random_session.h"
#include "tests/support/scripted_session.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

// The first message in which `now` differs from what `before` begins it with.
std::size_t FirstDifference(const std::vector<std::string>& before,
                            const std::vector<std::string>& now) {
  const auto end =
      std::mismatch(before.begin(), before.end(), now.begin(),
                    now.begin() + static_cast<std::ptrdiff_t>(before.size()));
  return static_cast<std::size_t>(end.first - before.begin());
}

// What all simulations showed again, and of that, what in a warm cache; and in
// how many breaks for reasoning alone.
struct Tally {
  std::int64_t restores = 0;
  std::int64_t warm_restores = 0;
  std::int64_t strips_alone = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Tally& tally)
      : tally_(tally),
        random_(seed),
        options_(RandomOptions(random_)),
        history_(options_, random_),
        policy_(AnyPolicy(random_)),
        prices_of_m1_(RandomPricesWithTiers(random_)),
        prices_of_m2_(RandomPricesWithTiers(random_)),
        report_one_in_(random_.Between(1, 4)),
        alternates_one_in_(random_.OneIn(3) ? 4 : 40),
        misses_all_(random_.OneIn(4)),
        note_one_in_(random_.OneIn(4) ? 1'000 : random_.Between(1, 4)),
        naive_(options_.format, CharacterCounter(), options_.has_recall_tool),
        session_(NewSession()) {
    request_.unmasked_tools = &unmasked_tools_;
  }

  void Run() {
    const std::int64_t steps = random_.Between(1, 45);
    for (std::int64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      for (const std::string& message : history_.NextStep()) Append(message);
      if (random_.OneIn(10)) continue;  // A client that appends in bulk.
      while (random_.OneIn(note_one_in_)) {
        Note();
        if (random_.OneIn(3)) break;
      }
      Wait();
      if (random_.OneIn(12)) TryOut();
      Serve();
      if (random_.OneIn(8)) ServeAgain();
      if (random_.OneIn(report_one_in_)) Report();
      if (random_.OneIn(12)) Restart();
    }
    CheckLossless();
    CheckLedger();
  }

 private:
  static RandomHistoryOptions RandomOptions(Random& random) {
    RandomHistoryOptions options;
    if (random.OneIn(2)) options.format = Format::kOpenaiChat;
    options.is_valid = !random.OneIn(3);
    options.has_images =
        random.OneIn(3) &&
        (options.format == Format::kAnthropicMessages || !options.is_valid);
    options.has_thinking = random.OneIn(3);
    options.repeats = random.OneIn(3);
    options.has_recall_tool = random.OneIn(2);
    // Small calls tell nothing of the cache.
    options.result_size_max = random.OneIn(4) ? 20'000 : 400;
    if (random.OneIn(40)) options.result_size_max = 50'000;
    return options;
  }

  static Policy AnyPolicy(Random& random) {
    Policy policy =
        random.OneIn(3) ? RandomPolicy(random) : RandomPolicyWithRules(random);
    policy.thinking = static_cast<ThinkingRule>(random.Between(0, 3));
    return policy;
  }

  Session NewSession() const {
    SessionHeader header;
    header.format = options_.format;
    header.has_recall_tool = options_.has_recall_tool;
    return Session(header, CharacterCounter());
  }

  void Append(const std::string& message) {
    MessageAppended record = {.time = request_.now,
                              .message = ToBytes(message)};
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        session_->CheckAppend({record.message});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    session_->Append(record, std::move(parsed->front()));
    records_.emplace_back(std::move(record));
    naive_.Append(message);
  }

  // Something is fetched again, recalled or pinned, or the tenant's breaker
  // says something else of tools.
  void Note() {
    if (random_.OneIn(3)) {
      unmasked_tools_ = RandomTools(random_);
      return;
    }
    const Record record = RandomNote(*session_, request_.now, random_);
    ASSERT_TRUE(session_->Replay(record).ok());
    naive_.Note(record);
    records_.push_back(record);
  }

  // Some time passes; now and then the cache runs out, the clock is set back,
  // the model or its preamble is another one.
  void Wait() {
    constexpr TimeMicros kTtl = 300 * kMicrosPerSecond;
    TimeMicros pause = random_.Between(0, 20) * kMicrosPerSecond;
    if (random_.OneIn(20)) pause = kTtl;
    if (random_.OneIn(20)) pause = kTtl + 1;
    if (random_.OneIn(20)) pause = -random_.Between(1, 1'000'000'000);
    request_.now += pause;
    if (random_.OneIn(alternates_one_in_)) {
      request_.model = absl::StrCat("m", random_.Between(1, 2));
      last_frontier_.reset();
    }
    if (random_.OneIn(40)) {
      prices() = RandomPricesWithTiers(random_);
      last_frontier_.reset();
    }
    if (random_.OneIn(40)) request_.preamble_tokens = random_.Size(10'000);
    if (random_.OneIn(20)) {
      request_.token_scale_ppm = random_.Between(kScaleMin, kScaleMax);
    }
    if (random_.OneIn(20)) {
      constexpr const char* kDigests[] = {"", "p1", "p2"};
      request_.preamble_digest = kDigests[random_.Between(0, 2)];
    }
  }

  ModelPrices& prices() {
    return request_.model == "m1" ? prices_of_m1_ : prices_of_m2_;
  }

  // What the provider billed for the last call, or some other one.
  void Report() {
    const ViewServed& last = *session_->last_view();
    UsageReported report = {.time = request_.now,
                            .model = random_.OneIn(8) ? "m2" : last.model,
                            .usage = RandomUsage(last.view_call, random_)};
    if (misses_all_ && report.usage.cache_read.has_value()) {
      report.usage.cache_read = 0;
    }
    if (random_.OneIn(2)) report.cost = random_.Size(1'000'000);
    session_->Apply(report);
    naive_.Report(report);
    records_.emplace_back(report);
    reports_.emplace_back(report, last);
  }

  // Plans and applies on a copy, of which the session knows nothing.
  void TryOut() {
    const std::string before = SessionText(*session_);
    Session copy = *session_;
    const Bytes extra = ToBytes(UserMessage(options_.format, "what if?"));
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        copy.CheckAppend({extra});
    ASSERT_TRUE(parsed.ok());
    copy.Append({.time = request_.now, .message = extra},
                std::move(parsed->front()));
    ViewRequest later = request_;
    later.now += 1'000 * kMicrosPerSecond;
    copy.Apply(PlanView(copy, policy_, prices(), later));
    ASSERT_EQ(SessionText(*session_), before) << "a trial changed the session";
    ASSERT_EQ(Texts(DescribeView(*session_, {}, 0, 0).messages), last_texts());
  }

  void Serve() {
    const ViewServed decision =
        PlanView(*session_, policy_, prices(), request_);
    const ViewServed expected = naive_.Plan(policy_, prices(), request_);
    ASSERT_EQ(DecisionText(decision), DecisionText(expected));
    ASSERT_EQ(decision, expected);
    ASSERT_EQ(decision, PlanView(*session_, policy_, prices(), request_))
        << "not deterministic";
    CheckMasks(decision);
    const std::vector<std::string> before = views_;
    const std::size_t last_count =
        session_->last_view().has_value()
            ? static_cast<std::size_t>(session_->last_view()->message_count)
            : 0;
    session_->Apply(decision);
    naive_.Serve(decision);
    Count(decision);
    records_.emplace_back(decision);
    served_.push_back(decision);

    const View view =
        DescribeView(*session_, decision, static_cast<std::int64_t>(last_count),
                     FrontierOf(*session_, policy_, prices()));
    views_ = Texts(view.messages);
    ASSERT_EQ(views_, naive_.View());
    CheckPrefix(before, view);
    CheckTotals(view);
    CheckMarks(view);
    if (options_.is_valid && !decision.masks.empty()) CheckValid();
    if (prices().reasoning_prefix_bound &&
        policy_.thinking != ThinkingRule::kDropBlock) {
      ASSERT_FALSE(session_->stale_from().has_value());
    }
  }

  void Count(const ViewServed& decision) {
    const std::int64_t restores =
        std::ranges::count(decision.masks, true, &Mask::is_restored);
    tally_.restores += restores;
    if (decision.break_reason == BreakReason::kPays ||
        decision.break_reason == BreakReason::kSchedule) {
      tally_.warm_restores += restores;
    }
    if (restores > 0 && restores == std::ssize(decision.masks) &&
        decision.strip_from.has_value()) {
      ++tally_.strips_alone;
    }
  }

  // Nobody answered: the same call again.
  void ServeAgain() {
    const std::string ledger = LedgerText(session_->ledger());
    const std::vector<std::string> before = views_;
    const PicoUsd rents = session_->read_price_sum();
    request_.now += kMicrosPerSecond;
    Serve();
    if (served_.back().break_reason == BreakReason::kNone) {
      ASSERT_EQ(views_, before);
    }
    ASSERT_EQ(session_->read_price_sum(), rents);
    ASSERT_EQ(session_->ledger().call_count, CallCount());
  }

  // All that is left are the records; a new policy may have been configured.
  void Restart() {
    Session again = NewSession();
    for (const Record& record : records_) {
      const absl::Status status = again.Replay(record);
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_EQ(SessionText(again), SessionText(*session_));
    session_.emplace(std::move(again));
    ASSERT_EQ(Texts(DescribeView(*session_, {}, 0, 0).messages), views_);
    if (random_.OneIn(4)) {
      policy_ = AnyPolicy(random_);
      last_frontier_.reset();
    }
  }

  // PrefixStable, and Explained as far as it says where and why.
  void CheckPrefix(const std::vector<std::string>& before, const View& view) {
    const std::size_t same = FirstDifference(before, views_);
    const ViewServed& decision = view.decision;
    ASSERT_EQ(decision.masks.empty() && !decision.strip_from.has_value(),
              decision.break_reason == BreakReason::kNone);
    if (same < before.size()) {
      ASSERT_NE(decision.break_reason, BreakReason::kNone) << "not declared";
      ASSERT_EQ(view.first_change, static_cast<std::int64_t>(same));
      // A break that is free may show again what stands anywhere.
      if (last_frontier_.has_value() && !IsRestoring(decision)) {
        ASSERT_GE(view.first_change, *last_frontier_);
      }
    }
    ASSERT_EQ(view.stable.message_count, static_cast<std::int64_t>(same));
    const std::vector<std::string> stable(
        before.begin(), before.begin() + static_cast<std::ptrdiff_t>(same));
    std::size_t bytes = 0;
    for (const std::string& message : stable) bytes += message.size();
    ASSERT_EQ(view.stable.byte_count, static_cast<std::int64_t>(bytes));
    ASSERT_EQ(view.stable.digest.ToHex(), ChainDigest(stable));
    ASSERT_EQ(
        view.stable.token_count,
        same == 0 ? 0 : naive_.Foreseen(naive_.TokensBefore()[same], request_));
  }

  static bool IsRestoring(const ViewServed& decision) {
    return std::ranges::any_of(decision.masks, &Mask::is_restored);
  }

  void CheckTotals(const View& view) {
    std::size_t bytes = 0;
    for (const std::string& message : views_) bytes += message.size();
    ASSERT_EQ(view.whole.message_count,
              static_cast<std::int64_t>(views_.size()));
    ASSERT_EQ(view.whole.byte_count, static_cast<std::int64_t>(bytes));
    ASSERT_EQ(view.whole.digest.ToHex(), ChainDigest(views_));
    const std::vector<std::int64_t> tokens = naive_.TokensBefore();
    ASSERT_EQ(view.whole.token_count, naive_.Foreseen(tokens.back(), request_));
    ASSERT_EQ(view.whole.token_count, view.decision.view_call.total());
    for (std::size_t m = 0; m < tokens.size(); ++m) {
      ASSERT_EQ(session_->ViewTokens(static_cast<std::int64_t>(m)), tokens[m]);
    }
  }

  void CheckMarks(const View& view) {
    ASSERT_EQ(view.frontier, naive_.Frontier(policy_, prices()));
    last_frontier_ = view.frontier;
    std::set<std::int64_t> marks = {view.frontier - 1,
                                    view.stable.message_count - 1,
                                    view.whole.message_count - 1};
    marks.erase(-1);
    ASSERT_EQ(view.cache_marks,
              std::vector<std::int64_t>(marks.begin(), marks.end()));
  }

  // What may never be masked: see CheckLossless for what may.
  void CheckMasks(const ViewServed& decision) {
    const std::size_t all = session_->observations().size();
    for (const Mask& mask : decision.masks) {
      const SessionMessage& message =
          session_->messages()[static_cast<std::size_t>(mask.sequence)];
      const std::size_t i =
          message.first_observation + static_cast<std::size_t>(mask.index);
      const bool is_masked =
          session_->observations()[i].placeholder.has_value();
      ASSERT_EQ(is_masked, mask.is_restored) << "not sticky";
      if (mask.is_restored) {
        ASSERT_NE(decision.break_reason, BreakReason::kNone);
        ASSERT_NE(decision.break_reason, BreakReason::kWindow);
        continue;
      }
      if (!naive_.IsCopied(i, policy_.duplicates)) {
        ASSERT_LT(i + 3, all) << "one of the newest three";
      }
      bool acted_upon = false;
      for (std::size_t m = static_cast<std::size_t>(mask.sequence);
           m < naive_.parsed().size(); ++m) {
        acted_upon |= naive_.parsed()[m].role == Role::kAssistant;
      }
      ASSERT_TRUE(acted_upon);
    }
  }

  void CheckValid() {
    const absl::Status status = CheckValidHistory(options_.format, views_);
    ASSERT_TRUE(status.ok()) << status;
  }

  // Putting back every content gives the history, byte for byte, and nothing
  // but the content was ever changed.
  void CheckLossless() {
    if (::testing::Test::HasFailure()) return;
    const FormatAdapter& adapter = AdapterFor(options_.format);
    for (std::size_t m = 0; m < views_.size(); ++m) {
      const std::string& raw = naive_.history()[m];
      ASSERT_EQ(*session_->messages()[m].raw, raw);
      const absl::StatusOr<ParsedMessage> shown =
          adapter.Parse(views_[m], CharacterCounter());
      ASSERT_TRUE(shown.ok()) << shown.status();
      const ParsedMessage& whole = naive_.parsed()[m];
      ASSERT_EQ(shown->results.size(), whole.results.size());
      std::vector<Replacement> originals;
      for (std::size_t i = 0; i < whole.results.size(); ++i) {
        const Observation& observation =
            session_
                ->observations()[session_->messages()[m].first_observation + i];
        if (!observation.placeholder.has_value()) continue;
        const ByteSpan content = whole.results[i].content;
        ASSERT_LT(shown->results[i].content.size, content.size);
        originals.push_back(
            {.at = shown->results[i].content,
             .value = raw.substr(content.offset, content.size)});
      }
      std::string whole_again = Splice(views_[m], originals);
      if (shown->reasoning.size() < whole.reasoning.size()) {
        ASSERT_TRUE(shown->reasoning.empty());
        const ByteSpan element = whole.reasoning.at(0).element;
        const std::size_t end = raw.find('{', element.offset + element.size);
        whole_again.insert(element.offset,
                           raw.substr(element.offset, end - element.offset));
      }
      ASSERT_EQ(whole_again, raw);
    }
    if (options_.is_valid && !views_.empty()) CheckValid();
  }

  std::int64_t CallCount() const {
    return std::count_if(
        served_.begin(), served_.end(),
        [](const ViewServed& view) { return view.is_new_call; });
  }

  void CheckLedger() {
    const Session& session = *session_;
    ASSERT_EQ(LedgerText(session.ledger()),
              LedgerText(NaiveLedger(served_, reports_)));
    const std::map<std::string, ToolTally> tallies = naive_.Tallies();
    ASSERT_EQ(session.tools().size(), tallies.size());
    for (const auto& [tool, tally] : session.tools()) {
      ASSERT_EQ(TallyText(tally), TallyText(tallies.at(tool))) << tool;
    }
    ASSERT_EQ(TallyText(session.other_tools()), TallyText({}));
  }

  // The view last served, and what was appended since.
  std::vector<std::string> last_texts() const { return naive_.View(); }

  Tally& tally_;
  Random random_;
  const RandomHistoryOptions options_;
  RandomHistory history_;
  Policy policy_;
  ModelPrices prices_of_m1_;
  ModelPrices prices_of_m2_;
  const std::int64_t report_one_in_;
  const std::int64_t alternates_one_in_;
  const bool misses_all_;
  const std::int64_t note_one_in_;
  std::set<std::string> unmasked_tools_;
  ViewRequest request_ = {.now = 1'000'000 * kMicrosPerSecond,
                          .model = "m1",
                          .preamble_tokens = 100};
  NaiveSession naive_;
  std::optional<Session> session_;  // Never empty.
  std::vector<Record> records_;
  std::vector<ViewServed> served_;
  // With the views that were served last before them.
  std::vector<std::pair<UsageReported, ViewServed>> reports_;
  std::vector<std::string> views_;  // As last served.
  // Behind which the next break must be, while policy and model stay.
  std::optional<std::int64_t> last_frontier_;
};

TEST(SessionPropertyTest, RandomSessionsKeepEveryPromise) {
  const std::uint64_t first = NumberFromEnvironment("CLERESTORY_SEED", 1);
  const std::uint64_t count = NumberFromEnvironment(
      "CLERESTORY_SEEDS",
      std::getenv("CLERESTORY_SEED") == nullptr ? 3'000 : 1);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Simulation(seed, tally).Run();
    if (HasFailure()) {
      FAIL() << "--seed=" << seed
             << ": play it again with CLERESTORY_SEED=" << seed;
    }
  }
  RecordProperty("restores", absl::StrCat(tally.restores));
  RecordProperty("warm_restores", absl::StrCat(tally.warm_restores));
  RecordProperty("strips_alone", absl::StrCat(tally.strips_alone));
  if (count < 1'000) return;
  EXPECT_GT(tally.restores, 0);
  EXPECT_GT(tally.warm_restores, 0);
}

}  // namespace
}  // namespace clerestory
