// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/policy_convert.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clerestory/v1/policy_service.pb.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_trial.h"
#include "server/policy/policy.h"
#include "server/policy/policy_set.h"
#include "server/policy/presets.h"
#include "server/rpc/convert.h"
#include "server/yaml/problem.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

const auto kInvalid =
    FailsWith(absl::StatusCode::kInvalidArgument, Reason::kFieldInvalid);

v1::PostedSession Posted() {
  v1::PostedSession posted;
  posted.set_format(v1::FORMAT_OPENAI_CHAT);
  posted.set_model("m");
  posted.set_preamble_tokens(9);
  posted.add_messages()->set_message("first");
  v1::PostedMessage& second = *posted.add_messages();
  second.set_message("second");
  second.mutable_time()->set_seconds(7);
  return posted;
}

TEST(PolicyConvertTest, APostedSessionIsPlayedWithItsTimesAndModel) {
  const auto input = ToBacktestInput(Posted());
  ASSERT_THAT(input, IsOk());
  EXPECT_EQ(input->format, Format::kOpenaiChat);
  EXPECT_EQ(input->preamble_tokens, 9);
  ASSERT_EQ(input->messages.size(), 2U);
  EXPECT_EQ(*input->messages[0].bytes, "first");
  EXPECT_EQ(input->messages[0].time, 0);
  EXPECT_EQ(input->messages[0].model, "m");
  EXPECT_EQ(input->messages[1].time, 7'000'000);
}

