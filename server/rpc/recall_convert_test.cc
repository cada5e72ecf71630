// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/recall_convert.h"

#include <string>

#include "absl/status/status.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/engine/recall.h"
#include "server/model/record.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

// Refused as the field `name` of the request.
MATCHER_P(IsRefusedAs, name, "is kFieldInvalid with this field") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "whose status is " << status;
  return DetailOf(status).reason == Reason::kFieldInvalid &&
         MetadataOf(status, "field") == name;
}

TEST(RecallConvertTest, APinIsOfWhatTheRequestNames) {
  v1::PinObservationRequest request;
  EXPECT_THAT(ToPin(request), IsRefusedAs("target"));
  request.set_observation_id("12.1");
  EXPECT_EQ(*ToPin(request), (Pin{.observation = ObservationId{12, 1}}));
  request.set_tool("bash");
  EXPECT_EQ(*ToPin(request), Pin{.tool = "bash"});
  request.set_resource("src/");
  EXPECT_EQ(*ToPin(request), Pin{.resource = "src/"});
}

TEST(RecallConvertTest, APinOfNothingIsRefused) {
  v1::PinObservationRequest request;
  request.set_observation_id("12");
  EXPECT_THAT(ToPin(request), IsRefusedAs("observation_id"));
  request.set_tool("");
  EXPECT_THAT(ToPin(request), IsRefusedAs("tool"));
  request.set_resource("");
  EXPECT_THAT(ToPin(request), IsRefusedAs("resource"));
}

TEST(RecallConvertTest, APageKeepsTextAndJsonApart) {
  const v1::RecallObservationResponse out =
      FromRecalled({.page = {.parts = {{true, "a\n"}, {false, "[1]"}},
                             .next_offset = 5,
                             .total_bytes = 9},
                    .tool = "bash",
                    .is_error = true,
                    .is_masked = true});
  ASSERT_EQ(out.parts_size(), 2);
  EXPECT_EQ(out.parts(0).text(), "a\n");
  EXPECT_TRUE(out.parts(1).has_json());
  EXPECT_EQ(out.parts(1).json(), "[1]");
  EXPECT_EQ(out.next_offset(), 5);
  EXPECT_EQ(out.total_bytes(), 9);
  EXPECT_EQ(out.tool(), "bash");
  EXPECT_TRUE(out.is_error());
  EXPECT_TRUE(out.is_masked());
}

TEST(RecallConvertTest, APinGoesOutAsItCameIn) {
  for (const Pin& pin : {Pin{.observation = ObservationId{2, 1}},
                         Pin{.tool = "t"}, Pin{.resource = "r/"}}) {
    const v1::Pin out = FromPin(pin);
    v1::PinObservationRequest request;
    if (out.has_observation_id()) {
      request.set_observation_id(out.observation_id());
    } else if (out.has_tool()) {
      request.set_tool(out.tool());
    } else {
      request.set_resource(out.resource());
    }
    EXPECT_EQ(*ToPin(request), pin);
  }
}

}  // namespace
}  // namespace clerestory
