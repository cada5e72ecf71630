// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/base/log.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace clerestory {
namespace {

// Names and values of a line. Texts are unescaped and stand behind a "'", so
// that they differ from numbers and truths.
using Line = std::map<std::string, std::string>;

// Reads a flat JSON object as RFC 8259 has it, without spaces. Fails the test
// if it is none.
class LineReader {
 public:
  explicit LineReader(absl::string_view line) : rest_(line) {}

  Line Read() {
    Line fields;
    Expect("{");
    do {
      const std::string name = ReadString();
      Expect(":");
      const std::string value =
          absl::StartsWith(rest_, "\"") ? "'" + ReadString() : ReadBare();
      EXPECT_TRUE(fields.emplace(name, value).second) << name;
    } while (absl::ConsumePrefix(&rest_, ","));
    Expect("}");
    EXPECT_EQ(rest_, "");
    return fields;
  }

 private:
  void Expect(absl::string_view what) {
    EXPECT_TRUE(absl::ConsumePrefix(&rest_, what)) << what << " at " << rest_;
  }

  std::string ReadString() {
    std::string out;
    Expect("\"");
    while (!rest_.empty() && rest_[0] != '"') {
      char c = rest_[0];
      EXPECT_TRUE(c >= 0x20 && c < 0x7f) << "at " << rest_;
      rest_.remove_prefix(1);
      if (c == '\\' && !rest_.empty()) {
        c = rest_[0];
        EXPECT_TRUE(c == '"' || c == '\\' || c == 'n') << "at " << rest_;
        if (c == 'n') c = '\n';
        rest_.remove_prefix(1);
      }
      out.push_back(c);
    }
    Expect("\"");
    return out;
  }

  std::string ReadBare() {
    const absl::string_view value = rest_.substr(0, rest_.find_first_of(",}"));
    std::int64_t number = 0;
    EXPECT_TRUE(value == "true" || value == "false" ||
                absl::SimpleAtoi(value, &number))
        << "at " << rest_;
    rest_.remove_prefix(value.size());
    return std::string(value);
  }

  absl::string_view rest_;
};

Line Parse(const std::string& line) { return LineReader(line).Read(); }

TEST(LogTest, LineIsTimeSeverityEventAndFieldsInOrder) {
  EXPECT_EQ(FormatLogLine(0, Severity::kInfo, "server_started",
                          {{"address", std::string("127.0.0.1:1")},
                           {"port", std::int64_t{1}},
                           {"development", true}}),
            R"({"time":"1970-01-01T00:00:00.000000Z","severity":"INFO",)"
            R"("event":"server_started","address":"127.0.0.1:1","port":1,)"
            R"("development":true})");
}

TEST(LogTest, TimeIsUtcWithSixDigitsOfASecond) {
  const auto time = [](std::int64_t micros) {
    return Parse(FormatLogLine(micros, Severity::kInfo, "e", {})).at("time");
  };
  EXPECT_EQ(time(1), "'1970-01-01T00:00:00.000001Z");
  EXPECT_EQ(time(999'999), "'1970-01-01T00:00:00.999999Z");
  EXPECT_EQ(time(951'782'400'000'000), "'2000-02-29T00:00:00.000000Z");
  EXPECT_EQ(time(1'767'225'599'120'000), "'2025-12-31T23:59:59.120000Z");
  EXPECT_EQ(time(-1), "'1969-12-31T23:59:59.999999Z");
}

TEST(LogTest, SeveritiesHaveTheirNames) {
  const auto severity = [](Severity value) {
    return Parse(FormatLogLine(0, value, "e", {})).at("severity");
  };
  EXPECT_EQ(severity(Severity::kInfo), "'INFO");
  EXPECT_EQ(severity(Severity::kWarning), "'WARNING");
  EXPECT_EQ(severity(Severity::kError), "'ERROR");
}

TEST(LogTest, FieldsKeepTheirTypes) {
  const Line line =
      Parse(FormatLogLine(0, Severity::kInfo, "e",
                          {{"text", std::string("12")},
                           {"empty", std::string()},
                           {"least", std::numeric_limits<std::int64_t>::min()},
                           {"most", std::numeric_limits<std::int64_t>::max()},
                           {"yes", true},
                           {"no", false}}));
  EXPECT_EQ(line.at("text"), "'12");
  EXPECT_EQ(line.at("empty"), "'");
  EXPECT_EQ(line.at("least"), "-9223372036854775808");
  EXPECT_EQ(line.at("most"), "9223372036854775807");
  EXPECT_EQ(line.at("yes"), "true");
  EXPECT_EQ(line.at("no"), "false");
}

TEST(LogTest, QuotesBackslashesAndNewlinesReadBackAsTheyWere) {
  const std::string text = "\"\\\n\\n\\\"\n\n\"end\\";
  const Line line =
      Parse(FormatLogLine(0, Severity::kError, text, {{"text", text}}));
  EXPECT_EQ(line.at("event"), "'" + text);
  EXPECT_EQ(line.at("text"), "'" + text);
}

TEST(LogTest, WhatIsNoPrintableAsciiIsLeftOut) {
  const std::string text = std::string("a\0b\tc\rd", 7) +
                           "\x1b"
                           "e\x7f"
                           "f\u00e9\xff"
                           "\u2028g";
  const Line line =
      Parse(FormatLogLine(0, Severity::kError, "e", {{"text", text}}));
  EXPECT_EQ(line.at("text"), "'abcdefg");
}

TEST(LogTest, EveryByteInEveryPlaceLeavesOneLineOfAsciiJson) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'x', static_cast<char>(byte), 'y'};
    const std::string line = FormatLogLine(
        0, Severity::kWarning, text,
        {{absl::string_view(text), std::string(1, static_cast<char>(byte))}});
    Parse(line);
    for (const char c : line) {
      EXPECT_TRUE(c >= 0x20 && c < 0x7f) << byte << " in " << line;
    }
  }
}

}  // namespace
}  // namespace clerestory
