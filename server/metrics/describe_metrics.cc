// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/describe_metrics.h"

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/metrics/catalogue.h"

namespace clerestory {
namespace {

absl::string_view TypeName(MetricType type) {
  constexpr std::array<absl::string_view, 3> kNames = {"counter", "gauge",
                                                       "histogram"};
  return kNames.at(static_cast<std::size_t>(type));
}

absl::string_view UnitName(MetricUnit unit) {
  constexpr std::array<absl::string_view, 5> kNames = {"", "tokens", "bytes",
                                                       "seconds", "US dollars"};
  return kNames.at(static_cast<std::size_t>(unit));
}

}  // namespace

std::string DescribeMetrics() {
  std::string text = absl::StrCat(
      "# Metrics\n\n"
      "Written by `clerestory-server --describe-metrics`; a test compares. "
      "They are served as text for\nPrometheus under `/metrics` of "
      "`metrics_address`.\n\n"
      "- Values are kept as whole numbers (microseconds, pico-dollars) and "
      "exported as doubles: exact up\n  to 2^53 of them, and within one part "
      "in 10^15 beyond.\n"
      "- Of what sessions send, names of tools become labels, and nothing "
      "else. `tenant` has at most ",
      kTenantPlaces,
      " values\n  beside `other`: tenants with policies first, then those seen "
      "first. `tool` has at most ",
      kToolPlacesPerTenant, " of a\n  tenant and ", kToolPlaces,
      " in all: tools that its policies name first, then the busiest; others "
      "are `other`.\n"
      "- Labels with a closed list of values start at 0, those of a tenant "
      "when it is first seen.\n"
      "- The last column is the most series that there can be; in all at most ",
      kSeriesMax,
      ".\n- `exposer_*` is what the HTTP server counts of its own.\n\n"
      "| metric | type | unit | labels | help | series |\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const MetricDefinition& definition : Catalogue()) {
    std::string labels;
    for (std::size_t i = 0; i < definition.label_count(); ++i) {
      absl::StrAppend(&labels, i == 0 ? "`" : ", `", definition.labels[i].name,
                      "`");
    }
    absl::StrAppend(&text, "| `", definition.name, "` | ",
                    TypeName(definition.type), " | ", UnitName(definition.unit),
                    " | ", labels, " | ", definition.help, " | ",
                    SeriesMax(definition), " |\n");
  }
  return text;
}

}  // namespace clerestory
