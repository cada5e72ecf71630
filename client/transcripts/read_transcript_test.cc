// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/transcripts/read_transcript.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
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
                          "openhands-v0",    //
                          "openhands-v1",    //
                          "trae",            //
                          "inspect",         //
                          "langchain",       //
                          "atif",            //
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
        "mini-swe-agent", "openhands-v0", "openhands-v1", "trae", "inspect",
        "langchain", "atif"}) {
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
  ExpectRefused(
      ReadTranscriptFile(::testing::TempDir() + "/no-such-file", "auto"),
      "path", "can be read");
}

// A folder that is there as long as this.
// Tests run at the same time, so each has its own.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::path(::testing::TempDir()) /
              absl::StrCat("read_transcript_test_",
                           ::testing::UnitTest::GetInstance()
                               ->current_test_info()
                               ->name())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void Write(const std::string& name, absl::string_view contents) const {
    std::ofstream(path_ / name) << contents;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(ReadTranscriptTest, AFolderIsReadAsItsJsonFilesInTheOrderOfTheirNames) {
  const Folder folder;
  folder.Write("2.json", "{\"role\":\"user\",\r\n \"content\":\"b\"}\n");
  folder.Write("1.json", R"({"role":"user","content":"a"})");
  folder.Write("3.json", "{\n");
  folder.Write("4.txt", R"({"role":"user","content":"c"})");
  std::filesystem::create_directory(folder.path() / "5.json");
  const auto result = ReadTranscriptFile(folder.path().string(), "auto");
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->transcripts.at(0).messages, SizeIs(2));
  EXPECT_EQ(result->transcripts[0].messages[0].bytes,
            R"({"role":"user","content":"a"})");
  EXPECT_EQ(result->transcripts[0].messages[1].bytes,
            "{\"role\":\"user\",   \"content\":\"b\"}");
  ASSERT_THAT(result->issues, SizeIs(1));
  EXPECT_EQ(result->issues[0].line, 3);
}

TEST(ReadTranscriptTest, AFolderWithoutJsonFilesIsRefused) {
  const Folder folder;
  folder.Write("a.txt", kChat);
  ExpectRefused(ReadTranscriptFile(folder.path().string(), "auto"), "path",
                "a folder without .json files");
}

TEST(ReadTranscriptTest, AFolderWithTooManyFilesIsRefused) {
  const Folder folder;
  folder.Write("0.json", "");
  for (int i = 1; i <= 20'000; ++i) {
    std::filesystem::create_hard_link(folder.path() / "0.json",
                                      folder.path() / absl::StrCat(i, ".json"));
  }
  ExpectRefused(ReadTranscriptFile(folder.path().string(), "auto"), "path",
                "more than 20000 .json files");
}

TEST(ReadTranscriptTest, AFolderWithTooManyBytesIsRefusedUnread) {
  const Folder folder;
  folder.Write("a.json", "");
  std::filesystem::resize_file(folder.path() / "a.json",
                               (std::uintmax_t{1} << 30) + 1);
  ExpectRefused(ReadTranscriptFile(folder.path().string(), "auto"), "path",
                "more than 1073741824 bytes");
}

}  // namespace
}  // namespace clerestory
