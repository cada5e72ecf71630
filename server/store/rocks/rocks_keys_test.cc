// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/rocks/rocks_keys.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

// Every text of up to three of the bytes that the encoding treats specially and
// of some that it does not.
std::vector<std::string> Texts() {
  const std::string bytes("\x00\x01\x02\x61\xfe\xff", 6);
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == 3) break;
    for (const char byte : bytes) texts.push_back(texts[i] + byte);
  }
  return texts;
}

bool Contains(const RocksRange& range, const std::string& key) {
  return range.begin <= key && key < range.end;
}

TEST(RocksKeysTest, TheLayoutDoesNotChange) {
  const SessionKey key = {std::string("a\0b", 3), "s"};
  EXPECT_EQ(FormatKey(), "f");
  EXPECT_EQ(absl::BytesToHexString(HeaderKey(key)),
            "68"
            "6100ff62"
            "0001"
            "73"
            "0001");
  EXPECT_EQ(absl::BytesToHexString(RecordKey(key, 0x0102)),
            "72"
            "6100ff62"
            "0001"
            "73"
            "0001"
            "0000000000000102");
}

TEST(RocksKeysTest, APolicyKeyGivesTheTenantBackAndIsInTheRange) {
  EXPECT_EQ(absl::BytesToHexString(PolicyKey(std::string("a\0b", 3))),
            "70"
            "6100ff62"
            "0001");
  const RocksRange range = PolicyRange();
  for (const std::string& tenant : Texts()) {
    const std::string key = PolicyKey(tenant);
    EXPECT_EQ(ParsePolicyKey(key), tenant);
    EXPECT_TRUE(Contains(range, key));
    EXPECT_FALSE(ParsePolicyKey(key + "x").has_value());
    EXPECT_FALSE(Contains(range, HeaderKey({tenant, tenant})));
    EXPECT_FALSE(Contains(range, RecordKey({tenant, tenant}, 0)));
    EXPECT_FALSE(ParsePolicyKey(HeaderKey({tenant, "s"})).has_value());
  }
  EXPECT_FALSE(ParsePolicyKey("").has_value());
  EXPECT_FALSE(ParsePolicyKey("p").has_value());
}

TEST(RocksKeysTest, ACalibrationKeyGivesItsNamesBackAndIsInTheRange) {
  EXPECT_EQ(absl::BytesToHexString(CalibrationKey("t", std::string("a\0b", 3))),
            "63"
            "740001"
            "6100ff62"
            "0001");
  const RocksRange range = CalibrationRange();
  EXPECT_FALSE(Contains(range, FormatKey()));
  for (const std::string& tenant : Texts()) {
    for (const std::string& model : Texts()) {
      const std::string key = CalibrationKey(tenant, model);
      const auto name = ParseCalibrationKey(key);
      ASSERT_TRUE(name.has_value());
      EXPECT_EQ(name->tenant, tenant);
      EXPECT_EQ(name->model, model);
      EXPECT_TRUE(Contains(range, key));
      EXPECT_FALSE(ParseCalibrationKey(key + "x").has_value());
      EXPECT_FALSE(Contains(range, HeaderKey({tenant, model})));
      EXPECT_FALSE(ParseCalibrationKey(HeaderKey({tenant, model})).has_value());
    }
    EXPECT_FALSE(Contains(range, PolicyKey(tenant)));
    EXPECT_FALSE(ParseCalibrationKey(PolicyKey(tenant)).has_value());
  }
  EXPECT_FALSE(ParseCalibrationKey("").has_value());
  EXPECT_FALSE(ParseCalibrationKey("c").has_value());
}

