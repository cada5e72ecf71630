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
    return {.policy_dir = directory_.path(),
            .prices_file = "",
            .load_prices = nullptr};
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
  Write("a.yaml", "mode: off\n");
  Write("b.c.yaml", "mode: block\n");
  Write("README.md", "# no policy");
  Write(".hidden.yaml", "no policy");
  Write(".yaml", "no policy");
  ASSERT_THAT(files_.Load(), IsOk());
  EXPECT_EQ(InForce("a"), "mode: off\n");
  EXPECT_EQ(InForce("b.c"), "mode: block\n");
  EXPECT_EQ(InForce(""), "");
  EXPECT_EQ(registry_.For("a")->update_time(), 77);
  const PolicyFiles::Counters counters = files_.counters();
  EXPECT_EQ(counters.loaded, 2);
  EXPECT_EQ(counters.files, 2);
  EXPECT_EQ(counters.refused, 0);
  EXPECT_EQ(counters.last_success_time, 77);
}

TEST_F(PolicyFilesTest, ABadFileAtTheStartIsAnErrorWithEveryProblem) {
  Write("a.yaml", "mode: off\ncolour: blue\nshade: dark\n");
  Write("b.yaml", "mode: pink\n");
  Write("c.yaml", "mode: off\n");
  const absl::Status status = files_.Load();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kPolicyInvalid));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(Path("a.yaml:2:1: colour")),
                    HasSubstr(Path("a.yaml:3:1: shade")),
                    HasSubstr(Path("b.yaml:1:"))));
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
  Write("a.yaml", "mode: off\n");
  ASSERT_THAT(files_.Load(), IsOk());
  clock_.now = 88;
  Write("a.yaml", "mode: block\ncolour: blue\nshade: dark\n");
  files_.Reload();
  files_.Reload();
  EXPECT_EQ(InForce("a"), "mode: off\n");
  ASSERT_THAT(logger_.refused, SizeIs(2));
  EXPECT_THAT(logger_.refused[0], HasSubstr("a.yaml:2:1: colour"));
  EXPECT_THAT(logger_.refused[1], HasSubstr("a.yaml:3:1: shade"));
  EXPECT_EQ(files_.counters().refused, 1);
  EXPECT_EQ(files_.counters().files, 1);
  EXPECT_EQ(files_.counters().last_success_time, 77);

  Write("a.yaml", "mode: block\n");
  files_.Reload();
  EXPECT_EQ(InForce("a"), "mode: block\n");
  EXPECT_EQ(files_.counters().loaded, 2);
  EXPECT_EQ(files_.counters().last_success_time, 88);
}

TEST_F(PolicyFilesTest, AFileThatIsNotChangedIsNotReadAgain) {
  Write("a.yaml", "mode: off\n");
  ASSERT_THAT(files_.Load(), IsOk());
  const PolicyDocumentPtr before = registry_.For("a");
  files_.Reload();
  EXPECT_EQ(registry_.For("a"), before);
  EXPECT_EQ(files_.counters().loaded, 1);
}

TEST_F(PolicyFilesTest, ADeletedFileTakesItsPolicyWithIt) {
  Write("a.yaml", "mode: off\n");
  Write("b.yaml", "mode: off\n");
  ASSERT_THAT(files_.Load(), IsOk());
  fs::remove(Path("a.yaml"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), "");
  EXPECT_EQ(InForce("b"), "mode: off\n");
  EXPECT_EQ(files_.counters().files, 1);
  EXPECT_THAT(logger_.refused, IsEmpty());
  // And one that comes back is new, also if it says what it said.
  Write("a.yaml", "mode: off\n");
  files_.Reload();
  EXPECT_EQ(InForce("a"), "mode: off\n");
}

TEST_F(PolicyFilesTest, ADirectoryThatIsGoneKeepsWhatWasRead) {
  PolicyFiles::Options options = Options();
  options.policy_dir = Path("policies");
  fs::create_directory(options.policy_dir);
  Write("policies/a.yaml", "mode: off\n");
  PolicyFiles files(options, registry_, clock_, logger_);
  ASSERT_THAT(files.Load(), IsOk());
  fs::rename(options.policy_dir, Path("elsewhere"));
  files.Reload();
  files.Reload();
  EXPECT_EQ(InForce("a"), "mode: off\n");
  ASSERT_THAT(logger_.refused, SizeIs(1));
  EXPECT_THAT(logger_.refused[0], HasSubstr("stays in force"));
  fs::rename(Path("elsewhere"), options.policy_dir);
  Write("policies/a.yaml", "mode: block\n");
  files.Reload();
  EXPECT_EQ(InForce("a"), "mode: block\n");
}

TEST_F(PolicyFilesTest, TheLinksOfAConfigMapAreFollowed) {
  fs::create_directory(Path("..1"));
  Write("..1/a.yaml", "mode: off\n");
  Write("..1/b.yaml", "mode: off\n");
  fs::create_symlink("..1", Path("..data"));
  fs::create_symlink("..data/a.yaml", Path("a.yaml"));
  fs::create_symlink("..data/b.yaml", Path("b.yaml"));
  ASSERT_THAT(files_.Load(), IsOk());
  EXPECT_EQ(InForce("a"), "mode: off\n");

  fs::create_directory(Path("..2"));
  Write("..2/a.yaml", "mode: block\n");
  fs::create_symlink("..2", Path("..data_tmp"));
  fs::rename(Path("..data_tmp"), Path("..data"));
  fs::remove_all(Path("..1"));
  files_.Reload();
  EXPECT_EQ(InForce("a"), "mode: block\n");
  // Its link is there and leads nowhere.
  EXPECT_EQ(InForce("b"), "");
  EXPECT_THAT(logger_.refused, IsEmpty());
}

TEST_F(PolicyFilesTest, WhatIsNoFileIsNamedOnceAndKeepsTheGoodVersion) {
  Write("a.yaml", "mode: off\n");
  ASSERT_THAT(files_.Load(), IsOk());
  fs::remove(Path("a.yaml"));
  fs::create_directory(Path("a.yaml"));
  files_.Reload();
  files_.Reload();
  EXPECT_EQ(InForce("a"), "mode: off\n");
  ASSERT_THAT(logger_.refused, SizeIs(1));
  EXPECT_THAT(logger_.refused[0], HasSubstr("cannot be read"));
  fs::remove(Path("a.yaml"));
  Write("a.yaml", "mode: block\n");
  files_.Reload();
  EXPECT_EQ(InForce("a"), "mode: block\n");
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
