// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/cost/calibration.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/limits.h"
#include "server/model/record.h"

namespace clerestory {
namespace {

CalibrationSample Sample(std::int64_t estimated, std::int64_t percent) {
  return {.reported_tokens = estimated * percent / 100,
          .estimated_tokens = estimated};
}

PromptEstimate Messages(std::int64_t tokens) {
  return {.message_tokens = tokens, .preamble_tokens = 0};
}

// A small generator whose numbers are the same everywhere.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}

  // From 0 to `end` - 1.
  std::int64_t Below(std::int64_t end) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state_ >> 33U) %
                                     static_cast<std::uint64_t>(end));
  }

 private:
  std::uint64_t state_;
};

void ExpectInBounds(const SessionAnchor& anchor, const PromptEstimate& estimate,
                    std::int64_t scale_ppm) {
  const std::int64_t predicted = anchor.Predict(estimate, scale_ppm);
  EXPECT_GE(predicted, estimate.total() / 4);
  EXPECT_LE(predicted,
            4 * estimate.total() + (estimate.preamble_tokens > 0
                                        ? SessionAnchor::kSlack
                                        : SessionAnchor::kUnknownPreambleMax));
}

TEST(ScaledTest, RoundsToTheNearestOnBothSidesOfZero) {
  EXPECT_EQ(Scaled(10, 1'250'000), 13);
  EXPECT_EQ(Scaled(-10, 1'250'000), -13);
  EXPECT_EQ(Scaled(7, kScaleOne), 7);
  EXPECT_EQ(Scaled(0, kScaleMax), 0);
}

TEST(ReportedPromptTokensTest, IsTheSumOrNothing) {
  Usage usage;
  EXPECT_EQ(ReportedPromptTokens(usage), std::nullopt);
  usage.cache_read = 40;
  usage.output = 3;
  EXPECT_EQ(ReportedPromptTokens(usage), std::nullopt);
  usage.input_uncached = 0;
  EXPECT_EQ(ReportedPromptTokens(usage), 40);
  usage.cache_write = 500;
  usage.input_uncached = 3;
  EXPECT_EQ(ReportedPromptTokens(usage), 543);
  usage = {};
  usage.input_uncached = 0;
  EXPECT_EQ(ReportedPromptTokens(usage), std::nullopt);
}

