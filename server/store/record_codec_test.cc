// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/record_codec.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/model/session_totals.h"
#include "server/store/message_frame.h"
#include "server/store/session_store.h"
#include "tests/support/records.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using testing::HasSubstr;
using testing::Not;

const SessionKey kKey = {"tenant", "session"};

const auto kCorrupt =
    FailsWith(absl::StatusCode::kDataLoss, Reason::kRecordCorrupt);

// The CRC-32 of zlib, PNG and Ethernet.
std::uint32_t Crc32(const std::string& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int i = 0; i < 8; ++i) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    }
  }
  return ~crc;
}

// A value with a right checksum.
std::string Framed(char version, const std::string& message) {
  const std::uint32_t sum = Crc32(version + message);
  std::string value(1, version);
  for (int i = 0; i < 4; ++i) {
    value.push_back(static_cast<char>(sum >> (8 * i)));
  }
  return value + message;
}

// The same of version 1, with a message in hexadecimal.
std::string Hex(const std::string& message) {
  return Framed(1, absl::HexStringToBytes(message));
}

absl::StatusOr<Record> Decode(const std::string& value) {
  return DecodeRecord(value, kKey, 7);
}

TEST(RecordCodecTest, RecordsOfEveryKindComeBack) {
  std::vector<Record> records = FullRecords();
  for (const Record& record : DefaultRecords()) records.push_back(record);
  for (const Record& record : records) {
    const auto decoded = Decode(EncodeRecord(record));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_TRUE(SameRecord(*decoded, record)) << record.index();
  }
}

TEST(RecordCodecTest, HeadersComeBack) {
  SessionHeader header = OpenHeader({std::string("\0\xff", 2), "\xfe"});
  header.outcome = Outcome::kResolved;
  header.close_time = 5;
  header.totals = FullTotals();
  for (const SessionHeader& each : {header, SessionHeader{}}) {
    const auto decoded = DecodeHeader(EncodeHeader(each), each.key);
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(*decoded, each);
  }
}

TEST(RecordCodecTest, EveryEnumeratorComesBack) {
  for (const BreakReason reason :
       {BreakReason::kNone, BreakReason::kPays, BreakReason::kCacheCold,
        BreakReason::kModelChanged, BreakReason::kWindow,
        BreakReason::kSchedule, BreakReason::kPreambleChanged,
        BreakReason::kCacheMissed}) {
    ViewServed view;
    view.break_reason = reason;
    const auto decoded = Decode(EncodeRecord(view));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(std::get<ViewServed>(*decoded), view);
  }
  for (const Outcome outcome : {Outcome::kOpen, Outcome::kResolved,
                                Outcome::kFailed, Outcome::kAbandoned}) {
    const SessionClosed closed = {.time = 1, .outcome = outcome};
    const auto decoded = Decode(EncodeRecord(closed));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(std::get<SessionClosed>(*decoded), closed);
  }
  for (const SessionArm arm : {SessionArm::kNone, SessionArm::kMasked,
                               SessionArm::kControl, SessionArm::kMixed}) {
    SessionHeader header = OpenHeader(kKey);
    header.totals.arm = arm;
    const auto decoded = DecodeHeader(EncodeHeader(header), kKey);
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(*decoded, header);
  }
  for (const Format format :
       {Format::kUnspecified, Format::kAnthropicMessages, Format::kOpenaiChat,
        Format::kOpenaiResponses, Format::kGemini, Format::kBedrockConverse}) {
    SessionHeader header = OpenHeader(kKey);
    header.format = format;
    const auto decoded = DecodeHeader(EncodeHeader(header), kKey);
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(*decoded, header);
  }
}

TEST(RecordCodecTest, UsageThatIsAbsentIsNotZero) {
  for (int field = 0; field < 5; ++field) {
    UsageReported reported;
    Usage& usage = reported.usage;
    (field == 0   ? usage.input_uncached
     : field == 1 ? usage.cache_read
     : field == 2 ? usage.cache_write
     : field == 3 ? usage.output
                  : usage.reasoning) = 0;
    const auto decoded = Decode(EncodeRecord(reported));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(std::get<UsageReported>(*decoded), reported) << field;
  }
}

