// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/transcript_files.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kFixture = CLERESTORY_SOURCE_DIR
    "/tests/testdata/transcripts/claude_code_image_read.jsonl";

// What a file gives. In the files of Claude Code `answers` are the distinct ids
// of assistant messages but for those of no model. Not all calls come over:
// 6 of the 125 in m-claude-87-identical-repeats have no result, and the history
// of demo-ctf-babyencryption lacks one of its 16 steps. Of pi's 454 calls 6
// have no result, 5 of them in aborted answers; of the 6 in the schema fixture
// of Codex, a search for tools has none. Where there are more calls than
// results, the last is open: a `finish` in two of the instances of
// v0-multi-swe-output and in atif-openhands-hello-world, a `task_done` in
// trae-sonnet45-cjk. In the files of Codex each item is a message, and
// `answers` are those with text.
struct Expected {
  std::int64_t sessions = 1;
  std::int64_t messages = 0;
  std::int64_t answers = 0;
  std::int64_t calls = 0;
  std::int64_t results = 0;

  friend bool operator==(const Expected&, const Expected&) = default;
};

void PrintTo(const Expected& e, std::ostream* out) {
  *out << absl::StrCat(e.sessions, " sessions, ", e.messages, " messages, ",
                       e.answers, " answers, ", e.calls, " calls, ", e.results,
                       " results");
}

