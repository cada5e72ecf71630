// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// Every public transcript through its format, under several policies: every
// view is one that its provider accepts, and nothing is lost. Of Bedrock's
// Converse API there are no public transcripts: those of Anthropic's stand in,
// with its names for the blocks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/transcripts/read_transcript.h"
#include "client/transcripts/transcript.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/time.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/json/document.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/class_token_counter.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/view.h"
#include "tests/support/status_matchers.h"
#include "tests/support/transcript_files.h"
#include "tests/support/valid_history.h"

namespace clerestory {
namespace {

constexpr absl::string_view kPolicies[] = {
    "adaptive",
    "every_turn,keep_observations=3",
    "block,block_size=5",
    "adaptive,keep_observations=3,errors=drop,argument_tokens_min=50",
    "every_turn,keep_observations=3,errors=drop,argument_tokens_min=30",
};

// Between two checks of a whole view, which take time in a long session.
constexpr std::int64_t kCheckedBytes = 200'000'000;

struct Tally {
  std::int64_t sessions = 0;
  std::int64_t views = 0;
  std::int64_t masks = 0;
  std::int64_t drops = 0;
  std::int64_t argument_masks = 0;
};

// A session of a transcript under one policy.
class Playback {
 public:
  Playback(const Transcript& transcript, const Policy& policy)
      : transcript_(transcript),
        policy_(policy),
        session_(HeaderOf(transcript), ClassTokenCounter()) {}

  void Play(Tally& tally) {
    for (const TranscriptMessage& message : transcript_.messages) {
      const MessageAppended record = {
          .time = message.time,
          .message = std::make_shared<const std::string>(message.bytes)};
      absl::StatusOr<std::vector<ParsedMessage>> parsed =
          session_.CheckAppend({record.message});
      ASSERT_THAT(parsed, IsOk()) << "message " << session_.message_count();
      const bool is_answer = parsed->front().role == Role::kAssistant;
      const bool begins_turn =
          is_answer && session_.message_count() > 0 &&
          session_.messages().back().role != Role::kAssistant;
      if (begins_turn) {
        ASSERT_NO_FATAL_FAILURE(Serve(message.time));
        ++tally.views;
      }
      session_.Append(record, std::move(parsed->front()));
    }
    for (std::size_t i = 0; i < transcript_.messages.size(); ++i) {
      ASSERT_EQ(*session_.messages()[i].raw, transcript_.messages[i].bytes);
    }
    ++tally.sessions;
    tally.masks += session_.ledger().mask_count;
    tally.drops += session_.ledger().drop_count;
    tally.argument_masks += session_.ledger().argument_mask_count;
  }

 private:
  static SessionHeader HeaderOf(const Transcript& transcript) {
    SessionHeader header;
    header.format = transcript.format;
    return header;
  }

  void Serve(TimeMicros time) {
    const std::int64_t last_count = session_.last_view().has_value()
                                        ? session_.last_view()->message_count
                                        : 0;
    const ViewServed decision =
        PlanView(session_, policy_, prices_, {.now = time, .model = "m"});
    session_.Apply(decision);
    const View view = DescribeView(session_, decision, last_count,
                                   FrontierOf(session_, policy_, prices_));
    const auto stable = static_cast<std::size_t>(view.stable.message_count);
    ASSERT_TRUE(decision.break_reason != BreakReason::kNone ||
                stable == last_.size());
    for (std::size_t i = 0; i < stable; ++i) {
      ASSERT_EQ(*view.messages[i], *last_[i]) << "message " << i;
    }
    ASSERT_LE(view.whole.byte_count, session_.history_bytes());
    last_ = view.messages;
    if (decision.break_reason == BreakReason::kNone) return;
    checked_bytes_ += view.whole.byte_count;
    if (checked_bytes_ > kCheckedBytes) return;
    CheckValid(view);
  }

  // A view is valid if the history is. Arrays that are taken as they are may
  // hold a blank text, which is as wrong in the view, and nothing else is.
  void CheckValid(const View& view) const {
    std::vector<std::string> history;
    for (const SessionMessage& message : session_.messages()) {
      history.push_back(*message.raw);
    }
    std::vector<std::string> shown;
    for (const Bytes& message : view.messages) shown.push_back(*message);
    const absl::Status raw = CheckValidHistory(transcript_.format, history);
    if (!raw.ok()) {
      ASSERT_THAT(raw.ToString(),
                  ::testing::AnyOf(::testing::HasSubstr("whitespace"),
                                   ::testing::HasSubstr("blank")));
    }
    ASSERT_EQ(CheckValidHistory(transcript_.format, shown), raw);
  }

