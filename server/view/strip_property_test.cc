// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Random valid histories with reasoning, on models that bind it to its prefix,
// under random policies: no view shows reasoning that its provider would
// refuse. CLERESTORY_SEED plays one again, CLERESTORY_SEEDS says how many to
// try of each format.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/random_notes.h"
#include "tests/support/random_session.h"
#include "tests/support/reasoning_binding.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

// What all simulations of a format tried.
struct Tally {
  std::int64_t views = 0;
  std::int64_t bound_views = 0;
  std::int64_t masks = 0;
  std::int64_t strips = 0;
  std::int64_t strips_alone = 0;
  std::int64_t forced_strips = 0;
  std::int64_t kept_blocks = 0;
  std::int64_t lone_messages_gone = 0;
  std::int64_t restores = 0;
};

class Simulation {
 public:
  Simulation(Format format, std::uint64_t seed, Tally& tally)
      : tally_(tally),
        format_(format),
        random_(seed),
        // A message of nothing but reasoning cannot leave Converse, so a change
        // that was made before it for another model would be refused.
        stays_bound_(random_.OneIn(2)),
        history_(Options(), random_),
        binding_(format),
        session_(format) {
    ChangeModel();
    ChangePolicy();
  }

  void Run() {
    const std::int64_t steps = random_.Between(1, 40);
    for (std::int64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      for (const std::string& message : history_.NextStep()) {
        appended_.push_back(message);
        binding_.Appended(message);
        session_.Append(message);
      }
      if (random_.OneIn(6)) continue;  // A client that appends in bulk.
      session_.now += random_.Between(0, 400) * kMicrosPerSecond;
      if (random_.OneIn(8)) ChangePolicy();
      if (random_.OneIn(8)) ChangeModel();
      if (random_.OneIn(6)) {
        session_.Note(RandomNote(session_.session(), session_.now, random_));
      }
      if (random_.OneIn(40)) session_.unmasked_tools = RandomTools(random_);
      Serve();
      if (random_.OneIn(8)) Serve();
    }
    const Session& session = session_.session();
    EXPECT_EQ(SessionText(session), SessionText(session_.Replayed()));
    for (std::size_t i = 0; i < session.messages().size(); ++i) {
      EXPECT_EQ(*session.messages()[i].raw, appended_[i]);
    }
    tally_.masks += session.ledger().mask_count;
    tally_.restores += session.ledger().restore_count;
  }

 private:
  RandomHistoryOptions Options() {
    RandomHistoryOptions options;
    options.format = format_;
    options.has_thinking = true;
    options.thinking_one_in = random_.Between(1, 6);
    options.has_lone_thinking =
        format_ == Format::kAnthropicMessages ||
        (format_ == Format::kBedrockConverse && stays_bound_);
    options.has_images = format_ != Format::kOpenaiChat && random_.OneIn(4);
    return options;
  }

  void ChangePolicy() {
    session_.policy = RandomPolicy(random_);
    session_.policy.errors = static_cast<ErrorRule>(random_.Between(0, 2));
    session_.policy.argument_tokens_min =
        random_.OneIn(2) ? random_.Between(1, 40) : 0;
    session_.policy.thinking = static_cast<ThinkingRule>(random_.Between(0, 3));
    if (stays_bound_ && session_.policy.thinking == ThinkingRule::kDropBlock) {
      session_.policy.thinking = ThinkingRule::kStrip;
    }
  }

  void ChangeModel() {
    session_.prices = RandomPrices(random_);
    session_.prices.reasoning_prefix_bound = stays_bound_ || !random_.OneIn(3);
    session_.model = absl::StrCat("m", random_.Between(1, 2));
  }

  bool IsRefusing() const {
    return session_.prices.reasoning_prefix_bound &&
           session_.policy.thinking != ThinkingRule::kDropBlock;
  }

  void Serve() {
    const bool was_stale = session_.session().stale_from().has_value();
    // A forced break may have been made in the same turn.
    const bool was_whole = binding_.CheckLastTurn(session_.view()).ok();
    const View view = session_.Serve();
    const ViewServed& decision = view.decision;
    const std::vector<std::string> now = Texts(view.messages);
    ++tally_.views;
    ASSERT_THAT(CheckValidHistory(format_, now), IsOk());
    if (format_ == Format::kOpenaiResponses) {
      ASSERT_THAT(CheckReasoningKept(appended_, now), IsOk());
    }
    if (IsRefusing()) {
      ++tally_.bound_views;
      ASSERT_THAT(binding_.Check(now), IsOk());
      ASSERT_FALSE(session_.session().stale_from().has_value());
      if (decision.break_reason == BreakReason::kWindow) {
        tally_.forced_strips += decision.strip_from.has_value() ? 1 : 0;
      } else if (was_whole && !was_stale) {
        ASSERT_THAT(binding_.CheckLastTurn(now), IsOk());
      }
    } else {
      ASSERT_FALSE(decision.strip_from.has_value());
    }
    if (StaleReasoningOf(format_) != StaleReasoning::kRefused) {
      ASSERT_FALSE(decision.strip_from.has_value());
    }
    if (decision.strip_from.has_value()) {
      ++tally_.strips;
      tally_.strips_alone += decision.masks.empty() ? 1 : 0;
    }
    CheckPrefix(view, now);
    CheckTotals(view, now);
    CheckSticky();
    binding_.Sent(now);
    last_ = now;
  }