TEST(RocksKeysTest, AToolKeyGivesItsNamesBackAndIsInTheRange) {
  EXPECT_EQ(absl::BytesToHexString(ToolKey("t", std::string("a\0b", 3))),
            "74"
            "740001"
            "6100ff62"
            "0001");
  const RocksRange range = ToolRange();
  EXPECT_FALSE(Contains(range, FormatKey()));
  for (const std::string& tenant : Texts()) {
    for (const std::string& tool : Texts()) {
      const std::string key = ToolKey(tenant, tool);
      const auto name = ParseToolKey(key);
      ASSERT_TRUE(name.has_value());
      EXPECT_EQ(name->tenant, tenant);
      EXPECT_EQ(name->tool, tool);
      EXPECT_TRUE(Contains(range, key));
      EXPECT_FALSE(Contains(CalibrationRange(), key));
      EXPECT_FALSE(Contains(range, RecordKey({tenant, tool}, 0)));
      EXPECT_FALSE(ParseToolKey(key + "x").has_value());
      EXPECT_FALSE(ParseToolKey(CalibrationKey(tenant, tool)).has_value());
    }
  }
  EXPECT_FALSE(ParseToolKey("").has_value());
  EXPECT_FALSE(ParseToolKey("t").has_value());
}

TEST(RocksKeysTest, HeadersAreOrderedByTenantAndSession) {
  const std::vector<std::string> texts = Texts();
  for (const std::string& left : texts) {
    for (const std::string& right : texts) {
      EXPECT_EQ(left < right, HeaderKey({left, "x"}) < HeaderKey({right, "x"}));
      EXPECT_EQ(left < right, HeaderKey({"x", left}) < HeaderKey({"x", right}));
      const SessionKey a = {left, right};
      const SessionKey b = {right, left};
      EXPECT_EQ(a < b, HeaderKey(a) < HeaderKey(b));
    }
  }
}

TEST(RocksKeysTest, AHeaderKeyGivesTheSessionBack) {
  for (const std::string& tenant : Texts()) {
    for (const std::string& session : {tenant, std::string("s")}) {
      const SessionKey key = {tenant, session};
      EXPECT_EQ(ParseHeaderKey(HeaderKey(key)), key);
    }
  }
}

TEST(RocksKeysTest, OtherBytesAreNoHeaderKey) {
  const std::string whole = HeaderKey({std::string("a\0", 2), "b"});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseHeaderKey(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(ParseHeaderKey(whole + "x"));
  EXPECT_FALSE(ParseHeaderKey(RecordKey({"a", "b"}, 0)));
  EXPECT_FALSE(ParseHeaderKey(std::string("ha\0\2b\0\1", 7)));
}

TEST(RocksKeysTest, ATenantsHeadersAreARangeOfTheirOwn) {
  const std::vector<std::string> texts = Texts();
  for (const std::string& tenant : texts) {
    const RocksRange range = HeaderRange(tenant);
    for (const std::string& other : texts) {
      for (const char* const session : {"", "\xff\xff"}) {
        EXPECT_EQ(Contains(range, HeaderKey({other, session})),
                  other == tenant);
      }
    }
    EXPECT_FALSE(Contains(range, FormatKey()));
    EXPECT_FALSE(Contains(range, RecordKey({tenant, ""}, 0)));
  }
}

TEST(RocksKeysTest, ASessionsRecordsAreARangeInTheOrderOfTheirNumbers) {
  const std::vector<std::int64_t> numbers = {
      0,      1,      255,       256,
      65'535, 65'536, 1LL << 40, std::numeric_limits<std::int64_t>::max()};
  const std::vector<std::string> texts = Texts();
  for (const std::string& session : texts) {
    const SessionKey key = {"tenant", session};
    const RocksRange range = RecordRange(key);
    std::string before;
    for (const std::int64_t number : numbers) {
      const std::string record = RecordKey(key, number);
      EXPECT_TRUE(Contains(range, record));
      EXPECT_LT(before, record);
      before = record;
    }
    for (const std::string& other : texts) {
      for (const std::int64_t number : {numbers.front(), numbers.back()}) {
        EXPECT_EQ(Contains(range, RecordKey({"tenant", other}, number)),
                  other == session);
        EXPECT_FALSE(Contains(range, RecordKey({session, other}, number)));
      }
    }
  }
}

}  // namespace
}  // namespace clerestory
