// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/calibration.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "server/base/limits.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

constexpr std::size_t kStepCount = 70;

// Where the steps of the ratio begin, and where the last ends.
constexpr std::array<std::int64_t, kStepCount + 1> StepStarts() {
  std::array<std::int64_t, kStepCount + 1> starts = {};
  starts[0] = kScaleMin;
  for (std::size_t i = 1; i < kStepCount; ++i) {
    starts[i] = starts[i - 1] * 102 / 100;
  }
  starts[kStepCount] = kScaleMax;
  return starts;
}

constexpr std::array<std::int64_t, kStepCount + 1> kStepStarts = StepStarts();
static_assert(kStepStarts[kStepCount - 1] < kScaleMax);

std::size_t StepOf(std::int64_t ratio_ppm) {
  const auto* const next =
      std::upper_bound(kStepStarts.begin() + 1, kStepStarts.end() - 1,
                       std::max(ratio_ppm, kScaleMin));
  return static_cast<std::size_t>(next - kStepStarts.begin()) - 1;
}

bool IsWithinThirds(std::int64_t total, std::int64_t predicted) {
  return total >= predicted / 3 && total <= 3 * predicted;
}

std::int64_t LeastTotal(const PromptEstimate& estimate) {
  return estimate.total() / 4;
}

std::int64_t MostTotal(const PromptEstimate& estimate) {
  return 4 * estimate.total() + (estimate.preamble_tokens > 0
                                     ? SessionAnchor::kSlack
                                     : SessionAnchor::kUnknownPreambleMax);
}

// An estimate that no sum of can overflow.
PromptEstimate Bounded(const PromptEstimate& estimate) {
  return {.message_tokens =
              std::clamp<std::int64_t>(estimate.message_tokens, 0, kTokensMax),
          .preamble_tokens = std::clamp<std::int64_t>(estimate.preamble_tokens,
                                                      0, kTokensMax)};
}

}  // namespace

std::int64_t Scaled(std::int64_t tokens, std::int64_t scale_ppm) {
  if (tokens < 0) return -Scaled(-tokens, scale_ppm);
  return (tokens * scale_ppm + kScaleOne / 2) / kScaleOne;
}

std::optional<std::int64_t> ReportedPromptTokens(const Usage& usage) {
  if (!usage.input_uncached) return std::nullopt;
  const std::int64_t total = *usage.input_uncached +
                             usage.cache_read.value_or(0) +
                             usage.cache_write.value_or(0);
  if (total <= 0) return std::nullopt;
  return total;
}

TokenCalibration::TokenCalibration() : weights_(kStepCount) {}

TokenCalibration::TokenCalibration(const CalibrationState& state)
    : TokenCalibration() {
  const std::size_t count = std::min(state.weights.size(), kStepCount);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t weight = state.weights[i];
    if (weight < 0 || weight > kKnownWeightMax - weight_sum_) continue;
    weights_[i] = weight;
    weight_sum_ += weight;
  }
  sample_count_ = std::max<std::int64_t>(state.sample_count, 0);
}

CalibrationState TokenCalibration::state() const {
  CalibrationState state = {.weights = weights_, .sample_count = sample_count_};
  while (!state.weights.empty() && state.weights.back() == 0) {
    state.weights.pop_back();
  }
  return state;
}

bool TokenCalibration::Add(const CalibrationSample& sample) {
  const std::int64_t reported = sample.reported_tokens;
  const std::int64_t estimated = sample.estimated_tokens;
  if (estimated < kSampleTokensMin || estimated > kTokensMax || reported <= 0 ||
      reported > kTokensMax || !IsWithinThirds(reported, estimated)) {
    return false;
  }
  const std::int64_t weight = std::min(estimated, kSampleWeightMax);
  weights_[StepOf(reported * kScaleOne / estimated)] += weight;
  weight_sum_ += weight;
  ++sample_count_;
  if (weight_sum_ > kKnownWeightMax) {
    for (std::int64_t& w : weights_) w /= 2;
    weight_sum_ =
        std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0});
  }
  return true;
}

std::int64_t TokenCalibration::scale_ppm() const {
  if (weight_sum_ < kLearnedWeightMin) return kScaleOne;
  std::int64_t rest = weight_sum_ / 2;
  std::size_t step = 0;
  while (rest > weights_[step]) rest -= weights_[step++];
  const std::int64_t start = kStepStarts[step];
  const std::int64_t width = kStepStarts[step + 1] - start;
  return start + width * rest / weights_[step];
}

