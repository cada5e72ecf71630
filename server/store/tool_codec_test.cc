// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/tool_codec.h"

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "clerestory/storage/v1/tool.pb.h"
#include "gtest/gtest.h"
#include "server/model/breaker_record.h"
#include "server/store/message_frame.h"
#include "server/store/session_store.h"

namespace clerestory {
namespace {

StoredTool Tool() {
  return {.tenant = std::string("t\0\xff", 3),
          .tool = std::string("\0Read\xff", 6),
          .record = {.state = BreakerState::kProbing,
                     .since = 1,
                     .cool_off = 2,
                     .probe_permille = 3,
                     .relapse_count = 4,
                     .epoch = 5,
                     .masked = 6,
                     .refetched = 7,
                     .priced_masked = 8,
                     .priced_refetched = 9,
                     .saved = -10,
                     .lost = 11,
                     .decay_time = 12,
                     .time = 13,
                     .ripening = 14,
                     .fresh = 15,
                     .ripe_time = 16}};
}

// The message in the bytes, without its frame.
std::string MessageOf(const std::string& value) {
  return absl::BytesToHexString(value.substr(5));
}

TEST(ToolCodecTest, TheBytesOfAToolAreAsTheyWere) {
  StoredTool tool = Tool();
  tool.tenant = "t";
  tool.tool = "r";
  tool.record.saved = 10;
  EXPECT_EQ(MessageOf(EncodeTool(tool)),
            "0a0174"
            "120172"
            "1804"
            "200128023003380440054806500758086009680a700b780c"
            "80010d88010e90010f980110");
}

TEST(ToolCodecTest, WhatWasLearnedOfAToolComesBackAndDamageIsSeen) {
  const StoredTool tool = Tool();
  const std::string value = EncodeTool(tool);
  EXPECT_EQ(DecodeTool(value, tool.tenant, tool.tool), tool);
  EXPECT_EQ(DecodeTool(value, "t", tool.tool), std::nullopt);
  EXPECT_EQ(DecodeTool(value, tool.tenant, "r"), std::nullopt);
  EXPECT_EQ(DecodeTool("", tool.tenant, tool.tool), std::nullopt);
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string flipped = value;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_EQ(DecodeTool(flipped, tool.tenant, tool.tool), std::nullopt) << bit;
  }
}

TEST(ToolCodecTest, EveryStateComesBack) {
  StoredTool tool = Tool();
  for (const BreakerState state :
       {BreakerState::kObserving, BreakerState::kMasked,
        BreakerState::kUnmasked, BreakerState::kProbing}) {
    tool.record.state = state;
    EXPECT_EQ(DecodeTool(EncodeTool(tool), tool.tenant, tool.tool), tool);
  }
}

TEST(ToolCodecTest, WhatIsNoStateIsDamage) {
  for (const int state : {0, 5, -1}) {
    storage::v1::ToolBreaker stored;
    stored.set_tenant("t");
    stored.set_tool("r");
    stored.set_state(static_cast<storage::v1::ToolBreaker::State>(state));
    EXPECT_EQ(DecodeTool(EncodeFrame(stored), "t", "r"), std::nullopt);
  }
}

TEST(ToolCodecTest, ATextOfAnotherMessageIsDamage) {
  EXPECT_EQ(
      DecodeTool(std::string(1, char{kRecordFormatVersion}) + "tool", "t", "r"),
      std::nullopt);
}

}  // namespace
}  // namespace clerestory
