// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_RECALL_H_
#define CLERESTORY_SERVER_ENGINE_RECALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/time.h"
#include "server/engine/decide.h"
#include "server/formats/typed_content.h"
#include "server/model/record.h"
#include "server/view/session.h"

namespace clerestory {

// What is done to one session by its agent, or for it, beside the loop of
// views. As in decide.h: applied to `session`, added to `records`, and an error
// changes nothing.

// Which part of which observation.
struct RecallRequest {
  ObservationId id = {};
  std::int64_t offset = 0;  // As of PageOf.
  std::int64_t limit = 1;   // > 0.
  TimeMicros now = 0;
};

// A page of an observation, as its model reads it.
struct RecalledPage {
  ContentPage page;
  std::string tool;
  bool is_error = false;
  // In the last view.
  bool is_masked = false;
};

// Where among the observations of `session` that of `id` is.
// kObservationNotFound, with a text that tells a message that is not there from
// one without such a result.
absl::StatusOr<std::size_t> FindObservation(const Session& session,
                                            const ObservationId& id);

// Returns a page of what was appended. Records that it was recalled, and what
// that cost by `rules`, if it is masked, was not recalled before while it was,
// and the session is open. Errors of FindObservation; kFieldInvalid if no page
// begins at the offset.
absl::StatusOr<RecalledPage> RecallObservation(const RecallRequest& request,
                                               const Rules& rules,
                                               Session& session,
                                               std::vector<Record>& records);

// Sets `pin`, or takes it away. Returns whether that changed anything; if not,
// nothing is recorded.
//
// kSessionClosed; kFieldInvalid with the field `observation_id`, `tool` or
// `resource` if a name is no UTF-8 or too long, or if a pin is to be set and
// there are kSessionPinsMax already, or kSessionResourcePinsMax of resources,
// or pins were changed kSessionPinChangesMax times, and with `target` if there
// is not exactly one; errors of FindObservation.
absl::StatusOr<bool> ChangePin(const Pin& pin, bool is_pinned, TimeMicros now,
                               Session& session, std::vector<Record>& records);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_RECALL_H_
