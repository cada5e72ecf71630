// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/served_views.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

// The ids of the calls and results of `message`, in order.
std::vector<std::string> IdsOf(const FormatAdapter& adapter,
                               const std::string& message) {
  std::vector<std::string> ids;
  const absl::StatusOr<ParsedMessage> parsed =
      adapter.Parse(message, CharacterCounter());
  EXPECT_THAT(parsed, IsOk()) << message;
  if (!parsed.ok()) return ids;
  for (const ParsedCall& call : parsed->calls) ids.push_back("call " + call.id);
  for (const ParsedResult& result : parsed->results) {
    ids.push_back("result " + result.call_id);
  }
  return ids;
}

// Whether something of `message` is masked or left out.
bool HasMask(const Session& session, const SessionMessage& message) {
  for (std::size_t i = 0; i < message.reasoning_count; ++i) {
    if (session.reasoning()[message.first_reasoning + i].is_stripped) {
      return true;
    }
  }
  for (std::size_t i = 0; i < message.observation_count; ++i) {
    if (session.observations()[message.first_observation + i]
            .placeholder.has_value()) {
      return true;
    }
  }
  for (std::size_t i = 0; i < message.call_count; ++i) {
    if (session.calls()[message.first_call + i].arguments.has_value()) {
      return true;
    }
  }
  return false;
}

}  // namespace

View ServedViews::Serve() {
  View served = session_.Serve();
  std::vector<std::string> view = Texts(served.messages);
  EXPECT_EQ(view, session_.view());
  CheckMessages(view);
  CheckPrefix(served, view);
  CheckSticky();
  last_ = std::move(view);
  return served;
}

void ServedViews::CheckMessages(const std::vector<std::string>& view) const {
  const Session& session = session_.session();
  const std::vector<std::string> history = HistoryOf(session_);
  ASSERT_EQ(view.size(), history.size());
  for (std::size_t i = 0; i < view.size(); ++i) {
    if (!HasMask(session, session.messages()[i])) {
      EXPECT_EQ(view[i], history[i]) << "message " << i;
    } else {
      EXPECT_LT(view[i].size(), history[i].size()) << "message " << i;
      EXPECT_EQ(IdsOf(session.adapter(), view[i]),
                IdsOf(session.adapter(), history[i]));
    }
  }
  const Format format = session.header().format;
  if (CheckValidHistory(format, history).ok()) {
    EXPECT_THAT(CheckValidHistory(format, view), IsOk());
  }
}

void ServedViews::CheckPrefix(const View& served,
                              const std::vector<std::string>& view) const {
  const auto first_change = static_cast<std::size_t>(served.first_change);
  const std::size_t stable = std::min(first_change, last_.size());
  if (served.decision.break_reason == BreakReason::kNone) {
    EXPECT_EQ(stable, last_.size());
  }
  EXPECT_EQ(static_cast<std::size_t>(served.stable.message_count), stable);
  for (std::size_t i = 0; i < stable && i < view.size(); ++i) {
    EXPECT_EQ(view[i], last_[i]) << "message " << i;
  }
}

void ServedViews::CheckSticky() {
  std::vector<std::optional<std::string>> placeholders;
  for (const Observation& observation : session_.session().observations()) {
    placeholders.push_back(observation.placeholder);
  }
  for (std::size_t i = 0; i < placeholders_.size(); ++i) {
    if (placeholders_[i].has_value()) {
      EXPECT_EQ(placeholders[i], placeholders_[i]) << "observation " << i;
    }
  }
  placeholders_ = std::move(placeholders);
}

std::vector<std::string> HistoryOf(const ScriptedSession& session) {
  std::vector<std::string> history;
  for (const SessionMessage& message : session.session().messages()) {
    history.push_back(*message.raw);
  }
  return history;
}

std::size_t CountOf(const std::string& part,
                    const std::vector<std::string>& messages) {
  std::size_t count = 0;
  for (const std::string& message : messages) {
    for (std::size_t at = message.find(part); at != std::string::npos;
         at = message.find(part, at + part.size())) {
      ++count;
    }
  }
  return count;
}

}  // namespace clerestory
