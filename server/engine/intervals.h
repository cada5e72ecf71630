// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_ENGINE_INTERVALS_H_
#define CLERESTORY_SERVER_ENGINE_INTERVALS_H_

#include <cstdint>
#include <optional>

namespace clerestory {

// A quantity that was estimated from a sample of sessions, and between what it
// lies with a confidence of 95 %.
struct Estimate {
  std::int64_t value = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;

  friend bool operator==(const Estimate&, const Estimate&) = default;
};

inline constexpr std::int64_t kPpm = 1'000'000;

// Sums over sessions of two numbers each, x and y, for what is a quotient of
// the sums of both: of money and resolved sessions, of turns and sessions, of
// re-fetches and masked observations. Sessions are the sample, not what is in
// them: what happens in one session belongs together.
//
// All in integers, so that equal sessions give equal figures everywhere. Exact
// as long as both sums stay below 10^18.
class QuotientSums {
 public:
  // Adds a session. Both at least 0; larger ones than 10^13 count as that.
  void Add(std::int64_t x, std::int64_t y);

  std::int64_t count() const { return count_; }
  std::int64_t x() const { return static_cast<std::int64_t>(x_); }
  std::int64_t y() const { return static_cast<std::int64_t>(y_); }

  // x / y times `unit`, rounded to the nearest; nothing if y is 0.
  std::optional<std::int64_t> Quotient(std::int64_t unit) const;

  // The standard error of Quotient(unit) by the delta method, rounded to the
  // nearest: the root of n/(n-1) times the sum of (unit x - quotient y)^2,
  // divided by the sum of y. Of a mean (y is 1 in every session) that is
  // s / sqrt(n). Nothing if y is 0 or there are fewer than two sessions.
  std::optional<std::int64_t> StandardError(std::int64_t unit) const;

  // Quotient(unit) and 1.96 standard errors to both sides, but nothing below 0.
  // Nothing where there is no standard error.
  std::optional<Estimate> Interval(std::int64_t unit) const;

  // x / y in millionths, where x counts some of what y counts, with Wilson's
  // interval of y trials; of fewer if the sessions differ by more than chance
  // (y times the variance of independent trials, divided by the delta
  // method's). Never narrower than of y trials. Nothing if y is 0.
  std::optional<Estimate> Proportion() const;

 private:
  __extension__ using Wide = __int128;

  // n/(n-1) times the sum of (unit x - quotient y)^2.
  Wide Spread(std::int64_t unit, std::int64_t quotient) const;

  std::int64_t count_ = 0;
  Wide x_ = 0;
  Wide y_ = 0;
  Wide xx_ = 0;
  Wide xy_ = 0;
  Wide yy_ = 0;
};

// The difference of two independent quotients with these standard errors, and
// 1.96 times the root of the sum of their squares to both sides.
Estimate Difference(std::int64_t a, std::int64_t a_error, std::int64_t b,
                    std::int64_t b_error);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_ENGINE_INTERVALS_H_