const std::map<std::string, Expected>& ExpectedByFile() {
  static const std::map<std::string, Expected> expected = {
      {"anthropic/derived-entire-cli-129calls.messages.json",
       {.messages = 148, .answers = 74, .calls = 129, .results = 129}},
      {"anthropic/derived-entire-cli-image.messages.json",
       {.messages = 94, .answers = 47, .calls = 58, .results = 58}},
      {"claude-code/agentcmd-v1-short-image.jsonl",
       {.messages = 29, .answers = 11, .calls = 10, .results = 10}},
      {"claude-code/entire-cli-129calls-parallel9.jsonl",
       {.messages = 153, .answers = 73, .calls = 129, .results = 129}},
      {"claude-code/entire-cli-14tools-short.jsonl",
       {.messages = 50, .answers = 22, .calls = 31, .results = 31}},
      {"claude-code/entire-cli-248calls-15tools-44prompts.jsonl",
       {.messages = 529, .answers = 258, .calls = 248, .results = 248}},
      {"claude-code/entire-cli-cjk.jsonl",
       {.messages = 70, .answers = 35, .calls = 38, .results = 38}},
      {"claude-code/entire-cli-compact-and-microcompact.jsonl",
       {.messages = 99, .answers = 49, .calls = 60, .results = 60}},
      {"claude-code/entire-cli-image-in-tool-result.jsonl",
       {.messages = 94, .answers = 47, .calls = 58, .results = 58}},
      {"claude-code/erk-274calls-85rereads.jsonl",
       {.messages = 402, .answers = 199, .calls = 274, .results = 274}},
      {"claude-code/erk-91calls-repeats.jsonl",
       {.messages = 138, .answers = 68, .calls = 91, .results = 91}},
      {"claude-code/m-claude-87-identical-repeats.jsonl",
       {.messages = 234, .answers = 117, .calls = 119, .results = 119}},
      {"claude-code/m-claude-image-read.jsonl",
       {.messages = 79, .answers = 38, .calls = 40, .results = 39}},
      {"claude-code/m-claude-subagent-sidechain.jsonl",
       {.messages = 22, .answers = 11, .calls = 39, .results = 39}},
      {"cline/cline-session.messages.json",
       {.messages = 32, .answers = 16, .calls = 11, .results = 11}},
      {"codex/agent-sessions-schema-fixture-2026.jsonl",
       {.messages = 21, .answers = 1, .calls = 5, .results = 5}},
      {"codex/agentcmd-123calls.jsonl",
       {.messages = 395, .answers = 9, .calls = 123, .results = 123}},
      {"codex/agentcmd-16calls-big-instructions.jsonl",
       {.messages = 54, .answers = 2, .calls = 16, .results = 16}},
      {"codex/agentcmd-34calls.jsonl",
       {.messages = 104, .answers = 1, .calls = 34, .results = 34}},
      {"gemini/m-gemini-181calls.json",
       {.messages = 444, .answers = 219, .calls = 181, .results = 181}},
      {"gemini/m-gemini-460kB-output-cjk.json",
       {.messages = 54, .answers = 27, .calls = 35, .results = 35}},
      {"gemini/m-gemini-78calls-parallel4.json",
       {.messages = 133, .answers = 66, .calls = 78, .results = 78}},
      {"gemini/m-gemini-79calls-parallel3-repeats.json",
       {.messages = 156, .answers = 77, .calls = 79, .results = 79}},
      {"mini-swe-agent/gemini3-django-11532-cjk.traj.json",
       {.messages = 62, .answers = 30, .calls = 29, .results = 29}},
      {"mini-swe-agent/gemini3-django-14349-repeats.traj.json",
       {.messages = 186, .answers = 92, .calls = 61, .results = 61}},
      {"mini-swe-agent/gemini3-django-16560-128calls.traj.json",
       {.messages = 292, .answers = 145, .calls = 145, .results = 145}},
      {"mini-swe-agent/gemini3-requests-1142-868kB-output.traj.json",
       {.messages = 144, .answers = 71, .calls = 69, .results = 69}},
      {"openai-chat/livemcpbench-sonnet4-12tasks-cjk.json",
       {.sessions = 12,
        .messages = 452,
        .answers = 220,
        .calls = 208,
        .results = 208}},
      {"openai-chat/taubench-gpt4o-airline-12trials.json",
       {.sessions = 12,
        .messages = 646,
        .answers = 311,
        .calls = 218,
        .results = 218}},
      {"other/pi-coding-agent-before-compaction.jsonl",
       {.messages = 961, .answers = 468, .calls = 448, .results = 448}},
      {"swe-agent/demo-ctf-babyencryption-unicode.traj",
       {.messages = 31, .answers = 15, .calls = 15, .results = 14}},
      {"swe-agent/demo-marshmallow-function-calling-replace.traj",
       {.messages = 28, .answers = 13, .calls = 13, .results = 13}},
      {"swe-agent/swesmith-pandas-53652-37steps.traj",
       {.messages = 76, .answers = 37, .calls = 37, .results = 37}},
      {"openhands/v0-basic-gui-mode-events.json",
       {.messages = 10, .answers = 5, .calls = 4, .results = 4}},
      {"openhands/v0-multi-swe-output-3-instances.jsonl",
       {.sessions = 3,
        .messages = 216,
        .answers = 105,
        .calls = 105,
        .results = 103}},
      {"openhands/v1-cli-events-case-a",
       {.messages = 14, .answers = 6, .calls = 3, .results = 3}},
      {"other/trae-gpt4o-62-identical-repeats.trajectory.json",
       {.messages = 143, .answers = 70, .calls = 71, .results = 71}},
      {"other/trae-sonnet45-cjk.trajectory.json",
       {.messages = 132, .answers = 65, .calls = 65, .results = 64}},
      {"other/inspect-ai-gpt4o-mini-browser.eval.json",
       {.messages = 10, .answers = 5, .calls = 4, .results = 4}},
      {"other/langchain-deepagents-messages.json",
       {.messages = 6, .answers = 3, .calls = 2, .results = 2}},
      {"other/atif-openhands-hello-world.trajectory.json",
       {.messages = 7, .answers = 2, .calls = 2, .results = 1}},
  };
  return expected;
}

// The kind of the file `name`: its folder, or the first word of the file's name
// if the folder is of mixed kinds.
std::string SourceOf(const std::string& name) {
  const std::string folder = name.substr(0, name.find('/'));
  const std::string file = name.substr(folder.size() + 1);
  const std::string first = file.substr(0, file.find('-'));
  if (folder == "other") return first;
  return folder == "openhands" ? absl::StrCat(folder, "-", first) : folder;
}

std::string Contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream contents;
  contents << in.rdbuf();
  return contents.str();
}

