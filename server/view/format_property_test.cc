// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Random valid histories of every format under random policies, those that drop
// failed attempts and mask arguments included, with what is fetched again,
// recalled and pinned: every view is one that the provider accepts.
// CLERESTORY_SEED plays one again, CLERESTORY_SEEDS says how many to try of
// each format.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

// What all simulations of a format tried.
struct Tally {
  std::int64_t histories = 0;
  std::int64_t views = 0;
  std::int64_t lossless_mismatches = 0;
  std::int64_t masks = 0;
  std::int64_t drops = 0;
  std::int64_t argument_masks = 0;
  std::int64_t restores = 0;
  std::int64_t restored_arguments = 0;
};

class Simulation {
 public:
  Simulation(Format format, std::uint64_t seed, Tally& tally)
      : tally_(tally),
        format_(format),
        random_(seed),
        options_(Options(format, random_)),
        history_(options_, random_),
        note_one_in_(random_.OneIn(3) ? 1'000 : random_.Between(1, 6)),
        session_(format, options_.has_recall_tool) {
    session_.prices = RandomPrices(random_);
    ChangePolicy();
  }

  void Run() {
    const std::int64_t steps = random_.Between(1, 40);
    for (std::int64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      for (const std::string& message : history_.NextStep()) {
        appended_.push_back(message);
        session_.Append(message);
      }
      if (random_.OneIn(6)) continue;  // A client that appends in bulk.
      session_.now += random_.Between(0, 400) * kMicrosPerSecond;
      if (random_.OneIn(15)) ChangePolicy();
      if (random_.OneIn(note_one_in_)) {
        session_.Note(RandomNote(session_.session(), session_.now, random_));
      }
      if (random_.OneIn(4 * note_one_in_)) {
        session_.unmasked_tools = RandomTools(random_);
      }
      Serve();
    }
    CheckLossless();
    EXPECT_EQ(SessionText(session_.session()),
              SessionText(session_.Replayed()));
    const Ledger& ledger = session_.session().ledger();
    ++tally_.histories;
    tally_.masks += ledger.mask_count;
    tally_.drops += ledger.drop_count;
    tally_.argument_masks += ledger.argument_mask_count;
    tally_.restores += ledger.restore_count;
  }

 private:
  static RandomHistoryOptions Options(Format format, Random& random) {
    RandomHistoryOptions options;
    options.format = format;
    options.is_valid = true;
    options.has_images = format != Format::kOpenaiChat && random.OneIn(3);
    options.has_thinking = random.OneIn(3);
    options.has_recall_tool = random.OneIn(3);
    return options;
  }

  void ChangePolicy() {
    session_.policy = RandomPolicy(random_);
    session_.policy.errors = static_cast<ErrorRule>(random_.Between(0, 2));
    session_.policy.argument_tokens_min =
        random_.OneIn(2) ? random_.Between(1, 40) : 0;
  }

  void Serve() {
    const View view = session_.Serve();
    ++tally_.views;
    const std::vector<std::string> now = Texts(view.messages);
    ASSERT_THAT(CheckValidHistory(format_, now), IsOk());
    if (format_ == Format::kOpenaiResponses) {
      ASSERT_THAT(CheckReasoningKept(appended_, now), IsOk());
    }
    const auto stable = static_cast<std::size_t>(view.stable.message_count);
    if (view.decision.break_reason == BreakReason::kNone) {
      ASSERT_EQ(stable, last_.size());
    }
    ASSERT_LE(stable, last_.size());
    for (std::size_t i = 0; i < stable; ++i) ASSERT_EQ(now[i], last_[i]);
    ASSERT_EQ(now.front(), appended_.front()) << "the first message is kept";
    ASSERT_LE(view.whole.byte_count, session_.session().history_bytes());
    for (const std::int64_t mark : view.cache_marks) {
      ASSERT_LT(mark, view.whole.message_count);
    }
    CheckRestored(view.decision);
    CheckSticky();
    last_ = now;
  }

  // What is shown again shows its very bytes, in a break that is due.
  void CheckRestored(const ViewServed& decision) {
    const Session& session = session_.session();
    for (const Mask& mask : decision.masks) {
      const std::size_t i = *session.Find({mask.sequence, mask.index});
      const Observation& observation = session.observations()[i];
      const Call& call = session.calls()[observation.call];
      dropped_calls_ += mask.is_dropped ? 1 : 0;
      if (!mask.is_restored) continue;
      ASSERT_NE(decision.break_reason, BreakReason::kNone);
      ASSERT_NE(decision.break_reason, BreakReason::kWindow);
      ASSERT_FALSE(observation.placeholder.has_value());
      ASSERT_FALSE(observation.is_dropped);
      if (!mask.placeholder.empty()) {
        ASSERT_EQ(placeholders_.erase(i), 1U);
        CheckShown(observation.sequence, observation.result.content);
      }
      if (mask.arguments.empty()) continue;
      ++tally_.restored_arguments;
      ASSERT_FALSE(call.arguments.has_value());
      ASSERT_EQ(arguments_.erase(observation.call), 1U);
      CheckShown(call.sequence, call.call.arguments);
    }
  }

  void CheckShown(std::int64_t sequence, ByteSpan span) {
    const SessionMessage& message =
        session_.session().messages()[static_cast<std::size_t>(sequence)];
    ASSERT_NE(message.view, nullptr);
    ASSERT_NE(message.view->find(message.raw->substr(span.offset, span.size)),
              std::string::npos);
  }

  // What is masked stays so, by the same bytes, and what is dropped stays away.
  void CheckSticky() {
    const std::vector<Observation>& all = session_.session().observations();
    const std::vector<Call>& calls = session_.session().calls();
    ASSERT_EQ(std::ranges::count(all, true, &Observation::is_dropped),
              dropped_calls_);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (const auto before = arguments_.find(i); before != arguments_.end()) {
        ASSERT_EQ(calls[i].arguments, before->second);
      }
      if (calls[i].arguments.has_value()) arguments_[i] = *calls[i].arguments;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (const auto before = placeholders_.find(i);
          before != placeholders_.end()) {
        ASSERT_EQ(all[i].placeholder, before->second);
      }
      if (all[i].placeholder.has_value()) {
        ASSERT_FALSE(all[i].placeholder->empty());
        placeholders_[i] = *all[i].placeholder;
      }
    }
  }

