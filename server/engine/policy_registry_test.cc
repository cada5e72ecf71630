// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/policy_registry.h"

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/engine/policy_document.h"
#include "server/policy/policy.h"
#include "server/store/memory/memory_store.h"
#include "server/store/session_store.h"
#include "server/yaml/problem.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNull;
using ::testing::SizeIs;

constexpr TimeMicros kNow = 77;

const auto kInvalid =
    FailsWith(absl::StatusCode::kInvalidArgument, Reason::kPolicyInvalid);
const auto kConflict =
    FailsWith(absl::StatusCode::kAborted, Reason::kPolicyConflict);
const auto kMissing =
    FailsWith(absl::StatusCode::kNotFound, Reason::kPolicyNotFound);

// A document of one policy.
std::string Doc(absl::string_view policy) {
  return absl::StrCat("policies:\n  - name: main\n    ", policy, "\n");
}

Policy BuiltIn() {
  Policy policy;
  policy.mode = Mode::kEveryTurn;
  return policy;
}

PolicyDocumentPtr FileOf(absl::string_view yaml) {
  std::vector<Problem> problems;
  PolicyDocumentPtr document =
      PolicyDocument::Read({.source = PolicySource::kFile,
                            .tenant = "t",
                            .file = "t.yaml",
                            .yaml = std::string(yaml),
                            .update_time = kNow},
                           Policy(), problems);

  EXPECT_THAT(problems, IsEmpty());
  return document;
}

void ExpectNoError(absl::string_view tenant, const absl::Status& why) {
  ADD_FAILURE() << tenant << ": " << why;
}

class PolicyRegistryTest : public ::testing::Test {
 protected:
  // The mode that `tenant` has, by the registry.
  Mode ModeOf(absl::string_view tenant) {
    SessionHeader session;
    session.key = {std::string(tenant), "s"};
    return registry_.For(tenant)->For(session, "m").policy->mode;
  }

  MemoryStore store_;
  PolicyRegistry registry_{store_, BuiltIn()};
};

TEST_F(PolicyRegistryTest, AStoredDocumentWinsOverAFileAndThatOverTheServers) {
  EXPECT_EQ(ModeOf("t"), Mode::kEveryTurn);
  EXPECT_EQ(registry_.For("t")->source(), PolicySource::kBuiltIn);

  registry_.SetFiles({{"t", FileOf(Doc("mode: off"))}});
  EXPECT_EQ(ModeOf("t"), Mode::kOff);
  EXPECT_EQ(registry_.For("t")->source(), PolicySource::kFile);
  EXPECT_EQ(ModeOf("other"), Mode::kEveryTurn);

  ASSERT_THAT(registry_.Set("t", Doc("mode: block"), std::nullopt, kNow),
              IsOk());
  EXPECT_EQ(ModeOf("t"), Mode::kBlock);
  EXPECT_EQ(registry_.For("t")->source(), PolicySource::kStored);
  registry_.SetFiles({{"t", FileOf(Doc("mode: adaptive"))}});
  EXPECT_EQ(ModeOf("t"), Mode::kBlock);

  ASSERT_THAT(registry_.Delete("t", std::nullopt), IsOk());
  EXPECT_EQ(ModeOf("t"), Mode::kAdaptive);
  registry_.SetFiles({});
  EXPECT_EQ(ModeOf("t"), Mode::kEveryTurn);
}

TEST_F(PolicyRegistryTest, EverySourceCanBeAskedFor) {
  EXPECT_THAT(registry_.Find("t", PolicySource::kStored), IsNull());
  EXPECT_THAT(registry_.Find("t", PolicySource::kFile), IsNull());
  registry_.SetFiles({{"t", FileOf(Doc("mode: off"))}});
  ASSERT_THAT(registry_.Set("t", Doc("mode: block"), "", kNow), IsOk());
  const PolicyDocumentPtr stored = registry_.Find("t", PolicySource::kStored);
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(stored->yaml(), Doc("mode: block"));
  EXPECT_EQ(stored->etag(), PolicyEtag(Doc("mode: block")));
  EXPECT_EQ(stored->update_time(), kNow);
  EXPECT_EQ(registry_.Find("t", PolicySource::kFile)->yaml(), Doc("mode: off"));
  const PolicyDocumentPtr built_in =
      registry_.Find("t", PolicySource::kBuiltIn);
  EXPECT_EQ(built_in->policies().policies().front().digest,
            PolicyDigest(BuiltIn()));
  EXPECT_EQ(built_in->update_time(), 0);
}

