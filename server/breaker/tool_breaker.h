// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BREAKER_TOOL_BREAKER_H_
#define CLERESTORY_SERVER_BREAKER_TOOL_BREAKER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/base/time.h"
#include "server/breaker/rate_test.h"
#include "server/model/breaker_record.h"
#include "server/model/tool_outcome.h"

namespace clerestory {

// Whether the outputs of a tool are masked in the sessions of a tenant, learned
// from what its agents fetch again. All of it is pure, in whole numbers: the
// same outcomes at the same times give the same state everywhere.
//
//   masked ----- re-fetched more often than pays -----> unmasked
//     ^                                                 |     ^
//     |                                  after the      |     |  more often;
//     the |                                  cool-off       v     |  next
//     cool-off
//     +------ less often than pays -------------------- probing  is twice as
//     long
//
// While it probes, the tool is masked in a share of the sessions only, which
// follows from their ids (IsMaskedIn), and only what comes of those counts.
// Who was unmasked by probing, or again within its last cool-off after it was
// masked, relapsed: the next cool-off is twice as long.
//
// The judgement compares re-fetches for each masked observation, of which only
// the first of an observation counts, with the break-even rate:
//
//   p = what masking an observation saves / what fetching one again costs
//
// both from the sums of money that outcomes report. Masking n observations of
// which a share q is fetched again saves n (saved - q lost), which is more than
// nothing while q < p. Few re-fetches say little of what one costs, so p is
// drawn towards kBreakEvenPrior, as if that had been seen in kPriorRefetches of
// them; it stays within a thousandth and one.
//
// Dozens are masked at a time, long before the agent could fetch one again. So
// each side of the judgement goes by the counts that speak against it: a tool
// is above p by all that was masked, and below it by what is ripe, which is
// what was masked for kRipening, or was fetched again.
//
// A tool is above or below p if the score test of rate_test.h says so with the
// confidence asked for. Since a tool is looked at after every outcome, and who
// looks often enough sees whatever he looks for, the error allowed is that of
// kIndependentLooks looks; many looks at one growing sample are worth no more.
// The decision record 2026-11-30-tool-breaker says where the constants come
// from, and `clerestory_breaker_trial` what they do.
//
// What was seen loses half of its weight in kHalfLife, and whenever there is
// more of it than kSampleMax observations. A long pause, or a clock that goes
// far ahead, costs no more than half of it.
//
// Time does not go back: whoever says that it is earlier is taken to speak now
// (LatestTime).

// What time it is for who knows that it was `latest`, and is told `now`: the
// later of both. But if they are more than kClockErrorMin apart, `latest` was
// the error of a clock, and it is `now`.
inline constexpr std::int64_t kClockErrorMin =
    10LL * 365 * 86'400 * kMicrosPerSecond;
TimeMicros LatestTime(TimeMicros latest, TimeMicros now);

// What a policy says of it (Policy::refetch_*).
struct BreakerOptions {
  // The break-even rate in thousandths; 0 takes the one that prices imply.
  std::int64_t rate_permille = 0;
  // The fewest masked observations that are judged.
  std::int64_t samples_min = 20;
  std::int64_t confidence_percent = 95;
  std::int64_t cool_off_minutes = 1'440;
  std::int64_t probe_permille = 100;

  friend bool operator==(const BreakerOptions&,
                         const BreakerOptions&) = default;
};

// "observing", "masked", "unmasked", "probing".
absl::string_view BreakerStateName(BreakerState state);

// What a tool is judged by.
struct BreakerFigures {
  BreakerState state = BreakerState::kObserving;
  TimeMicros since = 0;
  // When it will be probed; 0 unless it is unmasked.
  TimeMicros next_probe = 0;
  // Observations, decayed and rounded. Those that are not ripe are among them.
  std::int64_t masked_count = 0;
  std::int64_t refetched_count = 0;
  // In millionths. The break-even is outside of the interval, on its side, when
  // the tool is unmasked or masked again: its lower end is that of all, and its
  // upper one that of what is ripe.
  std::int64_t rate = 0;
  RateInterval interval;
  std::int64_t break_even = 0;

