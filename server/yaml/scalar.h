// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_YAML_SCALAR_H_
#define CLERESTORY_SERVER_YAML_SCALAR_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/base/time.h"

namespace clerestory {

// The values of unquoted words in a file. Exact: nothing is rounded and nothing
// is guessed. All pure.

// The most digits behind the point.
inline constexpr int kDecimalPlacesMax = 9;

// A whole number: digits with perhaps a minus before them, no zero in front, as
// "-12". Absent if it is none or does not fit.
std::optional<std::int64_t> ParseInteger(absl::string_view text);

// A number with at most `places` digits behind its point, times ten to the
// power of `places`: "0.0125" with 6 places is 12,500. Absent if it is none,
// has more digits or does not fit. REQUIRES: `places` is at most
// kDecimalPlacesMax.
std::optional<std::int64_t> ParseDecimal(absl::string_view text, int places);

// The inverse, without zeros at the end: "0.0125".
std::string FormatDecimal(std::int64_t value, int places);

// The first moment, in UTC, of a day such as "2026-11-30", from 1970 on. Absent
// if there is no such day.
std::optional<TimeMicros> ParseDate(absl::string_view text);

// The day, in UTC, that `time` is in: "2026-11-30".
std::string FormatDate(TimeMicros time);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_YAML_SCALAR_H_
