// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/replay_check.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/view_service.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/digest.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "tests/support/form_token_counter.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Messages = std::vector<std::string>;

constexpr char kModel[] = "claude-sonnet-4-6";
constexpr std::int64_t kPreamble = 50;

std::string Text(absl::string_view role, absl::string_view text) {
  return absl::StrCat(R"({"role":")", role, R"(","content":")", text, R"("})");
}

std::string Call(absl::string_view id) {
  return absl::StrCat(
      R"({"role":"assistant","content":[{"type":"tool_use","id":")", id,
      R"(","name":"run","input":{}}]})");
}

std::string Result(absl::string_view id, absl::string_view content,
                   absl::string_view note = "go on") {
  return absl::StrCat(
      R"({"role":"user","content":[{"type":"tool_result","tool_use_id":")", id,
      R"(","content":")", content, R"("},{"type":"text","text":")", note,
      R"("}]})");
}

// Two calls with their results: the first three, and all messages.
Messages Start() { return {Text("user", "task"), Call("a"), Result("a", "A")}; }
Messages Whole() {
  Messages messages = Start();
  messages.push_back(Call("b"));
  messages.push_back(Result("b", "B"));
  return messages;
}

std::string DigestOf(const Messages& messages, std::int64_t count) {
  Digest digest;
  for (std::int64_t i = 0; i < count; ++i) {
    digest = digest.Then(Digest::Of(messages.at(static_cast<std::size_t>(i))));
  }
  return digest.ToHex();
}

// What a server answers that shows `messages`, and that the first `stable` of
// them are as before.
v1::BuildViewResponse View(const Messages& messages, std::int64_t stable) {
  v1::BuildViewResponse view;
  for (const std::string& message : messages) view.add_messages(message);
  v1::ViewReport& report = *view.mutable_report();
  const auto count = static_cast<std::int64_t>(messages.size());
  report.mutable_whole()->set_message_count(count);
  report.mutable_whole()->set_digest(DigestOf(messages, count));
  report.mutable_stable()->set_message_count(stable);
  report.mutable_stable()->set_digest(DigestOf(messages, stable));
  return view;
}

v1::BuildViewResponse WithBreak(v1::BuildViewResponse view,
                                std::int64_t sequence) {
  v1::Break& broken = *view.mutable_report()->mutable_break_();
  broken.set_reason(v1::BREAK_REASON_PAYS);
  broken.set_sequence(sequence);
  return view;
}

// A break at message 2 that shows this observation again.
v1::BuildViewResponse Restoring(v1::BuildViewResponse view,
                                const std::string& observation_id) {
  view = WithBreak(std::move(view), 2);
  v1::MaskedObservation& mask =
      *view.mutable_report()->mutable_break_()->add_masks();
  mask.set_observation_id(observation_id);
  mask.set_is_restored(true);
  return view;
}

class ReplayCheckTest : public ::testing::Test {
 protected:
  CallTokens Add(const Messages& history, v1::BuildViewResponse view) {
    now_ += kMicrosPerSecond;
    return check_.Add(history, std::move(view), now_, kModel);
  }

  void ExpectNoComplaint() const {
    EXPECT_THAT(check_.lossless(), IsEmpty());
    EXPECT_THAT(check_.valid(), IsEmpty());
    EXPECT_THAT(check_.prefix_stable(), IsEmpty());
  }
  // The one complaint is of validity.
  void ExpectInvalid(const std::string& what) const {
    EXPECT_THAT(check_.valid(), ElementsAre(HasSubstr(what)));
    EXPECT_THAT(check_.prefix_stable(), IsEmpty());
  }
  // The one complaint is of the prefix.
  void ExpectUnstable(const std::string& what) const {
    EXPECT_THAT(check_.prefix_stable(), ElementsAre(HasSubstr(what)));
    EXPECT_THAT(check_.valid(), IsEmpty());
  }

  const FormTokenCounter counter_;
  ReplayCheck check_{Format::kAnthropicMessages, kPreamble, counter_};
  TimeMicros now_ = 0;
};

// --- promises that are kept ------------------------------------------------

TEST_F(ReplayCheckTest, ViewsThatKeepTheirPromisesHaveNoComplaint) {
  Add(Start(), View(Start(), 0));
  Add(Whole(), View(Whole(), 3));
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), WithBreak(View(masked, 2), 2));
  // The same again, and then with what is masked kept.
  Add(Whole(), View(masked, 5));
  Messages history = Whole();
  history.push_back(Text("assistant", "done"));
  masked.push_back(history.back());
  Add(history, View(masked, 5));
  ExpectNoComplaint();
}

