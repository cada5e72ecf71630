// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/intervals.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace clerestory {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kEntryMax = 10'000'000'000'000;

// 2^127 - 1.
constexpr Wide kWideMax = (((Wide{1} << 126) - 1) << 1) + 1;

// At the largest value instead of beyond it.
Wide Add(Wide a, Wide b) {
  Wide sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? -kWideMax : kWideMax;
}

Wide Multiply(Wide a, Wide b) {
  Wide product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? -kWideMax : kWideMax;
}

std::int64_t Narrow(Wide value) {
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(value, -kMax, kMax));
}

// `a / b`, rounded to the nearest. Both at least 0.
Wide Divide(Wide a, Wide b) {
  const Wide quotient = a / b;
  return a - quotient * b >= b - b / 2 ? quotient + 1 : quotient;
}

// The root of `value`, rounded down.
Wide Root(Wide value) {
  if (value <= 0) return 0;
  // Newton's method from above: it falls until it is there.
  Wide root = 1;
  while (root <= value / root) root *= 2;
  while (true) {
    const Wide next = (root + value / root) / 2;
    if (next >= root) return root;
    root = next;
  }
}

// 1.96 times `error`.
std::int64_t Margin(std::int64_t error) {
  return Narrow(Divide(Multiply(error, 196), 100));
}

}  // namespace

void QuotientSums::Add(std::int64_t x, std::int64_t y) {
  const Wide a = std::clamp<std::int64_t>(x, 0, kEntryMax);
  const Wide b = std::clamp<std::int64_t>(y, 0, kEntryMax);
  ++count_;
  x_ += a;
  y_ += b;
  xx_ = clerestory::Add(xx_, a * a);
  xy_ = clerestory::Add(xy_, a * b);
  yy_ = clerestory::Add(yy_, b * b);
}

std::optional<std::int64_t> QuotientSums::Quotient(std::int64_t unit) const {
  if (y_ == 0) return std::nullopt;
  return Narrow(Divide(Multiply(x_, unit), y_));
}

Wide QuotientSums::Spread(std::int64_t unit, std::int64_t quotient) const {
  const Wide squares = Multiply(Multiply(unit, unit), xx_);
  const Wide mixed = Multiply(Multiply(2 * Wide{unit}, quotient), xy_);
  const Wide rest = Multiply(Multiply(quotient, quotient), yy_);
  const Wide spread = std::max<Wide>(
      0, clerestory::Add(clerestory::Add(squares, rest), -mixed));
  return clerestory::Add(spread, spread / (count_ - 1));
}

std::optional<std::int64_t> QuotientSums::StandardError(
    std::int64_t unit) const {
  if (y_ == 0 || count_ < 2) return std::nullopt;
  const Wide root = Root(Spread(unit, *Quotient(unit)));
  return Narrow(Divide(root, y_));
}

std::optional<Estimate> QuotientSums::Interval(std::int64_t unit) const {
  const std::optional<std::int64_t> error = StandardError(unit);
  if (!error.has_value()) return std::nullopt;
  const std::int64_t value = *Quotient(unit);
  const std::int64_t margin = Margin(*error);
  return Estimate{.value = value,
                  .low = std::max<std::int64_t>(0, value - margin),
                  .high = Narrow(Wide{value} + margin)};
}

std::optional<Estimate> QuotientSums::Proportion() const {
  if (y_ == 0) return std::nullopt;
  const Wide p = std::min<Wide>(*Quotient(kPpm), kPpm);
  const Wide pq = p * (kPpm - p);
  // Ten thousand times the number of trials.
  Wide trials = 10'000 * y_;
  if (count_ > 1) {
    const Wide spread = Spread(kPpm, Narrow(p)) / y_;
    if (spread > pq && pq > 0) {
      trials = Multiply(Multiply(pq, y_), 10'000) / spread;
    }
  }
  // With z = 1.96 and n trials: the middle is (p n + z^2/2) / (n + z^2), and
  // the margin z sqrt(p (1-p) n + z^2/4) / (n + z^2).
  constexpr Wide kZSquared = 38'416;
  constexpr Wide kPpmSquared = Wide{kPpm} * kPpm;
  const Wide middle = p * trials + kZSquared / 2 * kPpm;
  const Wide margin =
      196 * Root(Multiply(pq, trials) + kZSquared / 4 * kPpmSquared);
  const Wide divisor = trials + kZSquared;
  return Estimate{
      .value = Narrow(p),
      .low = Narrow(Divide(std::max<Wide>(0, middle - margin), divisor)),
      .high = std::min(kPpm, Narrow(Divide(middle + margin, divisor)))};
}

Estimate Difference(std::int64_t a, std::int64_t a_error, std::int64_t b,
                    std::int64_t b_error) {
  const Wide error = Root(
      clerestory::Add(Multiply(a_error, a_error), Multiply(b_error, b_error)));
  const std::int64_t margin = Margin(Narrow(error));
  const Wide value = Wide{a} - b;
  return {.value = Narrow(value),
          .low = Narrow(value - margin),
          .high = Narrow(value + margin)};
}

}  // namespace clerestory
