// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_CLIENT_CLI_TERMINAL_H_
#define CLERESTORY_CLIENT_CLI_TERMINAL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace clerestory {

// Rows of cells, the first of them the heading. The first column is aligned to
// the left, the others to the right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// Draws on the standard error, if that is a terminal, how far a long task has
// come.
class ProgressBar {
 public:
  explicit ProgressBar(std::size_t total);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  // Clears the line.
  ~ProgressBar();

  // `done` parts are done, and `what` is under way.
  void Show(std::size_t done, absl::string_view what);

 private:
  const std::size_t total_;
  const bool enabled_;
};

}  // namespace clerestory

#endif  // CLERESTORY_CLIENT_CLI_TERMINAL_H_
