// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/recall_convert.h"

#include <utility>

#include "absl/status/statusor.h"
#include "clerestory/v1/history_service.pb.h"
#include "clerestory/v1/session.pb.h"
#include "server/base/status.h"
#include "server/engine/recall.h"
#include "server/formats/typed_content.h"
#include "server/model/record.h"
#include "server/rpc/convert.h"

namespace clerestory {

absl::StatusOr<Pin> ToPin(const v1::PinObservationRequest& request) {
  Pin pin;
  switch (request.target_case()) {
    case v1::PinObservationRequest::kObservationId: {
      CLERESTORY_ASSIGN_OR_RETURN(pin.observation,
                                  ToObservationId(request.observation_id()));
      return pin;
    }
    case v1::PinObservationRequest::kTool:
      if (request.tool().empty()) return FieldError("tool", "missing");
      pin.tool = request.tool();
      return pin;
    case v1::PinObservationRequest::kResource:
      if (request.resource().empty()) return FieldError("resource", "missing");
      pin.resource = request.resource();
      return pin;
    case v1::PinObservationRequest::TARGET_NOT_SET:
      break;
  }
  return FieldError("target",
                    "missing; expected an observation_id, a tool or a "
                    "resource");
}

v1::Pin FromPin(const Pin& pin) {
  v1::Pin out;
  if (pin.observation.has_value()) {
    out.set_observation_id(FromObservationId(*pin.observation));
  } else if (!pin.tool.empty()) {
    out.set_tool(pin.tool);
  } else {
    out.set_resource(pin.resource);
  }
  return out;
}

v1::RecallObservationResponse FromRecalled(RecalledPage recalled) {
  v1::RecallObservationResponse out;
  for (ContentPart& part : recalled.page.parts) {
    v1::ContentPart& to = *out.add_parts();
    if (part.is_text) {
      to.set_text(std::move(part.value));
    } else {
      to.set_json(std::move(part.value));
    }
  }
  out.set_next_offset(recalled.page.next_offset);
  out.set_total_bytes(recalled.page.total_bytes);
  out.set_tool(std::move(recalled.tool));
  out.set_is_error(recalled.is_error);
  out.set_is_masked(recalled.is_masked);
  return out;
}

}  // namespace clerestory