TEST(PolicyConvertTest, WhatIsWrongWithAPostedSessionIsNamed) {
  v1::PostedSession posted = Posted();
  posted.clear_format();
  EXPECT_THAT(ToBacktestInput(posted), kInvalid);
  posted = Posted();
  posted.set_preamble_tokens(-1);
  EXPECT_EQ(MetadataOf(ToBacktestInput(posted).status(), "field"),
            "posted.preamble_tokens");
  posted = Posted();
  posted.add_messages()->mutable_time()->set_seconds(6);
  EXPECT_EQ(MetadataOf(ToBacktestInput(posted).status(), "field"),
            "posted.messages[2].time");
  posted = Posted();
  for (int i = 0; i < 10'000; ++i) posted.add_messages();
  EXPECT_EQ(MetadataOf(ToBacktestInput(posted).status(), "field"),
            "posted.messages");
}

TEST(PolicyConvertTest, SourcesAreThoseOfTheProto) {
  for (const PolicySource source :
       {PolicySource::kBuiltIn, PolicySource::kFile, PolicySource::kStored}) {
    const auto there = ToPolicySource(static_cast<v1::PolicySource>(source));
    ASSERT_THAT(there, IsOk());
    EXPECT_EQ(*there, source);
  }
  EXPECT_THAT(ToPolicySource(v1::POLICY_SOURCE_UNSPECIFIED), kInvalid);
  EXPECT_THAT(ToPolicySource(static_cast<v1::PolicySource>(9)), kInvalid);
}

TEST(PolicyConvertTest, ADocumentIsToldWithItsTextAndSource) {
  const auto built_in = PolicyDocument::BuiltIn(Policy());
  const v1::PolicyDocument out = FromDocument(*built_in, "t");
  EXPECT_EQ(out.name(), "t");
  EXPECT_EQ(out.source(), v1::POLICY_SOURCE_BUILT_IN);
  EXPECT_FALSE(out.has_update_time());
  EXPECT_EQ(out.etag(), built_in->etag());
  std::vector<Problem> problems;
  const auto stored = PolicyDocument::Read(
      {.tenant = "t", .yaml = built_in->yaml(), .update_time = 7'000'000},
      Policy(), problems);
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(FromDocument(*stored, "t").digest(), out.digest());
  EXPECT_EQ(FromDocument(*stored, "t").update_time().seconds(), 7);
}

TEST(PolicyConvertTest, APolicyIsToldWithWhatItMatches) {
  TenantPolicy policy;
  policy.name = "n";
  policy.labels = {{"app", "demo"}};
  policy.model = "claude-*";
  policy.digest = "d";
  const v1::Policy out = FromPolicy(policy, PolicySource::kFile);
  EXPECT_EQ(out.name(), "n");
  EXPECT_EQ(out.labels().at("app"), "demo");
  EXPECT_EQ(out.model(), "claude-*");
  EXPECT_EQ(out.digest(), "d");
  EXPECT_EQ(out.source(), v1::POLICY_SOURCE_FILE);
  EXPECT_EQ(out.yaml(), DocumentOf(Policy()));
}

TEST(PolicyConvertTest, EveryPresetIsADocumentThatCanBeStored) {
  for (const Preset& preset : Presets()) {
    const v1::PolicyPreset out = FromPreset(preset);
    EXPECT_EQ(out.name(), std::string(preset.name));
    std::vector<Problem> problems;
    const auto document =
        PolicyDocument::Read({.yaml = out.yaml()}, Policy(), problems);
    ASSERT_NE(document, nullptr) << out.name() << Describe(problems);
    EXPECT_EQ(document->policies().policies().front().digest, out.digest());
  }
}

TEST(PolicyConvertTest, ATrialNamesTheObservationsOfItsBreaks) {
  PolicyTrial trial;
  trial.call_count = 9;
  trial.cost = 1;
  trial.raw_cost = 2;
  TrialBreak& made = trial.breaks.emplace_back();
  made.call = 4;
  made.saved_tokens = 50;
  made.view.break_reason = BreakReason::kPays;
  made.view.masks = {{.sequence = 2, .index = 1},
                     {.sequence = 3, .is_restored = true},
                     {.sequence = 4}};
  trial.input = {.read = 5, .written = 6, .uncached = 7};
  const v1::PolicyTrial out = FromTrial(trial);
  EXPECT_EQ(out.call_count(), 9);
  EXPECT_EQ(out.input().read(), 5);
  EXPECT_EQ(out.input().written(), 6);
  EXPECT_EQ(out.input().uncached(), 7);
  ASSERT_EQ(out.breaks_size(), 1);
  EXPECT_EQ(out.breaks(0).reason(), v1::BREAK_REASON_PAYS);
  ASSERT_EQ(out.breaks(0).observation_ids_size(), 2);
  EXPECT_EQ(out.breaks(0).observation_ids(0), "2.1");
  EXPECT_EQ(out.breaks(0).observation_ids(1), "4.0");
  ASSERT_EQ(out.breaks(0).restored_observation_ids_size(), 1);
  EXPECT_EQ(out.breaks(0).restored_observation_ids(0), "3.0");
}

TEST(PolicyConvertTest, LabelsHaveLimits) {
  google::protobuf::Map<std::string, std::string> labels;
  for (int i = 0; i < 15; ++i) labels[absl::StrCat("key", i)] = "v";
  labels[std::string(63, 'k')] = std::string(128, 'v');
  const auto all = ToLabels("labels", labels);
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->size(), 16U);
  labels["a.b_c/d-9"] = "v";
  EXPECT_THAT(ToLabels("labels", labels), kInvalid);

  for (const std::string& key :
       {std::string(), std::string(64, 'k'), std::string("a b"),
        std::string("\xc3\xa4"), std::string("a:b")}) {
    labels = {};
    labels[key] = "v";
    EXPECT_THAT(ToLabels("labels", labels), kInvalid) << key;
  }
  labels = {};
  // What no policy could ask for is no label.
  labels["k"] = "night batch";
  EXPECT_EQ(MetadataOf(ToLabels("labels", labels).status(), "field"),
            "labels[k]");
  labels["k"] = std::string(129, 'v');
  EXPECT_EQ(MetadataOf(ToLabels("labels", labels).status(), "field"),
            "labels[k]");
}

}  // namespace
}  // namespace clerestory