TEST_F(ReplayCheckTest, ABreakMayShowAgainWhatWasMasked) {
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), WithBreak(View(masked, 0), 2));
  Add(Whole(), Restoring(View(Whole(), 2), "2.0"));
  ExpectNoComplaint();
}

TEST_F(ReplayCheckTest, TheFirstViewMayMask) {
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), WithBreak(View(masked, 0), 2));
  ExpectNoComplaint();
}

TEST_F(ReplayCheckTest, ABreakMayLieBehindTheEndOfTheViewBefore) {
  Add({Text("user", "task")}, View({Text("user", "task")}, 0));
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), WithBreak(View(masked, 1), 2));
  ExpectNoComplaint();
}

// --- lossless --------------------------------------------------------------

TEST_F(ReplayCheckTest, ALossIsNoted) {
  check_.NoteLoss(7);
  EXPECT_THAT(check_.lossless(), ElementsAre(HasSubstr("message 7")));
}

// --- valid -----------------------------------------------------------------

TEST_F(ReplayCheckTest, WhatIsShownAgainHasTheBytesThatWereAppended) {
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), WithBreak(View(masked, 0), 2));
  masked[2] = Result("a", "almost A");
  Add(Whole(), Restoring(View(masked, 2), "2.0"));
  ExpectInvalid("observation 2.0 is shown again with other bytes");
}

TEST_F(ReplayCheckTest, WhatIsShownAgainIsThere) {
  for (const char* const id : {"2.1", "1.0", "9.0", "2", ""}) {
    ReplayCheck check(Format::kAnthropicMessages, kPreamble, counter_);
    check.Add(Whole(), Restoring(View(Whole(), 0), id), 1, kModel);
    EXPECT_THAT(check.valid(), ElementsAre(HasSubstr("shown again"))) << id;
  }
}

TEST_F(ReplayCheckTest, AMissingMessageIsFound) {
  Add(Whole(), View(Start(), 0));
  ExpectInvalid("has 3 messages of 5");
}

TEST_F(ReplayCheckTest, AMessageTooManyIsFound) {
  Add(Start(), View(Whole(), 0));
  ExpectInvalid("has 5 messages of 3");
}

TEST_F(ReplayCheckTest, ChangedTextOutsideResultsIsFound) {
  Messages shown = Whole();
  shown[0] = Text("user", "tusk");
  Add(Whole(), View(shown, 0));
  ExpectInvalid("message 0 has other bytes around its results");
}

TEST_F(ReplayCheckTest, ChangedTextBesideAMaskedResultIsFound) {
  Messages shown = Whole();
  shown[2] = Result("a", "[masked]", "go off");
  Add(Whole(), View(shown, 0));
  ExpectInvalid("message 2 has other bytes around its results");
}

TEST_F(ReplayCheckTest, AnotherIdOfACallIsFound) {
  Messages shown = Whole();
  shown[1] = Call("z");
  Add(Whole(), View(shown, 0));
  ExpectInvalid("message 1 differs in more than results");
}

TEST_F(ReplayCheckTest, AnotherIdOfAResultIsFound) {
  Messages shown = Whole();
  shown[2] = Result("z", "[masked]");
  Add(Whole(), View(shown, 0));
  ExpectInvalid("message 2 differs in more than results");
}

TEST_F(ReplayCheckTest, AnotherRoleIsFound) {
  Messages shown = Whole();
  shown[0] = Text("assistant", "task");
  Add(Whole(), View(shown, 0));
  ExpectInvalid("message 0 differs in more than results");
}

TEST_F(ReplayCheckTest, AMessageThatIsNoneIsFound) {
  Messages shown = Whole();
  shown[2] = "{";
  Add(Whole(), View(shown, 0));
  ExpectInvalid("message 2 differs in more than results");
}

// --- reasoning that is left out ---------------------------------------------

std::string Thinking(absl::string_view text) {
  return absl::StrCat(R"({"type":"thinking","thinking":")", text,
                      R"(","signature":"s"})");
}

std::string ThinkingCall(const std::string& thinking, absl::string_view id) {
  return absl::StrCat(R"({"role":"assistant","content":[)", thinking,
                      thinking.empty() ? "" : ",",
                      R"({"type":"tool_use","id":")", id,
                      R"(","name":"run","input":{}}]})");
}