// The format is a promise to every later version.
TEST(RecordCodecTest, TheBytesOfVersionFourDoNotChange) {
  EXPECT_EQ(absl::BytesToHexString(EncodeRecord(
                SessionClosed{.time = 300, .outcome = Outcome::kFailed})),
            "04"
            "fa220279"
            "220508ac021002");
  EXPECT_EQ(absl::BytesToHexString(EncodeHeader(OpenHeader({"t", "s"}))),
            "04"
            "5e0bf336"
            "0a0174"
            "120173"
            "1802"
            "22076d6f64656c2d31"
            "2881c097d1edff9603"
            "420b0a03617070120464656d6f"
            "420f0a097465616d2f6e616d651202c3a4"
            "4801");
  EXPECT_EQ(absl::BytesToHexString(EncodePolicy(
                {.tenant = "t", .yaml = "a\n", .update_time = 300})),
            "04"
            "fa2bf27b"
            "0a0174"
            "1202610a"
            "18ac02");
  EXPECT_EQ(absl::BytesToHexString(EncodeCalibration({.tenant = "t",
                                                      .model = "m",
                                                      .weights = {0, 300},
                                                      .sample_count = 2})),
            "04"
            "6b8b5162"
            "0a0174"
            "12016d"
            "1a0300ac02"
            "2002");
}

// A ViewServed of break reason 5.
TEST(RecordCodecTest, VersionTwoStripsNothing) {
  const auto view = Decode(Framed(2, absl::HexStringToBytes("12023805")));
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(std::get<ViewServed>(*view).strip_from, std::nullopt);
}

// When the life of a cache began was not noted then.
TEST(RecordCodecTest, BeforeVersionThreeACacheLivesFromTheCallOn) {
  const auto record = Decode(Framed(2, absl::HexStringToBytes("1203"
                                                              "08ac02")));
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(std::get<ViewServed>(*record).cache_time, 300);
}

TEST(RecordCodecTest, StrippingFromTheFirstMessageIsNotStrippingNothing) {
  for (const std::int64_t from : {0, 7}) {
    ViewServed view;
    view.strip_from = from;
    const auto decoded = Decode(EncodeRecord(view));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(std::get<ViewServed>(*decoded).strip_from, from);
  }
}

TEST(RecordCodecTest, VersionsOneAndTwoAreStillRead) {
  for (const char* const closed :
       {"019e2ce231220508ac021002", "027d2b6dbf220508ac021002"}) {
    const auto record = Decode(absl::HexStringToBytes(closed));
    ASSERT_THAT(record, IsOk());
    EXPECT_EQ(std::get<SessionClosed>(*record),
              (SessionClosed{.time = 300, .outcome = Outcome::kFailed}));
  }
  const SessionKey key = {"t", "s"};
  // There were no labels, and no tool that recalls.
  SessionHeader expected = OpenHeader(key);
  expected.labels.clear();
  expected.has_recall_tool = false;
  for (const char* const frame : {"0197f6723b", "0254dbe688"}) {
    const auto header = DecodeHeader(
        absl::HexStringToBytes(
            std::string(frame) +
            "0a0174120173180222076d6f64656c2d312881c097d1edff9603"),
        key);
    ASSERT_THAT(header, IsOk());
    EXPECT_EQ(*header, expected);
  }
}

TEST(RecordCodecTest, ADocumentOfPoliciesComesBackAndDamageIsSeen) {
  const StoredPolicy policy = {.tenant = std::string("t\0\xff", 3),
                               .yaml = std::string("\0\xff# not UTF-8", 13),
                               .update_time = 1'790'000'000'000'001};
  const std::string value = EncodePolicy(policy);
  const auto decoded = DecodePolicy(value, policy.tenant);
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(*decoded, policy);
  EXPECT_THAT(DecodePolicy(value, "t"), kCorrupt);
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string flipped = value;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_THAT(DecodePolicy(flipped, policy.tenant), kCorrupt) << bit;
  }
}

TEST(RecordCodecTest, WhatWasLearnedOfTokensComesBackAndDamageIsSeen) {
  const StoredCalibration learned = {.tenant = std::string("t\0\xff", 3),
                                     .model = std::string("\0m\xff", 3),
                                     .weights = {0, -5, 8'000, 1'000'000, 0},
                                     .sample_count = 77};
  const std::string value = EncodeCalibration(learned);
  EXPECT_EQ(DecodeCalibration(value, learned.tenant, learned.model), learned);
  EXPECT_EQ(DecodeCalibration(value, "t", learned.model), std::nullopt);
  EXPECT_EQ(DecodeCalibration(value, learned.tenant, "m"), std::nullopt);
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string flipped = value;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_EQ(DecodeCalibration(flipped, learned.tenant, learned.model),
              std::nullopt)
        << bit;
  }
  const std::string message = absl::HexStringToBytes("0a017412016d");
  EXPECT_TRUE(DecodeCalibration(Framed(kRecordFormatVersion, message), "t", "m")
                  .has_value());
  EXPECT_EQ(
      DecodeCalibration(Framed(kRecordFormatVersion + 1, message), "t", "m"),
      std::nullopt);
}

