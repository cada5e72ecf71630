// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_TESTS_SUPPORT_TRANSCRIPT_FILES_H_
#define CLERESTORY_TESTS_SUPPORT_TRANSCRIPT_FILES_H_

#include <filesystem>
#include <map>
#include <string>

namespace clerestory {

// The public transcripts by their path in their folder, KIND/NAME: files, and
// folders of events. The folder is what the environment's
// CLERESTORY_TRANSCRIPTS names, or the one beside the source tree; where there
// is none, so are the transcripts.
std::map<std::string, std::filesystem::path> TranscriptFiles();

}  // namespace clerestory

#endif  // CLERESTORY_TESTS_SUPPORT_TRANSCRIPT_FILES_H_
