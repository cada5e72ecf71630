// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace clerestory {

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - row[c].size(), ' ');
      absl::StrAppend(&line, c == 0 ? "" : "  ", c == 0 ? row[c] : padding,
                      c == 0 ? padding : row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&out, line, "\n");
  }
  return out;
}

ProgressBar::ProgressBar(std::size_t total)
    : total_(total), enabled_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (enabled_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::Show(std::size_t done, absl::string_view what) {
  if (!enabled_ || total_ == 0) return;
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = done * kWidth / total_;
  std::fprintf(stderr, "\r\033[K[%s%s] %zu/%zu %.*s",
               std::string(filled, '#').c_str(),
               std::string(kWidth - filled, ' ').c_str(), done, total_,
               static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
}

}  // namespace clerestory
