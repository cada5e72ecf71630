// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/policy_files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/log.h"
#include "server/base/reason.h"
#include "server/base/time.h"
#include "server/engine/policy_document.h"
#include "server/engine/policy_registry.h"
#include "server/policy/policy.h"
#include "server/store/memory/memory_store.h"
#include "server/yaml/problem.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_directory.h"

namespace clerestory {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A document of one policy.
std::string Doc(absl::string_view policy) {
  return absl::StrCat("policies:\n  - name: main\n    ", policy, "\n");
}

class FixedClock final : public Clock {
 public:
  TimeMicros Now() const override { return now; }
  TimeMicros now = 77;
};

// Keeps the messages of what was refused.
class KeepingLogger final : public Logger {
 public:
  void Write(Severity /*severity*/, absl::string_view event,
             const std::vector<LogField>& fields) override {
    if (event != "file_refused") return;
    for (const LogField& field : fields) {
      if (field.first == "message") {
        refused.push_back(std::get<std::string>(field.second));
      }
    }
  }
  std::vector<std::string> refused;
};

class PolicyFilesTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, absl::string_view text) {
    std::ofstream(Path(path)) << std::string(text);
  }

  std::string Path(const std::string& path) const {
    return absl::StrCat(directory_.path(), "/", path);
  }

  PolicyFiles::Options Options() const {
    return {.policy_dir = directory_.path()};
  }

  // What is in force for `tenant`, or "" if it is the server's own.
  std::string InForce(absl::string_view tenant) {
    const PolicyDocumentPtr document = registry_.For(tenant);
    return document->source() == PolicySource::kFile ? document->yaml() : "";
  }

  TempDirectory directory_;
  MemoryStore store_;
  PolicyRegistry registry_{store_, Policy()};
  FixedClock clock_;
  KeepingLogger logger_;
  PolicyFiles files_{Options(), registry_, clock_, logger_};
};

TEST_F(PolicyFilesTest, AFileIsItsTenantsDocument) {
  Write("a.yaml", Doc("mode: off"));
  Write("b.c.yaml", Doc("mode: block"));
  Write("README.md", "# no policy");
  Write(".hidden.yaml", "no policy");
  Write(".yaml", "no policy");
  ASSERT_THAT(files_.Load(), IsOk());
  EXPECT_EQ(InForce("a"), Doc("mode: off"));
  EXPECT_EQ(InForce("b.c"), Doc("mode: block"));
  EXPECT_EQ(InForce(""), "");
  EXPECT_EQ(registry_.For("a")->update_time(), 77);
  const PolicyFiles::Counters counters = files_.counters();
  EXPECT_EQ(counters.loaded, 2);
  EXPECT_EQ(counters.files, 2);
  EXPECT_EQ(counters.refused, 0);
  EXPECT_EQ(counters.last_success_time, 77);
}

TEST_F(PolicyFilesTest, ABadFileAtTheStartIsAnErrorWithEveryProblem) {
  Write("a.yaml", Doc("mode: off\n    colour: blue\n    shade: dark"));
  Write("b.yaml", Doc("mode: pink"));
  Write("c.yaml", Doc("mode: off"));
  const absl::Status status = files_.Load();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kPolicyInvalid));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(Path("a.yaml:4:5: policies[0]: unknown name \"colour\"")),
            HasSubstr(Path("a.yaml:5:5: policies[0]: unknown name \"shade\"")),
            HasSubstr(Path("b.yaml:3:11: policies[0].mode"))));
  EXPECT_EQ(InForce("c"), "");
}

TEST_F(PolicyFilesTest, AMissingDirectoryAtTheStartIsAnError) {
  PolicyFiles::Options options = Options();
  options.policy_dir = Path("missing");
  PolicyFiles files(options, registry_, clock_, logger_);
  EXPECT_THAT(std::string(files.Load().message()),
              AllOf(HasSubstr("missing:1:1: "), HasSubstr("cannot be read")));
}