TEST(RecordCodecTest, AnyFlippedBitIsDamage) {
  for (const Record& record : FullRecords()) {
    const std::string value = EncodeRecord(record);
    for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
      std::string flipped = value;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_THAT(Decode(flipped), kCorrupt) << bit;
    }
  }
}

TEST(RecordCodecTest, AnyMissingOrAddedByteIsDamage) {
  for (const Record& record : FullRecords()) {
    const std::string value = EncodeRecord(record);
    for (std::size_t size = 0; size < value.size(); ++size) {
      ASSERT_THAT(Decode(value.substr(0, size)), kCorrupt) << size;
    }
    ASSERT_THAT(Decode(value + '\0'), kCorrupt);
  }
}

TEST(RecordCodecTest, DamageNamesSessionAndRecordAndQuotesNothing) {
  std::string value = EncodeRecord(MessageRecord("secret"));
  value.back() = '?';
  const absl::Status record = Decode(value).status();
  EXPECT_EQ(MetadataOf(record, "session_id"), "session");
  EXPECT_EQ(MetadataOf(record, "record"), "7");
  EXPECT_THAT(std::string(record.message()), Not(HasSubstr("secre")));

  SessionHeader other = OpenHeader(kKey);
  other.key.tenant = "secret";
  const absl::Status header = DecodeHeader(EncodeHeader(other), kKey).status();
  EXPECT_EQ(MetadataOf(header, "session_id"), "session");
  EXPECT_EQ(MetadataOf(header, "record"), "header");
  EXPECT_THAT(std::string(header.message()), Not(HasSubstr("secre")));
}

TEST(RecordCodecTest, TheHeaderOfAnotherSessionIsDamage) {
  const std::string value = EncodeHeader(OpenHeader(kKey));
  EXPECT_THAT(DecodeHeader(value, kKey), IsOk());
  EXPECT_THAT(DecodeHeader(value, {"tenant", "sessio"}), kCorrupt);
  EXPECT_THAT(DecodeHeader(value, {"tenan", "session"}), kCorrupt);
}

TEST(RecordCodecTest, AnUnknownEnumeratorIsDamage) {
  // A SessionClosed of outcome 3, and of 4.
  EXPECT_THAT(Decode(Hex("22021003")), IsOk());
  EXPECT_THAT(Decode(Hex("22021004")), kCorrupt);
  // A ViewServed of break reason 5, and of -1.
  EXPECT_THAT(Decode(Hex("12023805")), IsOk());
  EXPECT_THAT(Decode(Hex("120b38ffffffffffffffffff01")), kCorrupt);
  // A header of format 5, and of 6; of outcome 3, and of 4.
  const SessionKey key = {"t", "s"};
  EXPECT_THAT(DecodeHeader(Hex("0a01741201731805"), key), IsOk());
  EXPECT_THAT(DecodeHeader(Hex("0a01741201731806"), key), kCorrupt);
  EXPECT_THAT(DecodeHeader(Hex("0a01741201733003"), key), IsOk());
  EXPECT_THAT(DecodeHeader(Hex("0a01741201733004"), key), kCorrupt);
  // Totals of arm 3, and of 4, in a header and a SessionClosed.
  EXPECT_THAT(DecodeHeader(Hex("0a017412017352020803"), key), IsOk());
  EXPECT_THAT(DecodeHeader(Hex("0a017412017352020804"), key), kCorrupt);
  EXPECT_THAT(Decode(Hex("22041a020803")), IsOk());
  EXPECT_THAT(Decode(Hex("22041a020804")), kCorrupt);
  // Counts of six kinds of repeats, and of seven.
  EXPECT_THAT(DecodeHeader(Hex("0a017412017352086a06000000000000"), key),
              IsOk());
  EXPECT_THAT(DecodeHeader(Hex("0a017412017352096a0700000000000000"), key),
              kCorrupt);
}

TEST(RecordCodecTest, ARecordOfNoKindIsDamage) {
  EXPECT_THAT(Decode(Framed(1, "")), kCorrupt);
  EXPECT_THAT(Decode(Framed(1, "no protobuf message")), kCorrupt);
}

TEST(RecordCodecTest, VersionZeroIsDamage) {
  EXPECT_THAT(Decode(Framed(0, absl::HexStringToBytes("22021003"))), kCorrupt);
}

TEST(RecordCodecTest, ANewerFormatIsRefusedAndNotTakenForDamage) {
  const auto refused = FailsWith(absl::StatusCode::kFailedPrecondition,
                                 Reason::kStoreUnavailable);
  EXPECT_THAT(Decode(Framed(kRecordFormatVersion + 1, "whatever")), refused);
  EXPECT_THAT(DecodeHeader(Framed('\xff', ""), kKey), refused);
}

}  // namespace
}  // namespace clerestory