TEST_F(PolicyRegistryTest, WhatIsStoredIsInForceAfterARestart) {
  ASSERT_THAT(registry_.Set("a", Doc("mode: block"), "", kNow), IsOk());
  ASSERT_THAT(registry_.Set("b", Doc("mode: off"), "", kNow), IsOk());
  PolicyRegistry restarted(store_, BuiltIn());
  EXPECT_EQ(restarted.For("a")->source(), PolicySource::kBuiltIn);
  ASSERT_THAT(restarted.LoadStored(ExpectNoError), IsOk());
  for (const char* const tenant : {"a", "b"}) {
    EXPECT_EQ(restarted.For(tenant)->yaml(), registry_.For(tenant)->yaml());
    EXPECT_EQ(restarted.For(tenant)->update_time(), kNow);
  }
  EXPECT_EQ(restarted.For("c")->source(), PolicySource::kBuiltIn);
}

TEST_F(PolicyRegistryTest, ABadStoredDocumentIsPassedByAndNamed) {
  ASSERT_THAT(
      store_.PutPolicy({.tenant = "bad", .yaml = Doc("colour: blue")}, ""),
      IsOk());
  ASSERT_THAT(
      store_.PutPolicy({.tenant = "good", .yaml = Doc("mode: off")}, ""),
      IsOk());
  std::map<std::string, absl::Status> errors;
  ASSERT_THAT(registry_.LoadStored(
                  [&](absl::string_view tenant, const absl::Status& why) {
                    errors[std::string(tenant)] = why;
                  }),
              IsOk());
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_THAT(errors["bad"], kInvalid);
  EXPECT_EQ(ModeOf("bad"), Mode::kEveryTurn);
  EXPECT_EQ(ModeOf("good"), Mode::kOff);
}

// A store that finds none of its documents for damage.
class DamagedStore : public ForwardingStore {
 public:
  absl::StatusOr<PolicyTenants> ListPolicyTenants() const override {
    if (!is_damaged) return ForwardingStore::ListPolicyTenants();
    return PolicyTenants{.names = {}, .skipped_count = 1};
  }
  bool is_damaged = false;
};

TEST_F(PolicyRegistryTest, WhatDamageHidesIsCountedAndStaysInForce) {
  DamagedStore store;
  PolicyRegistry registry(store, BuiltIn());
  ASSERT_THAT(registry.Set("t", Doc("mode: off"), "", kNow), IsOk());
  EXPECT_EQ(*registry.LoadStored(ExpectNoError), 0);
  store.is_damaged = true;
  EXPECT_EQ(*registry.LoadStored(ExpectNoError), 1);
  EXPECT_EQ(registry.For("t")->source(), PolicySource::kStored);
  PolicyRegistry restarted(store, BuiltIn());
  EXPECT_EQ(*restarted.LoadStored(ExpectNoError), 1);
  EXPECT_EQ(restarted.For("t")->source(), PolicySource::kBuiltIn);
}

TEST_F(PolicyRegistryTest, ABadDocumentChangesNothingAndEachProblemIsNamed) {
  ASSERT_THAT(registry_.Set("t", Doc("mode: off"), "", kNow), IsOk());
  const auto refused = registry_.Set(
      "t", Doc("mode: block\n    colour: blue\n    block: {size: 0}"),
      std::nullopt, kNow);
  EXPECT_THAT(refused, kInvalid);
  const std::vector<Violation> violations = ViolationsOf(refused.status());
  ASSERT_THAT(violations, SizeIs(2));
  EXPECT_EQ(violations[0].field, "policies[0]");
  EXPECT_THAT(violations[0].description,
              ::testing::StartsWith("4:5: unknown name \"colour\""));
  EXPECT_THAT(violations[1].field, HasSubstr("block.size"));
  EXPECT_THAT(violations[1].description, ::testing::StartsWith("5:"));
  EXPECT_EQ(ModeOf("t"), Mode::kOff);
  EXPECT_EQ(store_.GetPolicy("t")->yaml, Doc("mode: off"));
}

