// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/read_transcript.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <map>
#include <string>
#include <system_error>
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

// The most that is read of a folder.
constexpr std::size_t kFolderFilesMax = 20'000;
constexpr std::size_t kFolderBytesMax = std::size_t{1} << 30;

// The more particular kinds first: a mini-swe-agent file is also an object with
// messages.
constexpr std::array kImporters = {
    &kClaudeCodeImporter,    //
    &kCodexImporter,         //
    &kPiImporter,            //
    &kGeminiImporter,        //
    &kClineImporter,         //
    &kSweAgentImporter,      //
    &kMiniSweAgentImporter,  //
    &kOpenhandsV0Importer,   //
    &kOpenhandsV1Importer,   //
    &kTraeImporter,          //
    &kInspectImporter,       //
    &kLangchainImporter,     //
    &kAtifImporter,          //
    &kAnthropicImporter,     //
    &kOpenaiChatImporter,
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

// Appends what the file holds to `contents`; false if it cannot be read.
bool AppendFile(const std::filesystem::path& path, std::string& contents) {
  std::ifstream in(path, std::ios::binary);
  std::array<char, 1 << 16> part = {};
  while (in.read(part.data(), part.size()) || in.gcount() > 0) {
    contents.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  return in.is_open() && !in.bad();
}

// The `.json` files of a folder, sorted by name.
absl::StatusOr<std::vector<std::filesystem::path>> FilesOf(
    const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::error_code unknown;
    if (entry->path().extension() != ".json" ||
        !entry->is_regular_file(unknown)) {
      continue;
    }
    if (files.size() == kFolderFilesMax) {
      return FieldError("path", absl::StrCat("a folder with more than ",
                                             kFolderFilesMax, " .json files"));
    }
    files.push_back(entry->path());
  }
  if (error) return FieldError("path", "not a folder that can be read");
  if (files.empty()) {
    return FieldError("path", "a folder without .json files");
  }
  std::ranges::sort(files);
  return files;
}

// The files of a folder as lines, one of each.
absl::StatusOr<std::string> ReadFolder(const std::filesystem::path& folder) {
  CLERESTORY_ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> files,
                              FilesOf(folder));
  std::string contents;
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (!error && size > kFolderBytesMax - contents.size()) {
      return FieldError(
          "path", absl::StrCat("a folder with more than ", kFolderBytesMax,
                               " bytes in its .json files"));
    }
    const std::size_t start = contents.size();
    if (error || !AppendFile(file, contents) ||
        contents.size() >= kFolderBytesMax) {
      return FieldError("path", "a folder with a file that cannot be read");
    }
    // In JSON a line break is only ever a blank.
    std::ranges::replace_if(
        contents.begin() + static_cast<std::ptrdiff_t>(start), contents.end(),
        [](char c) { return c == '\n' || c == '\r'; }, ' ');
    contents.push_back('\n');
  }
  return contents;
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
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    CLERESTORY_ASSIGN_OR_RETURN(const std::string contents, ReadFolder(path));
    return ReadTranscript(contents, source);
  }
  std::string contents;
  if (!AppendFile(path, contents)) {
    return FieldError("path", "not a file that can be read");
  }
  return ReadTranscript(contents, source);
}

}  // namespace clerestory
