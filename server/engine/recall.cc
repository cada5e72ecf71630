// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/recall.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/limits.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/base/utf8.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/engine/decide.h"
#include "server/formats/typed_content.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/view/repeats.h"
#include "server/view/session.h"

namespace clerestory {
namespace {

// Why `session` has no observation `id`.
std::string WhyMissing(const Session& session, const ObservationId& id) {
  const std::int64_t messages = session.message_count();
  if (messages == 0) return "the session has no messages yet";
  if (id.sequence < 0 || id.sequence >= messages) {
    return absl::StrCat("the session has no message ", id.sequence,
                        "; the last one is ", messages - 1);
  }
  const std::size_t results =
      session.messages()[static_cast<std::size_t>(id.sequence)]
          .observation_count;
  if (results == 0) {
    return absl::StrCat("message ", id.sequence, " holds no tool result");
  }
  return absl::StrCat("message ", id.sequence, " holds no tool result ",
                      id.index, "; the last one is ", id.sequence, ".",
                      results - 1);
}

// `span` of `message`; "" if there is none.
absl::string_view PartOf(const SessionMessage& message, ByteSpan span) {
  return absl::string_view(*message.raw).substr(span.offset, span.size);
}

absl::Status CheckName(absl::string_view field, const std::string& name,
                       std::int64_t bytes_max) {
  if (static_cast<std::int64_t>(name.size()) > bytes_max) {
    return FieldError(field, absl::StrCat("longer than ", bytes_max, " bytes"));
  }
  if (!IsUtf8(name)) return FieldError(field, "not UTF-8");
  return absl::OkStatus();
}

// The field of the request that holds what `pin` is about.
absl::string_view FieldOf(const Pin& pin) {
  if (pin.observation.has_value()) return "observation_id";
  return pin.tool.empty() ? "resource" : "tool";
}

absl::Status CheckPin(const Pin& pin, const Session& session) {
  const int count = (pin.observation.has_value() ? 1 : 0) +
                    (pin.tool.empty() ? 0 : 1) + (pin.resource.empty() ? 0 : 1);
  if (count != 1) {
    return FieldError("target",
                      "expected an observation_id, a tool or a resource");
  }
  if (pin.observation.has_value()) {
    return FindObservation(session, *pin.observation).status();
  }
  if (!pin.tool.empty()) return CheckName("tool", pin.tool, kToolNameBytesMax);
  return CheckName("resource", pin.resource, kPinResourceBytesMax);
}

// Whether `session` takes one more pin, which is `pin`.
absl::Status CheckRoom(const Pin& pin, const Session& session) {
  const absl::string_view field = FieldOf(pin);
  if (session.pin_change_count() >= kSessionPinChangesMax) {
    return FieldError(
        field, absl::StrCat("the session's pins were changed ",
                            session.pin_change_count(), " times, and after ",
                            kSessionPinChangesMax,
                            " changes no more are taken; unpinning still "
                            "works, and the policy can name tools that are "
                            "never masked"));
  }
  if (session.pins().size() >= kSessionPinsMax) {
    return FieldError(field,
                      absl::StrCat("the session has ", kSessionPinsMax,
                                   " pins, and no more are kept; unpin one"));
  }
  if (!pin.resource.empty() &&
      session.resource_pin_count() >= kSessionResourcePinsMax) {
    return FieldError(
        field, absl::StrCat("the session has ", kSessionResourcePinsMax,
                            " pins of resources, and no more are kept; unpin "
                            "one, or pin a folder (`src/`) or a tool"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::size_t> FindObservation(const Session& session,
                                            const ObservationId& id) {
  const std::optional<std::size_t> found = session.Find(id);
  if (found.has_value()) return *found;
  return MakeError(
      absl::StatusCode::kNotFound, Reason::kObservationNotFound,
      WhyMissing(session, id),
      {{"observation_id", absl::StrCat(id.sequence, ".", id.index)}});
}

absl::StatusOr<RecalledPage> RecallObservation(const RecallRequest& request,
                                               const Rules& rules,
                                               Session& session,
                                               std::vector<Record>& records) {
  CLERESTORY_ASSIGN_OR_RETURN(const std::size_t index,
                              FindObservation(session, request.id));
  const Observation& observation = session.observations()[index];
  const SessionMessage& message =
      session.messages()[static_cast<std::size_t>(observation.sequence)];
  std::optional<ContentPage> page =
      PageOf(TypedContent(PartOf(message, observation.result.content),
                          PartOf(message, observation.result.attachments)),
             request.offset, request.limit);
  if (!page.has_value()) {
    return FieldError("offset",
                      "no part begins there; expected 0 or the next_offset of "
                      "the part before");
  }
  RecalledPage recalled = {.page = *std::move(page),
                           .tool = observation.tool,
                           .is_error = observation.result.is_error,
                           .is_masked = observation.placeholder.has_value() ||
                                        observation.is_dropped};
  if (!recalled.is_masked || observation.is_recalled ||
      session.header().outcome != Outcome::kOpen) {
    return recalled;
  }
  const ModelPrices& prices = rules.prices.Of(LastModel(session), request.now);
  const ObservationRecalled record = {
      .time = request.now,
      .observation = request.id,
      .cost = RecallCost(session, prices, index)};
  session.Apply(record);
  records.emplace_back(record);
  return recalled;
}

absl::StatusOr<bool> ChangePin(const Pin& pin, bool is_pinned, TimeMicros now,
                               Session& session, std::vector<Record>& records) {
  if (session.header().outcome != Outcome::kOpen) return Closed(session);
  CLERESTORY_RETURN_IF_ERROR(CheckPin(pin, session));
  if (session.pins().contains(pin) == is_pinned) return false;
  if (is_pinned) CLERESTORY_RETURN_IF_ERROR(CheckRoom(pin, session));
  PinChanged record = {.time = now, .pin = pin, .is_pinned = is_pinned};
  session.Apply(record);
  records.emplace_back(std::move(record));
  return true;
}

}  // namespace clerestory
