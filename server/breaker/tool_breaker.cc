// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/breaker/tool_breaker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/base/digest.h"
#include "server/base/time.h"
#include "server/breaker/rate_test.h"
#include "server/model/breaker_record.h"
#include "server/model/money.h"
#include "server/model/tool_outcome.h"

namespace clerestory {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kPermille = 1'000;
constexpr std::int64_t kMicrosPerMinute = 60 * kMicrosPerSecond;
// Times are kept within it, so that sums of two are times.
constexpr TimeMicros kTimeMax = ToolBreaker::kNever / 2;
// A sum of money never comes near to what 64 bits hold.
constexpr PicoUsd kMoneyMax = kPicoUsdPerUsd * 1'000'000;
// The longest cool-off: beyond what any policy asks for.
constexpr std::int64_t kCoolOffMax = 100LL * 365 * 86'400 * kMicrosPerSecond;

// A half-life decays in so many steps, so that how often one looks makes no
// difference. kDecay[i] is 2^32 by 2^(2^i / kDecaySteps).
constexpr int kDecayShift = 6;
constexpr std::int64_t kDecaySteps = 1 << kDecayShift;
constexpr std::int64_t kDecayMicros = ToolBreaker::kHalfLife / kDecaySteps;
constexpr int kFactorBits = 32;
constexpr std::array<std::int64_t, kDecayShift> kDecay = {
    4'248'701'965, 4'202'935'003, 4'112'874'773,
    3'938'502'376, 3'611'622'603, 3'037'000'500};

std::int64_t Times(std::int64_t value, std::int64_t factor) {
  // Towards zero, whatever the sign.
  return static_cast<std::int64_t>(Wide{value} * factor /
                                   (Wide{1} << kFactorBits));
}

std::int64_t CountOf(std::int64_t count) {
  return std::clamp(count, std::int64_t{0}, ToolBreaker::kSampleMax) *
         kCountUnit;
}

std::int64_t Rounded(std::int64_t units) {
  return (units + kCountUnit / 2) / kCountUnit;
}

// Applies `change` to all that decays.
template <typename Change>
void ForEachSum(BreakerRecord& record, Change change) {
  change(record.masked);
  change(record.ripening);
  change(record.fresh);
  change(record.refetched);
  change(record.priced_masked);
  change(record.priced_refetched);
  change(record.saved);
  change(record.lost);
}

void Halve(std::int64_t& sum) { sum /= 2; }

// Raised for repeated looks.
std::int64_t QuantileSquareOf(const BreakerOptions& options) {
  return QuantileSquare(options.confidence_percent) + ToolBreaker::kLooksSquare;
}

BreakerRecord Bounded(BreakerRecord record) {
  const auto bound = [](std::int64_t& value, std::int64_t min,
                        std::int64_t max) {
    value = std::clamp(value, min, max);
  };
  if (record.state == BreakerState::kObserving) {
    record.state = BreakerState::kMasked;
  }
  bound(record.since, 0, kTimeMax);
  bound(record.decay_time, 0, kTimeMax);
  bound(record.time, 0, kTimeMax);
  bound(record.ripe_time, 0, kTimeMax);
  bound(record.cool_off, 0, kCoolOffMax);
  bound(record.probe_permille, 0, kPermille);
  bound(record.relapse_count, 0, ToolBreaker::kRelapsesMax);
  bound(record.epoch, 0, kTimeMax);
  bound(record.masked, 0, kCountMax);
  bound(record.refetched, 0, record.masked);
  bound(record.ripening, 0, record.masked - record.refetched);
  bound(record.fresh, 0, record.masked - record.refetched - record.ripening);
  bound(record.priced_masked, 0, kCountMax);
  bound(record.priced_refetched, 0, kCountMax);
  bound(record.saved, -kMoneyMax, kMoneyMax);
  bound(record.lost, 0, kMoneyMax);
  return record;
}

// The fewest observations that are judged; so many that a sample twice as large
// can be counted.
std::int64_t SamplesMin(const BreakerOptions& options) {
  return std::clamp(options.samples_min, std::int64_t{0},
                    kCountMax / kCountUnit / 2) *
         kCountUnit;
}

// The largest sample: a judgement must not wait for ever for the fewest.
std::int64_t SampleMax(const BreakerOptions& options) {
  return std::max(ToolBreaker::kSampleMax * kCountUnit,
                  2 * SamplesMin(options));
}

// Whether a session of this id is one of `permille` of a thousand.
bool IsProbed(absl::string_view tenant, absl::string_view tool,
              absl::string_view session, std::int64_t epoch,
              std::int64_t permille) {
  const std::string hex =
      Digest::Of(absl::StrCat(tenant.size(), ":", tenant, tool.size(), ":",
                              tool, session.size(), ":", session, epoch))
          .ToHex();
  // 48 bits: the remainder is as good as even.
  std::int64_t value = 0;
  for (const char c : hex.substr(0, 12)) {
    value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return value % kPermille < permille;
}

}  // namespace

TimeMicros LatestTime(TimeMicros latest, TimeMicros now) {
  now = std::clamp(now, TimeMicros{0}, kTimeMax);
  return latest - now > kClockErrorMin ? now : std::max(latest, now);
}

absl::string_view BreakerStateName(BreakerState state) {
  switch (state) {
    case BreakerState::kObserving:
      return "observing";
    case BreakerState::kMasked:
      return "masked";
    case BreakerState::kUnmasked:
      return "unmasked";
    case BreakerState::kProbing:
      return "probing";
  }
  CLERESTORY_CHECK(false);
}

ToolBreaker::ToolBreaker(const BreakerRecord& record)
    : record_(Bounded(record)) {}

void ToolBreaker::Advance(absl::string_view tool, const BreakerOptions& options,
                          TimeMicros now,
                          std::vector<BreakerTransition>& transitions) {
  now = Tick(now);
  if (now >= next_change()) {
    Enter(BreakerState::kProbing, tool, options, now, transitions);
  }
}

void ToolBreaker::Add(const ToolOutcome& outcome, const BreakerOptions& options,
                      TimeMicros now) {
  AddPriced(outcome, options, now);
  const std::int64_t masked = CountOf(outcome.masked_count);
  const std::int64_t refetched = CountOf(outcome.refetched_count);
  record_.masked += masked;
  record_.refetched += refetched;
  record_.fresh += masked;
  // Of those that may have been fetched again, the oldest.
  const std::int64_t ripened = std::min(refetched, record_.ripening);
  record_.ripening -= ripened;
  record_.fresh -= std::min(refetched - ripened, record_.fresh);
  KeepWithin(options);
}

void ToolBreaker::AddPriced(const ToolOutcome& outcome,
                            const BreakerOptions& options, TimeMicros now) {
  Tick(now);
  record_.priced_masked += CountOf(outcome.masked_count);
  record_.priced_refetched += CountOf(outcome.refetched_count);
  record_.saved = SaturatingAdd(record_.saved, outcome.saved);
  record_.lost =
      SaturatingAdd(record_.lost, std::max(outcome.lost, PicoUsd{0}));
  KeepWithin(options);
}

void ToolBreaker::KeepWithin(const BreakerOptions& options) {
  const std::int64_t max = SampleMax(options);
  while (record_.masked > max || record_.priced_masked > max ||
         record_.priced_refetched > max) {
    ForEachSum(record_, Halve);
  }
  record_ = Bounded(record_);
}

void ToolBreaker::Learn(const ToolOutcome& outcome,
                        const BreakerOptions& options, TimeMicros now,
                        std::vector<BreakerTransition>& transitions) {
  Advance(outcome.tool, options, now, transitions);
  Add(outcome, options, now);
  if (record_.state == BreakerState::kUnmasked) return;
  const RateSample sample = Sample();
  const RateSample ripe = RipeSample();
  const std::int64_t least = SamplesMin(options);
  const std::int64_t break_even = BreakEven(options);
  const std::int64_t square = QuantileSquareOf(options);
  if (sample.trials >= least && IsRateAbove(sample, break_even, square)) {
    Enter(BreakerState::kUnmasked, outcome.tool, options, record_.time,
          transitions);
  } else if (record_.state == BreakerState::kProbing && ripe.trials >= least &&
             IsRateBelow(ripe, break_even, square)) {
    Enter(BreakerState::kMasked, outcome.tool, options, record_.time,
          transitions);
  }
}

void ToolBreaker::Reset(absl::string_view tool, const BreakerOptions& options,
                        TimeMicros now,
                        std::vector<BreakerTransition>& transitions) {
  const BreakerFigures figures = Figures(options);
  const TimeMicros time = record_.time;
  record_ = BreakerRecord();
  if (figures.state == BreakerState::kObserving) return;
  transitions.push_back({.tool = std::string(tool),
                         .from = figures.state,
                         .to = BreakerState::kObserving,
                         .time = LatestTime(time, now),
                         .figures = figures});
}

bool ToolBreaker::IsMaskedIn(absl::string_view tenant, absl::string_view tool,
                             absl::string_view session) const {
  switch (record_.state) {
    case BreakerState::kObserving:
    case BreakerState::kMasked:
      return true;
    case BreakerState::kUnmasked:
      return false;
    case BreakerState::kProbing:
      return IsProbed(tenant, tool, session, record_.epoch,
                      record_.probe_permille);
  }
  CLERESTORY_CHECK(false);
}

TimeMicros ToolBreaker::next_change() const {
  return record_.state == BreakerState::kUnmasked
             ? record_.since + record_.cool_off
             : kNever;
}

BreakerFigures ToolBreaker::Figures(const BreakerOptions& options) const {
  const RateSample sample = Sample();
  const std::int64_t square = QuantileSquareOf(options);
  BreakerFigures figures = {
      .state = record_.state,
      .since = record_.since,
      .next_probe =
          record_.state == BreakerState::kUnmasked ? next_change() : 0,
      .masked_count = Rounded(record_.masked),
      .refetched_count = Rounded(record_.refetched),
      .rate = RateOf(sample),
      .interval = {.low = RateIntervalOf(sample, square).low,
                   .high = RateIntervalOf(RipeSample(), square).high},
      .break_even = BreakEven(options)};
  if (figures.state == BreakerState::kMasked &&
      sample.trials < SamplesMin(options)) {
    figures.state = BreakerState::kObserving;
  }
  return figures;
}

TimeMicros ToolBreaker::Tick(TimeMicros now) {
  record_.time = LatestTime(record_.time, now);
  // A time that has not come yet is one of a clock that was wrong.
  record_.since = std::min(record_.since, record_.time);
  Decay(record_.time);
  Ripen(record_.time);
  return record_.time;
}

void ToolBreaker::Decay(TimeMicros now) {
  const std::int64_t elapsed = now - record_.decay_time;
  if (record_.decay_time == 0 || elapsed < 0 || elapsed >= kHalfLife) {
    // The first time; a clock that went back; or one that went far ahead, or a
    // long pause.
    if (record_.decay_time != 0 && elapsed > 0) ForEachSum(record_, Halve);
    record_.decay_time = now;
    return;
  }
  const std::int64_t steps = elapsed / kDecayMicros;
  if (steps <= 0) return;
  for (int bit = 0; bit < kDecayShift; ++bit) {
    if ((steps >> bit & 1) == 0) continue;
    ForEachSum(record_, [bit](std::int64_t& sum) {
      sum = Times(sum, kDecay[static_cast<std::size_t>(bit)]);
    });
  }
  record_.decay_time += steps * kDecayMicros;
}

void ToolBreaker::Ripen(TimeMicros now) {
  const std::int64_t elapsed = now - record_.ripe_time;
  if (elapsed >= 0 && elapsed < kRipening) return;
  if (elapsed < 0 || elapsed >= 2 * kRipening) {
    // What was fresh is as old as that; unless a clock was wrong.
    record_.ripening = 0;
    if (elapsed > 0) record_.fresh = 0;
    record_.ripe_time = now;
    return;
  }
  record_.ripening = record_.fresh;
  record_.fresh = 0;
  record_.ripe_time += kRipening;
}

void ToolBreaker::Enter(BreakerState to, absl::string_view tool,
                        const BreakerOptions& options, TimeMicros now,
                        std::vector<BreakerTransition>& transitions) {
  const BreakerFigures figures = Figures(options);
  transitions.push_back({.tool = std::string(tool),
                         .from = figures.state,
                         .to = to,
                         .time = now,
                         .figures = figures});
  if (to == BreakerState::kUnmasked) {
    const bool is_relapse =
        record_.state == BreakerState::kProbing ||
        (record_.epoch > 0 && now - record_.since <= record_.cool_off);
    record_.relapse_count =
        is_relapse ? std::min(record_.relapse_count + 1, kRelapsesMax) : 0;
    record_.cool_off = SaturatingMultiply(
        options.cool_off_minutes, kMicrosPerMinute << record_.relapse_count);
    record_.probe_permille = options.probe_permille;
    ++record_.epoch;
  }
  if (to == BreakerState::kProbing) {
    record_.masked = 0;
    record_.refetched = 0;
    record_.ripening = 0;
    record_.fresh = 0;
  }
  record_.state = to;
  record_.since = now;
  record_ = Bounded(record_);
}

std::int64_t ToolBreaker::BreakEven(const BreakerOptions& options) const {
  if (options.rate_permille > 0) {
    return std::min(options.rate_permille, kPermille) * (kRateOne / kPermille);
  }
  constexpr std::int64_t kPriorUnits = kPriorRefetches * kCountUnit;
  const std::int64_t seen = record_.priced_refetched;
  std::int64_t implied = kRateOne;
  if (record_.priced_masked == 0 || seen == 0) return kBreakEvenPrior;
  if (record_.lost > 0) {
    // (saved / masked) / (lost / re-fetched)
    const Wide over = Wide{record_.lost} * record_.priced_masked / kRateOne;
    const Wide rate = Wide{record_.saved} * seen / std::max(over, Wide{1});
    implied =
        static_cast<std::int64_t>(std::clamp(rate, Wide{0}, Wide{kRateOne}));
  }
  const Wide drawn =
      (Wide{kBreakEvenPrior} * kPriorUnits + Wide{implied} * seen) /
      (kPriorUnits + seen);
  return std::clamp(static_cast<std::int64_t>(drawn), kBreakEvenMin, kRateOne);
}

RateSample ToolBreaker::Sample() const {
  return {.trials = record_.masked, .successes = record_.refetched};
}

RateSample ToolBreaker::RipeSample() const {
  return {.trials = record_.masked - record_.ripening - record_.fresh,
          .successes = record_.refetched};
}

}  // namespace clerestory
