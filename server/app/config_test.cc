// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/app/config.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/policy/policy.h"
#include "server/policy/presets.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// All of `config`, to compare.
std::string Show(const Config& config) {
  std::string out = PolicyDigest(config.policy);
  for (const ConfigField& field : ConfigFields()) {
    absl::StrAppend(&out, "\n", field.name, "=");
    if (const auto* text = std::get_if<std::string Config::*>(&field.member)) {
      absl::StrAppend(&out, config.**text);
    } else if (const auto* truth = std::get_if<bool Config::*>(&field.member)) {
      absl::StrAppend(&out, config.**truth ? "true" : "false");
    } else {
      absl::StrAppend(&out,
                      config.*std::get<std::int64_t Config::*>(field.member));
    }
  }
  return out;
}

// The errors that loading `yaml` gives, a line each. Nothing may have changed.
std::vector<std::string> ErrorsOf(absl::string_view yaml) {
  Config config;
  config.tenant = "kept";
  const std::string before = Show(config);
  const absl::Status status = LoadYaml(yaml, "f.yaml", config);
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid))
      << yaml;
  EXPECT_EQ(Show(config), before) << yaml;
  return absl::StrSplit(status.message(), '\n');
}

std::string ErrorOf(absl::string_view yaml) {
  const std::vector<std::string> errors = ErrorsOf(yaml);
  EXPECT_EQ(errors.size(), 1U) << yaml;
  return errors.front();
}

Config Load(absl::string_view yaml) {
  Config config;
  EXPECT_THAT(LoadYaml(yaml, "f.yaml", config), IsOk()) << yaml;
  return config;
}

// --- what is accepted ------------------------------------------------------

TEST(ConfigTest, DefaultsCanBeStartedWith) {
  EXPECT_THAT(CheckConfig(Config()), IsOk());
}

TEST(ConfigTest, EveryDefaultSurvivesAFileThatSaysNothing) {
  for (const char* yaml :
       {"", "\n", "# nothing\n", "---\n", "{}", "~", "policy: {}"}) {
    EXPECT_EQ(Show(Load(yaml)), Show(Config())) << yaml;
  }
}

TEST(ConfigTest, EveryDefaultIsAllowed) {
  const Config defaults;
  for (const ConfigField& field : ConfigFields()) {
    const auto* number = std::get_if<std::int64_t Config::*>(&field.member);
    if (number == nullptr) continue;
    EXPECT_GE(defaults.**number, field.min) << field.name;
    EXPECT_LE(defaults.**number, field.max) << field.name;
  }
}

TEST(ConfigTest, YamlSetsEveryField) {
  const Config config = Load(
      "listen: 127.0.0.1:0\n"
      "store: memory\n"
      "data_dir: 'a b'\n"
      "tenant: t\n"
      "policy_dir: p\n"
      "prices_file: q\n"
      "metrics_address: 127.0.0.1:9\n"
      "development: true\n"
      "reflection: false\n"
      "worker_threads: 7\n"
      "cache_bytes: 0\n"
      "drain_seconds: 3600\n");
  EXPECT_EQ(ConfigFields().size(), 12U);
  EXPECT_EQ(config.listen, "127.0.0.1:0");
  EXPECT_EQ(config.store, "memory");
  EXPECT_EQ(config.data_dir, "a b");
  EXPECT_EQ(config.tenant, "t");
  EXPECT_EQ(config.policy_dir, "p");
  EXPECT_EQ(config.prices_file, "q");
  EXPECT_EQ(config.metrics_address, "127.0.0.1:9");
  EXPECT_TRUE(config.development);
  EXPECT_FALSE(config.reflection);
  EXPECT_EQ(config.worker_threads, 7);
  EXPECT_EQ(config.cache_bytes, 0);
  EXPECT_EQ(config.drain_seconds, 3600);
}

TEST(ConfigTest, APolicyMayStartFromAPreset) {
  Policy expected = FindPreset("jetbrains")->policy;
  EXPECT_EQ(Load("policy: {preset: jetbrains}").policy, expected);
  expected.keep_observations = 5;
  for (const char* const fields : {"preset: jetbrains, keep_observations: 5",
                                   "keep_observations: 5, preset: jetbrains"}) {
    EXPECT_EQ(Load(absl::StrCat("policy: {", fields, "}")).policy, expected);
  }
  EXPECT_EQ(ErrorOf("policy:\n  preset: none\n"),
            absl::StrCat("f.yaml:2:11: preset: unknown preset \"none\"; use ",
                         PresetNames()));
  EXPECT_EQ(ErrorOf("policy:\n  preset: [a]\n"),
            "f.yaml:2:11: preset: expected a single value");
}

