// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/transcript_files.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace clerestory {

std::map<std::string, std::filesystem::path> TranscriptFiles() {
  const char* const named = std::getenv("CLERESTORY_TRANSCRIPTS");
  const std::filesystem::path folder =
      named != nullptr ? std::filesystem::path(named)
                       : std::filesystem::path(CLERESTORY_SOURCE_DIR) /
                             "../shared/transcripts";
  std::map<std::string, std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& kind : std::filesystem::directory_iterator(folder)) {
    if (!kind.is_directory()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(kind.path())) {
      files.emplace(std::filesystem::relative(entry.path(), folder).string(),
                    entry.path());
    }
  }
  return files;
}

}  // namespace clerestory