class ReplayCheckReasoningTest : public ReplayCheckTest {
 protected:
  // A view that masks the first result and leaves out the reasoning behind it
  // was answered.
  ReplayCheckReasoningTest() {
    history_ = {Text("user", "task"), ThinkingCall(Thinking("one"), "a"),
                Result("a", "A"), ThinkingCall(Thinking("two"), "b"),
                Result("b", "B")};
    Add(history_, View(history_, 0));
    shown_ = history_;
    shown_[2] = Result("a", "[masked]");
    shown_[3] = ThinkingCall("", "b");
    v1::BuildViewResponse view = WithBreak(View(shown_, 2), 2);
    view.mutable_report()->mutable_break_()->set_stripped_from(3);
    Add(history_, view);
  }

  Messages history_;
  Messages shown_;
};

TEST_F(ReplayCheckReasoningTest, StaysLeftOutAndWhatComesLaterIsShown) {
  for (Messages* messages : {&history_, &shown_}) {
    messages->push_back(ThinkingCall(Thinking("three"), "c"));
    messages->push_back(Result("c", "C"));
  }
  Add(history_, View(shown_, 5));
  ExpectNoComplaint();
}

TEST_F(ReplayCheckReasoningTest, ThatComesBackIsFound) {
  shown_[3] = history_[3];
  Add(history_, WithBreak(View(shown_, 3), 3));
  ExpectInvalid("view 2: message 3 shows reasoning that was left out");
}

TEST_F(ReplayCheckReasoningTest, ThatComesBackIsFoundWhereCallsAreEdited) {
  shown_[3] = history_[3];
  v1::BuildViewResponse view = WithBreak(View(shown_, 3), 3);
  view.mutable_report()->mutable_break_()->add_masks()->set_is_dropped(true);
  Add(history_, view);
  ExpectInvalid("view 2: message 3 shows reasoning that was left out");
}

TEST_F(ReplayCheckReasoningTest, ThatIsLeftOutWithoutAWordIsFound) {
  shown_[1] = ThinkingCall("", "a");
  Add(history_, WithBreak(View(shown_, 1), 1));
  ExpectInvalid("message 1 has other bytes around its results");
}

TEST_F(ReplayCheckReasoningTest, AMessageOfNothingElseGoes) {
  history_.push_back(absl::StrCat(R"({"role":"assistant","content":[)",
                                  Thinking("three"), "]}"));
  history_.push_back(Text("user", "and?"));
  shown_.push_back(history_[5]);
  shown_.push_back(history_[6]);
  Add(history_, View(shown_, 5));
  shown_[4] = Result("b", "[masked]");
  shown_.erase(shown_.begin() + 5);
  v1::BuildViewResponse view = WithBreak(View(shown_, 4), 4);
  view.mutable_report()->mutable_break_()->set_stripped_from(5);
  Add(history_, view);
  // A break behind it counts the messages that are left.
  history_.push_back(Call("c"));
  history_.push_back(Result("c", "C"));
  shown_.push_back(history_[7]);
  shown_.push_back(history_[8]);
  Add(history_, View(shown_, 6));
  shown_[7] = Result("c", "[masked]");
  Add(history_, WithBreak(View(shown_, 7), 8));
  ExpectNoComplaint();
}

// --- prefix-stable ---------------------------------------------------------

TEST_F(ReplayCheckTest, ADepartureWithoutABreakIsFound) {
  Add(Start(), View(Start(), 0));
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), View(masked, 3));
  ExpectUnstable("departs at message 2 from the one before it");
}

TEST_F(ReplayCheckTest, ADepartureBeforeItsBreakIsFound) {
  Add(Whole(), View(Whole(), 0));
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  masked[4] = Result("b", "[masked]");
  Add(Whole(), WithBreak(View(masked, 4), 4));
  ExpectUnstable("departs at message 2 from the one before it, and promised 4");
}

TEST_F(ReplayCheckTest, ABreakThatChangesNothingIsFound) {
  Add(Whole(), View(Whole(), 0));
  Add(Whole(), WithBreak(View(Whole(), 2), 2));
  ExpectUnstable("departs at message 5 from the one before it, and promised 2");
}

TEST_F(ReplayCheckTest, WhatWasMaskedAndIsShownAgainIsFound) {
  Messages masked = Start();
  masked[2] = Result("a", "[masked]");
  Add(Start(), WithBreak(View(masked, 0), 2));
  Add(Whole(), View(Whole(), 3));
  ExpectUnstable("departs at message 2");
}

TEST_F(ReplayCheckTest, AWrongStableCountIsFound) {
  Add(Start(), View(Start(), 0));
  Add(Whole(), View(Whole(), 2));
  ExpectUnstable("reports a stable prefix of 2 messages, not 3");
}