TEST_F(PolicyRegistryTest, AnotherDocumentThanExpectedIsAConflict) {
  const std::string etag = PolicyEtag(Doc("mode: off"));
  EXPECT_THAT(registry_.Set("t", Doc("mode: off"), etag, kNow), kConflict);
  EXPECT_EQ(ModeOf("t"), Mode::kEveryTurn);
  ASSERT_THAT(registry_.Set("t", Doc("mode: off"), "", kNow), IsOk());
  const auto refused = registry_.Set("t", Doc("mode: block"), "", kNow);
  EXPECT_THAT(refused, kConflict);
  EXPECT_EQ(MetadataOf(refused.status(), "etag"), etag);
  EXPECT_THAT(registry_.Delete("t", "x"), kConflict);
  EXPECT_EQ(ModeOf("t"), Mode::kOff);
  ASSERT_THAT(registry_.Delete("t", etag), IsOk());
  EXPECT_THAT(registry_.Delete("t", std::nullopt), kMissing);
}

TEST_F(PolicyRegistryTest, ValidatingStoresNothingAndSeesTheSameErrors) {
  EXPECT_THAT(registry_.Validate("t", Doc("mode: off"), "", kNow), IsOk());
  EXPECT_THAT(store_.GetPolicy("t"), kMissing);
  EXPECT_EQ(ModeOf("t"), Mode::kEveryTurn);
  EXPECT_THAT(registry_.Validate("t", Doc("mode: off"), "x", kNow), kConflict);
  EXPECT_THAT(registry_.Validate("t", Doc("mode: pink"), "", kNow), kInvalid);
}

TEST_F(PolicyRegistryTest, ADocumentOfAnotherTenantIsRefused) {
  EXPECT_THAT(registry_.Set("t", "tenant: t\n" + Doc("mode: off"), "", kNow),
              IsOk());
  const auto refused = registry_.Set("t", "tenant: u\n" + Doc("mode: block"),
                                     std::nullopt, kNow);
  EXPECT_THAT(refused, kInvalid);
  EXPECT_EQ(ViolationsOf(refused.status()),
            (std::vector<Violation>{
                {.field = "tenant",
                 .description = "1:1: is \"u\", but this is the document of "
                                "\"t\"; write that, or leave it out"}}));
}

TEST_F(PolicyRegistryTest, SessionsThatNoPolicyIsForHaveTheServers) {
  ASSERT_THAT(
      registry_.Set("t", Doc("match: {labels: {app: demo}}\n    mode: off"), "",
                    kNow),
      IsOk());
  EXPECT_EQ(ModeOf("t"), Mode::kEveryTurn);
  SessionHeader session;
  session.labels = {{"app", "demo"}};
  EXPECT_EQ(registry_.For("t")->For(session, "m").policy->mode, Mode::kOff);
}

TEST_F(PolicyRegistryTest, ADocumentOfTooManyBytesIsRefusedUnread) {
  const std::string large(static_cast<std::size_t>(kPolicyBytesMax) + 1, '#');
  const auto refused = registry_.Set("t", large, std::nullopt, kNow);
  EXPECT_THAT(refused, kInvalid);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("more than 1048576 bytes"));
}

TEST_F(PolicyRegistryTest, AnAnswerHasRoomForWhatItSaysOfProblems) {
  std::vector<Problem> problems(500, {.file = "f",
                                      .line = 3,
                                      .column = 5,
                                      .path = "policies[0].keep.observations",
                                      .what = std::string(100, 'x')});
  const absl::Status error = PolicyInvalidError(problems);
  const std::vector<Violation> violations = ViolationsOf(error);
  EXPECT_LT(violations.size(), 30U);
  EXPECT_EQ(violations.back().description,
            absl::StrCat("and ", 501 - violations.size(),
                         " more; correct these first"));
  EXPECT_LT(error.message().size(), 1000U);
}

TEST_F(PolicyRegistryTest, ReadersSeeOneDocumentOrTheOtherWhileWritersChange) {
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  readers.reserve(2);
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const Mode mode = ModeOf("t");
        EXPECT_TRUE(mode == Mode::kOff || mode == Mode::kBlock ||
                    mode == Mode::kEveryTurn);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(
        registry_.Set("t", i % 2 == 0 ? Doc("mode: off") : Doc("mode: block"),
                      std::nullopt, kNow),
        IsOk());
    registry_.SetFiles({{"t", FileOf(Doc("mode: off"))}});
    if (i % 3 == 0) {
      EXPECT_THAT(registry_.Delete("t", std::nullopt), IsOk());
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace clerestory