TEST(TokenCalibrationTest, IsOneUntilEnoughWasLearned) {
  TokenCalibration calibration;
  EXPECT_EQ(calibration.scale_ppm(), kScaleOne);
  EXPECT_TRUE(calibration.Add(Sample(11'000, 130)));
  EXPECT_EQ(calibration.scale_ppm(), kScaleOne);
  EXPECT_TRUE(calibration.Add(Sample(4'000, 130)));
  EXPECT_NEAR(static_cast<double>(calibration.scale_ppm()), 1.3e6, 2e4);
  EXPECT_EQ(calibration.sample_count(), 2);
}

TEST(TokenCalibrationTest, FindsEveryRatioWithinOnePercentOrTheClamp) {
  for (std::int64_t percent = 34; percent <= 299; ++percent) {
    TokenCalibration calibration;
    for (int i = 0; i < 10; ++i) calibration.Add(Sample(10'000, percent));
    const std::int64_t ratio = percent * 10'000;
    const std::int64_t wanted = std::clamp(ratio, kScaleMin, kScaleMax);
    EXPECT_LE(std::abs(calibration.scale_ppm() - wanted), wanted / 99)
        << percent;
  }
}

TEST(TokenCalibrationTest, OutliersAndNonsenseArePassedOver) {
  TokenCalibration calibration;
  const TokenCalibration nothing;
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (const CalibrationSample& sample :
       std::vector<CalibrationSample>{{0, 1'000},
                                      {-5, 1'000},
                                      {1'000, 0},
                                      {1'000, -1'000},
                                      {-1'000, -1'000},
                                      {332, 1'000},
                                      {3'001, 1'000},
                                      {499, 499},
                                      {kHuge, kHuge},
                                      {kHuge, 1'000},
                                      {-kHuge, 1'000},
                                      {kTokensMax + 1, kTokensMax}}) {
    EXPECT_FALSE(calibration.Add(sample))
        << sample.reported_tokens << " of " << sample.estimated_tokens;
  }
  EXPECT_EQ(calibration, nothing);
}

TEST(TokenCalibrationTest, TheOrderOfSamplesDoesNotMatter) {
  std::vector<CalibrationSample> samples;
  Numbers numbers(7);
  for (int i = 0; i < 100; ++i) {
    samples.push_back(Sample(500 + numbers.Below(9'000), 80 + i));
  }
  TokenCalibration forward;
  for (const CalibrationSample& sample : samples) forward.Add(sample);
  std::reverse(samples.begin(), samples.end());
  TokenCalibration backward;
  for (const CalibrationSample& sample : samples) backward.Add(sample);
  EXPECT_EQ(forward, backward);
}

TEST(TokenCalibrationTest, LessThanHalfOfTheWeightCannotMoveItOut) {
  for (const std::int64_t lie : {34, 299}) {
    TokenCalibration calibration;
    for (int i = 0; i < 20; ++i) calibration.Add(Sample(8'000, 120 + i % 3));
    for (int i = 0; i < 19; ++i) calibration.Add(Sample(kTokensMax, lie));
    EXPECT_GE(calibration.scale_ppm(), 1'170'000) << lie;
    EXPECT_LE(calibration.scale_ppm(), 1'250'000) << lie;
  }
}

TEST(TokenCalibrationTest, ALargeSampleWeighsNoMoreThanTheMost) {
  TokenCalibration calibration;
  calibration.Add(Sample(1'000'000, 50));
  calibration.Add(Sample(8'000, 150));
  calibration.Add(Sample(8'000, 150));
  EXPECT_NEAR(static_cast<double>(calibration.scale_ppm()), 1.5e6, 3e4);
}

TEST(TokenCalibrationTest, WhatIsNewOutweighsWhatWasInTheEnd) {
  TokenCalibration calibration;
  for (int i = 0; i < 10'000; ++i) calibration.Add(Sample(8'000, 100));
  for (int i = 0; i < 130; ++i) calibration.Add(Sample(8'000, 140));
  EXPECT_NEAR(static_cast<double>(calibration.scale_ppm()), 1.4e6, 3e4);
}

TEST(TokenCalibrationTest, StateComesBackAsItWas) {
  TokenCalibration calibration;
  EXPECT_TRUE(calibration.state().weights.empty());
  EXPECT_EQ(TokenCalibration(calibration.state()), calibration);
  for (int i = 0; i < 30; ++i) calibration.Add(Sample(3'000, 90 + i));
  EXPECT_EQ(TokenCalibration(calibration.state()), calibration);
  EXPECT_LT(calibration.state().weights.size(), 70U);
}

TEST(TokenCalibrationTest, AStateThatCannotBeIsNotBelieved) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const TokenCalibration calibration(CalibrationState{
      .weights = std::vector<std::int64_t>(1'000, kHuge), .sample_count = -1});
  EXPECT_EQ(calibration, TokenCalibration());
  const TokenCalibration negative(CalibrationState{
      .weights = {-kHuge, -1, 5'000, kHuge, 8'000}, .sample_count = 3});
  EXPECT_GE(negative.scale_ppm(), kScaleMin);
  EXPECT_LE(negative.scale_ppm(), 560'000);
}

TEST(TokenCalibrationTest, WhateverIsAddedTheScaleStaysInItsClamp) {
  Numbers numbers(1);
  TokenCalibration calibration;
  for (int i = 0; i < 200'000; ++i) {
    const std::int64_t shift = numbers.Below(33);
    calibration.Add(
        {.reported_tokens = numbers.Below(std::int64_t{1} << shift) - 3,
         .estimated_tokens = numbers.Below(std::int64_t{1} << shift) - 3});
    ASSERT_GE(calibration.scale_ppm(), kScaleMin);
    ASSERT_LE(calibration.scale_ppm(), kScaleMax);
  }
}

TEST(SessionAnchorTest, WithoutAReportTheEstimateIsScaled) {
  const SessionAnchor anchor;
  EXPECT_FALSE(anchor.is_set());
  EXPECT_EQ(anchor.Predict(Messages(1'000), 1'300'000), 1'300);
  EXPECT_EQ(anchor.Predict({.message_tokens = 1'000, .preamble_tokens = 500},
                           kScaleOne),
            1'500);
}

TEST(SessionAnchorTest, PredictsWhatWasReportedAndWhatWasAddedSince) {
  SessionAnchor anchor;
  EXPECT_EQ(anchor.Report(21'000, Messages(1'000)).verdict,
            ReportVerdict::kBelieved);
  EXPECT_EQ(anchor.Predict(Messages(3'000), 1'200'000), 23'400);
  // A break takes away from the prompt.
  EXPECT_EQ(anchor.Predict(Messages(600), kScaleOne), 20'600);
}

TEST(SessionAnchorTest, AChangeOfTheToldPreambleCounts) {
  SessionAnchor anchor;
  anchor.Report(6'000, {.message_tokens = 1'000, .preamble_tokens = 4'000});
  EXPECT_EQ(anchor.Predict({.message_tokens = 1'000, .preamble_tokens = 5'000},
                           kScaleOne),
            7'000);
  // Not told is not gone.
  EXPECT_EQ(anchor.Predict(Messages(1'000), kScaleOne), 6'000);
}

TEST(SessionAnchorTest, NonsenseIsRefusedHoweverOftenItComes) {
  SessionAnchor anchor;
  anchor.Report(52'000, Messages(40'000));
  const SessionAnchor before = anchor;
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t total :
       {std::int64_t{0}, std::int64_t{-1}, -kHuge, kHuge, kTokensMax + 1,
        std::int64_t{9'999}, std::int64_t{410'001}}) {
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(anchor.Report(total, Messages(40'000)).verdict,
                ReportVerdict::kRefused)
          << total;
    }
  }
  EXPECT_EQ(anchor, before);
}

TEST(SessionAnchorTest, OutputSentAsInputDoesNotMoveIt) {
  SessionAnchor anchor;
  anchor.Report(30'000, Messages(10'000));
  Numbers numbers(3);
  for (std::int64_t tokens = 10'500; tokens < 40'000; tokens += 500) {
    anchor.Report(50 + numbers.Below(2'000), Messages(tokens));
  }
  EXPECT_EQ(anchor.Predict(Messages(40'000), kScaleOne), 60'000);
}

TEST(SessionAnchorTest, ASingleOutlierIsHeldAndForgotten) {
  for (const std::int64_t outlier : {12'000, 30'000, 90'000, 200'000}) {
    SessionAnchor anchor;
    anchor.Report(50'000, Messages(30'000));
    EXPECT_EQ(anchor.Report(outlier, Messages(31'000)).verdict,
              ReportVerdict::kHeld);
    EXPECT_TRUE(anchor.is_holding());
    EXPECT_EQ(anchor.Predict(Messages(32'000), kScaleOne), 52'000);
    EXPECT_EQ(anchor.Report(52'100, Messages(32'000)).verdict,
              ReportVerdict::kBelieved);
    EXPECT_FALSE(anchor.is_holding());
    EXPECT_EQ(anchor.Predict(Messages(33'000), kScaleOne), 53'100);
  }
}

TEST(SessionAnchorTest, AShiftThatLastsIsFollowedByTheSecondReport) {
  SessionAnchor anchor;
  anchor.Report(50'000, Messages(30'000));
  EXPECT_EQ(anchor.Report(81'000, Messages(31'000)).verdict,
            ReportVerdict::kHeld);
  const SessionAnchor::Outcome outcome =
      anchor.Report(82'100, Messages(32'000));
  EXPECT_EQ(outcome.verdict, ReportVerdict::kBelieved);
  EXPECT_FALSE(outcome.sample);
  EXPECT_EQ(anchor.Predict(Messages(33'000), kScaleOne), 83'100);
}

TEST(SessionAnchorTest, AShiftBeyondThreeTimesIsFollowedByTheThird) {
  SessionAnchor anchor;
  anchor.Report(20'000, Messages(5'000));
  EXPECT_EQ(anchor.Report(90'000, Messages(5'500)).verdict,
            ReportVerdict::kHeld);
  EXPECT_EQ(anchor.Report(90'600, Messages(6'000)).verdict,
            ReportVerdict::kHeld);
  EXPECT_EQ(anchor.Report(91'000, Messages(6'500)).verdict,
            ReportVerdict::kBelieved);
  EXPECT_EQ(anchor.Predict(Messages(7'000), kScaleOne), 91'500);
}

TEST(SessionAnchorTest, ReportsThatAlternateDoNotMoveIt) {
  SessionAnchor anchor;
  anchor.Report(50'000, Messages(30'000));
  for (std::int64_t tokens = 31'000; tokens < 60'000; tokens += 1'000) {
    const bool is_true = tokens % 2'000 == 0;
    anchor.Report(is_true ? tokens + 20'000 : 16'000 + tokens / 100,
                  Messages(tokens));
    EXPECT_LE(std::abs(anchor.Predict(Messages(tokens), kScaleOne) -
                       (tokens + 20'000)),
              1'000);
  }
}

TEST(SessionAnchorTest, ANumberThatIsAlwaysTheSameTellsNothingAfterTheFirst) {
  SessionAnchor anchor;
  anchor.Report(20'000, Messages(1'000));
  for (std::int64_t tokens = 1'100; tokens < 50'000; tokens += 700) {
    const SessionAnchor::Outcome outcome =
        anchor.Report(20'000, Messages(tokens));
    EXPECT_EQ(outcome.verdict, ReportVerdict::kRepeated);
    EXPECT_FALSE(outcome.sample);
  }
  EXPECT_EQ(anchor.Predict(Messages(50'000), kScaleOne), 69'000);
}

TEST(SessionAnchorTest, AHeldReportThatIsRepeatedDoesNotAgreeWithItself) {
  SessionAnchor anchor;
  anchor.Report(50'000, Messages(30'000));
  EXPECT_EQ(anchor.Report(90'000, Messages(31'000)).verdict,
            ReportVerdict::kHeld);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(anchor.Report(90'000, Messages(31'000)).verdict,
              ReportVerdict::kRepeated);
  }
  EXPECT_EQ(anchor.Predict(Messages(31'000), kScaleOne), 51'000);
}

TEST(SessionAnchorTest, AFirstReportFarFromAToldPromptIsHeld) {
  SessionAnchor anchor;
  const PromptEstimate told = {.message_tokens = 2'000,
                               .preamble_tokens = 8'000};
  EXPECT_EQ(anchor.Report(3'000, told).verdict, ReportVerdict::kHeld);
  EXPECT_EQ(anchor.Predict(told, kScaleOne), 10'000);
  EXPECT_EQ(anchor.Report(12'000, told).verdict, ReportVerdict::kBelieved);
}

TEST(SessionAnchorTest, SamplesAreOfWhatWasAddedBetweenBelievedReports) {
  SessionAnchor anchor;
  EXPECT_FALSE(anchor.Report(21'000, Messages(1'000)).sample);
  // Too little was added: it waits.
  EXPECT_FALSE(anchor.Report(21'500, Messages(1'400)).sample);
  EXPECT_EQ(
      anchor.Report(22'300, Messages(2'000)).sample,
      (CalibrationSample{.reported_tokens = 1'300, .estimated_tokens = 1'000}));
  anchor.BreakSamples();
  EXPECT_FALSE(anchor.Report(23'600, Messages(3'000)).sample);
  EXPECT_EQ(
      anchor.Report(24'900, Messages(4'000)).sample,
      (CalibrationSample{.reported_tokens = 1'300, .estimated_tokens = 1'000}));
}

TEST(SessionAnchorTest, AToldPreambleMakesTheFirstReportASample) {
  SessionAnchor anchor;
  EXPECT_EQ(
      anchor.Report(13'000, {.message_tokens = 2'000, .preamble_tokens = 8'000})
          .sample,
      (CalibrationSample{.reported_tokens = 13'000,
                         .estimated_tokens = 10'000}));
}

TEST(SessionAnchorTest, WhatABreakTakesAwayIsNoSample) {
  SessionAnchor anchor;
  anchor.Report(60'000, Messages(40'000));
  EXPECT_FALSE(anchor.Report(36'000, Messages(15'000)).sample);
  EXPECT_EQ(
      anchor.Report(37'200, Messages(16'000)).sample,
      (CalibrationSample{.reported_tokens = 1'200, .estimated_tokens = 1'000}));
}

TEST(SessionAnchorTest, WithinThreeReportsATrueClientIsPredictedWell) {
  for (const std::int64_t percent : {60, 85, 100, 130, 180}) {
    SessionAnchor anchor;
    TokenCalibration calibration;
    Numbers numbers(static_cast<std::uint64_t>(percent));
    std::int64_t estimated = 300;
    std::int64_t counted = 18'000;  // The preamble, which is not told.
    for (int i = 0; i < 60; ++i) {
      const std::int64_t growth = 50 + numbers.Below(2'000);
      estimated += growth;
      counted += growth * (percent - 5 + numbers.Below(10)) / 100;
      if (i >= 3) {
        const std::int64_t predicted =
            anchor.Predict(Messages(estimated), calibration.scale_ppm());
        EXPECT_LE(std::abs(predicted - counted) * 100,
                  counted * (i >= 10 ? 5 : 8))
            << percent << " after " << i;
      }
      const SessionAnchor::Outcome outcome =
          anchor.Report(counted, Messages(estimated));
      EXPECT_EQ(outcome.verdict, ReportVerdict::kBelieved);
      if (outcome.sample) calibration.Add(*outcome.sample);
    }
    EXPECT_NEAR(static_cast<double>(calibration.scale_ppm()),
                static_cast<double>(percent) * 1e4, 4e4);
  }
}

TEST(SessionAnchorTest, WhateverIsReportedPredictionsAndScaleStayInBounds) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Numbers numbers(seed);
    SessionAnchor anchor;
    SessionAnchor again;
    TokenCalibration calibration;
    std::int64_t tokens = 0;
    for (int i = 0; i < 200; ++i) {
      tokens = std::max<std::int64_t>(0, tokens + numbers.Below(6'000) - 1'500);
      const PromptEstimate estimate = {
          .message_tokens = tokens,
          .preamble_tokens = numbers.Below(3) == 0 ? numbers.Below(50'000) : 0};
      std::int64_t total = 0;
      switch (numbers.Below(6)) {
        case 0:
          total = tokens + 20'000;
          break;
        case 1:
          total = numbers.Below(kTokensMax);
          break;
        case 2:
          total = numbers.Below(2) == 0 ? -kHuge : kHuge;
          break;
        case 3:
          total = tokens / (1 + numbers.Below(6));
          break;
        case 4:
          total = tokens * (1 + numbers.Below(6));
          break;
        default:
          total = 12'345;
      }
      const SessionAnchor::Outcome outcome = anchor.Report(total, estimate);
      again.Report(total, estimate);
      if (outcome.sample) calibration.Add(*outcome.sample);
      ASSERT_GE(calibration.scale_ppm(), kScaleMin);
      ASSERT_LE(calibration.scale_ppm(), kScaleMax);
      ExpectInBounds(anchor, estimate, calibration.scale_ppm());
      ExpectInBounds(anchor, Messages(tokens), kHuge);
      ExpectInBounds(anchor, Messages(tokens * 10), -kHuge);
    }
    ASSERT_EQ(anchor, again);
  }
}

TEST(SessionAnchorTest, EstimatesOutOfAnyRangeDoNotOverflow) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  SessionAnchor anchor;
  for (const std::int64_t estimate : {-kHuge, kHuge, std::int64_t{0}}) {
    anchor.Report(kTokensMax, {estimate, estimate});
    anchor.Report(1, {estimate, 0});
    EXPECT_GE(anchor.Predict({estimate, estimate}, kHuge), 0);
    EXPECT_LE(anchor.Predict({-estimate, estimate}, -kHuge), 9 * kTokensMax);
  }
}

}  // namespace
}  // namespace clerestory
