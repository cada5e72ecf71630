// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "client/cli/simulation_spec.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

std::vector<std::string> NamesOf(const std::string& text) {
  const auto inputs = ParseSimulation(text);
  EXPECT_THAT(inputs, IsOk()) << text;
  std::vector<std::string> names;
  if (!inputs.ok()) return names;
  for (const SimulatedInput& input : *inputs) names.push_back(input.name);
  return names;
}

std::string MessageOf(const std::string& text) {
  const absl::Status status = ParseSimulation(text).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
  EXPECT_EQ(MetadataOf(status, "field"), "simulate");
  return std::string(status.message());
}

TEST(ParseSimulationTest, WithoutANameIsThePublishedOne) {
  const std::vector<std::string> names = {"simulate-20",  "simulate-40",
                                          "simulate-60",  "simulate-100",
                                          "simulate-200", "simulate-300"};
  EXPECT_EQ(NamesOf(""), names);
  EXPECT_EQ(NamesOf("published"), names);
}

TEST(ParseSimulationTest, TakesASeedOrARangeOfThemAndPauses) {
  EXPECT_EQ(NamesOf("lognormal:5:7"),
            std::vector<std::string>{"lognormal:5:7"});
  EXPECT_EQ(NamesOf("lognormal:5:7-8:pauses"),
            (std::vector<std::string>{"lognormal:5:7:pauses",
                                      "lognormal:5:8:pauses"}));
  EXPECT_EQ(ParseSimulation("lognormal:5:7")->front().input.messages.size(),
            10U);
}

TEST(ParseSimulationTest, PausesAreBetweenItsCalls) {
  const auto last_time = [](const char* text) {
    return ParseSimulation(text)->front().input.messages.back().time;
  };
  EXPECT_LT(last_time("lognormal:50:7"), last_time("lognormal:50:7:pauses"));
}

TEST(ParseSimulationTest, SaysWhatIsWrongAndWhatToWrite) {
  const std::string write =
      "; write published, lognormal:TURNS:SEED or lognormal:TURNS:FIRST-LAST, "
      "and :pauses behind it for a user who pauses, as in "
      "lognormal:100:1-24:pauses";
  const auto seed = [](const std::string& text) {
    return absl::StrCat("the seed '", text,
                        "' is neither a number from 0 to 1000000000 nor a "
                        "first and a last one, of 1000 at most");
  };
  const std::string turns = "' are no number from 1 to 100000";
  struct Row {
    std::string text;
    std::string what;
  };
  const Row rows[] = {
      {"normal:5:1", "there is no simulation 'normal'"},
      {"lognormal", "it has two or three fields behind its name"},
      {"lognormal:5:1:pauses:1", "it has two or three fields behind its name"},
      {"lognormal:0:1", absl::StrCat("the turns '0", turns)},
      {"lognormal:x:1", absl::StrCat("the turns 'x", turns)},
      {"lognormal:100001:1", absl::StrCat("the turns '100001", turns)},
      {"lognormal:5:", seed("")},
      {"lognormal:5:-1", seed("-1")},
      {"lognormal:5:3-2", seed("3-2")},
      {"lognormal:5:1-2-3", seed("1-2-3")},
      {"lognormal:5:1-1001", seed("1-1001")},
      {"lognormal:5:1:often", "'often' is not pauses"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(MessageOf(row.text),
              absl::StrCat("simulate: ", row.text, ": ", row.what, write));
  }
}

}  // namespace
}  // namespace clerestory
