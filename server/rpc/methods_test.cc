// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/methods.h"

#include <cstdint>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"

namespace clerestory {
namespace {

TEST(MethodsTest, EveryMethodHasANameOfItsOwnAndAPlaceInTheMetrics) {
  std::set<std::string> names;
  bool has_stream = false;
  for (const RpcMethod& method : RpcMethods()) {
    EXPECT_TRUE(names.insert(method.method).second) << method.method;
    has_stream =
        has_stream || (method.is_stream && method.method == "ReadHistory" &&
                       method.service == "clerestory.v1.HistoryService");
  }
  EXPECT_TRUE(has_stream);
  EXPECT_TRUE(names.contains("BuildView"));
  EXPECT_TRUE(names.contains("CreateSession"));
  EXPECT_TRUE(names.contains("SetPolicy"));
  EXPECT_LE(static_cast<std::int64_t>(names.size()), kRpcMethodsMax);
}

}  // namespace
}  // namespace clerestory
