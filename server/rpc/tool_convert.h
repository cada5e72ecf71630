// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_RPC_TOOL_CONVERT_H_
#define CLERESTORY_SERVER_RPC_TOOL_CONVERT_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/policy_service.pb.h"
#include "server/engine/tool_registry.h"

namespace clerestory {

// Between tools of the registry and the messages of ListTools and ResetTool.

v1::Tool FromTool(const ToolStatus& tool);

// Fills in the page of `tools`, which are all that `tenant` has, that `request`
// asks for. kFieldInvalid or kPageTokenInvalid if there is none.
absl::Status ToPage(const std::vector<ToolStatus>& tools,
                    absl::string_view tenant,
                    const v1::ListToolsRequest& request,
                    v1::ListToolsResponse& response);

// OK if a tool can have that name; kFieldInvalid otherwise.
absl::Status CheckToolName(absl::string_view name);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_RPC_TOOL_CONVERT_H_