TEST_F(ReplayCheckTest, AWrongStableCountOfABreakIsFound) {
  Add(Whole(), View(Whole(), 0));
  Messages masked = Whole();
  masked[2] = Result("a", "[masked]");
  Add(Whole(), WithBreak(View(masked, 1), 2));
  ExpectUnstable("reports a stable prefix of 1 messages, not 2");
}

TEST_F(ReplayCheckTest, AWrongDigestOfTheWholeIsFound) {
  v1::BuildViewResponse view = View(Whole(), 0);
  view.mutable_report()->mutable_whole()->set_digest(DigestOf(Whole(), 4));
  Add(Whole(), view);
  ExpectUnstable("has another digest");
}

TEST_F(ReplayCheckTest, AWrongDigestOfTheStablePartIsFound) {
  Add(Start(), View(Start(), 0));
  v1::BuildViewResponse view = View(Whole(), 3);
  view.mutable_report()->mutable_stable()->set_digest(DigestOf(Whole(), 2));
  Add(Whole(), view);
  ExpectUnstable("the stable prefix has another digest");
}

TEST_F(ReplayCheckTest, AWrongDigestOfAWholeViewThatIsStableIsFound) {
  Add(Start(), View(Start(), 0));
  v1::BuildViewResponse view = View(Start(), 3);
  view.mutable_report()->mutable_stable()->set_digest(DigestOf(Start(), 2));
  Add(Start(), view);
  ExpectUnstable("the stable prefix has another digest");
}

TEST_F(ReplayCheckTest, AWrongDigestOfAnEmptyStablePartIsFound) {
  v1::BuildViewResponse view = View(Start(), 0);
  view.mutable_report()->mutable_stable()->set_digest(DigestOf(Start(), 1));
  Add(Start(), view);
  ExpectUnstable("the stable prefix has another digest");
}

// --- what the cache does ---------------------------------------------------

TEST_F(ReplayCheckTest, TheCacheReadsWhatViewsHaveInCommonWhileItIsWarm) {
  const Messages one = {Text("user", "abc")};
  const Messages two = {one[0], Text("assistant", "de")};
  const TimeMicros ttl =
      BuiltInPrices().Of(kModel, 0).cache_ttl_seconds * kMicrosPerSecond;
  const auto add = [&](TimeMicros now, const std::string& model) {
    return check_.Add(two, View(two, 1), now, model);
  };
  EXPECT_EQ(check_.Add(one, View(one, 0), 1, kModel),
            (CallTokens{.read = 0, .written = 3'050}));
  EXPECT_EQ(add(1 + ttl, kModel),
            (CallTokens{.read = 3'050, .written = 2'000}));
  EXPECT_EQ(add(1 + 2 * ttl, kModel),
            (CallTokens{.read = 5'050, .written = 0}));
  EXPECT_EQ(add(2 + 3 * ttl, kModel),
            (CallTokens{.read = 0, .written = 5'050}));
  EXPECT_EQ(add(3 + 3 * ttl, "claude-opus-4-5"),
            (CallTokens{.read = 0, .written = 5'050}));
}

TEST_F(ReplayCheckTest, OfAMaskedMessageTheCacheReadsWhatStandsBeforeTheMask) {
  const auto results = [](absl::string_view a, absl::string_view b) {
    return absl::StrCat(
        R"({"role":"user","content":[{"type":"text","text":"xyz"},)",
        R"({"type":"tool_result","tool_use_id":"a","content":")", a,
        R"("},{"type":"tool_result","tool_use_id":"b","content":")", b,
        R"("}]})");
  };
  const Messages raw = {results("same", "long")};
  const Messages masked = {results("same", "-")};
  const std::int64_t total = Add(raw, View(raw, 0)).total();
  const CallTokens tokens = Add(raw, WithBreak(View(masked, 0), 0));
  EXPECT_EQ(tokens.total(), total - 3'000);
  EXPECT_EQ(tokens.written, 1'000);
  ExpectNoComplaint();
}

TEST_F(ReplayCheckTest, NotesTheCallsOfWhichTheServerExpectedSomethingElse) {
  const Messages one = {Text("user", "abc")};
  v1::BuildViewResponse right = View(one, 0);
  right.mutable_report()->mutable_view_call()->set_written(3'050);
  Add(one, right);
  EXPECT_THAT(check_.estimates(), IsEmpty());
  v1::BuildViewResponse wrong = View(one, 1);
  wrong.mutable_report()->mutable_view_call()->set_read(3'049);
  wrong.mutable_report()->mutable_view_call()->set_written(1);
  Add(one, wrong);
  EXPECT_THAT(check_.estimates(),
              ElementsAre(HasSubstr("expected 3049 of 3050")));
  ExpectNoComplaint();
}

}  // namespace
}  // namespace clerestory