  friend bool operator==(const BreakerFigures&,
                         const BreakerFigures&) = default;
};

// A change of state.
struct BreakerTransition {
  std::string tool;
  BreakerState from = BreakerState::kMasked;
  BreakerState to = BreakerState::kMasked;
  TimeMicros time = 0;
  // As they were judged, or of before the counts were set back.
  BreakerFigures figures;

  friend bool operator==(const BreakerTransition&,
                         const BreakerTransition&) = default;
};

class ToolBreaker {
 public:
  static constexpr std::int64_t kBreakEvenPrior = 130'000;  // Millionths.
  static constexpr std::int64_t kPriorRefetches = 2;
  static constexpr std::int64_t kBreakEvenMin = 1'000;
  // 2 ln(kIndependentLooks), in thousandths, is added to the quantile's square.
  static constexpr std::int64_t kIndependentLooks = 3;
  static constexpr std::int64_t kLooksSquare = 2'197;
  static constexpr std::int64_t kHalfLife = 7 * 86'400 * kMicrosPerSecond;
  // Or twice as many as the fewest that are judged, if that is more.
  static constexpr std::int64_t kSampleMax = 1'024;
  // The longest cool-off, in those that the policy asks for.
  static constexpr std::int64_t kRelapsesMax = 5;
  // An observation is ripe when it was masked for that long, or, since two sums
  // are enough to know that, up to twice as long.
  static constexpr std::int64_t kRipening = 600 * kMicrosPerSecond;
  static constexpr TimeMicros kNever = std::numeric_limits<TimeMicros>::max();

  ToolBreaker() = default;
  explicit ToolBreaker(const BreakerRecord& record);

  const BreakerRecord& record() const { return record_; }

  // Lets time pass: to be called before the state is asked for. At the end of
  // the cool-off the tool is probed. Adds what changed to `transitions`.
  void Advance(absl::string_view tool, const BreakerOptions& options,
               TimeMicros now, std::vector<BreakerTransition>& transitions);

  // Adds `outcome` and judges nothing. Counts and losses below zero are taken
  // as none; of re-fetches only as many count as there are masked observations.
  void Add(const ToolOutcome& outcome, const BreakerOptions& options,
           TimeMicros now);

  // Adds only what the break-even follows from: for the outcome of a session
  // that the tool is not masked in.
  void AddPriced(const ToolOutcome& outcome, const BreakerOptions& options,
                 TimeMicros now);

  // Advances, adds `outcome` and judges.
  void Learn(const ToolOutcome& outcome, const BreakerOptions& options,
             TimeMicros now, std::vector<BreakerTransition>& transitions);

  // Forgets all. Adds what changed, if anything did.
  void Reset(absl::string_view tool, const BreakerOptions& options,
             TimeMicros now, std::vector<BreakerTransition>& transitions);

  // Whether the tool's outputs are masked in the session, as of the last
  // Advance.
  bool IsMaskedIn(absl::string_view tenant, absl::string_view tool,
                  absl::string_view session) const;

  // When Advance changes the state; kNever if only an outcome can.
  TimeMicros next_change() const;

  BreakerFigures Figures(const BreakerOptions& options) const;

 private:
  // Lets it be the later of `now` and what it was, which is returned.
  TimeMicros Tick(TimeMicros now);
  void Decay(TimeMicros now);
  void Ripen(TimeMicros now);
  void KeepWithin(const BreakerOptions& options);
  // REQUIRES: `to` is another state.
  void Enter(BreakerState to, absl::string_view tool,
             const BreakerOptions& options, TimeMicros now,
             std::vector<BreakerTransition>& transitions);
  std::int64_t BreakEven(const BreakerOptions& options) const;
  RateSample Sample() const;
  // Of what is ripe.
  RateSample RipeSample() const;

  BreakerRecord record_;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BREAKER_TOOL_BREAKER_H_
