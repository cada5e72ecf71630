// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/model/money.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/check.h"

namespace clerestory {

std::string FormatUsd(PicoUsd amount, int decimals) {
  CLERESTORY_CHECK(decimals >= 0 && decimals <= 12);
  std::int64_t unit = 1;  // Pico-dollars of the last digit.
  for (int i = decimals; i < 12; ++i) unit *= 10;
  const bool negative = amount < 0;
  const std::uint64_t magnitude = negative
                                      ? 0 - static_cast<std::uint64_t>(amount)
                                      : static_cast<std::uint64_t>(amount);
  const std::uint64_t step = static_cast<std::uint64_t>(unit);
  const std::uint64_t rounded =
      magnitude / step +
      (magnitude % step * 2 >= step ? 1U : 0U) * (step > 1 ? 1U : 0U);
  std::uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  std::string out =
      absl::StrCat(negative && rounded != 0 ? "-" : "", rounded / scale);
  if (decimals > 0) {
    absl::StrAppendFormat(&out, ".%0*d", decimals, rounded % scale);
  }
  return out;
}

}  // namespace clerestory