TEST(ConfigTest, AFieldSetsItsOwnMemberOnly) {
  const std::vector<std::string> before = absl::StrSplit(Show(Config()), '\n');
  for (const ConfigField& field : ConfigFields()) {
    const bool is_truth = std::holds_alternative<bool Config::*>(field.member);
    // Of the two truths, one is not the default.
    for (const absl::string_view value : {"1", "true", "false"}) {
      if (is_truth == (value == "1")) continue;
      std::vector<std::string> expected = before;
      for (std::string& line : expected) {
        const std::string own = absl::StrCat(field.name, "=");
        if (absl::StartsWith(line, own)) line = absl::StrCat(own, value);
      }
      const std::vector<std::string> after = absl::StrSplit(
          Show(Load(absl::StrCat(field.name, ": ", value))), '\n');
      EXPECT_EQ(after, expected) << field.name;
    }
  }
}

TEST(ConfigTest, YamlSetsThePolicy) {
  const Config config = Load(
      "policy:\n"
      "  mode: block\n"
      "  block_size: 3\n"
      "  keep_observations: 5\n"
      "  placeholder: '[gone: {size}]'\n");
  EXPECT_EQ(config.policy.mode, Mode::kBlock);
  EXPECT_EQ(config.policy.block_size, 3);
  EXPECT_EQ(config.policy.keep_observations, 5);
  EXPECT_EQ(config.policy.placeholder, "[gone: {size}]");
  EXPECT_EQ(config.policy.keep_turns, Policy().keep_turns);
}

TEST(ConfigTest, NumbersAreAllowedUpToTheirBounds) {
  for (const ConfigField& field : ConfigFields()) {
    const auto* number = std::get_if<std::int64_t Config::*>(&field.member);
    if (number == nullptr) continue;
    for (const std::int64_t value : {field.min, field.max}) {
      EXPECT_EQ(Load(absl::StrCat(field.name, ": ", value)).**number, value);
    }
    for (const std::int64_t value : {field.min - 1, field.max + 1}) {
      EXPECT_EQ(
          ErrorOf(absl::StrCat(field.name, ": ", value)),
          absl::StrCat("f.yaml:1:", field.name.size() + 3, ": ", field.name,
                       ": expected a whole number from ", field.min, " to ",
                       field.max, ", got \"", value, "\""));
    }
  }
}

// --- what is refused, and where --------------------------------------------

TEST(ConfigTest, AValueOfAnotherTypeIsNamedWithItsPlace) {
  for (const ConfigField& field : ConfigFields()) {
    const std::string place =
        absl::StrCat("f.yaml:2:", field.name.size() + 3, ": ");
    for (const char* value : {"[1]", "{a: 1}"}) {
      EXPECT_EQ(ErrorOf(absl::StrCat("\n", field.name, ": ", value)),
                absl::StrCat(place, "expected a single value"));
    }
    const bool is_text =
        std::holds_alternative<std::string Config::*>(field.member);
    for (const char* value : {"''", "yes", "1.5"}) {
      if (is_text && absl::string_view(value) != "''") continue;
      EXPECT_THAT(ErrorOf(absl::StrCat("\n", field.name, ": ", value)),
                  StartsWith(absl::StrCat(place, field.name, ": ")))
          << value;
    }
  }
}

TEST(ConfigTest, AKeyWithoutValueIsRefused) {
  EXPECT_THAT(ErrorOf("tenant:\n"), HasSubstr("expected a single value"));
  EXPECT_THAT(ErrorOf("policy:\n"), HasSubstr("policy: expected a mapping"));
}

TEST(ConfigTest, AnUnknownKeyIsNamedWithThoseThatAreKnown) {
  const std::string error = ErrorOf("tenant: a\nlissten: b\n");
  EXPECT_THAT(error, StartsWith("f.yaml:2:1: unknown key \"lissten\"; use "));
  for (const ConfigField& field : ConfigFields()) {
    EXPECT_THAT(error, HasSubstr(std::string(field.name)));
  }
  EXPECT_THAT(error, HasSubstr("policy"));
  // What is a field's flag is not its name here.
  EXPECT_THAT(ErrorOf("data-dir: b"), HasSubstr("unknown key \"data-dir\""));
}

TEST(ConfigTest, AKeyThatOccursTwiceIsNamed) {
  EXPECT_EQ(ErrorOf("tenant: a\nstore: memory\ntenant: a\n"),
            "f.yaml:3:1: \"tenant\" occurs twice");
  EXPECT_EQ(ErrorOf("policy:\n  keep_turns: 1\n  keep_turns: 2\n"),
            "f.yaml:3:3: \"keep_turns\" occurs twice");
  EXPECT_EQ(ErrorOf("policy: {}\npolicy: {}\n"),
            "f.yaml:2:1: \"policy\" occurs twice");
}

TEST(ConfigTest, AKeyThatIsNoNameIsRefused) {
  EXPECT_THAT(ErrorOf("[a]: b\n"), HasSubstr("expected a name"));
}

