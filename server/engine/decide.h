// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_DECIDE_H_
#define CLERESTORY_SERVER_ENGINE_DECIDE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/time.h"
#include "server/cost/calibration.h"
#include "server/cost/price_book.h"
#include "server/engine/policy_document.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/view/cache.h"
#include "server/view/session.h"
#include "server/view/view.h"

namespace clerestory {

// Messages to append, and where.
struct AppendRequest {
  TimeMicros now = 0;
  // The sequence of the first message; without it, the end of the history.
  std::optional<std::int64_t> expected_sequence;
  std::vector<Bytes> messages;
};

// Usage in a provider's JSON, or in our fields.
using UsageInput = std::variant<std::string, Usage>;

// What a model call is prepared with.
struct BuildViewRequest {
  AppendRequest append;
  std::optional<UsageInput> usage;
  std::string model;  // "" is the session's.
  std::int64_t preamble_tokens = 0;
  std::string preamble_digest;  // As in ViewServed.
  bool dry_run = false;
};

// The most names that `context_management` excludes: those of the first tools
// that were called and are never masked, in the order of their bytes. The
// provider clears others.
inline constexpr std::size_t kDelegatedToolsMax = 100;

struct BuiltView {
  View view;
  std::int64_t masked_count = 0;
  std::int64_t saved_tokens = 0;  // By the break of this view.
  std::int64_t over_window_tokens = 0;
  std::int64_t copied_placeholder_count = 0;  // As in Ledger.
  // The policy in force: its name and digest, and whether it is put aside since
  // the session is of the control group.
  std::string policy_name;
  std::string policy_digest;
  bool is_control = false;
  // The model that is about to be called. That of `view.decision` may be
  // another where that was made for the same call before.
  std::string model;
  bool is_model_known = true;
  CacheStatus cache_status = CacheStatus::kUnknown;
  // As in v1.ViewReport; "" if there is none.
  std::string context_management;
  bool needs_drop_block = false;
  // The tools of the session that are not masked any more, by name.
  std::vector<std::string> unmasked_tools;
};

// What the calls on a session of one tenant go by, as it is now.
struct Rules {
  const PolicyDocument& policies;
  const PriceBook& prices;
  // What has been learned of the tenant and a model; 0 if nothing has.
  absl::FunctionRef<std::int64_t(const std::string& model)> token_scale_of;
  // The tools whose outputs the tenant's breaker does not mask in this session;
  // null for none.
  const std::set<std::string>* unmasked_tools = nullptr;
};

// What can be learned of the tenant and `model`.
struct LearnedSample {
  std::string model;
  CalibrationSample sample;
};

// What is done to one session. Each applies it to `session` and adds to
// `records` what has to be stored; an error changes nothing. Errors as of the
// methods of SessionEngine.

// Appends what is not there yet, and judges what its observations repeat.
absl::Status Append(const AppendRequest& request, const Rules& rules,
                    Session& session, std::vector<Record>& records);

// What is understood of `usage`, of a call of `model` ("" is that of the last
// view); `learned` becomes what it teaches, if anything.
absl::StatusOr<Usage> TakeUsage(const UsageInput& usage,
                                const std::string& model, TimeMicros now,
                                const Rules& rules, Session& session,
                                std::vector<Record>& records,
                                std::optional<LearnedSample>& learned);

// Appends, takes the usage and plans the view.
absl::StatusOr<BuiltView> Decide(const BuildViewRequest& request,
                                 const Rules& rules, Session& session,
                                 std::vector<Record>& records,
                                 std::optional<LearnedSample>& learned);

// The model that was called last, or before the first call that of the header.
const std::string& LastModel(const Session& session);

// The error of a session that is closed.
absl::Status Closed(const Session& session);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_DECIDE_H_
