// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_COST_CALIBRATION_H_
#define CLERESTORY_SERVER_COST_CALIBRATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/model/record.h"

namespace clerestory {

// How estimated tokens become those of a provider, from the usage that clients
// report. There are two levels:
//
// - A session has an anchor: its last report that was believed. The next prompt
//   is predicted as that total and what was estimated to have been added since,
//   so that neither the preamble, which the client owns and may not tell, nor
//   any error of the past counts.
// - A tenant and model have a scale, learned from all their sessions: how many
//   tokens the provider counts for one that is estimated.
//
// Reports come from clients and may be anything. All here is integers, pure,
// and follows from the reports alone.

// The scale in millionths: what it is unless something was learned, and between
// what it stays. No two vocabularies in use differ by more.
inline constexpr std::int64_t kScaleOne = 1'000'000;
inline constexpr std::int64_t kScaleMin = 500'000;
inline constexpr std::int64_t kScaleMax = 2'000'000;

// `tokens`, estimated, at `scale_ppm`, rounded to the nearest. REQUIRES: the
// product fits into 62 bits.
std::int64_t Scaled(std::int64_t tokens, std::int64_t scale_ppm);

// The whole prompt that `usage` tells: read from the cache, written to it, and
// neither. Absent if the last is, or if it is nothing: a part is no report.
std::optional<std::int64_t> ReportedPromptTokens(const Usage& usage);

// What a provider counted for something, and what was estimated for the same.
struct CalibrationSample {
  std::int64_t reported_tokens = 0;
  std::int64_t estimated_tokens = 0;

  friend bool operator==(const CalibrationSample&,
                         const CalibrationSample&) = default;
};

// A TokenCalibration as it is stored.
struct CalibrationState {
  // The weight of the samples by their ratio: first those up to 1.02 times
  // kScaleMin, and so on by steps of 2 %; what is above the last stands in it.
  // Zeros at the end are left out.
  std::vector<std::int64_t> weights;
  std::int64_t sample_count = 0;

  friend bool operator==(const CalibrationState&,
                         const CalibrationState&) = default;
};

// The scale of one tenant and model: the weighted median of the ratios of
// samples.
//
// - A sample weighs what was estimated, but at most kSampleWeightMax.
// - It is passed over if less than kSampleTokensMin was estimated, or if the
//   ratio is below a third or above three.
// - Until samples weigh kLearnedWeightMin, the scale is kScaleOne.
// - When they weigh more than kKnownWeightMax all weights are halved, so that
//   what is new can outweigh what was. Else the order of samples does not
//   matter.
//
// A value. Less than half of the weight cannot move the median out of what the
// rest says.
class TokenCalibration {
 public:
  static constexpr std::int64_t kSampleTokensMin = 500;
  static constexpr std::int64_t kSampleWeightMax = 8'000;
  static constexpr std::int64_t kLearnedWeightMin = 12'000;
  static constexpr std::int64_t kKnownWeightMax = 1'000'000;

  TokenCalibration();

  // Takes over what was stored. What could not have been stored - weights
  // below zero, too large, or too many - is left out.
  explicit TokenCalibration(const CalibrationState& state);
  CalibrationState state() const;

  // Learns from `sample`, and returns whether it was not passed over.
  bool Add(const CalibrationSample& sample);

  // From kScaleMin to kScaleMax.
  std::int64_t scale_ppm() const;
  // How many samples it has ever learned from.
  std::int64_t sample_count() const { return sample_count_; }

  friend bool operator==(const TokenCalibration&,
                         const TokenCalibration&) = default;

 private:
  std::vector<std::int64_t> weights_;  // As in the state, with all zeros.
  std::int64_t weight_sum_ = 0;
  std::int64_t sample_count_ = 0;
};

// What was estimated of the prompt of a call, in tokens of the estimator.
struct PromptEstimate {
  std::int64_t message_tokens = 0;
  std::int64_t preamble_tokens = 0;  // 0 if the client does not tell.