  void CheckPrefix(const View& view, const std::vector<std::string>& now) {
    const auto stable = static_cast<std::size_t>(view.stable.message_count);
    ASSERT_LE(stable, last_.size());
    if (view.decision.break_reason == BreakReason::kNone) {
      ASSERT_EQ(stable, last_.size());
    }
    for (std::size_t i = 0; i < stable; ++i) ASSERT_EQ(now[i], last_[i]);
    ASSERT_EQ(now.front(), appended_.front());
  }

  void CheckTotals(const View& view, const std::vector<std::string>& now) {
    std::int64_t tokens = view.decision.preamble_tokens;
    std::size_t bytes = 0;
    for (const std::string& message : now) {
      bytes += message.size();
      tokens += AdapterFor(format_)
                    .Parse(message, CharacterCounter())
                    ->tokens.total();
    }
    ASSERT_EQ(view.whole.byte_count, static_cast<std::int64_t>(bytes));
    ASSERT_EQ(view.whole.token_count, view.decision.view_call.total());
    ASSERT_EQ(view.whole.token_count, view.decision.preamble_tokens +
                                          view.decision.view_tokens.total());
    // Shell outputs and structured results are shown with some of their frame.
    if (format_ == Format::kAnthropicMessages) {
      ASSERT_EQ(view.whole.token_count, tokens);
    }
  }

  // What was left out once never comes back.
  void CheckSticky() {
    const std::vector<Reasoning>& all = session_.session().reasoning();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const SessionMessage& message =
          session_.session()
              .messages()[static_cast<std::size_t>(all[i].sequence)];
      const std::string element = message.raw->substr(
          all[i].reasoning.element.offset, all[i].reasoning.element.size);
      const bool is_shown = message.view != nullptr &&
                            message.view->find(element) != std::string::npos;
      ASSERT_EQ(is_shown, !all[i].is_stripped);
      if (is_shown) {
        ASSERT_FALSE(gone_.contains(i));
        if (all[i].sequence < message_count_of_strip_) ++tally_.kept_blocks;
      } else {
        gone_.insert(i);
        message_count_of_strip_ = session_.session().message_count();
        if (message.view == nullptr) ++tally_.lone_messages_gone;
      }
    }
  }

  Tally& tally_;
  const Format format_;
  Random random_;
  const bool stays_bound_;
  RandomHistory history_;
  ReasoningBinding binding_;
  ScriptedSession session_;
  std::vector<std::string> appended_;
  std::vector<std::string> last_;
  std::set<std::size_t> gone_;
  std::int64_t message_count_of_strip_ = 0;
};

class StripPropertyTest : public ::testing::TestWithParam<Format> {};

TEST_P(StripPropertyTest, NoViewShowsReasoningThatIsRefused) {
  const std::uint64_t first = NumberFromEnvironment("CLERESTORY_SEED", 1);
  const std::uint64_t count = NumberFromEnvironment("CLERESTORY_SEEDS", 300);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(absl::StrCat("CLERESTORY_SEED=", seed));
    Simulation(GetParam(), seed, tally).Run();
    if (HasFailure()) return;
  }
  EXPECT_GT(tally.masks, 0);
  EXPECT_GT(tally.bound_views, 0);
  EXPECT_GT(tally.restores, 0);
  const bool strips = StaleReasoningOf(GetParam()) == StaleReasoning::kRefused;
  EXPECT_EQ(tally.strips > 0, strips);
  EXPECT_EQ(tally.strips_alone > 0, strips);
  EXPECT_EQ(tally.forced_strips > 0, strips);
  EXPECT_EQ(tally.kept_blocks > 0, strips);
  EXPECT_EQ(tally.lone_messages_gone > 0,
            GetParam() == Format::kAnthropicMessages);
  RecordProperty("views", absl::StrCat(tally.views));
  RecordProperty("bound_views", absl::StrCat(tally.bound_views));
  RecordProperty("masks", absl::StrCat(tally.masks));
  RecordProperty("restores", absl::StrCat(tally.restores));
  RecordProperty("strips", absl::StrCat(tally.strips));
  RecordProperty("strips_alone", absl::StrCat(tally.strips_alone));
  RecordProperty("forced_strips", absl::StrCat(tally.forced_strips));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, StripPropertyTest,
    ::testing::Values(Format::kAnthropicMessages, Format::kOpenaiChat,
                      Format::kOpenaiResponses, Format::kGemini,
                      Format::kBedrockConverse),
    [](const ::testing::TestParamInfo<Format>& param) {
      const absl::string_view name = FormatName(param.param);
      return std::string(name.data(), name.size());
    });

}  // namespace
}  // namespace clerestory
