// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_SERVED_VIEWS_H_
#define CLERESTORY_TESTS_SUPPORT_SERVED_VIEWS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/view/view.h"
#include "tests/support/scripted_session.h"

namespace clerestory {

// Serves the views of a session and checks of each what every view promises, as
// long as nothing is dropped:
//
// - it has a message for each of the history, with the same calls and results
//   by id and order;
// - it is valid if the history is;
// - it begins with the bytes of the view before, up to its first change;
// - what was masked stays so, with the same text;
// - a message has the bytes of the history if nothing in it is masked, be it
//   arguments, and no reasoning of it is left out.
class ServedViews {
 public:
  // `session` must outlive it.
  explicit ServedViews(ScriptedSession& session) : session_(session) {}

  // Serves the next view.
  View Serve();

  // The view that was served last.
  const std::vector<std::string>& last() const { return last_; }

 private:
  void CheckMessages(const std::vector<std::string>& view) const;
  void CheckPrefix(const View& served,
                   const std::vector<std::string>& view) const;
  void CheckSticky();

  ScriptedSession& session_;
  std::vector<std::string> last_;
  std::vector<std::optional<std::string>> placeholders_;
};

// The bytes of the history of `session`.
std::vector<std::string> HistoryOf(const ScriptedSession& session);

// How often `part` stands in `messages`.
std::size_t CountOf(const std::string& part,
                    const std::vector<std::string>& messages);

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_SERVED_VIEWS_H_