Expected Counted(const std::vector<Transcript>& transcripts) {
  const HistoryCounts counts = CountsOf(transcripts);
  return {.sessions = static_cast<std::int64_t>(transcripts.size()),
          .messages = counts.messages,
          .answers = counts.answers,
          .calls = counts.calls,
          .results = counts.results};
}

void ExpectValid(const ReadResult& result) {
  for (const Transcript& transcript : result.transcripts) {
    EXPECT_EQ(FaultOf(transcript,
                      /*blank_is_valid=*/transcript.source == "anthropic"),
              "");
  }
}

TEST(RealTranscriptsTest, TheBuiltInFileIsReadWhole) {
  const auto result = ReadTranscriptFile(std::string(kFixture), "auto");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->issues.empty());
  EXPECT_EQ(
      Counted(result->transcripts),
      (Expected{.messages = 79, .answers = 38, .calls = 40, .results = 39}));
  ExpectValid(*result);
}

TEST(RealTranscriptsTest, KnownFilesAreReadWithEveryCall) {
  for (const auto& [name, path] : TranscriptFiles()) {
    const auto expected = ExpectedByFile().find(name);
    if (expected == ExpectedByFile().end()) continue;
    SCOPED_TRACE(name);
    const auto result = ReadTranscriptFile(path.string(), "auto");
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->transcripts.front().source, SourceOf(name));
    EXPECT_EQ(Counted(result->transcripts), expected->second);
    ExpectValid(*result);
    // Parallel calls branch in nearly all of them, and nobody went back.
    for (const ReadIssue& issue : result->issues) {
      EXPECT_THAT(issue.what, Not(HasSubstr("abandoned")));
    }
  }
}

TEST(RealTranscriptsTest, OtherFilesAreReadOrRefusedWithTheKnownKinds) {
  for (const auto& [name, path] : TranscriptFiles()) {
    if (ExpectedByFile().contains(name)) continue;
    SCOPED_TRACE(name);
    const auto result = ReadTranscriptFile(path.string(), "auto");
    if (result.ok()) {
      ExpectValid(*result);
    } else {
      EXPECT_THAT(std::string(result.status().message()),
                  HasSubstr("known are claude-code"));
    }
    for (const std::string& source : TranscriptSources()) {
      const auto forced = ReadTranscriptFile(path.string(), source);
      EXPECT_TRUE(forced.ok() || absl::IsInvalidArgument(forced.status()));
    }
  }
}

TEST(RealTranscriptsTest, MessagesOfArraysKeepTheirBytes) {
  for (const auto& [name, path] : TranscriptFiles()) {
    if (!name.starts_with("anthropic/") && !name.starts_with("openai-chat/")) {
      continue;
    }
    SCOPED_TRACE(name);
    const std::string contents = Contents(path);
    const auto result = ReadTranscript(contents, "auto");
    ASSERT_TRUE(result.ok());
    // In the order of the file, so that each search starts behind the last.
    std::size_t at = 0;
    for (const Transcript& transcript : result->transcripts) {
      for (const TranscriptMessage& message : transcript.messages) {
        at = contents.find(message.bytes, at);
        ASSERT_NE(at, std::string::npos);
        at += message.bytes.size();
      }
    }
  }
}

TEST(RealTranscriptsTest, AFileThatEndsAnywhereIsStillValid) {
  const std::string contents = Contents(
      std::filesystem::path(std::string(kFixture.data(), kFixture.size())));
  for (std::size_t size = 0; size < contents.size(); size += 4001) {
    const auto result = ReadTranscript(contents.substr(0, size), "auto");
    if (result.ok()) ExpectValid(*result);
  }
}

TEST(RealTranscriptsTest, ARecordFileThatEndsAnywhereIsStillValid) {
  for (const auto& [name, path] : TranscriptFiles()) {
    if (SourceOf(name) != "codex" && SourceOf(name) != "pi") continue;
    SCOPED_TRACE(name);
    const std::string contents = Contents(path);
    for (std::size_t part = 1; part < 16; ++part) {
      const auto result = ReadTranscript(
          contents.substr(0, contents.size() * part / 16), SourceOf(name));
      if (result.ok()) ExpectValid(*result);
    }
  }
}

}  // namespace
}  // namespace clerestory
