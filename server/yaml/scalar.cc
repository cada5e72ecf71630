// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/yaml/scalar.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "server/base/check.h"
#include "server/base/time.h"

namespace clerestory {
namespace {

constexpr std::int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;

bool IsDigits(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return !text.empty();
}

std::int64_t PowerOfTen(int exponent) {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

}  // namespace

std::optional<std::int64_t> ParseInteger(absl::string_view text) {
  absl::string_view digits = text;
  if (!digits.empty() && digits.front() == '-') digits.remove_prefix(1);
  if (!IsDigits(digits) || (digits.size() > 1 && digits.front() == '0')) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> ParseDecimal(absl::string_view text, int places) {
  CLERESTORY_CHECK(places >= 0 && places <= kDecimalPlacesMax);
  const std::size_t point = text.find('.');
  if (point == absl::string_view::npos) {
    const std::optional<std::int64_t> whole = ParseInteger(text);
    std::int64_t scaled = 0;
    if (!whole.has_value() ||
        __builtin_mul_overflow(*whole, PowerOfTen(places), &scaled)) {
      return std::nullopt;
    }
    return scaled;
  }
  const absl::string_view fraction = text.substr(point + 1);
  if (!IsDigits(fraction) ||
      fraction.size() > static_cast<std::size_t>(places) ||
      !ParseInteger(text.substr(0, point)).has_value()) {
    return std::nullopt;
  }
  // All digits in a row, with zeros for those that are not written.
  const std::string padding(static_cast<std::size_t>(places) - fraction.size(),
                            '0');
  std::int64_t scaled = 0;
  if (!absl::SimpleAtoi(absl::StrCat(text.substr(0, point), fraction, padding),
                        &scaled)) {
    return std::nullopt;
  }
  return scaled;
}

std::string FormatDecimal(std::int64_t value, int places) {
  CLERESTORY_CHECK(places >= 0 && places <= kDecimalPlacesMax);
  const std::uint64_t magnitude = value < 0
                                      ? 0 - static_cast<std::uint64_t>(value)
                                      : static_cast<std::uint64_t>(value);
  const auto unit = static_cast<std::uint64_t>(PowerOfTen(places));
  std::string out = absl::StrCat(value < 0 ? "-" : "", magnitude / unit);
  if (magnitude % unit == 0) return out;
  absl::StrAppendFormat(&out, ".%0*d", places, magnitude % unit);
  while (out.back() == '0') out.pop_back();
  return out;
}

std::optional<TimeMicros> ParseDate(absl::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') {
    return std::nullopt;
  }
  const absl::string_view year_text = text.substr(0, 4);
  const absl::string_view month_text = text.substr(5, 2);
  const absl::string_view day_text = text.substr(8, 2);
  int year = 0;
  int month = 0;
  int day = 0;
  if (!IsDigits(year_text) || !IsDigits(month_text) || !IsDigits(day_text) ||
      !absl::SimpleAtoi(year_text, &year) ||
      !absl::SimpleAtoi(month_text, &month) ||
      !absl::SimpleAtoi(day_text, &day) || year < 1970) {
    return std::nullopt;
  }
  // A day that does not exist becomes another one.
  const absl::CivilDay civil(year, month, day);
  if (civil.month() != month || civil.day() != day) return std::nullopt;
  return (civil - absl::CivilDay(1970, 1, 1)) * kMicrosPerDay;
}

std::string FormatDate(TimeMicros time) {
  const std::int64_t days =
      time / kMicrosPerDay - (time % kMicrosPerDay < 0 ? 1 : 0);
  const absl::CivilDay civil = absl::CivilDay(1970, 1, 1) + days;
  return absl::StrFormat("%04d-%02d-%02d", civil.year(), civil.month(),
                         civil.day());
}

}  // namespace clerestory