TEST(ConfigTest, WhatIsWrongWithThePolicyIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf("policy:\n  mode: never\n"),
              StartsWith("f.yaml:2:9: mode: unknown value \"never\""));
  EXPECT_THAT(ErrorOf("policy:\n  keep_observations: 2\n"),
              StartsWith("f.yaml:2:22: keep_observations: expected"));
  EXPECT_THAT(ErrorOf("policy:\n  keep: 2\n"),
              StartsWith("f.yaml:2:9: keep: no such field"));
  EXPECT_THAT(ErrorOf("policy:\n  mode: [off]\n"),
              StartsWith("f.yaml:2:9: expected a single value"));
  EXPECT_THAT(ErrorOf("policy: adaptive\n"),
              StartsWith("f.yaml:1:9: policy: expected a mapping"));
}

TEST(ConfigTest, AllErrorsAreToldAtOnceInOrder) {
  const std::vector<std::string> errors = ErrorsOf(
      "worker_threads: 0\n"
      "tenant: fine\n"
      "nonsense: 1\n"
      "policy:\n"
      "  block_size: none\n"
      "  keep_turns: 1\n"
      "reflection: maybe\n");
  ASSERT_EQ(errors.size(), 4U);
  EXPECT_THAT(errors[0], StartsWith("f.yaml:1:17: worker_threads: "));
  EXPECT_THAT(errors[1], StartsWith("f.yaml:3:1: unknown key"));
  EXPECT_THAT(errors[2], StartsWith("f.yaml:5:15: block_size: "));
  EXPECT_THAT(errors[3], StartsWith("f.yaml:7:13: reflection: "));
}

TEST(ConfigTest, WhatIsNoMappingIsRefused) {
  for (const char* yaml : {"text", "[a, b]", "- a"}) {
    EXPECT_EQ(ErrorOf(yaml), "f.yaml:1:1: expected a mapping");
  }
}

TEST(ConfigTest, BrokenYamlIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf("tenant: a\nstore: [memory\n"), StartsWith("f.yaml:3:1"));
  EXPECT_THAT(ErrorOf("tenant: a\n  store: b\n"), StartsWith("f.yaml:2:"));
  EXPECT_THAT(ErrorOf("tenant: \"a"), StartsWith("f.yaml:1:"));
  EXPECT_THAT(ErrorOf("tenant: *nobody\n"), StartsWith("f.yaml:1:"));
}

// --- what cannot be started with -------------------------------------------

TEST(ConfigTest, AddressesOfThisMachineAreAccepted) {
  for (const char* listen :
       {"127.0.0.1:7171", "127.0.0.1:0", "127.1.2.3:80", "localhost:7171",
        "[::1]:7171", "unix:/run/clerestory.sock", "unix:relative.sock"}) {
    Config config;
    config.listen = listen;
    EXPECT_THAT(CheckConfig(config), IsOk()) << listen;
  }
}

TEST(ConfigTest, AddressesThatOthersReachAreRefused) {
  for (const char* listen :
       {"0.0.0.0:7171", "[::]:7171", ":7171", "7171", "*:7171", "10.0.0.1:1",
        "192.168.127.1:1", "1127.0.0.1:1", "[::12]:1", "localhost.example:1",
        "localhostile:1", "example.com:1", "127.0.0.1.example.com:1",
        "127.example.com:1", "ipv4:0.0.0.0:1", "dns:///example.com:1",
        "LOCAL:1", ""}) {
    Config config;
    config.listen = listen;
    const absl::Status status = CheckConfig(config);
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kInvalidArgument,
                                  Reason::kFieldInvalid))
        << listen;
    EXPECT_EQ(MetadataOf(status, "field"), "listen");
  }
}

TEST(ConfigTest, MetricsMayBeServedToOthers) {
  for (const char* address : {"127.0.0.1:9464", "0.0.0.0:0", "127.0.0.1:65535",
                              "localhost:1", "metrics.example:1"}) {
    Config config;
    config.metrics_address = address;
    EXPECT_THAT(CheckConfig(config), IsOk()) << address;
  }
}

TEST(ConfigTest, AnAddressOfMetricsThatIsNoneIsRefused) {
  for (const char* address :
       {"9464", ":9464", "localhost", "localhost:", "localhost:65536",
        "localhost:-1", "localhost:+1", "localhost:1s", "127.0.0.1:1,0.0.0.0:2",
        "127.0.0.1:1 ", "http://localhost:1", "unix:/a", "[::1]:9464",
        "::1:9464"}) {
    Config config;
    config.metrics_address = address;
    EXPECT_EQ(MetadataOf(CheckConfig(config), "field"), "metrics_address")
        << address;
  }
}

TEST(ConfigTest, AnUnknownStoreIsRefused) {
  for (const char* store : {"RocksDB", "disk", "memory "}) {
    Config config;
    config.store = store;
    EXPECT_EQ(MetadataOf(CheckConfig(config), "field"), "store") << store;
  }
}

TEST(ConfigTest, APolicyThatContradictsItselfIsRefused) {
  const Config config = Load(
      "policy: {mode: threshold, threshold_tokens: 5, low_water_tokens: 6}");
  EXPECT_EQ(MetadataOf(CheckConfig(config), "field"), "low_water_tokens");
}

}  // namespace
}  // namespace clerestory
