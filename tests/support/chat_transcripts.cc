// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/chat_transcripts.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "gtest/gtest.h"
#include "server/json/literal.h"
#include "server/model/message.h"

namespace clerestory {

ReadResult ReadChat(const std::string& contents, absl::string_view source) {
  absl::StatusOr<ReadResult> result = ReadTranscript(contents, "auto");
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  for (const Transcript& transcript : result->transcripts) {
    EXPECT_EQ(transcript.source, source);
    EXPECT_EQ(transcript.format, Format::kOpenaiChat);
    EXPECT_EQ(FaultOf(transcript), "")
        << ::testing::PrintToString(BytesOf(transcript));
  }
  return *std::move(result);
}

std::vector<std::string> Messages(const ReadResult& result) {
  return BytesOf(result.transcripts.at(0));
}

std::string Said(absl::string_view role, absl::string_view text) {
  return absl::StrCat(R"({"role":")", role, R"(","content":)",
                      json::Quote(text), "}");
}

// An answer with the calls `calls`.
std::string Answer(absl::string_view content,
                   const std::vector<std::string>& calls) {
  return absl::StrCat(R"({"role":"assistant","content":)", content,
                      R"(,"tool_calls":[)", absl::StrJoin(calls, ","), "]}");
}

std::string Call(absl::string_view id, absl::string_view name,
                 absl::string_view arguments) {
  return absl::StrCat(R"({"id":")", id, R"(","type":"function","function":)",
                      R"({"name":")", name, R"(","arguments":)",
                      json::Quote(arguments), "}}");
}

std::string ResultOf(absl::string_view id, absl::string_view content) {
  return absl::StrCat(R"({"role":"tool","tool_call_id":")", id,
                      R"(","content":)", content, "}");
}

}  // namespace clerestory
