// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/random_notes.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>

#include "server/base/time.h"
#include "server/formats/recall_tool.h"
#include "server/model/record.h"
#include "server/model/repeat.h"
#include "server/view/session.h"
#include "tests/support/random_session.h"

namespace clerestory {
namespace {

std::string RandomTool(Random& random) {
  switch (random.Between(0, 3)) {
    case 0:
      return std::string(kRecallToolName);
    case 1:
      return "read";
    default:
      return "bash";
  }
}

ObservationId IdAt(const Session& session, std::int64_t place) {
  const Observation& observation =
      session.observations()[static_cast<std::size_t>(place)];
  return {.sequence = observation.sequence, .index = observation.index};
}

PinChanged RandomPinChange(const Session& session, TimeMicros now,
                           Random& random) {
  const auto pin_count = static_cast<std::int64_t>(session.pins().size());
  if (pin_count > 0 && random.OneIn(2)) {
    const auto pin =
        std::next(session.pins().begin(), random.Between(0, pin_count - 1));
    return {.time = now, .pin = *pin, .is_pinned = false};
  }
  const auto count = static_cast<std::int64_t>(session.observations().size());
  PinChanged change = {.time = now, .pin = {}, .is_pinned = !random.OneIn(8)};
  if (count > 0 && !random.OneIn(4)) {
    // Mostly an old one, which may be masked.
    change.pin.observation =
        IdAt(session, random.Between(0, random.Between(0, count - 1)));
  } else {
    change.pin.tool = RandomTool(random);
  }
  return change;
}

}  // namespace

Record RandomNote(const Session& session, TimeMicros now, Random& random) {
  const auto count = static_cast<std::int64_t>(session.observations().size());
  const std::int64_t cost = random.Size(1'000'000);
  if (count > 1 && random.OneIn(2)) {
    const std::int64_t earlier = random.Between(0, count - 2);
    constexpr auto kKindMax = static_cast<std::int64_t>(kRepeatKindCount) - 1;
    return ObservationRepeated{
        .time = now,
        .later = IdAt(session, random.Between(earlier + 1, count - 1)),
        .earlier = IdAt(session, earlier),
        .kind = random.OneIn(3)
                    ? RepeatKind::kRefetch
                    : static_cast<RepeatKind>(random.Between(1, kKindMax)),
        .cost = cost};
  }
  if (count > 0 && random.OneIn(3)) {
    return ObservationRecalled{
        .time = now,
        .observation = IdAt(session, random.Between(0, count - 1)),
        .cost = cost};
  }
  return RandomPinChange(session, now, random);
}

std::set<std::string> RandomTools(Random& random) {
  std::set<std::string> tools;
  while (random.OneIn(2)) tools.insert(RandomTool(random));
  return tools;
}

}  // namespace clerestory
