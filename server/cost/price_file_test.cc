// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/cost/price_book.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kFolder =
    std::filesystem::path(CLERESTORY_SOURCE_DIR) / "tests/testdata/prices";

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string ErrorOf(absl::string_view file, absl::string_view text,
                    const PriceBook* built_in = &BuiltInPrices()) {
  const absl::StatusOr<PriceBook> book = ParsePriceBook(file, text, built_in);
  EXPECT_THAT(book, FailsWith(absl::StatusCode::kInvalidArgument,
                              Reason::kFieldInvalid))
      << text;
  EXPECT_EQ(MetadataOf(book.status(), "field"), "prices");
  return std::string(book.status().message());
}

// Of each file with mistakes, what is said of it stands beside it.
TEST(PriceFileTest, MistakesAreToldAsTheyAlwaysWere) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  EXPECT_GE(files.size(), 10U);
  for (const std::filesystem::path& file : files) {
    std::filesystem::path expected = file;
    expected.replace_extension(".txt");
    EXPECT_EQ(ErrorOf(file.filename().string(), Read(file)) + "\n",
              Read(expected))
        << file;
  }
}

TEST(PriceFileTest, ThereMayBeNothingToExtend) {
  EXPECT_THAT(
      ErrorOf("f.yaml", "as_of: 2026-11-30\nextends: built-in\n", nullptr),
      HasSubstr("f.yaml:2:10: extends: there is nothing here to "
                "extend; leave it out"));
}

// Each name gets a copy of all rows.
TEST(PriceFileTest, AFileCannotGrowWithoutBound) {
  std::string text =
      "as_of: 2026-11-30\nextends: built-in\nmodels:\n- family: claude-5\n"
      "  model: [m";
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&text, ",m", i);
  absl::StrAppend(&text, "]\n  prices:\n");
  for (int i = 0; i < 10'000; ++i) {
    absl::StrAppend(&text, "  - {input: 1, read: 1, output: 1}\n");
  }
  EXPECT_THAT(ErrorOf("f.yaml", text), HasSubstr(" more"));
  text =
      "as_of: 2026-11-30\nextends: built-in\nmodels:\n- family: claude-5\n"
      "  prices: [{input: 1, write: 1, long_write: 1, read: 1, output: 1}]\n"
      "  model: [m";
  for (int i = 0; i < 20'000; ++i) absl::StrAppend(&text, ",m", i);
  absl::StrAppend(&text, "]\n");
  EXPECT_EQ(ErrorOf("f.yaml", text),
            "f.yaml:4:3: models[0]: more than 10000 prices; leave out what you "
            "do not use");
}

}  // namespace
}  // namespace clerestory