TEST_F(PolicyFilesTest, ABadVersionKeepsTheGoodOneAndIsLoggedOnce) {
  Write("a.yaml", Doc("mode: off"));
  ASSERT_THAT(files_.Load(), IsOk());
  clock_.now = 88;
  Write("a.yaml", Doc("mode: block\n    colour: blue\n    shade: dark"));
  files_.Reload();
  files_.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: off"));
  ASSERT_THAT(logger_.refused, SizeIs(2));
  EXPECT_THAT(logger_.refused[0],
              HasSubstr("a.yaml:4:5: policies[0]: unknown name \"colour\""));
  EXPECT_THAT(logger_.refused[1],
              HasSubstr("a.yaml:5:5: policies[0]: unknown name \"shade\""));
  EXPECT_EQ(files_.counters().refused, 1);
  EXPECT_EQ(files_.counters().files, 1);
  EXPECT_EQ(files_.counters().last_success_time, 77);

  Write("a.yaml", Doc("mode: block"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: block"));
  EXPECT_EQ(files_.counters().loaded, 2);
  EXPECT_EQ(files_.counters().last_success_time, 88);
}

TEST_F(PolicyFilesTest, AFileThatIsNotChangedIsNotReadAgain) {
  Write("a.yaml", Doc("mode: off"));
  ASSERT_THAT(files_.Load(), IsOk());
  const PolicyDocumentPtr before = registry_.For("a");
  files_.Reload();
  EXPECT_EQ(registry_.For("a"), before);
  EXPECT_EQ(files_.counters().loaded, 1);
}

TEST_F(PolicyFilesTest, ADeletedFileTakesItsPolicyWithIt) {
  Write("a.yaml", Doc("mode: off"));
  Write("b.yaml", Doc("mode: off"));
  ASSERT_THAT(files_.Load(), IsOk());
  fs::remove(Path("a.yaml"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), "");
  EXPECT_EQ(InForce("b"), Doc("mode: off"));
  EXPECT_EQ(files_.counters().files, 1);
  EXPECT_THAT(logger_.refused, IsEmpty());
  // And one that comes back is new, also if it says what it said.
  Write("a.yaml", Doc("mode: off"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: off"));
}

TEST_F(PolicyFilesTest, ADirectoryThatIsGoneKeepsWhatWasRead) {
  PolicyFiles::Options options = Options();
  options.policy_dir = Path("policies");
  fs::create_directory(options.policy_dir);
  Write("policies/a.yaml", Doc("mode: off"));
  PolicyFiles files(options, registry_, clock_, logger_);
  ASSERT_THAT(files.Load(), IsOk());
  fs::rename(options.policy_dir, Path("elsewhere"));
  files.Reload();
  files.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: off"));
  ASSERT_THAT(logger_.refused, SizeIs(1));
  EXPECT_THAT(logger_.refused[0], HasSubstr("stays in force"));
  fs::rename(Path("elsewhere"), options.policy_dir);
  Write("policies/a.yaml", Doc("mode: block"));
  files.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: block"));
}

TEST_F(PolicyFilesTest, TheLinksOfAConfigMapAreFollowed) {
  fs::create_directory(Path("..1"));
  Write("..1/a.yaml", Doc("mode: off"));
  Write("..1/b.yaml", Doc("mode: off"));
  fs::create_symlink("..1", Path("..data"));
  fs::create_symlink("..data/a.yaml", Path("a.yaml"));
  fs::create_symlink("..data/b.yaml", Path("b.yaml"));
  ASSERT_THAT(files_.Load(), IsOk());
  EXPECT_EQ(InForce("a"), Doc("mode: off"));

  fs::create_directory(Path("..2"));
  Write("..2/a.yaml", Doc("mode: block"));
  fs::create_symlink("..2", Path("..data_tmp"));
  fs::rename(Path("..data_tmp"), Path("..data"));
  fs::remove_all(Path("..1"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: block"));
  // Its link is there and leads nowhere.
  EXPECT_EQ(InForce("b"), "");
  EXPECT_THAT(logger_.refused, IsEmpty());
}

TEST_F(PolicyFilesTest, WhatIsNoFileIsNamedOnceAndKeepsTheGoodVersion) {
  Write("a.yaml", Doc("mode: off"));
  ASSERT_THAT(files_.Load(), IsOk());
  fs::remove(Path("a.yaml"));
  fs::create_directory(Path("a.yaml"));
  files_.Reload();
  files_.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: off"));
  ASSERT_THAT(logger_.refused, SizeIs(1));
  EXPECT_THAT(logger_.refused[0], HasSubstr("cannot be read"));
  fs::remove(Path("a.yaml"));
  Write("a.yaml", Doc("mode: block"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), Doc("mode: block"));
}

TEST_F(PolicyFilesTest, PricesAreHandedOverWhenTheyChangeAndAreGood) {
  std::string prices;
  PolicyFiles::Options options = Options();
  options.prices_file = Path("prices");
  options.load_prices = [&](absl::string_view file, absl::string_view text,
                            std::vector<Problem>& problems) {
    if (text == "bad") {
      problems.push_back(
          {.file = std::string(file), .path = "", .what = "is bad"});
    } else {
      prices += std::string(text);
    }
  };
  PolicyFiles files(options, registry_, clock_, logger_);
  EXPECT_THAT(std::string(files.Load().message()), HasSubstr("no such file"));
  Write("prices", "1");
  ASSERT_THAT(files.Load(), IsOk());
  files.Reload();
  Write("prices", "bad");
  files.Reload();
  fs::remove(Path("prices"));
  files.Reload();
  files.Reload();
  EXPECT_EQ(prices, "1");
  ASSERT_THAT(logger_.refused, SizeIs(1));
  EXPECT_THAT(logger_.refused[0], HasSubstr("prices:1:1: is bad"));
  Write("prices", "2");
  files.Reload();
  EXPECT_EQ(prices, "12");
}

}  // namespace
}  // namespace clerestory
