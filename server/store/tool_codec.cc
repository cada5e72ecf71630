// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/store/tool_codec.h"

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "clerestory/storage/v1/tool.pb.h"
#include "server/base/check.h"
#include "server/model/breaker_record.h"
#include "server/store/message_frame.h"
#include "server/store/session_store.h"

namespace clerestory {
namespace {

namespace pb = ::clerestory::storage::v1;

pb::ToolBreaker::State ToStored(BreakerState state) {
  switch (state) {
    case BreakerState::kObserving:
      return pb::ToolBreaker::STATE_OBSERVING;
    case BreakerState::kMasked:
      return pb::ToolBreaker::STATE_MASKED;
    case BreakerState::kUnmasked:
      return pb::ToolBreaker::STATE_UNMASKED;
    case BreakerState::kProbing:
      return pb::ToolBreaker::STATE_PROBING;
  }
  CLERESTORY_CHECK(false);
}

// Nothing if it is none.
std::optional<BreakerState> FromStored(pb::ToolBreaker::State state) {
  for (const BreakerState each :
       {BreakerState::kObserving, BreakerState::kMasked,
        BreakerState::kUnmasked, BreakerState::kProbing}) {
    if (ToStored(each) == state) return each;
  }
  return std::nullopt;
}

}  // namespace

std::string EncodeTool(const StoredTool& tool) {
  const BreakerRecord& record = tool.record;
  pb::ToolBreaker stored;
  stored.set_tenant(tool.tenant);
  stored.set_tool(tool.tool);
  stored.set_state(ToStored(record.state));
  stored.set_since_micros(record.since);
  stored.set_cool_off_micros(record.cool_off);
  stored.set_probe_permille(record.probe_permille);
  stored.set_relapse_count(record.relapse_count);
  stored.set_epoch(record.epoch);
  stored.set_masked(record.masked);
  stored.set_refetched(record.refetched);
  stored.set_priced_masked(record.priced_masked);
  stored.set_priced_refetched(record.priced_refetched);
  stored.set_saved_pico_usd(record.saved);
  stored.set_lost_pico_usd(record.lost);
  stored.set_decay_time_micros(record.decay_time);
  stored.set_time_micros(record.time);
  stored.set_ripening(record.ripening);
  stored.set_fresh(record.fresh);
  stored.set_ripe_time_micros(record.ripe_time);
  return EncodeFrame(stored);
}

std::optional<StoredTool> DecodeTool(absl::string_view value,
                                     absl::string_view tenant,
                                     absl::string_view tool) {
  pb::ToolBreaker stored;
  if (DecodeFrame(value, stored) != FrameState::kOk ||
      stored.tenant() != tenant || stored.tool() != tool ||
      !FromStored(stored.state()).has_value()) {
    return std::nullopt;
  }
  return StoredTool{.tenant = std::string(tenant),
                    .tool = std::string(tool),
                    .record = {.state = *FromStored(stored.state()),
                               .since = stored.since_micros(),
                               .cool_off = stored.cool_off_micros(),
                               .probe_permille = stored.probe_permille(),
                               .relapse_count = stored.relapse_count(),
                               .epoch = stored.epoch(),
                               .masked = stored.masked(),
                               .refetched = stored.refetched(),
                               .priced_masked = stored.priced_masked(),
                               .priced_refetched = stored.priced_refetched(),
                               .saved = stored.saved_pico_usd(),
                               .lost = stored.lost_pico_usd(),
                               .decay_time = stored.decay_time_micros(),
                               .time = stored.time_micros(),
                               .ripening = stored.ripening(),
                               .fresh = stored.fresh(),
                               .ripe_time = stored.ripe_time_micros()}};
}

}  // namespace clerestory