  void CheckLossless() {
    const std::vector<SessionMessage>& messages = session_.session().messages();
    ASSERT_EQ(messages.size(), appended_.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (*messages[i].raw != appended_[i]) ++tally_.lossless_mismatches;
    }
  }

  Tally& tally_;
  const Format format_;
  Random random_;
  const RandomHistoryOptions options_;
  RandomHistory history_;
  const std::int64_t note_one_in_;
  ScriptedSession session_;
  std::vector<std::string> appended_;
  std::vector<std::string> last_;
  std::map<std::size_t, std::string> placeholders_;
  std::map<std::size_t, std::string> arguments_;
  std::int64_t dropped_calls_ = 0;
};

class FormatPropertyTest : public ::testing::TestWithParam<Format> {};

TEST_P(FormatPropertyTest, EveryViewOfAValidHistoryIsValid) {
  const std::uint64_t first = NumberFromEnvironment("CLERESTORY_SEED", 1);
  const std::uint64_t count = NumberFromEnvironment("CLERESTORY_SEEDS", 300);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(absl::StrCat("CLERESTORY_SEED=", seed));
    Simulation(GetParam(), seed, tally).Run();
    if (HasFailure()) return;
  }
  EXPECT_EQ(tally.lossless_mismatches, 0);
  EXPECT_GT(tally.masks, 0);
  EXPECT_GT(tally.argument_masks, 0);
  EXPECT_GT(tally.restores, 0);
  EXPECT_GT(tally.restored_arguments, 0);
  // Chat and the plain functions of Responses have no mark of failure.
  EXPECT_EQ(tally.drops > 0, GetParam() != Format::kOpenaiChat);
  RecordProperty("histories", absl::StrCat(tally.histories));
  RecordProperty("views", absl::StrCat(tally.views));
  RecordProperty("lossless_mismatches",
                 absl::StrCat(tally.lossless_mismatches));
  RecordProperty("masks", absl::StrCat(tally.masks));
  RecordProperty("drops", absl::StrCat(tally.drops));
  RecordProperty("argument_masks", absl::StrCat(tally.argument_masks));
  RecordProperty("restores", absl::StrCat(tally.restores));
  RecordProperty("restored_arguments", absl::StrCat(tally.restored_arguments));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, FormatPropertyTest,
    ::testing::Values(Format::kAnthropicMessages, Format::kOpenaiChat,
                      Format::kOpenaiResponses, Format::kGemini,
                      Format::kBedrockConverse),
    [](const ::testing::TestParamInfo<Format>& param) {
      const absl::string_view name = FormatName(param.param);
      return std::string(name.data(), name.size());
    });

}  // namespace
}  // namespace clerestory
