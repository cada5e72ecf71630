// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/tool_convert.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clerestory/v1/policy_service.pb.h"
#include "server/base/check.h"
#include "server/base/status.h"
#include "server/breaker/tool_breaker.h"
#include "server/engine/tool_registry.h"
#include "server/model/breaker_record.h"
#include "server/rpc/convert.h"
#include "server/rpc/page_token.h"

namespace clerestory {
namespace {

// In front of the name in a page token: the first name may be empty, and the
// token of the first page is.
constexpr absl::string_view kAfter = "+";

v1::ToolState FromState(BreakerState state) {
  switch (state) {
    case BreakerState::kObserving:
      return v1::TOOL_STATE_OBSERVING;
    case BreakerState::kMasked:
      return v1::TOOL_STATE_MASKED;
    case BreakerState::kUnmasked:
      return v1::TOOL_STATE_UNMASKED;
    case BreakerState::kProbing:
      return v1::TOOL_STATE_PROBING;
  }
  CLERESTORY_CHECK(false);
}

}  // namespace

v1::Tool FromTool(const ToolStatus& tool) {
  const BreakerFigures& figures = tool.figures;
  v1::Tool out;
  out.set_name(tool.tool);
  out.set_is_other(tool.tool.empty());
  out.set_state(FromState(figures.state));
  if (figures.since > 0) *out.mutable_state_time() = FromTime(figures.since);
  if (figures.next_probe > 0) {
    *out.mutable_next_probe_time() = FromTime(figures.next_probe);
  }
  out.set_masked_count(figures.masked_count);
  out.set_refetched_count(figures.refetched_count);
  out.set_rate_ppm(figures.rate);
  out.set_rate_low_ppm(figures.interval.low);
  out.set_rate_high_ppm(figures.interval.high);
  out.set_break_even_ppm(figures.break_even);
  return out;
}

absl::Status ToPage(const std::vector<ToolStatus>& tools,
                    absl::string_view tenant,
                    const v1::ListToolsRequest& request,
                    v1::ListToolsResponse& response) {
  CLERESTORY_ASSIGN_OR_RETURN(const std::int64_t page_size,
                              PageSize(request.page_size()));
  const std::string scope = absl::StrCat("ListTools/", tenant);
  CLERESTORY_ASSIGN_OR_RETURN(const std::string after,
                              ReadPageToken(scope, request.page_token()));
  for (const ToolStatus& tool : tools) {
    if (!after.empty() && absl::StrCat(kAfter, tool.tool) <= after) continue;
    if (response.tools_size() == page_size) {
      response.set_next_page_token(MakePageToken(
          scope, absl::StrCat(kAfter, response.tools().rbegin()->name())));
      break;
    }
    *response.add_tools() = FromTool(tool);
  }
  return absl::OkStatus();
}

absl::Status CheckToolName(absl::string_view name) {
  if (static_cast<std::int64_t>(name.size()) <= ToolRegistry::kNameBytesMax) {
    return absl::OkStatus();
  }
  return FieldError(
      "name", absl::StrCat("expected up to ", ToolRegistry::kNameBytesMax,
                           " bytes, got ", name.size(),
                           "; tools with longer names are counted together, "
                           "under the empty name"));
}

}  // namespace clerestory