std::int64_t SessionAnchor::Growth(const PromptEstimate& from,
                                   const PromptEstimate& to) {
  const std::int64_t messages = to.message_tokens - from.message_tokens;
  // A preamble that was not told is not one that was not there.
  if (from.preamble_tokens == 0 || to.preamble_tokens == 0) return messages;
  return messages + to.preamble_tokens - from.preamble_tokens;
}

std::int64_t SessionAnchor::Predict(const PromptEstimate& estimate,
                                    std::int64_t scale_ppm) const {
  const PromptEstimate now = Bounded(estimate);
  const std::int64_t scale = std::clamp(scale_ppm, kScaleMin, kScaleMax);
  const std::int64_t predicted =
      base_ ? base_->total + Scaled(Growth(base_->estimate, now), scale)
            : Scaled(now.total(), scale);
  return std::clamp(predicted, LeastTotal(now), MostTotal(now));
}

ReportVerdict SessionAnchor::Judge(const Point& point) const {
  if (!base_) {
    const bool is_told = point.estimate.preamble_tokens > 0;
    return !is_told || IsWithinThirds(point.total, point.estimate.total())
               ? ReportVerdict::kBelieved
               : ReportVerdict::kHeld;
  }
  const std::int64_t predicted = Predict(point.estimate, kScaleOne);
  const std::int64_t growth = Growth(base_->estimate, point.estimate);
  const std::int64_t tolerance =
      predicted / 4 + (growth > 0 ? 2 * growth : -growth / 2);
  return std::abs(point.total - predicted) <= tolerance &&
                 IsWithinThirds(point.total, predicted)
             ? ReportVerdict::kBelieved
             : ReportVerdict::kHeld;
}

ReportVerdict SessionAnchor::Hold(const Point& point) {
  bool agrees = false;
  if (held_) {
    const std::int64_t growth = Growth(held_->estimate, point.estimate);
    const std::int64_t predicted = held_->total + growth;
    agrees = std::abs(point.total - predicted) <=
             point.total / 10 + std::abs(growth);
  }
  held_ = point;
  held_count_ = agrees ? held_count_ + 1 : 1;
  const bool is_near =
      IsWithinThirds(point.total, Predict(point.estimate, kScaleOne));
  return held_count_ >= (is_near ? 2 : 3) ? ReportVerdict::kBelieved
                                          : ReportVerdict::kHeld;
}

std::optional<CalibrationSample> SessionAnchor::SampleTo(const Point& point) {
  std::optional<CalibrationSample> sample;
  if (!base_ && point.estimate.preamble_tokens > 0) {
    sample = {.reported_tokens = point.total,
              .estimated_tokens = point.estimate.total()};
  } else if (sample_base_ && sample_base_->estimate.preamble_tokens ==
                                 point.estimate.preamble_tokens) {
    const std::int64_t growth = Growth(sample_base_->estimate, point.estimate);
    // Waits for more: small differences are mostly what only the client knows.
    if (growth >= 0 && growth < TokenCalibration::kSampleTokensMin) {
      return std::nullopt;
    }
    if (growth > 0) {
      sample = {.reported_tokens = point.total - sample_base_->total,
                .estimated_tokens = growth};
    }
  }
  sample_base_ = point;
  return sample;
}

SessionAnchor::Outcome SessionAnchor::Report(std::int64_t reported_total,
                                             const PromptEstimate& estimate) {
  const Point point = {.total = reported_total, .estimate = Bounded(estimate)};
  if (reported_total <= 0 || reported_total > kTokensMax ||
      reported_total < LeastTotal(point.estimate) ||
      reported_total > MostTotal(point.estimate)) {
    return {.verdict = ReportVerdict::kRefused, .sample = std::nullopt};
  }
  if ((base_ && base_->total == reported_total) ||
      (held_ && held_->total == reported_total)) {
    return {.verdict = ReportVerdict::kRepeated, .sample = std::nullopt};
  }
  Outcome outcome = {.verdict = Judge(point), .sample = std::nullopt};
  if (outcome.verdict == ReportVerdict::kBelieved) {
    outcome.sample = SampleTo(point);
  } else {
    outcome.verdict = Hold(point);
    if (outcome.verdict != ReportVerdict::kBelieved) return outcome;
    sample_base_ = point;
  }
  base_ = point;
  held_.reset();
  held_count_ = 0;
  return outcome;
}

}  // namespace clerestory