  std::int64_t total() const { return message_tokens + preamble_tokens; }
  friend bool operator==(const PromptEstimate&,
                         const PromptEstimate&) = default;
};

// What became of a report.
enum class ReportVerdict {
  kBelieved,  // It is the anchor now.
  kRepeated,  // The number that was believed or is held: nothing changes.
  kHeld,      // It waits for others that agree; the anchor stays.
  kRefused,   // It cannot be; nothing changes.
};

// The last report of a session that was believed, and what was estimated for
// its call.
//
// - Refused, however often it comes: a total that is not above zero, below a
//   quarter of what was estimated, or above four times that and
//   kUnknownPreambleMax if the client does not tell its preamble, kSlack if it
//   does.
// - Repeated: the very number that is the anchor's or that is held. It tells
//   nothing: either it is the same report, or no provider counted it.
// - The first report is believed; if the preamble is told, only if it is
//   between a third and three times what was estimated. Else it is held.
// - Later, a report is believed if it is as predicted, give or take a quarter,
//   twice what was added since, or half of what was taken away.
// - Any other is held. It is believed when the next report agrees with it, or,
//   if it is below a third or above three times the prediction, when the next
//   two do. To agree is to differ, from what the held one predicts, by no more
//   than a tenth and what was added or taken away. One that does not agree is
//   held in its place; one as predicted lets it be forgotten.
//
// So a single report, or two that differ, cannot move the anchor far, and a
// change that lasts, such as another preamble, is followed.
//
// A value: a session that is replayed has it from the same reports and
// estimates again, whatever the scale was.
class SessionAnchor {
 public:
  static constexpr std::int64_t kUnknownPreambleMax = 250'000;
  static constexpr std::int64_t kSlack = 2'000;

  struct Outcome {
    ReportVerdict verdict = ReportVerdict::kRefused;
    // What the scale of the tenant and model learns from it, if anything: what
    // was added since the report that the last sample was made of, or all of
    // the first prompt if its preamble is told.
    std::optional<CalibrationSample> sample;
  };

  // Takes `reported_total`, as ReportedPromptTokens, for a call for which
  // `estimate` was estimated, by the estimator alone: no scale is in it.
  // Reports are given in the order of their calls, and those that name another
  // model than their call are not given.
  Outcome Report(std::int64_t reported_total, const PromptEstimate& estimate);

  // Forgets from which report the next sample would be made: the model has
  // changed, and another vocabulary counts.
  void BreakSamples() { sample_base_.reset(); }

  // What a provider will count for a prompt estimated as `estimate`; at
  // `scale_ppm` if nothing was reported.
  //
  // From a quarter of the estimate to four times it and kUnknownPreambleMax or
  // kSlack, as for reports.
  std::int64_t Predict(const PromptEstimate& estimate,
                       std::int64_t scale_ppm) const;

  // Whether any report was believed.
  bool is_set() const { return base_.has_value(); }
  // Whether a report is held: predictions may be off.
  bool is_holding() const { return held_.has_value(); }

  friend bool operator==(const SessionAnchor&, const SessionAnchor&) = default;

 private:
  struct Point {
    std::int64_t total = 0;
    PromptEstimate estimate;

    friend bool operator==(const Point&, const Point&) = default;
  };

  // What was added to the estimate of `from`; less than zero if it shrank.
  static std::int64_t Growth(const PromptEstimate& from,
                             const PromptEstimate& to);
  ReportVerdict Judge(const Point& point) const;
  ReportVerdict Hold(const Point& point);
  std::optional<CalibrationSample> SampleTo(const Point& point);

  std::optional<Point> base_;
  std::optional<Point> sample_base_;
  // The last report of those that wait and agree, and how many there are.
  std::optional<Point> held_;
  std::int64_t held_count_ = 0;
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_COST_CALIBRATION_H_
