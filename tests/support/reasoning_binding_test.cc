// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/reasoning_binding.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/message.h"
#include "tests/support/messages.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

std::string Thought(absl::string_view signature) {
  return absl::StrCat(R"({"type":"thinking","thinking":"","signature":")",
                      signature, R"("})");
}

std::string Use(absl::string_view id) {
  return absl::StrCat(R"({"type":"tool_use","id":")", id,
                      R"(","name":"r","input":{}})");
}

std::string Result(absl::string_view id, absl::string_view text) {
  return AnthropicUser({absl::StrCat(R"({"type":"tool_result","tool_use_id":")",
                                     id, R"(","content":")", text, R"("})")});
}

// What the assistant says with reasoning, or without.
std::string Step(absl::string_view signature, absl::string_view id) {
  if (signature.empty()) return AnthropicAssistant({Use(id)});
  return AnthropicAssistant({Thought(signature), Use(id)});
}

// Three steps, each with reasoning of its own, none of them changed.
class ReasoningBindingTest : public ::testing::Test {
 protected:
  ReasoningBindingTest() {
    for (const std::string& message : history_) binding_.Appended(message);
  }

  std::string Why(const std::vector<std::string>& view) const {
    return std::string(binding_.Check(view).message());
  }

  std::vector<std::string> history_ = {
      UserMessage(Format::kAnthropicMessages, "go"),
      Step("A", "1"),
      Result("1", "long"),
      Step("B", "2"),
      Result("2", "long"),
      Step("C", "3"),
      Result("3", "long")};
  ReasoningBinding binding_{Format::kAnthropicMessages};
};

TEST_F(ReasoningBindingTest, TakesWhatWasSent) {
  EXPECT_THAT(binding_.Check(history_), IsOk());
  EXPECT_THAT(binding_.CheckLastTurn(history_), IsOk());
}

TEST_F(ReasoningBindingTest, RefusesABlockBehindAChange) {
  history_[2] = Result("1", "[masked]");
  EXPECT_THAT(Why(history_), HasSubstr("messages.3: Invalid `signature`"));
  history_[3] = Step("", "2");
  EXPECT_THAT(Why(history_), HasSubstr("messages.5: Invalid `signature`"));
  history_[5] = Step("", "3");
  EXPECT_THAT(binding_.Check(history_), IsOk());
  EXPECT_FALSE(binding_.CheckLastTurn(history_).ok());
}

TEST_F(ReasoningBindingTest, TakesALeadingRunLeftOut) {
  history_[1] = Step("", "1");
  EXPECT_THAT(binding_.Check(history_), IsOk());
  history_[3] = Step("", "2");
  EXPECT_THAT(binding_.Check(history_), IsOk());
}

TEST_F(ReasoningBindingTest, RefusesABlockLeftOutOfTheMiddle) {
  history_[3] = Step("", "2");
  EXPECT_THAT(Why(history_), HasSubstr("messages.5: "));
  EXPECT_THAT(Why(history_), HasSubstr("the block before it was removed"));
}

TEST_F(ReasoningBindingTest, BindsToWhatWasSentAndNotToTheHistory) {
  history_[2] = Result("1", "[masked]");
  history_[3] = Step("", "2");
  history_[5] = Step("", "3");
  binding_.Sent(history_);
  history_.push_back(Step("D", "4"));
  binding_.Appended(history_.back());
  EXPECT_THAT(binding_.Check(history_), IsOk());
  history_[2] = Result("1", "long");
  EXPECT_THAT(Why(history_), HasSubstr("messages.7: "));
}

TEST_F(ReasoningBindingTest, RefusesAStrangeBlockAndAPartOfARun) {
  const std::string two =
      AnthropicAssistant({Thought("D"), Thought("E"), Use("4")});
  binding_.Appended(two);
  history_.push_back(two);
  EXPECT_THAT(binding_.Check(history_), IsOk());
  history_.back() = AnthropicAssistant({Thought("D"), Use("4")});
  EXPECT_THAT(Why(history_), HasSubstr("cannot be modified"));
  history_.back() = Step("X", "4");
  EXPECT_THAT(Why(history_), HasSubstr("Invalid `signature`"));
}

}  // namespace
}  // namespace clerestory
