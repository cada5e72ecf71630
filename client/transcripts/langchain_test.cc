// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/history_checker.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/chat_transcripts.h"

namespace clerestory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadResult Read(const std::string& contents) {
  return ReadChat(contents, "langchain");
}

std::string Made(absl::string_view name, absl::string_view kwargs) {
  return absl::StrCat(
      R"({"lc":1,"type":"constructor","id":["langchain","schema","messages",")",
      name, R"("],"kwargs":{)", kwargs, "}}");
}

const char kAnswer[] =
    R"("content":[{"type":"text","text":"see"},{"type":"tool_use","id":"c1",)"
    R"("name":"read","input":{"a": 1}}],"response_metadata":{"model":"m-1"},)"
    R"("tool_calls":[{"name":"read","args":{"a": 1},"id":"c1"}],)"
    R"("invalid_tool_calls":[{"name":"read","args":"{","id":"c2"}])";

std::vector<std::string> Conversation() {
  return {Made("SystemMessage", R"("content":"s")"),
          Made("HumanMessage", R"("content":"fix")"),
          Made("AIMessage", kAnswer),
          Made("ToolMessage", R"("content":"out","tool_call_id":"c1")"),
          Made("ToolMessage", R"("content":"bad","tool_call_id":"c2")"),
          Made("AIMessageChunk", R"("content":"done","tool_calls":[])")};
}

TEST(LangchainTest, ConstructorObjectsBecomeMessages) {
  const ReadResult result =
      Read(absl::StrCat("[", absl::StrJoin(Conversation(), ","), "]"));
  EXPECT_THAT(
      Messages(result),
      ElementsAre(Said("system", "s"), Said("user", "fix"),
                  Answer(R"([{"type":"text","text":"see"}])",
                         {Call("c1", "read", R"({"a": 1})"),
                          Call("c2", "read", R"({"input": "{"})")}),
                  ResultOf("c1", R"("out")"), ResultOf("c2", R"("bad")"),
                  Said("assistant", "done")));
  EXPECT_EQ(result.transcripts[0].messages[2].model, "m-1");
  EXPECT_THAT(result.issues, IsEmpty());
}

TEST(LangchainTest, MessagesMayBeHeldByAnObjectOrStandOnLines) {
  const std::vector<std::string> whole = Messages(
      Read(absl::StrCat("[", absl::StrJoin(Conversation(), ","), "]")));
  EXPECT_EQ(Messages(Read(absl::StrCat(
                R"({"messages":[)", absl::StrJoin(Conversation(), ","), "]}"))),
            whole);
  EXPECT_EQ(Messages(Read(absl::StrJoin(Conversation(), "\n"))), whole);
}

TEST(LangchainTest, WhatIsNoMessageIsSkipped) {
  const ReadResult result = Read(
      absl::StrCat("[", Made("HumanMessage", R"("content":"fix")"), ",",
                   Made("RemoveMessage", R"("content":"")"), ",",
                   Made("ToolMessage", R"("content":"x","tool_call_id":"c9")"),
                   ",", Made("HumanMessage", R"("content":[])"), "]"));
  EXPECT_THAT(Messages(result), ElementsAre(Said("user", "fix")));
  EXPECT_EQ(TextOf(result.issues),
            "1 not a message of LangChain: skipped; "
            "1 a result for c9, which is no open call: dropped; "
            "1 a message without content: skipped");
}

}  // namespace
}  // namespace clerestory