  const Transcript& transcript_;
  const Policy policy_;
  const ModelPrices prices_ = BuiltInPrices().Of("claude-opus-4-5", 0);
  Session session_;
  std::vector<Bytes> last_;
  std::int64_t checked_bytes_ = 0;
};

// --- Anthropic's blocks by Converse's names ----------------------------------

std::string ConverseContent(const json::Value& content) {
  if (content.is_string()) {
    return absl::StrCat(R"([{"text":)", content.raw(), "}]");
  }
  std::vector<std::string> blocks;
  for (const json::Value& block : content.children()) {
    const json::Value type = block["type"];
    if (type.equals("text")) {
      blocks.push_back(absl::StrCat(R"({"text":)", block["text"].raw(), "}"));
    } else if (type.equals("tool_use")) {
      blocks.push_back(absl::StrCat(
          R"({"toolUse":{"toolUseId":)", block["id"].raw(), R"(,"name":)",
          block["name"].raw(), R"(,"input":)", block["input"].raw(), "}}"));
    } else if (type.equals("tool_result")) {
      std::string inner = block["content"].exists()
                              ? ConverseContent(block["content"])
                              : R"([{"text":"."}])";
      if (inner == "[]" || inner == R"([{"text":""}])") {
        inner = R"([{"text":"."}])";
      }
      blocks.push_back(absl::StrCat(
          R"({"toolResult":{"toolUseId":)", block["tool_use_id"].raw(),
          R"(,"content":)", inner, R"(,"status":)",
          block["is_error"].is_true() ? R"("error")" : R"("success")", "}}"));
    } else if (type.equals("thinking")) {
      blocks.push_back(
          absl::StrCat(R"({"reasoningContent":{"reasoningText":{"text":)",
                       block["thinking"].raw(), R"(,"signature":)",
                       block["signature"].raw(), "}}}"));
    } else if (type.equals("image") && block["source"]["data"].is_string()) {
      blocks.push_back(
          absl::StrCat(R"({"image":{"format":"png","source":{"bytes":)",
                       block["source"]["data"].raw(), "}}}"));
    }
  }
  return absl::StrCat("[", absl::StrJoin(blocks, ","), "]");
}

// The blocks of `message`, with their commas.
std::string ConverseBlocks(const json::Value& content) {
  const std::string blocks = ConverseContent(content);
  return blocks.substr(1, blocks.size() - 2);
}

// Roles take turns: messages in a row with one role become one.
Transcript AsConverse(const Transcript& transcript) {
  Transcript converse = transcript;
  converse.format = Format::kBedrockConverse;
  converse.messages.clear();
  std::string role;
  std::string blocks;
  TimeMicros time = 0;
  const auto finish = [&] {
    if (blocks.empty()) return;
    converse.messages.push_back(
        {.bytes =
             absl::StrCat(R"({"role":)", role, R"(,"content":[)", blocks, "]}"),
         .time = time,
         .model = ""});
  };
  for (const TranscriptMessage& message : transcript.messages) {
    const absl::StatusOr<json::Document> document =
        json::Document::Parse(message.bytes);
    const json::Value root = document->root();
    const std::string more = ConverseBlocks(root["content"]);
    if (root["role"].raw() != absl::string_view(role)) {
      finish();
      role = absl::StrCat("\"", root["role"].string(), "\"");
      blocks.clear();
      time = message.time;
    }
    absl::StrAppend(&blocks, blocks.empty() || more.empty() ? "" : ",", more);
  }
  finish();
  return converse;
}

class TranscriptViewsTest : public ::testing::TestWithParam<absl::string_view> {
 protected:
  void PlayAll(bool as_converse) {
    const absl::StatusOr<Policy> policy = ParsePolicy(GetParam());
    ASSERT_THAT(policy, IsOk());
    Tally tally;
    std::int64_t file_count = 0;
    for (const auto& [name, path] : TranscriptFiles()) {
      const absl::StatusOr<ReadResult> read =
          ReadTranscriptFile(path.string(), "auto");
      ASSERT_THAT(read, IsOk()) << name;
      bool is_played = false;
      for (const Transcript& transcript : read->transcripts) {
        SCOPED_TRACE(absl::StrCat(name, " ", transcript.name));
        if (!as_converse) {
          Playback(transcript, *policy).Play(tally);
        } else if (transcript.format == Format::kAnthropicMessages) {
          const Transcript converse = AsConverse(transcript);
          Playback(converse, *policy).Play(tally);
        } else {
          continue;
        }
        is_played = true;
      }
      if (is_played) ++file_count;
    }
    RecordProperty("files", absl::StrCat(file_count));
    RecordProperty("sessions", absl::StrCat(tally.sessions));
    RecordProperty("views", absl::StrCat(tally.views));
    RecordProperty("masks", absl::StrCat(tally.masks));
    RecordProperty("drops", absl::StrCat(tally.drops));
    RecordProperty("argument_masks", absl::StrCat(tally.argument_masks));
    if (file_count > 0) {
      EXPECT_GT(tally.masks, 0);
    }
  }
};

TEST_P(TranscriptViewsTest, EveryViewOfATranscriptIsValid) { PlayAll(false); }

TEST_P(TranscriptViewsTest, SoIsItByConversesNames) { PlayAll(true); }

INSTANTIATE_TEST_SUITE_P(Policies, TranscriptViewsTest,
                         ::testing::ValuesIn(kPolicies));

}  // namespace
}  // namespace clerestory
