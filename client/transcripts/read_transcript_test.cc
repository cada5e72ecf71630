// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/read_transcript.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr absl::string_view kChat = R"([{"role":"user","content":"hi"}])";

void ExpectRefused(const absl::StatusOr<ReadResult>& result,
                   absl::string_view field, absl::string_view message) {
  ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(result.status()).reason, Reason::kFieldInvalid);
  EXPECT_EQ(MetadataOf(result.status(), "field"), field);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr(std::string(message)));
}

TEST(ReadTranscriptTest, SourcesAreNamedInTheOrderOfTrial) {
  EXPECT_THAT(TranscriptSources(),
              ElementsAre("claude-code",     //
                          "codex",           //
                          "pi",              //
                          "gemini",          //
                          "cline",           //
                          "swe-agent",       //
                          "mini-swe-agent",  //
                          "anthropic",       //
                          "openai-chat"));
}

TEST(ReadTranscriptTest, AnUnknownKindIsRefusedWithTheKnownOnes) {
  for (const absl::string_view contents :
       {"{}", "[]", R"({"messages":[{"type":"user","content":"hi"}]})",
        R"({"type":"response_item","payload":{"role":"user"}})",
        "{\"a\":1}\n{\"b\":2}\n"}) {
    ExpectRefused(
        ReadTranscript(contents, "auto"), "contents",
        absl::StrCat("known are ", absl::StrJoin(TranscriptSources(), ", ")));
  }
}

TEST(ReadTranscriptTest, WhatIsNoJsonIsRefused) {
  for (const absl::string_view contents :
       {"", " \n\n", "hello", "\"text\"", "1\n2", "[{\"role\"", "\xff\xfe"}) {
    ExpectRefused(ReadTranscript(contents, "auto"), "contents", "not JSON");
  }
}

TEST(ReadTranscriptTest, AnUnknownSourceIsRefused) {
  ExpectRefused(ReadTranscript(kChat, "aider"), "source", "openai-chat");
}

TEST(ReadTranscriptTest, ASourceThatIsAskedForIsNotGuessed) {
  const auto as_anthropic = ReadTranscript(kChat, "anthropic");
  ASSERT_TRUE(as_anthropic.ok());
  EXPECT_EQ(as_anthropic->transcripts.at(0).format, Format::kAnthropicMessages);
  EXPECT_EQ(as_anthropic->transcripts[0].source, "anthropic");
  for (const absl::string_view source :
       {"claude-code", "codex", "pi", "gemini", "cline", "swe-agent",
        "mini-swe-agent"}) {
    ExpectRefused(ReadTranscript(kChat, source), "contents",
                  absl::StrCat("no messages of kind ", source));
  }
}

TEST(ReadTranscriptTest, IssuesAreInTheOrderOfLines) {
  const auto result = ReadTranscript(
      "{\"role\":\"user\",\"content\":\"hi\"}\n{\n"
      "{\"role\":\"tool\",\"content\":\"x\"}\n}\n",
      "auto");
  ASSERT_TRUE(result.ok());
  ASSERT_THAT(result->issues, SizeIs(3));
  EXPECT_EQ(result->issues[0].line, 2);
  EXPECT_EQ(result->issues[1].line, 3);
  EXPECT_EQ(result->issues[2].line, 4);
}

TEST(ReadTranscriptTest, AFileIsReadLikeItsContents) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/read_transcript_test.json");
  std::ofstream(path) << kChat;
  const auto result = ReadTranscriptFile(path, "auto");
  std::remove(path.c_str());
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->transcripts.at(0).messages, SizeIs(1));
}

TEST(ReadTranscriptTest, AFileThatCannotBeReadIsRefused) {
  for (const std::string& path :
       {::testing::TempDir(), ::testing::TempDir() + "/no-such-file"}) {
    ExpectRefused(ReadTranscriptFile(path, "auto"), "path", "can be read");
  }
}

}  // namespace
}  // namespace clerestory
