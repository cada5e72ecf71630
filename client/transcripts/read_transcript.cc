// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/read_transcript.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/importer.h"
#include "client/transcripts/transcript.h"
#include "client/transcripts/transcript_file.h"
#include "server/base/status.h"

namespace clerestory {
namespace {

// The more particular kinds first: a mini-swe-agent file is also an object with
// messages.
constexpr std::array kImporters = {
    &kClaudeCodeImporter,   &kCodexImporter,     &kPiImporter,
    &kGeminiImporter,       &kClineImporter,     &kSweAgentImporter,
    &kMiniSweAgentImporter, &kAnthropicImporter, &kOpenaiChatImporter,
};

std::string KnownSources() { return absl::StrJoin(TranscriptSources(), ", "); }

absl::StatusOr<const Importer*> ChooseImporter(const TranscriptFile& file,
                                               absl::string_view source) {
  for (const Importer* importer : kImporters) {
    if (source == "auto" ? importer->detect(file)
                         : importer->source == source) {
      return importer;
    }
  }
  if (source == "auto") {
    return FieldError(
        "contents", absl::StrCat("a transcript of an unknown kind; known are ",
                                 KnownSources()));
  }
  return FieldError("source", absl::StrCat("unknown; expected auto or one of ",
                                           KnownSources()));
}

// Keeps the order of issues of the same line.
void SortByLine(std::vector<ReadIssue>& issues) {
  std::multimap<std::int64_t, ReadIssue> sorted;
  for (ReadIssue& issue : issues) {
    const std::int64_t line = issue.line;
    sorted.emplace(line, std::move(issue));
  }
  issues.clear();
  for (auto& [line, issue] : sorted) issues.push_back(std::move(issue));
}

}  // namespace

std::vector<std::string> TranscriptSources() {
  std::vector<std::string> sources;
  for (const Importer* importer : kImporters) {
    sources.emplace_back(importer->source);
  }
  return sources;
}

absl::StatusOr<ReadResult> ReadTranscript(absl::string_view contents,
                                          absl::string_view source) {
  CLERESTORY_ASSIGN_OR_RETURN(const TranscriptFile file,
                              TranscriptFile::Parse(contents));
  CLERESTORY_ASSIGN_OR_RETURN(const Importer* importer,
                              ChooseImporter(file, source));
  ReadResult result = importer->read(file);
  if (result.transcripts.empty()) {
    return FieldError("contents", absl::StrCat("no messages of kind ",
                                               importer->source, " in it"));
  }
  result.issues.insert(result.issues.end(), file.damaged_lines().begin(),
                       file.damaged_lines().end());
  SortByLine(result.issues);
  for (Transcript& transcript : result.transcripts) {
    transcript.source = std::string(importer->source);
  }
  return result;
}

absl::StatusOr<ReadResult> ReadTranscriptFile(const std::string& path,
                                              absl::string_view source) {
  std::ifstream in(path, std::ios::binary);
  std::string contents;
  std::array<char, 1 << 16> part = {};
  while (in.read(part.data(), part.size()) || in.gcount() > 0) {
    contents.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    return FieldError("path", "not a file that can be read");
  }
  return ReadTranscript(contents, source);
}

}  // namespace clerestory
